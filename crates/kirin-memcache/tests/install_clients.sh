#!/bin/sh
# Installs the memcached clients that tests/clients.rs talks with, and memcached itself for
# tests/differential.rs. The Makefile calls it; the tests install nothing. Safe to run again.
#
#   tests/install_clients.sh [DIRECTORY]     default: target/clients of the workspace
set -eu

here=$(cd "$(dirname "$0")" && pwd)
clients=${1:-$here/../../../target/clients}
mkdir -p "$clients"
clients=$(cd "$clients" && pwd)

missing=
for package in memcached libmemcached-tools libcache-memcached-fast-perl libcache-memcached-perl; do
    dpkg-query -W -f '${Status}' "$package" 2>/dev/null | grep -q 'install ok installed' || missing="$missing $package"
done
if [ -n "$missing" ]; then
    DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends $missing
fi

if [ ! -x "$clients/python/bin/python" ]; then
    python3 -m venv "$clients/python"
fi
"$clients/python/bin/python" -m pip install --quiet --disable-pip-version-check pymemcache==4.0.0 pylibmc==1.6.3

# go build decides itself whether there is anything to do.
(cd "$here/go_client" && go build -o "$clients/go_client" .)
