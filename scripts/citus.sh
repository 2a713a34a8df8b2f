#!/usr/bin/env bash
# Prints the folder with the programs of a PostgreSQL that has Citus:
#
#     scripts/citus.sh FOLDER
#
# FOLDER is Citus' source, or an installation of PostgreSQL with Citus. From the source, the script builds Citus into a
# copy of the installed PostgreSQL, in .centile/citus. This takes 2 minutes. It builds again only if the source or the
# version of PostgreSQL has changed. If several versions are installed, PG_CONFIG selects one; otherwise the newest that
# Citus supports.
#
# The script changes nothing outside .centile, neither the source nor the installed PostgreSQL.
set -euo pipefail
umask 022

say() { printf 'citus: %s\n' "$*" >&2; }

fail() {
    say "$@"
    exit 1
}

if [ $# -ne 1 ]; then
    echo "usage: $0 FOLDER" >&2
    exit 2
fi
source=$(realpath -e -- "$1" 2>/dev/null) || fail "no such folder: '$1'; give Citus' source or a PostgreSQL with Citus"
cd "$(dirname "$0")/.."
readonly source target=$PWD/.centile/citus

# Whether folder $1 has a PostgreSQL with Citus.
has_citus() {
    local config=$1/bin/pg_config
    [ -x "$1/bin/postgres" ] && [ -x "$config" ] && [ -e "$("$config" --sharedir)/extension/citus.control" ] &&
        [ -e "$("$config" --pkglibdir)/citus.so" ]
}

# Prints the major versions of PostgreSQL that the source supports, one per line.
supported() { sed -n '/version_num" != /p' "$source/configure" | grep -o "'[0-9]*'" | tr -d "'"; }

# Prints the path of the newest supported pg_config with a server and the server's headers.
find_postgres() {
    local config version found='' newest=0
    local configs=(/usr/lib/postgresql/*/bin/pg_config /usr/pgsql-*/bin/pg_config "$(command -v pg_config || true)")
    if [ -n "${PG_CONFIG:-}" ]; then configs=("$PG_CONFIG"); fi
    for config in "${configs[@]}"; do
        if [ ! -x "$config" ] || [ ! -x "$("$config" --bindir)/postgres" ]; then continue; fi
        if [ ! -e "$("$config" --includedir-server)/postgres.h" ] || [ ! -e "$("$config" --pgxs)" ]; then continue; fi
        version=$("$config" --version | sed 's/^[^0-9]*\([0-9]*\).*/\1/')
        if [ "$version" -gt "$newest" ] && supported | grep -qx "$version"; then newest=$version found=$config; fi
    done
    echo "$found"
}

# Names everything that is missing for a build.
check_tools() {
    local version list missing=() packages=()
    if [ -z "$1" ]; then
        version=$(supported | sort -n | head -n 1)
        missing+=("PostgreSQL of version $(supported | paste -sd / -) with the headers of its server")
        packages+=("postgresql-$version" "postgresql-server-dev-$version")
    fi
    if ! command -v gcc >/dev/null || ! gcc -E -include stdio.h - </dev/null >/dev/null 2>&1; then
        missing+=("C compiler") packages+=(gcc libc6-dev)
    fi
    if ! command -v make >/dev/null; then missing+=(make) packages+=(make); fi
    if [ "${#missing[@]}" -eq 0 ]; then return; fi
    printf -v list '%s, ' "${missing[@]}"
    say "missing: ${list%, }"
    fail "on Debian, run as root: apt-get install --no-install-recommends ${packages[*]}"
}

# Writes the source as an archive, without tests and old build output. Equal times keep make from running autoconf.
pack() {
    tar -C "$source" --create --sort=name --mtime=2020-01-01 --owner=0 --group=0 --numeric-owner --mode=u+rwX,go=rX \
        --exclude=./.git --exclude=./src/test --exclude='*.o' --exclude='*.a' --exclude='*.so' --exclude='*.bc' .
}

# Copies the PostgreSQL of pg_config $1, and builds Citus into the copy. PostgreSQL's programs find its other folders
# relative to their own, so each folder keeps its path below the target.
build() {
    local bin folder
    bin=$("$1" --bindir)
    mkdir -p "$target/build" "$target$bin"
    cp "$bin"/pg_* "$bin"/{postgres,initdb,psql} "$target$bin"
    for folder in "$("$1" --pkglibdir)" "$("$1" --sharedir)"; do
        mkdir -p "$target$folder"
        cp -R "$folder/." "$target$folder"
    done
    folder=$("$1" --includedir)
    mkdir -p "$target${folder%/*}"
    ln -s "$folder" "$target$folder"
    ln -s "${bin#/}" "$target/bin"

    pack | tar -C "$target/build" --extract
    cd "$target/build"
    # Newer minor releases of PostgreSQL 15 have a function of this name. Rename the one of Citus.
    { grep -rl --include='*.[ch]' have_createdb_privilege src || true; } |
        xargs -r sed -i 's/have_createdb_privilege/citus_&/'
    ./configure --without-libcurl --without-lz4 --without-zstd PG_CONFIG="$target/bin/pg_config"
    # Variables of a calling make.
    unset MAKEFLAGS
    nice make -j"$(nproc)" with_llvm=no install-extension
}

# Builds Citus unless the target has it already. The first process builds, all others wait.
ensure() {
    local config wanted status log=$target.log
    config=$(find_postgres)
    check_tools "$config"
    mkdir -p "${target%/*}"
    if command -v flock >/dev/null; then
        exec 9>"$target.lock"
        flock 9
    fi
    wanted=$("$("$config" --bindir)/postgres" --version && pack | sha256sum)
    if [ "$wanted" = "$(cat "$target/built.txt" 2>/dev/null)" ]; then return; fi
    say "building Citus for $("$config" --version); $log has the output"
    rm -rf "$target"
    # A subshell in a condition ignores `set -e`.
    set +e
    (set -e && build "$config") >"$log" 2>&1 9>&-
    status=$?
    set -e
    if [ "$status" -ne 0 ]; then
        tail -n 20 "$log" >&2
        fail "the build failed"
    fi
    rm -rf "$target/build"
    echo "$wanted" >"$target/built.txt"
}

if has_citus "$source"; then
    folder=$source
elif [ -e "$source/configure" ] && [ -e "$source/src/backend/distributed/citus.control" ]; then
    ensure
    folder=$target
else
    say "$source has neither Citus' source (configure, src/backend/distributed/citus.control)"
    fail "nor a PostgreSQL with Citus (bin/postgres, bin/pg_config, citus.control)"
fi
bin=$(realpath "$folder/bin")
# PostgreSQL refuses to run as root, so another account must be able to run it.
if [ "$(id -u)" -eq 0 ] && ! setpriv --reuid=65534 --regid=65534 --clear-groups test -x "$bin/postgres"; then
    fail "other accounts cannot run $bin/postgres: run chmod o+x on the folders above it"
fi
echo "$bin"
