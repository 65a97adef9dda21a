#!/bin/sh
# Builds the OpenTelemetry collector of tests/otelcol, which crates/kirin/tests/operating/traces.rs
# runs. scripts/install-tools calls this, because the tests install nothing. It can be run again.
#
#   tests/install_otelcol.sh [DIRECTORY]     default: target/otelcol of the workspace
set -eu

here=$(cd "$(dirname "$0")" && pwd)
directory=${1:-$here/../target/otelcol}
mkdir -p "$directory"
directory=$(cd "$directory" && pwd)
cd "$here/otelcol"
# The collector is built again when its source has changed.
[ -x "$directory/otelcol" ] && [ "$directory/otelcol" -nt main.go ] && [ "$directory/otelcol" -nt go.mod ] &&
    exit 0
go build -trimpath -ldflags=-s -o "$directory/otelcol" .
