"""A picture as PNG, made without any package."""
import struct
import zlib


def png(width, height):
    rows = b"".join(
        b"\0" + bytes(part for x in range(width) for part in (x % 256, y % 256, (x ^ y) % 256))
        for y in range(height)
    )
    head = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    chunks = _chunk(b"IHDR", head) + _chunk(b"IDAT", zlib.compress(rows)) + _chunk(b"IEND", b"")
    return b"\x89PNG\r\n\x1a\n" + chunks


def _chunk(kind, content):
    checksum = struct.pack(">I", zlib.crc32(kind + content))
    return struct.pack(">I", len(content)) + kind + content + checksum
