#!/bin/sh
# Builds the memcached clients of suite/clients.rs that are not Debian packages. The packages are in
# scripts/packages.test. scripts/install-tools calls this script; the tests install nothing.
#
#   tests/install_clients.sh [DIRECTORY]     default: target/clients of the workspace
set -eu

here=$(cd "$(dirname "$0")" && pwd)
clients=${1:-$here/../../../target/clients}
mkdir -p "$clients"
clients=$(cd "$clients" && pwd)

if [ ! -x "$clients/python/bin/python" ]; then
    python3 -m venv "$clients/python"
fi
"$clients/python/bin/python" -m pip install --quiet --disable-pip-version-check pymemcache==4.0.0 pylibmc==1.6.3

# go build decides itself whether there is anything to do.
(cd "$here/go_client" && go build -o "$clients/go_client" .)
