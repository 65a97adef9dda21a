"""The event loop of a worker."""
import asyncio


def new_event_loop():
    """Returns a loop of uvloop if the application has it installed, otherwise one of asyncio."""
    try:
        import uvloop
    except ImportError:
        return asyncio.new_event_loop()
    return uvloop.new_event_loop()
