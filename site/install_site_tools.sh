#!/usr/bin/env bash
# Installs MkDocs Material into a virtual environment, from PyPI, with the pinned versions.
#
#   site/install_site_tools.sh DIRECTORY
set -euo pipefail
# A directory that is there is the rest of an installation that was interrupted.
python3 -m venv --clear "$1"
"$1/bin/pip" install --quiet --disable-pip-version-check --no-input \
    --only-binary :all: --require-hashes -r "$(dirname "$0")/requirements.txt"
