"""Serves ASGI 3 applications: one event loop in each worker, and many requests at the same time."""
