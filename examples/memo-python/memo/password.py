"""Password hashes: yescrypt through crypt(3).

yescrypt with the cost that Debian uses for /etc/shadow takes 16 MB of memory and about 20 ms. It
has a salt, it is slow, it costs an attacker memory, and it is in C. The application in Perl has the
same hashes. Python 3.13 has no module crypt any more, so this module calls the library itself.
"""
import ctypes
import functools
import hmac

PREFIX = b"$y$"
# CRYPT_GENSALT_OUTPUT_SIZE, and the size of struct crypt_data.
SETTING_BYTES = 192
WORK_BYTES = 32768

_libcrypt = ctypes.CDLL("libcrypt.so.1")
_libcrypt.crypt_rn.restype = ctypes.c_char_p
_libcrypt.crypt_gensalt_rn.restype = ctypes.c_char_p


def hashed(password):
    """Returns the hash of a password, with a new salt."""
    output = ctypes.create_string_buffer(SETTING_BYTES)
    setting = _libcrypt.crypt_gensalt_rn(
        PREFIX, ctypes.c_ulong(0), None, 0, output, SETTING_BYTES
    )
    found = _crypt(password, setting) if setting else None
    if not found:
        raise RuntimeError("crypt(3) has no yescrypt here")
    return found.decode("ascii")


def matches(password, password_hash):
    """Returns whether this is the hash of the password."""
    found = _crypt(password, password_hash.encode("ascii"))
    return found is not None and hmac.compare_digest(found, password_hash.encode("ascii"))


def matches_nobody(password):
    """Takes as long as `matches`, and returns False.

    So the answer for an unknown name takes as long as for a known one.
    """
    matches(password, _hash_of_nobody())
    return False


@functools.lru_cache(maxsize=None)
def _hash_of_nobody():
    return hashed("nobody")


def _crypt(password, setting):
    work = ctypes.create_string_buffer(WORK_BYTES)
    return _libcrypt.crypt_rn(password.encode("utf-8"), setting, work, WORK_BYTES)
