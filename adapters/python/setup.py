"""Builds the compiled part of the adapter; pyproject.toml says everything else.

The code of the ring, which adapters of all languages share, and the license are outside of this
directory in Kirin's sources. They are copied into it, because setuptools packs and compiles only
what is below this file. A source distribution has the copies only.
"""
import os
import shutil
import sysconfig

from setuptools import Extension, setup

SHARED = {
    "ring/kirin_ring.c": "../ring/kirin_ring.c",
    "ring/kirin_ring.h": "../ring/kirin_ring.h",
    "LICENSE": "../../LICENSE",
}


def copy_shared_files():
    """Copies the shared files, if this directory is that of Kirin's sources.

    The copies have the times of the originals, so that only a change of these compiles anything.
    """
    if os.path.exists(SHARED["ring/kirin_ring.c"]):
        os.makedirs("ring", exist_ok=True)
        for copy, original in SHARED.items():
            shutil.copy2(original, copy)


# Backends of builds run this file in its directory; `python3 DIRECTORY/setup.py` does not.
os.chdir(os.path.dirname(os.path.abspath(__file__)))
copy_shared_files()

# A build of CPython without the global lock has no stable ABI. It gets a wheel of its own, whose
# workers use sockets.
has_stable_abi = not sysconfig.get_config_var("Py_GIL_DISABLED")

setup(
    license="MIT",
    ext_modules=[
        Extension(
            "kirin._ring",
            ["ext/_ring.c", "ring/kirin_ring.c"],
            include_dirs=["ring"],
            depends=["ring/kirin_ring.h"],
            define_macros=[("Py_LIMITED_API", "0x03090000")],
            # Debugging information would be most of the file, and has the path of the build.
            extra_compile_args=["-fvisibility=hidden", "-g0"],
            py_limited_api=True,
            # Without a C compiler everything goes over sockets.
            optional=True,
        )
    ],
    options={"bdist_wheel": {"py_limited_api": "cp39"}} if has_stable_abi else {},
)
