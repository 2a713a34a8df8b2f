#!/usr/bin/env bash
# The clients in TypeScript and Python, generated from docs/openapi.json into clients/:
#
#     scripts/clients.sh make     installs what is missing, and generates the clients if the document has changed
#
# The versions of the generators are in clients/typescript/package-lock.json and clients/python/generator.txt.
set -euo pipefail
cd "$(dirname "$0")/.."

readonly tools=.centile/tools
readonly types=clients/typescript/centile.d.ts package=clients/python/centile_client document=docs/openapi.json
readonly generated_from=$tools/clients.sha256
mkdir -p "$tools"

# npm and pip have their own lists of certificate authorities. Use the system's, which also knows a local proxy's.
readonly authorities=/etc/ssl/certs/ca-certificates.crt
if [ -r "$authorities" ]; then
    export NODE_EXTRA_CA_CERTS="${NODE_EXTRA_CA_CERTS:-$authorities}" PIP_CERT="${PIP_CERT:-$authorities}"
fi

# One run at a time. macOS has no flock.
if command -v flock >/dev/null; then
    exec 9>"$tools/clients.lock"
    flock 9
fi

# Installs the packages of the lockfile: generator, compiler, and test dependencies.
install_node() {
    local folder=clients/typescript
    if cmp -s "$folder/package-lock.json" "$folder/node_modules/.installed"; then return; fi
    npm ci --prefix "$folder" --loglevel error --no-update-notifier >/dev/null
    cp "$folder/package-lock.json" "$folder/node_modules/.installed"
}

# Creates a Python environment in folder $1 with the packages of file $2; anew after an upgrade of Python.
install_python() {
    local wanted
    wanted=$(python3 --version && cat "$2")
    if [ "$wanted" = "$(cat "$1/installed.txt" 2>/dev/null)" ]; then return; fi
    rm -rf "$1"
    python3 -m venv "$1"
    "$1/bin/python" -m pip install --quiet --disable-pip-version-check --requirement "$2"
    echo "$wanted" >"$1/installed.txt"
}

# Generates the clients.
generate() {
    local folder
    folder=$(mktemp -d "$tools/clients.XXXXXX")
    trap "rm -rf '$folder'" EXIT
    install_python "$tools/openapi-python-client" clients/python/generator.txt
    clients/typescript/node_modules/.bin/openapi-typescript "$document" --root-types --root-types-no-schema-prefix \
        --output "$folder/centile.d.ts" >/dev/null
    # Without --fail-on-warning the generator omits what it does not support.
    PATH="$PWD/$tools/openapi-python-client/bin:$PATH" python -m openapi_python_client generate --path "$document" --meta none \
        --config clients/python/generator.yaml --output-path "$folder/centile_client" --fail-on-warning >"$folder/log" 2>&1 || {
        cat "$folder/log" >&2
        return 1
    }
    rm -rf "$folder/centile_client/.ruff_cache"
    # Marks the package as typed (PEP 561).
    touch "$folder/centile_client/py.typed"
    mv "$folder/centile.d.ts" "$types"
    rm -rf "$package"
    mv "$folder/centile_client" "$package"
}

[ "${1:-}" = make ] || {
    echo 'usage: scripts/clients.sh make' >&2
    exit 2
}
install_node
install_python "$tools/clients-python" clients/python/requirements.txt
current=$(cat "$document" clients/typescript/package-lock.json clients/python/generator.* | openssl dgst -sha256 -r)
if [ "$current" != "$(cat "$generated_from" 2>/dev/null)" ] || [ ! -e "$types" ] || [ ! -e "$package" ]; then
    generate
    echo "$current" >"$generated_from"
fi
