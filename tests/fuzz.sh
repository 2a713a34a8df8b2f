#!/usr/bin/env bash
# Fuzzes one of the parsers of external input and checks the properties in tests/fuzz/properties.rs:
# tests/fuzz.sh period|key|import|metadata SECONDS. Interesting inputs are kept in
# target/fuzz/corpus for the next run. Inputs that violate a property are in tests/fuzz/artifacts;
# move them to tests/fuzz/seeds with the fix.
set -euo pipefail

readonly VERSION=0.13.2
readonly target=$1 seconds=$2
cd "$(dirname "$0")/.."
export PATH="$PWD/.centile/tools/bin:$PATH"

if [ "$(cargo fuzz --version 2>/dev/null)" != "cargo-fuzz $VERSION" ]; then
    cargo install cargo-fuzz --version "$VERSION" --locked --root .centile/tools
fi

# The pinned versions of the release; cargo adds what fuzzing needs.
cp Cargo.lock tests/fuzz/Cargo.lock
mkdir -p "target/fuzz/corpus/$target"
# Sanitizers need flags of nightly compilers. This allows them in the pinned compiler.
export RUSTC_BOOTSTRAP=1
exec cargo fuzz run --fuzz-dir tests/fuzz --target-dir target/fuzz --codegen-units 16 \
    "$target" "target/fuzz/corpus/$target" "tests/fuzz/seeds/$target" \
    -- -max_total_time="$seconds" -print_final_stats=1 -rss_limit_mb=2048 -timeout=60 -max_len=4096
