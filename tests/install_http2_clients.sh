#!/bin/sh
# Installs the HTTP/2 clients of crates/kirin/tests/wire/http2/clients.rs that are not Debian
# packages: h2 of Python, and a program of Go. scripts/install-tools calls this script; the tests
# install nothing. It can be run again.
#
#   tests/install_http2_clients.sh [DIRECTORY]     default: target/http2-clients of the workspace
set -eu

here=$(cd "$(dirname "$0")" && pwd)
clients=${1:-$here/../target/http2-clients}
mkdir -p "$clients"
clients=$(cd "$clients" && pwd)

[ -x "$clients/python/bin/python" ] || python3 -m venv "$clients/python"
"$clients/python/bin/python" -m pip install --quiet --disable-pip-version-check h2==4.3.0

# go build decides itself whether there is anything to do.
cd "$here/../crates/kirin/tests/wire/http2/client_programs/go_client"
go build -o "$clients/go_client" .
