#!/usr/bin/env bash
# Makes up requests from the OpenAPI document of a running Centile and checks every answer against it, with all the checks that
# Schemathesis has: tests/schemathesis.sh URL EXAMPLES [KEY]. EXAMPLES is how many requests are made up for each call and way of
# making them up; KEY is sent with each of them. Whatever the service keeps is written to: give it one that nobody needs.
set -euo pipefail

readonly VERSION=4.32.5
readonly url=$1 examples=$2 key=${3:-}
cd "$(dirname "$0")/.."
readonly tool=.centile/tools/schemathesis-$VERSION

# One installs it, whoever else comes waits.
mkdir -p .centile/tools
exec 9>"$tool.lock"
flock 9
if ! [ -x "$tool/bin/st" ]; then
    rm -rf "$tool"
    python3 -m venv "$tool"
    "$tool/bin/pip" install --quiet --disable-pip-version-check "schemathesis==$VERSION" || { rm -rf "$tool"; exit 1; }
fi
exec 9>&-

# One worker: with more, Python 3.11's parser fails now and then ("AST constructor recursion depth mismatch").
arguments=(--checks all --max-examples "$examples" --workers 1 --request-timeout 30 --continue-on-failure)
# Not what is wrong with the service, but what makes random requests slow to find.
arguments+=(--suppress-health-check all --generation-database none --no-color)
# An answer without an end.
arguments+=(--exclude-path '/v1/boards/{board}/events')
if [ -n "$key" ]; then arguments+=(--header "Authorization: Bearer $key"); fi
# Whoever else is at work goes first.
exec nice -n 10 "$tool/bin/st" --config-file tests/schemathesis.toml run "${arguments[@]}" "$url/openapi.json"
