#!/bin/sh
# Installs the packages that the tests of kirin.store and ASGI, and those of tests/python-software,
# use, in pinned versions, from PyPI. Each Python gets a virtual environment of its own. A complete
# one stays as it is.
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

# The software of tests/python-software, for Python 3.11 and later: servers to compare with, what
# FastAPI needs, and Wagtail.
servers='gunicorn==27.0.1 uvicorn==0.54.0 httptools==0.9.0 h11==0.16.0 whitenoise==6.12.0'
fastapi_needs='pydantic==2.14.4 pydantic-core==2.50.5 annotated-types==0.8.0 annotated-doc==0.0.7
    typing-extensions==4.16.0 typing-inspection==0.4.5 opentelemetry-api==1.45.2 idna==3.20'
wagtail='wagtail==8.0.1 pillow==13.0.0 willow==1.12.0 filetype==1.2.0 anyascii==0.3.3
    beautifulsoup4==4.15.0 soupsieve==4.1.3 django-filter==26.2 django-modelcluster==6.5
    django-ninja==1.7.1 django-permissionedforms==0.1 django-stubs-ext==6.1.2 django-taggit==6.1.0
    django-tasks==0.12.0 django-treebeard==5.3.1 djangorestframework==3.18.3 defusedxml==0.7.1
    draftjs-exporter==7.3.1 et-xmlfile==2.0.0 laces==0.1.2 modelsearch==1.3.2 openpyxl==3.1.5
    requests==2.34.2 urllib3==2.8.0 certifi==2026.10.19.post1 charset-normalizer==3.5.3
    swapper==1.5.0 telepath==0.3.1'

failed=0
for python in "$@"; do
    if ! version=$("$python" -c 'import sys; print("%d.%d" % sys.version_info[:2])'); then
        echo "$python: this is no Python that can be started" >&2
        failed=1
        continue
    fi
    minor=${version#3.}
    django=4.2.30 starlette=0.49.3 asgiref=3.11.1
    [ "$minor" -lt 10 ] || django=5.2.19
    [ "$minor" -lt 11 ] || starlette=1.10.0
    [ "$minor" -lt 12 ] || django=6.1.3
    fastapi=0.121.3 uvloop=0.22.1 websockets=15.0.1 multipart=0.0.20
    [ "$minor" -lt 11 ] || fastapi=0.165.0 uvloop=0.23.0 websockets=17.4 multipart=0.0.34
    wanted="django==$django starlette==$starlette asgiref==$asgiref sqlparse==0.5.5 anyio==4.12.1"
    wanted="$wanted $flask fastapi==$fastapi python-multipart==$multipart"
    wanted="$wanted uvloop==$uvloop websockets==$websockets"
    software=
    [ "$minor" -lt 11 ] || wanted="$wanted $servers $fastapi_needs" software=$wagtail
    environment=$directory/$version
    if [ "$(cat "$environment/complete" 2>/dev/null)" = "$wanted $software" ]; then
        echo "$environment is complete"
        continue
    fi
    rm -rf "$environment"
    echo "installing into $environment: $wanted $software"
    # The tests of Django's cache and sessions are only in its source package.
    if ! "$python" -m venv "$environment"; then
        echo "$python: the module venv is missing (Debian: apt-get install python3-venv)" >&2
        failed=1
    elif ! "$environment/bin/python" -m pip install --quiet --disable-pip-version-check $wanted
    then
        echo "$python: PyPI could not be reached, or has not all of: $wanted" >&2
        failed=1
    # Without dependencies, because Wagtail would bring 26 MB for pictures in HEIF.
    elif [ -n "$software" ] && ! "$environment/bin/python" -m pip install --quiet \
            --disable-pip-version-check --no-deps $software
    then
        echo "$python: PyPI could not be reached, or has not all of: $software" >&2
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
        echo "$wanted $software" > "$environment/complete"
    fi
done
exit $failed
