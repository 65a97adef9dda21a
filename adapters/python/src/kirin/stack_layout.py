"""Says where CPython keeps the calls of the thread that serves: the word `stacks=python:…`.

The front reads the stacks of its workers from outside, out of their memory. So a profile neither
interrupts an application nor slows it down. For that it must know an address and where the fields
of some structures are. These differ between the versions of CPython, and a build may change them.
So this module first reads its own stack in the same way, out of `/proc/self/mem`. If it does not
find what Python itself says, the greeting has no such word, and the application cannot be profiled.

docs/worker-protocol.md describes the numbers.
"""
import os
import sys
from collections import namedtuple
from types import CodeType

try:
    import ctypes
except ImportError:
    # A Python without libffi.
    ctypes = None

# The bytes of an address. The interpreter's structures are built of words of this size.
_WORD = 8

# The offset of the type in an object.
_TYPE = 8

# The most frames that are compared with those that Python says.
_FRAMES = 8

# The value of `frame_owner` of a frame that is no call (FRAME_OWNED_BY_CSTACK).
_OWNED_BY_C = 3

# The offsets of fields in bytes. `thread_frame` is in the state of a thread (PyThreadState), and
# `entry_frame` in what that refers to, in versions that have something between (_PyCFrame).
# `code_first` is where the instructions are in a code object, if frames have addresses of
# instructions. `text_ascii` and `text_other` are where a str has its characters.
_Layout = namedtuple(
    "_Layout",
    "thread_frame entry_frame"
    " frame_code frame_previous frame_instruction frame_owner"
    " code_file code_name code_line code_table code_first"
    " text_length text_state text_ascii text_other bytes_length bytes_data",
)
_LAYOUTS = {
    (3, 9): _Layout(24, 0, 32, 24, 104, 0, 104, 112, 40, 120, 0, 16, 32, 48, 72, 16, 32),
    (3, 10): _Layout(24, 0, 32, 24, 96, 0, 104, 112, 40, 120, 0, 16, 32, 48, 72, 16, 32),
    (3, 11): _Layout(56, 8, 32, 48, 56, 69, 112, 128, 72, 136, 184, 16, 32, 48, 72, 16, 32),
    (3, 12): _Layout(56, 0, 0, 8, 56, 70, 112, 128, 68, 136, 192, 16, 32, 40, 56, 16, 32),
    (3, 13): _Layout(72, 0, 0, 8, 56, 70, 112, 128, 68, 136, 200, 16, 32, 40, 56, 16, 32),
}
_VERSION = sys.version_info[:2]
_HAS_ENTRIES = _VERSION in ((3, 11), (3, 12))
_HAS_ADDRESSES = _VERSION >= (3, 11)
# The names of the fields of a code object that have its name and its lines.
_NAME_FIELD = "co_qualname" if _VERSION >= (3, 11) else "co_name"
_TABLE_FIELD = "co_linetable" if _VERSION >= (3, 10) else "co_lnotab"

# Whether the layout of this version is right. A forked process inherits the answer.
_is_right = None


def greeting_word(*serving):
    """Returns the word of the greeting that says where the stack of this thread is, or "".

    `serving` are the functions that serve. Calls up to the innermost of them are no part of a
    profile.
    """
    global _is_right
    layout = _LAYOUTS.get(_VERSION)
    if ctypes is None or layout is None or sys.implementation.name != "cpython":
        return ""
    try:
        address = _thread_state() + layout.thread_frame
        if _is_right is None:
            _is_right = _check(layout, address)
    except Exception:
        _is_right = False
    if not _is_right:
        return ""
    codes = [id(function.__code__) for function in serving]
    numbers = (_VERSION[1], address, id(CodeType), *layout[1:], *codes)
    return "stacks=python:" + ",".join("%x" % number for number in numbers)


def _thread_state():
    """Returns the address of the state of this thread (PyThreadState)."""
    function = ctypes.PyDLL(None).PyThreadState_Get
    function.restype = ctypes.c_void_p
    return function()


def _check(layout, address):
    """Returns whether the memory of this process has what Python says about itself."""
    memory = os.open("/proc/self/mem", os.O_RDONLY | os.O_CLOEXEC)
    try:
        # Code in C that calls Python leaves frames that are no calls.
        frames_are_right, = map(_frames_are_right, [memory], [layout], [address])
        return frames_are_right and _names_are_right(memory, layout)
    finally:
        os.close(memory)


def _frames_are_right(memory, layout, address):
    # This function reads by itself. A function that it calls would be the innermost frame.
    found = []
    frame = int.from_bytes(os.pread(memory, _WORD, address), sys.byteorder)
    if _HAS_ENTRIES:
        frame += layout.entry_frame
        frame = int.from_bytes(os.pread(memory, _WORD, frame), sys.byteorder)
    while frame and len(found) < _FRAMES:
        block = os.pread(memory, layout.frame_instruction + 2 * _WORD, frame)
        code, frame, instruction = [
            int.from_bytes(block[field : field + _WORD], sys.byteorder)
            for field in (layout.frame_code, layout.frame_previous, layout.frame_instruction)
        ]
        if layout.frame_owner and block[layout.frame_owner] == _OWNED_BY_C:
            continue
        if _HAS_ADDRESSES:
            instruction -= code + layout.code_first
        else:
            # 32 bits, which count instructions of two bytes since 3.10.
            instruction = (instruction & 0xFFFFFFFF) * (2 if _VERSION == (3, 10) else 1)
        found.append((code, instruction))
    frame = sys._getframe()
    expected = []
    while frame is not None and len(expected) < _FRAMES:
        expected.append((id(frame.f_code), frame.f_lasti))
        frame = frame.f_back
    # This function itself has gone on meanwhile.
    return found[0][0] == expected[0][0] and found[1:] == expected[1:]


def _names_are_right(memory, layout):
    def function_within():
        pass

    # Its short name is another one.
    code = function_within.__code__
    start = id(code)
    table = getattr(code, _TABLE_FIELD)
    if (
        _word(memory, start + _TYPE) != id(CodeType)
        or _word(memory, start + layout.code_file) != id(code.co_filename)
        or _word(memory, start + layout.code_name) != id(getattr(code, _NAME_FIELD))
        or _word(memory, start + layout.code_line) & 0xFFFFFFFF != code.co_firstlineno
        or _word(memory, start + layout.code_table) != id(table)
        or _word(memory, id(table) + layout.bytes_length) != len(table)
        or os.pread(memory, len(table), id(table) + layout.bytes_data) != table
    ):
        return False
    samples = {"ascii": (1, "ascii"), "é": (1, "latin-1"), "€": (2, "utf-16"), "𐍈": (4, "utf-32")}
    for text, (size, encoding) in samples.items():
        start = id(text)
        state = _word(memory, start + layout.text_state)
        place = layout.text_ascii if text.isascii() else layout.text_other
        # The bits are two others, the size of a character, and whether it is compact and ASCII.
        if (
            (state >> 2) & 0x1F != size | 8 | (16 if text.isascii() else 0)
            or _word(memory, start + layout.text_length) != len(text)
            or os.pread(memory, size * len(text), start + place)
            != text.encode(encoding)[-size * len(text) :]
        ):
            return False
    return True


def _word(memory, address):
    return int.from_bytes(os.pread(memory, _WORD, address), sys.byteorder)
