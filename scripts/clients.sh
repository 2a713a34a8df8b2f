#!/usr/bin/env bash
# Generates the clients in clients/ from docs/openapi.json:
#
#     scripts/clients.sh make     regenerates them and records the digest of the document
#     scripts/clients.sh check    fails if they are out of date
#     scripts/clients.sh tools    installs missing tools for their tests
#
# clients/typescript/package-lock.json and clients/python/generator.txt pin the generators'
# versions.
set -euo pipefail
cd "$(dirname "$0")/.."

readonly tools=.centile/tools
readonly types=clients/typescript/centile.d.ts package=clients/python/centile_client document=docs/openapi.json
readonly made_of=clients/openapi.sha256
mkdir -p "$tools"

# npm and pip bundle their own certificate authorities. Use the system's, which may contain a
# proxy's.
readonly authorities=/etc/ssl/certs/ca-certificates.crt
if [ -r "$authorities" ]; then
    export NODE_EXTRA_CA_CERTS="${NODE_EXTRA_CA_CERTS:-$authorities}" PIP_CERT="${PIP_CERT:-$authorities}"
fi

# Run one at a time. macOS has no flock.
if command -v flock >/dev/null; then
    exec 9>"$tools/clients.lock"
    flock 9
fi

# Installs the packages of the lockfile: the generator, the compiler, and dependencies of the client
# and its test.
install_node() {
    local folder=clients/typescript
    if cmp -s "$folder/package-lock.json" "$folder/node_modules/.installed"; then return; fi
    npm ci --prefix "$folder" --loglevel error --no-update-notifier >/dev/null
    cp "$folder/package-lock.json" "$folder/node_modules/.installed"
}

# Creates a Python environment in folder $1 with the packages of file $2. Recreates it for another
# Python version, which would not find the packages.
install_python() {
    local wanted
    wanted=$(python3 --version && cat "$2")
    if [ "$wanted" = "$(cat "$1/installed.txt" 2>/dev/null)" ]; then return; fi
    rm -rf "$1"
    python3 -m venv "$1"
    "$1/bin/python" -m pip install --quiet --disable-pip-version-check --requirement "$2"
    echo "$wanted" >"$1/installed.txt"
}

# Generates the clients in folder $1.
make_in() {
    local log=$1/python.log
    install_node
    install_python "$tools/openapi-python-client" clients/python/generator.txt
    clients/typescript/node_modules/.bin/openapi-typescript "$document" --root-types --root-types-no-schema-prefix \
        --output "$1/centile.d.ts" >/dev/null
    # By default the generator omits unsupported parts with a warning.
    PATH="$PWD/$tools/openapi-python-client/bin:$PATH" python -m openapi_python_client generate --path "$document" --meta none \
        --config clients/python/generator.yaml --output-path "$1/centile_client" --fail-on-warning >"$log" 2>&1 || {
        cat "$log" >&2
        return 1
    }
    rm -rf "$1/centile_client/.ruff_cache"
    # Marks the package as typed for type checkers.
    touch "$1/centile_client/py.typed"
}

folder=$(mktemp -d "$tools/clients.XXXXXX")
trap 'rm -rf "$folder"' EXIT
case ${1:-} in
    make)
        make_in "$folder"
        mv "$folder/centile.d.ts" "$types"
        rm -rf "$package"
        mv "$folder/centile_client" "$package"
        openssl dgst -sha256 -r "$document" >"$made_of"
        ;;
    check)
        make_in "$folder"
        if ! diff -q "$folder/centile.d.ts" "$types" || ! diff -qr --exclude=__pycache__ "$folder/centile_client" "$package"; then
            echo 'clients/ is out of date with docs/openapi.json: run make clients' >&2
            exit 1
        fi
        ;;
    tools)
        install_node
        install_python "$tools/clients-python" clients/python/requirements.txt
        ;;
    *)
        echo 'usage: scripts/clients.sh make | check | tools' >&2
        exit 2
        ;;
esac
