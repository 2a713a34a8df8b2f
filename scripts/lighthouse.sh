#!/usr/bin/env bash
# Audits pages of a running Centile with Lighthouse:
# `scripts/lighthouse.sh http://127.0.0.1:8080 / '/boards/main'`. Fails if performance,
# accessibility, best practices or SEO score below 100, as on a slow phone. Needs Node 18.20 or
# newer, and Chromium.
#
# Installs Lighthouse 12 (Apache-2.0) from npm into .centile/tools. Version 13 needs a newer Node
# than Debian 12 has.
set -euo pipefail
cd "$(dirname "$0")/.."

readonly VERSION=12.8.2 FOLDER=.centile/tools/lighthouse MIN_SCORE=100

if [ $# -lt 2 ]; then
    echo "usage: $0 ADDRESS PATH…" >&2
    exit 2
fi
address=$1
shift
if [ "$(sed -n 's/^  "version": "\(.*\)",$/\1/p' "$FOLDER/node_modules/lighthouse/package.json" 2>/dev/null)" != "$VERSION" ]; then
    npm install --silent --no-audit --no-fund --prefix "$FOLDER" "lighthouse@$VERSION"
fi
CHROME_PATH=$(command -v chromium || command -v google-chrome)
export CHROME_PATH

status=0
for path in "$@"; do
    report=$(mktemp)
    # No sandbox: Chromium does not run as root with one, and the pages are our own.
    "$FOLDER/node_modules/.bin/lighthouse" "$address$path" --quiet --chrome-flags='--headless=new --no-sandbox' \
        --only-categories=performance,accessibility,best-practices,seo --output=json --output-path="$report"
    WHERE=$path node - "$report" "$MIN_SCORE" <<'SCRIPT' || status=1
const { categories, audits } = JSON.parse(require("fs").readFileSync(process.argv[2], "utf8"));
const points = Object.values(categories).map(({ title, score }) => [title, Math.round(score * 100)]);
const shown = ["first-contentful-paint", "largest-contentful-paint", "total-blocking-time", "cumulative-layout-shift", "total-byte-weight"];
console.log(`${process.env.WHERE}: ${points.map(([title, score]) => `${title} ${score}`).join(", ")}; ` +
    shown.map((id) => `${audits[id].title} ${audits[id].displayValue}`).join(", "));
if (points.every(([, score]) => score >= Number(process.argv[3]))) process.exit(0);
for (const audit of Object.values(audits)) if (audit.score !== null && audit.score < 0.9) console.log(`  ${audit.title}: ${audit.displayValue ?? ""}`);
process.exit(1);
SCRIPT
    rm -f "$report"
done
exit "$status"
