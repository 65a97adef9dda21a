# What the scripts in this directory share. They source it in the root of the repository.

version=$(sed -n 's/^version = "\(.*\)"/\1/p' Cargo.toml | head -n 1)
# Every file of a package has this time, so that the same sources and program give the same bytes.
: "${SOURCE_DATE_EPOCH:=$(git log -1 --format=%ct)}"
export SOURCE_DATE_EPOCH
export LC_ALL=C TZ=UTC
umask 022

# Fails unless the program is there: need_program FILE
need_program() {
    [ -x "$1" ] && return
    echo "$1 is not there: run 'make deb', or 'cargo build --release -p kirin'" >&2
    exit 1
}

# install_program PROGRAM PREFIX
install_program() {
    install -D -m 0755 "$1" "$2/bin/kirin"
    strip --strip-unneeded --remove-section=.comment "$2/bin/kirin"
}

# install_python_adapter DIRECTORY
install_python_adapter() {
    install -d "$1"
    # What Python writes may change or go at the same moment.
    tar -c -C adapters/python --exclude=__pycache__ bin src | tar -x -C "$1" --no-same-owner
    chmod 0755 "$1/bin/kirin-worker"
    local ring=$1/src/kirin/_ring.abi3.so
    [ ! -e "$ring" ] || strip --strip-unneeded --remove-section=.comment "$ring"
}

# install_ruby_adapter DIRECTORY
install_ruby_adapter() {
    install -d "$1"
    tar -c -C adapters/ruby bin lib kirin.gemspec $(cd adapters/ruby && ls -d arch 2>/dev/null) |
        tar -x -C "$1" --no-same-owner
    chmod 0755 "$1/bin/kirin-worker"
    find "$1" -name '*.so' -exec strip --strip-unneeded --remove-section=.comment {} +
}

# Installs Perl's modules, without the part that is compiled: install_perl_modules DIRECTORY
install_perl_modules() {
    install -d "$1"
    cp -r --no-preserve=mode,ownership adapters/perl/lib/. "$1/"
    rm "$1/Kirin/Ring.xs"
}

# Installs the compiled part of the Perl adapter, if scripts/build-ring has built one. It is for one
# version of Perl. With another one everything goes over sockets: install_perl_ring DIRECTORY
perl_arch=$(perl -MConfig -e 'print "$Config{version}-$Config{archname}"')
install_perl_ring() {
    local ring=adapters/perl/arch/$perl_arch/auto/Kirin/Ring/Ring.so
    [ -e "$ring" ] || return 0
    install -D -m 0644 "$ring" "$1/auto/Kirin/Ring/Ring.so"
    strip --strip-unneeded --remove-section=.comment "$1/auto/Kirin/Ring/Ring.so"
}

# Installs manual pages and completions, which the program writes itself, and what other programs
# read: install_shared_files PROGRAM PREFIX ZSH-DIRECTORY
install_shared_files() {
    local program=$1 share=$2/share place file
    "$program" manual "$share/man/man1"
    gzip -9n "$share"/man/man1/*.1
    for place in bash:bash-completion/completions/kirin "zsh:zsh/$3/_kirin" \
        fish:fish/vendor_completions.d/kirin.fish; do
        file=$share/${place#*:}
        install -d "$(dirname "$file")"
        "$program" completions "${place%%:*}" > "$file"
    done
    install -D -m 0644 packaging/public/index.html "$share/kirin/public/index.html"
    install -D -m 0644 packaging/prometheus/kirin.rules.yml "$share/kirin/prometheus/kirin.rules.yml"
    install -D -m 0644 packaging/grafana/kirin.json "$share/kirin/grafana/kirin.json"
}

# Gives every file below a directory the same time and plain permissions: make_uniform DIRECTORY
make_uniform() {
    chmod -R u=rwX,go=rX "$1"
    find "$1" -exec touch --no-dereference --date="@$SOURCE_DATE_EPOCH" {} +
}
