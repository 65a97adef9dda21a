#!/bin/sh
# Installs the frameworks that the tests of kirin.store use, in pinned versions, from PyPI. Each
# Python gets a virtual environment of its own. A complete one stays as it is.
#
#   adapters/python/tests/install_software.sh [PYTHON...]     default: python3
#
# The environments are target/python-software/3.9, 3.11 and so on. KIRIN_PYTHON_SOFTWARE names
# another directory. The tests install nothing.
set -eu

tests=$(cd "$(dirname "$0")" && pwd)
directory=${KIRIN_PYTHON_SOFTWARE:-$tests/../../../target/python-software}
mkdir -p "$directory"
directory=$(cd "$directory" && pwd)
[ $# -gt 0 ] || set -- python3

# Each line: the oldest Python for it, and the packages. The last line that fits counts.
flask='flask==3.1.3 werkzeug==3.1.8 itsdangerous==2.2.0 jinja2==3.1.6 markupsafe==3.0.3'
flask="$flask click==8.1.8 blinker==1.9.0"

failed=0
for python in "$@"; do
    if ! version=$("$python" -c 'import sys; print("%d.%d" % sys.version_info[:2])'); then
        echo "$python: this is no Python that can be started" >&2
        failed=1
        continue
    fi
    minor=${version#3.}
    django=4.2.30 starlette=0.49.3 asgiref=3.11.1
    [ "$minor" -lt 10 ] || django=5.2.19 starlette=1.10.0
    [ "$minor" -lt 12 ] || django=6.1.3
    wanted="django==$django starlette==$starlette asgiref==$asgiref sqlparse==0.5.5 anyio==4.12.1"
    wanted="$wanted $flask"
    environment=$directory/$version
    if [ "$(cat "$environment/complete" 2>/dev/null)" = "$wanted" ]; then
        echo "$environment is complete"
        continue
    fi
    rm -rf "$environment"
    echo "installing into $environment: $wanted"
    # The tests of Django's cache and sessions are only in its source package.
    if ! "$python" -m venv "$environment"; then
        echo "$python: the module venv is missing (Debian: apt-get install python3-venv)" >&2
        failed=1
    elif ! "$environment/bin/python" -m pip install --quiet --disable-pip-version-check $wanted
    then
        echo "$python: PyPI could not be reached, or has not all of: $wanted" >&2
        failed=1
    elif ! "$environment/bin/python" -m pip download --quiet --disable-pip-version-check \
            --no-deps --no-binary django --dest "$environment/sources" "django==$django" ||
        ! tar -xzf "$environment"/sources/[Dd]jango-*.tar.gz -C "$environment/sources"
    then
        echo "$python: the source package of Django $django is missing" >&2
        failed=1
    else
        mv "$environment"/sources/[Dd]jango-"$django"/tests "$environment/django-tests"
        rm -rf "$environment/sources"
        echo "$wanted" > "$environment/complete"
    fi
done
exit $failed
