#!/usr/bin/env bash
# Opens 1,000 slow connections of each kind of slowhttptest (request heads, request bodies,
# responses) to a demo of the built program ($1), while another client reads the top list. Passes if
# 15 s after the last slow connection all of them are closed, and at least 99 % of the other
# client's calls succeeded.
set -euo pipefail

readonly CENTILE=$1 CONNECTIONS=1000 PER_SECOND=500 CLOSED_AFTER=15
readonly PORT=$((20000 + RANDOM % 10000))
readonly URL=http://127.0.0.1:$PORT

if ! command -v slowhttptest >/dev/null; then
    echo "slowhttptest is missing: apt-get install slowhttptest" >&2
    exit 1
fi
if [ "$(ulimit -n)" -lt $((CONNECTIONS + 200)) ]; then ulimit -n $((CONNECTIONS + 200)); fi

folder=$(mktemp -d)
demo= failed=0
end() {
    if [ -n "$demo" ]; then
        kill "$demo" 2>/dev/null || true
        wait "$demo" || true
    fi
    rm -rf "$folder"
}
trap end EXIT

"$CENTILE" demo --dir "$folder/demo" --listen "127.0.0.1:$PORT" --games-per-second 0 >"$folder/out" 2>&1 &
demo=$!
for _ in {1..600}; do
    if grep -q 'Ctrl-C' "$folder/out"; then break; fi
    if ! kill -0 "$demo" 2>/dev/null; then cat "$folder/out" >&2; exit 1; fi
    sleep 0.1
done

# Reads the top list until file $1 is gone. Prints the numbers of calls and of successful calls.
call() {
    local calls=0 good=0
    while [ -e "$1" ]; do
        calls=$((calls + 1))
        if curl -sf -m 5 -o /dev/null "$URL/v1/boards/main/scores"; then good=$((good + 1)); fi
        sleep 0.02
    done
    echo "$calls $good"
}

# Counts client connections of the service. Connections that only the kernel still holds have no
# inode.
connections() {
    awk -v port="$(printf ':%04X$' "$PORT")" '$2 ~ port && $4 != "0A" && $10 != "0"' /proc/net/tcp | wc -l
}

# Tries one kind of slow connection, named $1; the other arguments are options of slowhttptest.
try() {
    local kind=$1 calls good before most left caller slow
    shift
    # Connections of the demo's own games.
    before=$(connections)
    touch "$folder/running"
    call "$folder/running" >"$folder/calls" &
    caller=$!
    slowhttptest -c $CONNECTIONS -r $PER_SECOND -i 1 -l 60 -p 5 "$@" >/dev/null 2>&1 &
    slow=$!
    sleep $((CONNECTIONS / PER_SECOND + 1))
    most=$(($(connections) - before))
    sleep $((CLOSED_AFTER - 1))
    left=$(($(connections) - before))
    kill "$slow" 2>/dev/null || true
    wait "$slow" || true
    rm "$folder/running"
    wait "$caller"
    read -r calls good <"$folder/calls"
    echo "slow with $kind: $left of $most connections left after $CLOSED_AFTER s; $good of $calls other calls answered"
    # A few connections belong to the other client and to probes.
    if [ "$most" -lt $((CONNECTIONS * 9 / 10)) ] || [ "$left" -gt 5 ]; then failed=1; fi
    if [ $((good * 100)) -lt $((calls * 99)) ]; then failed=1; fi
}

try heads -H -u "$URL/v1/boards/main/scores"
try bodies -B -s 100000 -t POST -u "$URL/v1/boards/main/scores/query" -f application/json
try answers -X -w 10 -y 20 -n 5 -z 32 -k 8 -u "$URL/openapi.json"
exit $failed
