#!/usr/bin/env bash
# The clients in clients/, which are made from docs/openapi.json:
#
#     scripts/clients.sh make     makes them anew, and writes down of which document they are
#     scripts/clients.sh check    fails where that would change anything
#     scripts/clients.sh tools    installs what their tests need; quick when nothing is missing
#
# The generators' versions are in clients/typescript/package-lock.json and clients/python/generator.txt.
set -euo pipefail
cd "$(dirname "$0")/.."

readonly tools=.centile/tools
readonly types=clients/typescript/centile.d.ts package=clients/python/centile_client document=docs/openapi.json
readonly made_of=clients/openapi.sha256
mkdir -p "$tools"

# npm and pip bring lists of authorities of their own; where a proxy stands in between, its own is in the machine's alone.
readonly authorities=/etc/ssl/certs/ca-certificates.crt
if [ -r "$authorities" ]; then
    export NODE_EXTRA_CA_CERTS="${NODE_EXTRA_CA_CERTS:-$authorities}" PIP_CERT="${PIP_CERT:-$authorities}"
fi

# One installs or makes, whoever else comes waits; macOS has no flock.
if command -v flock >/dev/null; then
    exec 9>"$tools/clients.lock"
    flock 9
fi

# Installs what the lockfile names: the generator, the compiler, and what the client and its test need.
install_node() {
    local folder=clients/typescript
    if cmp -s "$folder/package-lock.json" "$folder/node_modules/.installed"; then return; fi
    npm ci --prefix "$folder" --loglevel error --no-update-notifier >/dev/null
    cp "$folder/package-lock.json" "$folder/node_modules/.installed"
}

# Makes folder $1 a Python environment with the packages that file $2 names. One of another Python does not find its packages.
install_python() {
    local wanted
    wanted=$(python3 --version && cat "$2")
    if [ "$wanted" = "$(cat "$1/installed.txt" 2>/dev/null)" ]; then return; fi
    rm -rf "$1"
    python3 -m venv "$1"
    "$1/bin/python" -m pip install --quiet --disable-pip-version-check --requirement "$2"
    echo "$wanted" >"$1/installed.txt"
}

# Makes the clients in folder $1.
make_in() {
    local log=$1/python.log
    install_node
    install_python "$tools/openapi-python-client" clients/python/generator.txt
    clients/typescript/node_modules/.bin/openapi-typescript "$document" --root-types --root-types-no-schema-prefix \
        --output "$1/centile.d.ts" >/dev/null
    # What it cannot make it only warns of, and leaves out.
    PATH="$PWD/$tools/openapi-python-client/bin:$PATH" python -m openapi_python_client generate --path "$document" --meta none \
        --config clients/python/generator.yaml --output-path "$1/centile_client" --fail-on-warning >"$log" 2>&1 || {
        cat "$log" >&2
        return 1
    }
    rm -rf "$1/centile_client/.ruff_cache"
    # By which type checkers know that there are types.
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
            echo 'the clients are not what their generators make of docs/openapi.json: make clients' >&2
            exit 1
        fi
        ;;
    tools)
        install_node
        install_python "$tools/clients-python" clients/python/requirements.txt
        ;;
    *)
        echo 'scripts/clients.sh make | check | tools' >&2
        exit 2
        ;;
esac
