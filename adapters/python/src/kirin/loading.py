"""Loads the application that a target names, and finds out whether it speaks WSGI or ASGI."""
import functools
import importlib
import importlib.machinery
import importlib.util
import inspect
import os
import sys
from typing import Any, NamedTuple

from kirin import target as targets
from kirin.target import TargetError

# The names that are looked for if the target has none.
NAMES = ("application", "app")
FACTORIES = ("create_app", "make_app")

# The most names of callables that an error lists.
LISTED_NAMES = 20


class Application(NamedTuple):
    """An application, and what it speaks."""

    call: Any
    is_asgi: bool


def load(text):
    """Returns the `Application` that a target names.

    Raises `TargetError` if there is none, and any exception that the application raises.
    """
    target = targets.parse(text)
    module = _load_file(target.file) if target.file is not None else _load_module(target.module)
    if target.attribute is not None:
        return _named(module, target, text)
    return _found(module, text)


def _load_module(name):
    _search_first(os.getcwd())
    return importlib.import_module(name)


def _load_file(path):
    """Returns the module that a file has.

    It has the name by which the application's other modules import it, so that there is one module
    object only. For a file in a package that is its name in the package.
    """
    if not os.path.exists(path):
        raise TargetError(f"{path}: there is no such file")
    if os.path.isdir(path):
        raise TargetError(f"{path}: this is a directory")
    directory, base = os.path.split(path)
    stem, extension = os.path.splitext(base)
    names = [] if stem == "__init__" else [stem]
    while stem.isidentifier() and os.path.isfile(os.path.join(directory, "__init__.py")):
        directory, package = os.path.split(directory)
        names.insert(0, package)
    _search_first(directory)
    # A dot would make the first part a package.
    name = ".".join(part.replace(".", "_") for part in names)
    if len(names) > 1 or stem == "__init__":
        return importlib.import_module(name)
    present = sys.modules.get(name)
    if present is not None:
        raise TargetError(
            f"{path}: a module {name!r} of Python or of Kirin is in use already: rename the file"
        )
    loader = _TargetLoader(name, path)
    spec = importlib.util.spec_from_file_location(name, path, loader=loader)
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    try:
        loader.exec_module(module)
    except BaseException:
        sys.modules.pop(name, None)
        raise
    # A module may replace itself there, as import(2) of Python allows it.
    return sys.modules.get(name, module)


class _TargetLoader(importlib.machinery.SourceFileLoader):
    """Loads the file from its source, as `python FILE` does.

    The cached byte code of a file that has been changed within a second, to the same size, would be
    that of the old version.
    """

    def get_code(self, fullname):
        path = self.get_filename(fullname)
        return self.source_to_code(self.get_data(path), path)


def _search_first(directory):
    """Lets imports look in a directory before all others."""
    if sys.path[:1] != [directory]:
        sys.path.insert(0, directory)


def _named(module, target, text):
    thing = module
    for part in target.attribute.split("."):
        try:
            thing = getattr(thing, part)
        except AttributeError:
            raise TargetError(
                f"{text}: {module.__name__} has no {target.attribute!r}.{_callables(module)}"
            ) from None
    if target.is_call:
        return _checked(_call(thing, target.attribute, text), text, f"{target.attribute}()")
    if _is_factory(thing):
        return _checked(_call(thing, target.attribute, text), text, f"{target.attribute}()")
    return _checked(thing, text, target.attribute)


def _found(module, text):
    for name in NAMES:
        thing = getattr(module, name, None)
        if callable(thing):
            if _is_factory(thing):
                return _checked(_call(thing, name, text), text, f"{name}()")
            return _checked(thing, text, name)
    for name in FACTORIES:
        thing = getattr(module, name, None)
        if callable(thing):
            return _checked(_call(thing, name, text), text, f"{name}()")
    raise TargetError(
        f"{text}: the module {module.__name__} has no application under the names"
        f" {', '.join(NAMES)}, {', '.join(f'{name}()' for name in FACTORIES)}."
        f"{_callables(module)} Name the application, as in {text}:NAME"
    )


def _callables(module):
    """Returns a sentence about the callables that a module defines or imports."""
    try:
        names = [
            name
            for name, value in sorted(vars(module).items())
            if not name.startswith("_") and callable(value)
        ]
    except TypeError:
        names = []
    if not names:
        return " It has no callables."
    more = f" and {len(names) - LISTED_NAMES} more" if len(names) > LISTED_NAMES else ""
    return f" Its callables are: {', '.join(names[:LISTED_NAMES])}{more}."


def _call(factory, name, text):
    if not callable(factory):
        raise TargetError(f"{text}: {name} is no callable, but {type(factory).__name__}")
    if not _accepts(factory, 0):
        raise TargetError(f"{text}: {name} cannot be called without arguments")
    return factory()


def _is_factory(thing):
    """Returns whether a function takes no arguments, and so cannot be an application itself."""
    return inspect.isfunction(thing) and not _accepts(thing, 2) and _accepts(thing, 0) \
        and not _accepts(thing, 3)


def _checked(application, text, name):
    """Returns the `Application`, or raises `TargetError` if a worker cannot call it."""
    if not callable(application):
        raise TargetError(
            f"{text}: {name} is no application of WSGI or ASGI: it is no callable,"
            f" but {type(application).__name__}"
        )
    if _is_asgi_2(application):
        raise TargetError(
            f"{text}: {name} is an application of ASGI 2, which takes the scope and returns a"
            " callable. Wrap it, as in asgiref.compatibility.guarantee_single_callable(app)"
        )
    if _is_asgi(application):
        return Application(application, True)
    if not _accepts(application, 2):
        raise TargetError(
            f"{text}: {name} is no application: it can be called neither with environ and"
            " start_response (WSGI) nor with scope, receive and send (ASGI)"
        )
    return Application(application, False)


def _is_asgi(application):
    if _is_async(application):
        return True
    return _accepts(application, 3) and not _accepts(application, 2)


def _is_asgi_2(application):
    """Returns whether an application takes the scope alone."""
    if not _accepts(application, 1) or _accepts(application, 2) or _accepts(application, 3):
        return False
    # The instances of a class are called for each connection then.
    return not inspect.isclass(application) or _is_async(getattr(application, "__call__", None))


def _is_async(application):
    """Returns whether calling an application gives a coroutine, as far as Python knows."""
    while isinstance(application, functools.partial):
        application = application.func
    if inspect.iscoroutinefunction(application):
        return True
    # A class is an application if its instances are responses. Its __call__ says nothing then.
    return not inspect.isclass(application) and inspect.iscoroutinefunction(
        getattr(type(application), "__call__", None)
    )


def _accepts(thing, count):
    """Returns whether a callable takes a number of positional arguments, as far as Python knows."""
    try:
        signature = inspect.signature(thing)
    except (TypeError, ValueError):
        # Compiled code often has none.
        return True
    try:
        signature.bind(*range(count))
    except TypeError:
        return False
    return True
