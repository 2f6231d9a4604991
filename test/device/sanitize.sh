#!/bin/bash
# A test under compute-sanitizer: sanitize.sh TOOL NAME PROGRAM [ARGUMENTS].
set -u
tool=$1 name=$2
shift 2
log=$(mktemp)
timeout 250 compute-sanitizer --tool "$tool" --error-exitcode 99 "$@" >"$log" 2>&1
rc=$?
if [ $rc -eq 0 ] && grep -q '^ok ' "$log" && grep -q 'SUMMARY: 0 ' "$log"; then
    echo "ok sanitizer-$tool-$name"
    echo "# $(grep -c '^ok ' "$log") cases under $tool; $(grep -E 'SUMMARY' "$log")"
else
    echo "not ok sanitizer-$tool-$name - status $rc"
    # Which kernels, since the end of the log may be about one of them.
    grep -oE ' at (void )?[a-z_:]+<[^>]*>' "$log" | sort | uniq -c | sort -rn | head -20
    grep -vE '^ok ' "$log" | tail -40
    exit 1
fi
