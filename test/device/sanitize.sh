#!/bin/bash
# A subset of the batch test under compute-sanitizer: sanitize.sh TOOL PROGRAM (racecheck
# takes a minute for what memcheck does in a second, and so gets two sizes).
set -u
tool=$1 program=$2
case $tool in
racecheck) sizes=--tiny ;;
*) sizes=--small ;;
esac
log=$(mktemp)
timeout 250 compute-sanitizer --tool "$tool" --error-exitcode 99 "$program" $sizes \
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
