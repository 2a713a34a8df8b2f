#!/usr/bin/env bash
# Feeds one of the readers of what comes from outside with made-up bytes, and looks whether what has to hold does
# (tests/fuzz/properties.rs): tests/fuzz.sh period|key|signature|import SECONDS. What it found worth keeping is in target/fuzz/corpus, and
# it goes on from there the next time; bytes with which something did not hold are in tests/fuzz/artifacts, and belong to
# tests/fuzz/seeds once that is mended.
set -euo pipefail

readonly VERSION=0.13.2
readonly target=$1 seconds=$2
cd "$(dirname "$0")/.."
export PATH="$PWD/.centile/tools/bin:$PATH"

if [ "$(cargo fuzz --version 2>/dev/null)" != "cargo-fuzz $VERSION" ]; then
    cargo install cargo-fuzz --version "$VERSION" --locked --root .centile/tools
fi

# The versions that are shipped; what fuzzing needs besides is added to them.
cp Cargo.lock tests/fuzz/Cargo.lock
mkdir -p "target/fuzz/corpus/$target"
# The flags of sanitizers are open to nightly compilers only. This opens them for the one that all else is built with.
export RUSTC_BOOTSTRAP=1
exec cargo fuzz run --fuzz-dir tests/fuzz --target-dir target/fuzz --codegen-units 16 \
    "$target" "target/fuzz/corpus/$target" "tests/fuzz/seeds/$target" \
    -- -max_total_time="$seconds" -print_final_stats=1 -rss_limit_mb=2048 -timeout=60 -max_len=4096
