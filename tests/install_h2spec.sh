#!/bin/sh
# Builds h2spec, which crates/kirin/tests/wire/http2 runs. scripts/install-tools calls this, because
# the tests install nothing. It can be run again.
#
#   tests/install_h2spec.sh [DIRECTORY]     default: target/h2spec of the workspace
set -eu

directory=${1:-$(dirname "$0")/../target/h2spec}
mkdir -p "$directory"
directory=$(cd "$directory" && pwd)
[ -x "$directory/h2spec" ] && exit 0
GOBIN=$directory go install github.com/summerwind/h2spec/cmd/h2spec@v2.2.1+incompatible
