#!/bin/sh
# Copies Kirin to a prefix, /usr/local by default, and prints what comes next.
#
#   ./install.sh [PREFIX]
set -eu

[ $# -le 1 ] || { echo "usage: $0 [PREFIX]" >&2; exit 2; }
case "${1:-/usr/local}" in
    /*) prefix=${1:-/usr/local} ;;
    *) echo "$0: give the whole path of the prefix, not $1" >&2; exit 2 ;;
esac
cd "$(dirname "$0")"

mkdir -p "$prefix/bin" "$prefix/lib/systemd/system"
# A program that runs cannot be written to, but it can be replaced.
cp bin/kirin "$prefix/bin/kirin.new"
# Files of an earlier version do not stay.
rm -rf "$prefix/share/kirin" "$prefix/share/doc/kirin"
cp -R share "$prefix/"
mv "$prefix/bin/kirin.new" "$prefix/bin/kirin"
for unit in kirin.service kirin.socket kirin-admin.socket; do
    sed "s|/usr/local/bin/kirin|$prefix/bin/kirin|" "share/kirin/$unit" > "$prefix/lib/systemd/system/$unit"
    rm "$prefix/share/kirin/$unit"
done
sed "s|/usr/share/|$prefix/share/|" share/kirin/kirin.toml > "$prefix/share/kirin/kirin.toml"

echo "Kirin is in $prefix/bin/kirin. To serve with systemd:

    useradd --system --home-dir /var/lib/kirin kirin
    install -D -m 644 $prefix/share/kirin/kirin.toml /etc/kirin/kirin.toml
    systemctl daemon-reload && systemctl enable --now kirin.socket kirin.service"
[ "$prefix" = /usr/local ] || echo "
systemd reads units in /usr/local/lib and /usr/lib. Copy those of $prefix/lib/systemd/system to
/etc/systemd/system."
