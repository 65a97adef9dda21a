#!/usr/bin/env bash
# Installs the frameworks for the tests of Python's kirin.store and of tests/python-software into
# DIRECTORY, from PyPI, and generates a site of Wagtail there. Its 185 migrations take 10 seconds,
# which the tests do not have.
#
#   tests/install_python_software.sh DIRECTORY
set -euo pipefail
mkdir -p "$1"
directory=$(cd "$1" && pwd)
KIRIN_PYTHON_SOFTWARE=$directory "$(dirname "$0")/../adapters/python/tests/install_software.sh" python3

version=$(python3 -c 'import sys; print("%d.%d" % sys.version_info[:2])')
programs=$directory/$version/bin
site=$directory/$version/wagtail-site
if [ -e "$site/complete" ]; then
    exit 0
elif [ ! -x "$programs/wagtail" ]; then
    echo "Wagtail needs Python 3.11, and python3 is $version: its tests cannot run" >&2
    exit 0
fi
rm -rf "$site"
mkdir "$site"
cd "$site"
"$programs/wagtail" start press . >/dev/null
# The project template reads the settings of a machine from local.py.
cat > press/settings/local.py <<'EOF'
ALLOWED_HOSTS = ["site.example"]
SECRET_KEY = "the-key-of-a-site-that-only-tests-use"
PASSWORD_HASHERS = ["django.contrib.auth.hashers.MD5PasswordHasher"]
ROOT_URLCONF = "press.urls_and_media"
EOF
# A site in production leaves its uploads to a file server. Here the application returns them.
cat > press/urls_and_media.py <<'EOF'
from django.conf import settings
from django.urls import path
from django.views.static import serve

from press.urls import urlpatterns as urls_of_press

media = path("media/<path:path>", serve, {"document_root": settings.MEDIA_ROOT})
urlpatterns = [media, *urls_of_press]
EOF
export DJANGO_SETTINGS_MODULE=press.settings.production DJANGO_SUPERUSER_PASSWORD=oak
for command in "migrate --verbosity 0" "collectstatic --no-input --verbosity 0" \
    "createsuperuser --no-input --verbosity 0 --username ann --email ann@site.example"; do
    # shellcheck disable=SC2086 # these are several words
    "$programs/python" manage.py $command
done
touch complete
