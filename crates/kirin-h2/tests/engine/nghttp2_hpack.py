"""HPACK of nghttp2, for a test that compares it with ours: libnghttp2 of Debian, called by ctypes.

Each line of standard input is one command, and is answered by one line:

    limit N        the client allows a table of N octets; both of nghttp2's sides obey
    inflate HEX    decodes a header block: NAME=VALUE of each field, in hex, with blanks between them
    deflate FIELD…  encodes fields that are written so: the header block in hex

A block that nghttp2 refuses is answered `error N`.
"""

import ctypes
import sys

FINAL, EMIT = 1, 2


class Field(ctypes.Structure):
    """nghttp2_nv of nghttp2.h."""

    _fields_ = [
        ("name", ctypes.c_void_p),
        ("value", ctypes.c_void_p),
        ("name_length", ctypes.c_size_t),
        ("value_length", ctypes.c_size_t),
        ("flags", ctypes.c_uint8),
    ]


library = ctypes.CDLL("libnghttp2.so.14")
library.nghttp2_hd_inflate_hd2.restype = ctypes.c_ssize_t
library.nghttp2_hd_deflate_hd.restype = ctypes.c_ssize_t
library.nghttp2_hd_deflate_bound.restype = ctypes.c_size_t
inflater, deflater = ctypes.c_void_p(), ctypes.c_void_p()
assert library.nghttp2_hd_inflate_new(ctypes.byref(inflater)) == 0
assert library.nghttp2_hd_deflate_new(ctypes.byref(deflater), ctypes.c_size_t(4096)) == 0


def limit(octets: str) -> str:
    size = ctypes.c_size_t(int(octets))
    assert library.nghttp2_hd_inflate_change_table_size(inflater, size) == 0
    assert library.nghttp2_hd_deflate_change_table_size(deflater, size) == 0
    return "done"


def inflate(block: str = "") -> str:
    octets = bytes.fromhex(block)
    fields = []
    at = 0
    while True:
        field, flags = Field(), ctypes.c_int(0)
        count = library.nghttp2_hd_inflate_hd2(
            inflater, ctypes.byref(field), ctypes.byref(flags), octets[at:], ctypes.c_size_t(len(octets) - at), 1
        )
        if count < 0:
            return f"error {count}"
        at += count
        if flags.value & EMIT:
            name = ctypes.string_at(field.name, field.name_length)
            value = ctypes.string_at(field.value, field.value_length)
            fields.append(f"{name.hex()}={value.hex()}")
        if flags.value & FINAL:
            library.nghttp2_hd_inflate_end_headers(inflater)
            return " ".join(fields)


def deflate(*fields: str) -> str:
    pairs = [tuple(bytes.fromhex(part) for part in field.split("=")) for field in fields]
    kept = [tuple(ctypes.create_string_buffer(part, len(part) + 1) for part in pair) for pair in pairs]
    array = (Field * len(pairs))()
    for entry, pair, (name, value) in zip(array, pairs, kept):
        entry.name, entry.value = ctypes.addressof(name), ctypes.addressof(value)
        entry.name_length, entry.value_length = map(len, pair)
    bound = library.nghttp2_hd_deflate_bound(deflater, array, ctypes.c_size_t(len(pairs)))
    block = ctypes.create_string_buffer(bound)
    length = library.nghttp2_hd_deflate_hd(
        deflater, block, ctypes.c_size_t(bound), array, ctypes.c_size_t(len(pairs))
    )
    return f"error {length}" if length < 0 else block.raw[:length].hex()


for line in sys.stdin:
    command, *words = line.split()
    print({"limit": limit, "inflate": inflate, "deflate": deflate}[command](*words), flush=True)
