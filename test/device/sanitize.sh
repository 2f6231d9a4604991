#!/bin/bash
# A subset of the batch test under compute-sanitizer: sanitize.sh TOOL PROGRAM.
set -u
tool=$1 program=$2
log=$(mktemp)
timeout 280 compute-sanitizer --tool "$tool" --error-exitcode 99 "$program" --small \
    >"$log" 2>&1
rc=$?
if [ $rc -eq 0 ] && grep -q '^ok ' "$log" && grep -Eq '0 (errors|hazards)' "$log"; then
    echo "ok sanitizer-$tool"
    echo "# $(grep -c '^ok ' "$log") cases under $tool; $(grep -E 'SUMMARY' "$log")"
else
    echo "not ok sanitizer-$tool - status $rc"
    grep -vE '^ok ' "$log" | tail -40
    exit 1
fi
