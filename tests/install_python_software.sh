#!/usr/bin/env bash
# Installs the frameworks for the tests of Python's kirin.store into DIRECTORY, from PyPI.
#
#   tests/install_python_software.sh DIRECTORY
set -euo pipefail
mkdir -p "$1"
KIRIN_PYTHON_SOFTWARE=$1 "$(dirname "$0")/../adapters/python/tests/install_software.sh" python3
