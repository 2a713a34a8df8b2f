#!/usr/bin/env bash
# Installs missing programs that Centile needs: PostgreSQL 15 or newer, Redis and a C compiler.
#
#     scripts/setup.sh          to build and run
#     scripts/setup.sh test     also PgBouncer, HAProxy, openssl, curl, Chromium with its driver, and Node.js, npm and
#                               Python for the tests of the clients (scripts/clients.sh)
#     scripts/setup.sh bench    also wrk
#     scripts/setup.sh kafka    also make, a C++ compiler, pkg-config and OpenSSL, to build with the feature kafka
#
# Centile starts private servers from these programs. The script neither starts nor enables the
# packages' services and creates no database cluster.
set -euo pipefail

readonly RUST_MIN=1.94 POSTGRES_MIN=15

say() { printf 'setup: %s\n' "$*" >&2; }

# Whether a PostgreSQL server of a supported major version is installed.
has_postgres() {
    local folder version
    local folders=()
    IFS=: read -ra folders <<<"$PATH"
    folders+=(/usr/lib/postgresql/*/bin /usr/pgsql-*/bin /usr/lib/postgresql*/bin /opt/homebrew/opt/postgresql*/bin
        /usr/local/opt/postgresql*/bin)
    if command -v pg_config >/dev/null; then folders+=("$(pg_config --bindir)"); fi
    for folder in "${folders[@]}"; do
        [ -x "$folder/postgres" ] || continue
        version=$("$folder/postgres" --version 2>/dev/null | sed -n 's/^[^0-9]*\([0-9]*\).*/\1/p')
        if [ "${version:-0}" -ge "$POSTGRES_MIN" ]; then return 0; fi
    done
    return 1
}

has_redis() { PATH="$PATH:/usr/sbin:/usr/local/sbin" command -v redis-server valkey-server >/dev/null; }

has_pgbouncer() { PATH="$PATH:/usr/sbin:/usr/local/sbin" command -v pgbouncer >/dev/null; }

has_haproxy() { PATH="$PATH:/usr/sbin:/usr/local/sbin" command -v haproxy >/dev/null; }

has_compiler() { command -v cc >/dev/null; }

has_openssl() { command -v openssl >/dev/null; }

has_curl() { command -v curl >/dev/null; }

# The clients' test needs Node.js 18 or newer.
has_node() { node -e 'process.exit(process.versions.node.split(".")[0] < 18 ? 1 : 0)' 2>/dev/null; }

has_npm() { command -v npm >/dev/null; }

