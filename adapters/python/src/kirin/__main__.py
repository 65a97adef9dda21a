"""`python -m kirin ARGUMENTS` runs the program `kirin`, which is no part of this package."""
import os
import shutil
import sys

NO_PROGRAM = """\
python -m kirin runs the program kirin, which is not in PATH:
{places}
This package is only its adapter for Python. Install Kirin's Debian package or its archive for Linux,
or build it in Kirin's sources:
  cargo build --release -p kirin
If it is in another place, set the environment variable KIRIN_BINARY to its path."""


def main():
    """Becomes the program. Returns what is wrong otherwise."""
    named = os.environ.get("KIRIN_BINARY")
    program = shutil.which(named or "kirin")
    if program is None and named:
        return f"KIRIN_BINARY is {named}, which is not a program"
    if program is None:
        places = os.environ.get("PATH", os.defpath).split(os.pathsep)
        return NO_PROGRAM.format(places="\n".join(f"  {place}" for place in places))
    os.execv(program, [program, *sys.argv[1:]])


if __name__ == "__main__":
    sys.exit(main())
