# What the scripts share: where things are, and how they speak. Sourced, never run.

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
cd "$root"

# Built things live outside the clone, so that a fresh clone is not a cold one.
# A CARGO_TARGET_DIR that is already set wins.
cache=${KRON_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/kron}
if [[ -z ${CARGO_TARGET_DIR:-} ]]; then
    export CARGO_TARGET_DIR=$cache/target
    target_is_shared=yes
else
    [[ $CARGO_TARGET_DIR = /* ]] || CARGO_TARGET_DIR=$root/$CARGO_TARGET_DIR
    export CARGO_TARGET_DIR
    target_is_shared=
fi

# Colours only on a terminal.
bold='' red='' green='' plain=''
if [[ -t 1 && -z ${NO_COLOR:-} ]]; then
    bold=$'\e[1m' red=$'\e[31m' green=$'\e[32m' plain=$'\e[0m'
    export CARGO_TERM_COLOR=${CARGO_TERM_COLOR:-always}
fi

# Packages outside the workspace, each with a lock file of its own; purity/ has the product's.
apart=(fuzz bench)
for manifest in bench/*/Cargo.toml; do
    [[ -e $manifest ]] && apart+=("${manifest%/Cargo.toml}")
done

say() { printf '%s\n' "$*"; }

# Prints its arguments as an error and ends the script.
fail() {
    printf '%s%s:%s %s\n' "$red" "${0##*/}" "$plain" "$*" >&2
    exit 1
}

# A mistake on the command line is not a failure of the code: exit status 2.
usage_error() {
    printf '%s: %s\nTry: %s --help\n' "${0##*/}" "$*" "$0" >&2
    exit 2
}

# The comment at the top of a script is its help.
help() { sed -n '2,/^$/ s/^# \{0,1\}//p' "$0"; }

# need COMMAND PACKAGE: installs Debian's PACKAGE if COMMAND is missing.
need() {
    command -v "$1" >/dev/null && return
    say "$1 is missing"
    need_package "$2"
    command -v "$1" >/dev/null || fail "$2 is installed, but $1 is still missing"
}

# need_package PACKAGE: installs a package of Debian.
need_package() {
    local as_root=()
    if [[ $EUID -ne 0 ]]; then
        command -v sudo >/dev/null || fail "the package $1 is missing: install it"
        as_root=(sudo)
    fi
    command -v apt-get >/dev/null || fail "the package $1 (as Debian calls it) is missing: install it"
    say "installing $1"
    if [[ -z ${apt_updated:-} ]]; then
        "${as_root[@]}" apt-get update -qq
        apt_updated=yes
    fi
    DEBIAN_FRONTEND=noninteractive "${as_root[@]}" apt-get install -y -qq --no-install-recommends "$1" >/dev/null
}

# Tests and trials start a PostgreSQL of their own.
need_postgres() {
    compgen -G '/usr/lib/postgresql/*/bin/postgres' >/dev/null || need_package postgresql
    need psql postgresql-client
}

# need_go VERSION: puts Go on the PATH, in that version or a later one. An older one, such as Debian's, fetches it as a module.
need_go() {
    local found toolchain
    command -v go >/dev/null || PATH=$PATH:/usr/local/go/bin
    need go golang-go
    found=$(go env GOVERSION)
    printf '%s\n' "$1" "${found#go}" | sort --check=quiet --version-sort && return
    toolchain=golang.org/toolchain@v0.0.1-go$1.$(go env GOOS)-$(go env GOARCH)
    say "$found is there, and fetches go$1"
    go mod download "$toolchain"
    toolchain=$(go env GOMODCACHE)/$toolchain
    chmod +x "$toolchain"/bin/* "$toolchain"/pkg/tool/*/* # modules have no programs
    PATH=$toolchain/bin:$PATH
    hash -r
}

# need_component COMMAND COMPONENT: installs a part of the Rust toolchain if it is missing.
need_component() {
    "$1" --version >/dev/null 2>&1 && return
    command -v rustup >/dev/null || fail "$1 is missing, and there is no rustup to install $2 with"
    say "installing $2"
    rustup component add "$2"
}

# Everything that compiles needs a linker, and build scripts may need a C++ compiler.
need_compiler() {
    command -v cargo >/dev/null || fail "cargo is missing: install Rust first"
    need c++ build-essential
}

# Two clones that share a target directory are told apart by cargo only through the times of
# their files. So only one may build at a time, and when another one did, Kron's own crates are built anew.
claim_target() {
    [[ $target_is_shared && -z ${KRON_CLAIMED:-} ]] || return 0
    mkdir -p "$CARGO_TARGET_DIR"
    exec 9>"$cache/lock"
    if ! flock --nonblock 9; then
        say "waiting for another run that uses $CARGO_TARGET_DIR"
        flock 9
    fi
    local owner=$CARGO_TARGET_DIR/kron-root
    if [[ -e $owner && $(<"$owner") != "$root" ]]; then
        find "$CARGO_TARGET_DIR" -path '*/.fingerprint/kron*' -prune -exec rm -rf {} +
    fi
    printf '%s\n' "$root" >"$owner"
    export KRON_CLAIMED=yes # for the scripts that this one calls
}

# What the stage `test` builds.
tested=(--locked --workspace --lib --bins --tests --examples)

# build_programs PACKAGE...: builds their programs, into $CARGO_TARGET_DIR/debug. After the tests there is nothing left to
# build: any other choice of packages would have other features of what they depend on, and build that anew.
build_programs() {
    if [[ ${KRON_AS_TESTED:-} ]]; then
        cargo test "${tested[@]}" --no-run
    else
        cargo build --locked "${@/#/--package=}"
    fi
}
