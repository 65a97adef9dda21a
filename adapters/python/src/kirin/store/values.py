"""How Python's values are stored. The flags of an item say how to read it again.

| value                         | flags | stored as                                         |
|-------------------------------|-------|---------------------------------------------------|
| bytes, bytearray, memoryview  | 0     | the bytes                                         |
| str                           | 4     | UTF-8                                             |
| int                           | 8     | digits, so that `incr` counts                     |
| others                        | 8     | JSON                                              |
| others, with a serializer     | 32    | what the serializer returns                       |

Kirin::Store uses 8 for JSON, and Cache::Memcached::Fast uses 4 for UTF-8. Items with other flags
are bytes. Among them are those that other clients have compressed or pickled.
"""
import json

from kirin.store.failure import InvalidArgument, StoreError

FLAG_BYTES = 0
FLAG_UTF8 = 4
FLAG_JSON = 8
FLAG_SERIALIZED = 32


class Values:
    """Encodes and decodes values, with the functions `dumps` and `loads` of a serializer."""

    def __init__(self, serializer=None):
        if serializer is not None and not (
            callable(getattr(serializer, "dumps", None))
            and callable(getattr(serializer, "loads", None))
        ):
            raise ValueError("a serializer has dumps and loads, as the modules json and pickle")
        self._serializer = serializer

    def encode(self, value):
        """Returns bytes and flags. Raises `InvalidArgument` if the value cannot be stored."""
        kind = type(value)
        try:
            if kind is bytes:
                return value, FLAG_BYTES
            if kind is str:
                return value.encode("utf-8"), FLAG_UTF8
            if kind is int:
                return b"%d" % value, FLAG_JSON
            if self._serializer is not None:
                # A subclass of str, for example, comes back as the same class.
                data = self._serializer.dumps(value)
                return data.encode("utf-8") if isinstance(data, str) else data, FLAG_SERIALIZED
            if isinstance(value, (bytes, bytearray, memoryview)):
                return bytes(value), FLAG_BYTES
            if isinstance(value, str):
                return str.encode(value, "utf-8"), FLAG_UTF8
            return to_json(value).encode("utf-8"), FLAG_JSON
        except Exception as error:
            text = " ".join(str(error).split()) or type(error).__name__
            raise InvalidArgument(f"the value cannot be stored: {text}") from error

    def decode(self, data, flags):
        """Returns the value of an item. Raises `StoreError` if it cannot be read."""
        try:
            if flags == FLAG_UTF8:
                return data.decode("utf-8")
            if flags == FLAG_JSON:
                return json.loads(data.decode("utf-8"))
            if flags == FLAG_SERIALIZED and self._serializer is not None:
                return self._serializer.loads(data)
            return data
        except Exception as error:
            text = " ".join(str(error).split()) or type(error).__name__
            raise StoreError(f"the value cannot be read: {text}") from error

    def fingerprint(self, value):
        """Returns an object that is equal for equal data, and differs for all others."""
        try:
            if self._serializer is not None:
                return self._serializer.dumps(value)
            return to_json(value, sort_keys=True)
        except Exception:
            # `encode` says later why the value cannot be stored.
            return object()


def to_json(value, **options):
    return json.dumps(
        value, ensure_ascii=False, allow_nan=False, separators=(",", ":"), **options
    )
