#!/usr/bin/env bash
# Generates requests from the OpenAPI document of a running Centile and checks every answer with all
# checks of Schemathesis: tests/schemathesis.sh URL EXAMPLES [KEY]. EXAMPLES is the number of
# requests for each call and generation mode. KEY is sent with each request. The requests write
# data: use a service that nothing else needs.
set -euo pipefail

readonly VERSION=4.32.5
readonly url=$1 examples=$2 key=${3:-}
cd "$(dirname "$0")/.."
readonly tool=.centile/tools/schemathesis-$VERSION

# The first process installs it, all others wait.
mkdir -p .centile/tools
exec 9>"$tool.lock"
flock 9
if ! [ -x "$tool/bin/st" ]; then
    rm -rf "$tool"
    python3 -m venv "$tool"
    "$tool/bin/pip" install --quiet --disable-pip-version-check "schemathesis==$VERSION" || { rm -rf "$tool"; exit 1; }
fi
exec 9>&-

# One worker: with more, Python 3.11's parser fails now and then ("AST constructor recursion depth
# mismatch").
arguments=(--checks all --max-examples "$examples" --workers 1 --request-timeout 30 --continue-on-failure)
# These are no failures of the service, but make random requests slow to find.
arguments+=(--suppress-health-check all --generation-database none --no-color)
# An endless response.
arguments+=(--exclude-path '/v1/boards/{board}/live')
if [ -n "$key" ]; then arguments+=(--header "Authorization: Bearer $key"); fi
# Runs with lower priority than other processes.
exec nice -n 10 "$tool/bin/st" --config-file tests/schemathesis.toml run "${arguments[@]}" "$url/openapi.json"
