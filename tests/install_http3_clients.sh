#!/bin/sh
# Installs the HTTP/3 clients of crates/kirin/tests/wire/http3: aioquic of Python, and a program of
# Go with quic-go. scripts/install-tools calls this script; the tests install nothing. It can be run
# again.
#
#   tests/install_http3_clients.sh [DIRECTORY]     default: target/http3-clients of the workspace
set -eu

here=$(cd "$(dirname "$0")" && pwd)
clients=${1:-$here/../target/http3-clients}
mkdir -p "$clients"
clients=$(cd "$clients" && pwd)

[ -x "$clients/python/bin/python" ] || python3 -m venv "$clients/python"
"$clients/python/bin/python" -m pip install --quiet --disable-pip-version-check aioquic==1.7.2

# go build decides itself whether there is anything to do.
cd "$here/../crates/kirin/tests/wire/http3/client_programs/go_client"
go build -o "$clients/go_client" .
