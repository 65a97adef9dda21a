"""Kirin's adapter for Python: runs applications of WSGI and ASGI as workers of the Kirin server.

An application may use the decorators `after_fork` and `before_exit`. Everything else in this
package belongs to the adapter.
"""
from kirin.hooks import after_fork, before_exit

__version__ = "0.1.0"
__all__ = ["after_fork", "before_exit"]