# The client needs Python 3.11 or newer, with venv.
has_python() { python3 -c 'import sys, venv, ensurepip; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; }

has_chromium() { command -v chromedriver >/dev/null && command -v chromium chromium-browser google-chrome >/dev/null; }

# For librdkafka and its TLS.
has_kafka_tools() {
    command -v make >/dev/null && command -v c++ >/dev/null && command -v pkg-config >/dev/null && pkg-config --exists openssl
}

has_all_for_tests() {
    has_pgbouncer && has_haproxy && has_openssl && has_curl && has_node && has_npm && has_python && has_chromium
}

# wrk 4.1 or 4.2: other versions may count differently. `wrk -v` prints its version and fails.
has_wrk() { { wrk -v || true; } 2>/dev/null | grep -q '[ /]4\.[12]\.'; }

# Whether version $1 is at least $2.
at_least() { [ "$(printf '%s\n%s\n' "$1" "$2" | sort -V | head -n 1)" = "$2" ]; }

check_rust() {
    local version
    if ! version=$(cargo --version 2>/dev/null); then
        say "Rust is missing. Install cargo $RUST_MIN or newer from https://rustup.rs and run this again."
        exit 1
    fi
    version=${version#cargo }
    if ! at_least "${version%% *}" "$RUST_MIN"; then
        say "cargo is ${version%% *}; Centile needs $RUST_MIN or newer: run \`rustup update\`, or see https://rustup.rs."
        exit 1
    fi
}

# Installs packages with apt, as root or with sudo.
install_by_apt() {
    local root=()
    if [ "$(id -u)" -ne 0 ]; then
        if ! command -v sudo >/dev/null; then
            say "missing: $*. Run as root: apt-get install --no-install-recommends $*"
            exit 1
        fi
        root=(sudo)
    fi
    say "installing: $*"
    "${root[@]}" env DEBIAN_FRONTEND=noninteractive bash -s -- "$@" <<'ROOT'
set -euo pipefail
policy=/usr/sbin/policy-rc.d
cluster=/etc/postgresql-common/createcluster.d/zz-centile-setup.conf
made=() made_folder=
clean() {
    [ "${#made[@]}" -eq 0 ] || rm -f "${made[@]}"
    [ -z "$made_folder" ] || rmdir --ignore-fail-on-non-empty "$made_folder"
}
trap clean EXIT

# Keep the packages from starting services and from creating a database cluster.
if [ ! -e "$policy" ]; then
    made+=("$policy")
    printf '#!/bin/sh\nexit 101\n' >"$policy"
    chmod 755 "$policy"
fi
if [ ! -d "${cluster%/*}" ]; then
    mkdir -p "${cluster%/*}"
    made_folder=${cluster%/*}
fi
made+=("$cluster")
echo 'create_main_cluster = false' >"$cluster"

apt-get update -q
apt-get install -q -y --no-install-recommends "$@"

# Do not start the services at boot.
if command -v systemctl >/dev/null; then
    for package in "$@"; do
        case $package in
            postgresql) systemctl disable -q postgresql 2>/dev/null || true ;;
            redis-server) systemctl disable -q redis-server 2>/dev/null || true ;;
            pgbouncer) systemctl disable -q pgbouncer 2>/dev/null || true ;;
            haproxy) systemctl disable -q haproxy 2>/dev/null || true ;;
        esac
    done
fi
ROOT
}

# Tells what to install on systems without apt.
explain() {
    say "missing: $*"
    if command -v dnf >/dev/null; then
        say "on Fedora: sudo dnf install postgresql-server postgresql valkey gcc; for Kafka gcc-c++ make pkgconf openssl-devel; for the tests pgbouncer haproxy openssl curl nodejs npm python chromium chromedriver"
    elif command -v pacman >/dev/null; then
        say "on Arch: sudo pacman -S postgresql valkey gcc; for Kafka make pkgconf openssl; for the tests pgbouncer haproxy openssl curl nodejs npm python chromium"
    elif [ "$(uname -s)" = Darwin ]; then
        say "on macOS: brew install postgresql@17 redis, for Kafka pkgconf and openssl, for the tests pgbouncer, haproxy, node, python, Chrome and chromedriver, and xcode-select --install for the C compiler"
    else
        say "install a PostgreSQL server ($POSTGRES_MIN or newer, with pg_dump), a Redis or Valkey server and a C compiler; for Kafka make, a C++ compiler, pkg-config and OpenSSL; for the tests PgBouncer, HAProxy 2.6 or newer, openssl, curl, Node.js 18 or newer with npm and Python 3.11 or newer, and Chromium with chromedriver."
    fi
    say "their services need not run: Centile starts private servers."
    exit 1
}

check_rust
missing=() packages=()
if ! has_postgres; then missing+=("PostgreSQL server >= $POSTGRES_MIN") packages+=(postgresql); fi
if ! has_redis; then missing+=("Redis server") packages+=(redis-server); fi
if ! has_compiler; then missing+=("C compiler") packages+=(gcc libc6-dev); fi
if [ "${1:-}" = test ]; then
    if ! has_pgbouncer; then missing+=(PgBouncer) packages+=(pgbouncer); fi
    if ! has_haproxy; then missing+=(HAProxy) packages+=(haproxy); fi
    if ! has_openssl; then missing+=(openssl) packages+=(openssl); fi
    if ! has_curl; then missing+=(curl) packages+=(curl); fi
    if ! has_node; then missing+=("Node.js >= 18") packages+=(nodejs); fi
    if ! has_npm; then missing+=(npm) packages+=(npm); fi
    if ! has_python; then missing+=("Python >= 3.11 with venv") packages+=(python3 python3-venv); fi
    if ! has_chromium; then missing+=("Chromium and its driver") packages+=(chromium chromium-driver); fi
fi
if [ "${1:-}" = kafka ] && ! has_kafka_tools; then
    missing+=("make, C++ compiler, pkg-config and OpenSSL") packages+=(make g++ pkg-config libssl-dev)
fi
if [ "${1:-}" = bench ] && ! has_wrk; then missing+=("wrk 4.1 or 4.2") packages+=(wrk); fi
if [ "${#missing[@]}" -gt 0 ] && ! command -v apt-get >/dev/null; then
    printf -v list '%s, ' "${missing[@]}"
    explain "${list%, }"
fi
if [ "${#missing[@]}" -gt 0 ]; then
    install_by_apt "${packages[@]}"
    if ! has_postgres; then
        say "this release of $(. /etc/os-release && echo "$PRETTY_NAME") has only an older PostgreSQL."
        say "Add the repository of https://www.postgresql.org/download/linux/ and run this again."
        exit 1
    fi
    if ! has_redis || ! has_compiler || { [ "${1:-}" = test ] && ! has_all_for_tests; } || { [ "${1:-}" = bench ] && ! has_wrk; } ||
        { [ "${1:-}" = kafka ] && ! has_kafka_tools; }; then
        say "a program is still missing after the installation: ${missing[*]}"
        exit 1
    fi
fi
# The clients' generators and libraries come from npm and PyPI.
if [ "${1:-}" = test ]; then "$(dirname "$0")/clients.sh" make; fi
