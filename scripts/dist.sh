#!/usr/bin/env bash
# Packs a release into target/dist: centile-VERSION-ARCH-linux.tar.gz and its .sha256.
#
#     scripts/dist.sh      after `cargo build --release --locked`; `make dist` builds first
#
# The archive has the program, documents, deploy/, sql/ for DBAs, the clients, a bill of materials (CycloneDX), the
# licences of all dependencies, and SHA256SUMS. Equal commits and equal programs give equal archives.
set -euo pipefail
cd "$(dirname "$0")/.."

target=${CARGO_TARGET_DIR:-target}
version=$(sed -n 's/^version = "\(.*\)"$/\1/p' Cargo.toml | head -n 1)
readonly target version
name=centile-$version-$(uname -m)-linux
out=$(realpath -m "$target/dist")
folder=$out/$name
readonly name out folder
SOURCE_DATE_EPOCH=$(git log -1 --format=%ct)
export SOURCE_DATE_EPOCH

fail() {
    echo "dist: $*" >&2
    exit 1
}

# Copies the files of the repository below these paths. Files that git ignores stay behind.
copy() { git ls-files -z -- "$@" | xargs -0 cp --parents -t "$folder"; }

# Prints the libraries that a program needs.
libraries() { readelf --dynamic --wide "$1" | sed -n 's/.*(NEEDED).*\[\(.*\)\]$/\1/p'; }

# Prints the newest glibc version that a program needs.
glibc() { readelf --dyn-syms --wide "$1" | grep -o 'GLIBC_[0-9.]*' | sort -Vu | tail -n 1 | cut -d _ -f 2; }

# Lists the licences of the crates in the program, and copies their texts. A few crates have none. Cargo's registry
# folder has the sources.
licences() {
    local crate number source
    mkdir "$folder/licences"
    cargo tree --locked --edges normal --prefix none --no-dedupe --format '{p} {l}' |
        sed -e 's/ (proc-macro)//' -e '/^centile /d' | sort -u >"$folder/licences/LIST"
    while read -r crate number _; do
        mkdir "$folder/licences/$crate-${number#v}"
        for source in "${CARGO_HOME:-$HOME/.cargo}"/registry/src/*/"$crate-${number#v}"; do
            (cd "$source" && find . -maxdepth 2 -type f \( -iname 'licen[cs]e*' -o -iname 'copying*' -o -iname 'notice*' \
                -o -iname unlicense -o -iname copyright \) -exec cp --parents -t "$folder/licences/$crate-${number#v}" {} +)
        done
    done <"$folder/licences/LIST"
    find "$folder/licences" -type d -empty -delete
}

# Writes the bill of materials. The tool writes beside Cargo.toml, and names the checkout's path.
bill() {
    local file=centile-$version.cdx
    trap "rm -f '$file.json'" EXIT
    cargo cyclonedx --quiet --format json --spec-version 1.5 --no-build-deps --override-filename "$file"
    sed "s|file://$PWD|file:///centile|g" "$file.json" >"$folder/$file.json"
}

[ "$(uname -s)" = Linux ] || fail 'builds archives for Linux only'
[ -x "$target/release/centile" ] || fail "no $target/release/centile: run \`cargo build --release --locked\`"
[ "$("$target/release/centile" --version)" = "centile $version" ] || fail 'the program is of another version'
rm -rf "$folder"
mkdir -p "$folder"
strip --strip-unneeded -o "$folder/centile" "$target/release/centile"
for library in $(libraries "$folder/centile"); do
    case $library in
        libc.so.* | libm.so.* | libgcc_s.so.* | libpthread.so.* | libdl.so.* | librt.so.* | ld-linux*) ;;
        *) fail "the program needs $library, which a minimal system lacks" ;;
    esac
done

copy '*.md' 'LICENSE-*' deploy docs sql clients
rm -rf "$folder"/{benches,migrations,tests,scripts}
cp docs/centile.service "$folder/"
for generated in clients/typescript/centile.d.ts clients/python/centile_client; do
    [ -e "$generated" ] || fail "no $generated: run \`make clients\`"
    cp -r "$generated" "$folder/$generated"
done
find "$folder/clients" -name __pycache__ -prune -exec rm -rf {} +
licences
bill
changed=$(git status --porcelain --untracked-files=no)
cat >"$folder/BUILD" <<END
version $version
commit  $(git rev-parse HEAD)${changed:+, with changes}
rustc   $(rustc --version | cut -d ' ' -f 2)
needs   Linux on $(uname -m), glibc $(glibc "$folder/centile") or newer: $(libraries "$folder/centile" | xargs)
END
(cd "$folder" && find . -type f ! -name SHA256SUMS -printf '%P\0' | sort -z | xargs -0 sha256sum >SHA256SUMS)

tar --create --directory "$out" --sort=name --mtime="@$SOURCE_DATE_EPOCH" --owner=0 --group=0 --numeric-owner \
    --mode=u=rwX,go=rX "$name" | gzip --best --no-name >"$out/$name.tar.gz"
(cd "$out" && sha256sum "$name.tar.gz" | tee "$name.tar.gz.sha256")
rm -rf "$folder"
echo "dist: $out/$name.tar.gz"
