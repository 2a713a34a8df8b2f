#!/usr/bin/env bash
# Checks manifests against the JSON schemas of Kubernetes, which the checker contains:
#
#     scripts/manifests.sh deploy/kubernetes/*.yaml
#
# scripts/manifests.txt has the versions of the checker and of what it needs.
set -euo pipefail

packages=$(dirname "$(realpath "$0")")/manifests.txt
tool=$(dirname "$packages")/../.centile/tools/manifests
readonly packages tool

# The first process installs it, all others wait.
mkdir -p "$(dirname "$tool")"
if command -v flock >/dev/null; then
    exec 9>"$tool.lock"
    flock 9
fi
if ! cmp -s "$packages" "$tool/installed.txt"; then
    rm -rf "$tool"
    python3 -m venv "$tool"
    "$tool/bin/python" -m pip install --quiet --disable-pip-version-check --requirement "$packages"
    cp "$packages" "$tool/installed.txt"
fi
exec 9>&-

# The oldest and the newest version that the checker knows. `--strict` refuses unknown fields.
"$tool/bin/kubernetes-validate" --strict --kubernetes-version 1.25 --kubernetes-version 1.37 "$@"
