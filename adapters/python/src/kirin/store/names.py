"""Keys, tags and times to live, as they are sent. Nothing is sent that fails a check here."""
import binascii
import math
import re
import time

from kirin.store.failure import InvalidArgument

KEY_BYTES = 250
TAG_BYTES = 64
TAGS = 16

# memcached reads a larger time to live as a point in time (doc/protocol.txt).
RELATIVE_SECONDS = 60 * 60 * 24 * 30

# The last point in time that every memcached can read, in January 2038.
LAST_SECOND = 2**31 - 1

# The longest key before it is written in base64, which has at most KEY_BYTES bytes.
BASE64_KEY_BYTES = 186

_BAD_IN_KEY = re.compile(rb"[\x00-\x20\x7f]")
_BAD_IN_TAG = re.compile(rb"[\x00-\x20,\x7f]")
_TARGET = re.compile(rb"(?:[^/:]+:)?/")


def to_bytes(text, what):
    """Returns bytes as they are, and str as UTF-8."""
    if isinstance(text, str):
        try:
            return text.encode("utf-8")
        except UnicodeEncodeError as error:
            raise InvalidArgument(f"{what} cannot be encoded as UTF-8: {error.reason}") from error
    if isinstance(text, (bytes, bytearray, memoryview)):
        return bytes(text)
    raise InvalidArgument(f"{what} is str or bytes, not {type(text).__name__}")


def key_name(prefix, key):
    """Returns the name of an item in the store. `prefix` has the site and the namespace."""
    name = prefix + to_bytes(key, "a key")
    if not 1 <= len(name) <= KEY_BYTES:
        raise InvalidArgument(f"a key has 1 to {KEY_BYTES} bytes")
    if _BAD_IN_KEY.search(name):
        raise InvalidArgument("a key has no spaces and control characters")
    return name


def tag_name(prefix, tag):
    """Returns the name of a tag in the store. `prefix` has the site."""
    tag = to_bytes(tag, "a tag")
    if not 1 <= len(tag) <= TAG_BYTES:
        raise InvalidArgument(f"a tag has 1 to {TAG_BYTES} bytes")
    if _BAD_IN_TAG.search(tag):
        raise InvalidArgument("a tag has no spaces, commas and control characters")
    return prefix + tag


def tag_names(prefix, tags):
    """Returns the names of all tags of an item."""
    names = [tag_name(prefix, tag) for tag in listed(tags, "tags")]
    if len(names) > TAGS:
        raise InvalidArgument(f"more than {TAGS} tags")
    return names


def listed(names, what):
    """Returns a list of names. A single name needs no list."""
    if names is None:
        return []
    if isinstance(names, (str, bytes)):
        return [names]
    try:
        return list(names)
    except TypeError as error:
        raise InvalidArgument(f"{what} is no list of names: {names!r}") from error


def cached_name(name, is_prefix):
    """Returns the part of `md` that purges the cached responses for a target (docs/cache.md).

    Returns None if the name is no target. A target that is too long for its own tag also includes
    the targets that start as it does.
    """
    if not _TARGET.match(name):
        return None
    tag = b"\0c" + name
    kind = b" b Pprefix" if is_prefix or len(tag) > BASE64_KEY_BYTES else b" b Ptag"
    return binascii.b2a_base64(tag[:BASE64_KEY_BYTES], newline=False) + kind


def expiry(ttl):
    """Returns a time to live in the form of the protocol. None and 0 mean that there is no end."""
    if ttl is None:
        return 0
    if isinstance(ttl, bool) or not isinstance(ttl, (int, float)) or not math.isfinite(ttl):
        raise InvalidArgument(f"a time to live is a number of seconds: {ttl!r}")
    if ttl < 0:
        return -1
    # It is rounded up, because 0 would mean that the item does not expire.
    seconds = math.ceil(ttl)
    if seconds <= RELATIVE_SECONDS:
        return seconds
    end = int(time.time()) + seconds
    # A later end would be an error, or a time that is over. Such an item does not expire.
    return end if end <= LAST_SECOND else 0
