#!/bin/sh
# Builds pebble, Let's Encrypt's certificate authority for tests, and its DNS server.
# crates/kirin/tests/operating/acme.rs runs them. scripts/install-tools calls this, because the
# tests install nothing. It can be run again.
#
#   tests/install_pebble.sh [DIRECTORY]     default: target/pebble of the workspace
set -eu

directory=${1:-$(dirname "$0")/../target/pebble}
mkdir -p "$directory"
directory=$(cd "$directory" && pwd)
for program in pebble pebble-challtestsrv; do
    [ -x "$directory/$program" ] ||
        GOBIN=$directory go install "github.com/letsencrypt/pebble/v2/cmd/$program@v2.10.1"
done
