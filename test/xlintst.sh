#!/bin/bash
# LAPACK's own test programs (Debian's liblapack-test) under the preload, every call forced
# through the engine: no more failures than without, and the engine really served them.
#
# Reads BUILD, and ENGINE where another engine than the one beside the library is meant;
# LAPACK_TEST names the folder of the programs and their input, LIBS what to add to
# LD_LIBRARY_PATH (a machine without the package brings its own).
set -u
dir=${LAPACK_TEST:-/usr/lib/$(gcc -print-multiarch 2>/dev/null)/lapack}
lib=$BUILD/.libs/libbatchlapack.so
out=$(mktemp -d) || exit 2
trap 'rm -rf "$out"' EXIT
export LD_LIBRARY_PATH=${LIBS:+$LIBS:}${LD_LIBRARY_PATH:-}
failed=0

# The lines that tell of a failure: of a test, of an error exit, of a count that is off.
complaints() {
    grep -Ei 'failed|not detect|not equal|incorrect|illegal|\*\*\*' "$1" |
        grep -Ev 'passed the (tests|threshold)' | sort
}

# How many calls of a report went where: column 5 is the GPU's.
on_gpu() {
    awk '$1 ~ /^[sdcz](ge|po)/ { n += $5 } END { print n + 0 }' "$1"
}

for p in s d c z; do
    name=xlintst$p
    input=$dir/${p}test.in
    if [ ! -x "$dir/$name" ] || [ ! -e "$input" ]; then
        echo "skip $name - $dir/$name is not there"
        continue
    fi
    "$dir/$name" <"$input" >"$out/without" 2>"$out/err"
    rc_without=$?
    env BATCHLAPACK_MODE=gpu BATCHLAPACK_ARITHMETIC=exact BATCHLAPACK_REPORT=1 \
        ${ENGINE:+BATCHLAPACK_ENGINE="$ENGINE"} LD_PRELOAD="$lib" \
        "$dir/$name" <"$input" >"$out/with" 2>"$out/report"
    rc_with=$?
    complaints "$out/without" >"$out/before"
    complaints "$out/with" >"$out/after"
    served=$(on_gpu "$out/report")
    tests=$(grep -oE '\( *[0-9]+ tests run\)' "$out/with" | grep -oE '[0-9]+' |
        awk '{ n += $1 } END { print n + 0 }')
    echo "# $name: $tests tests passed, $(wc -l <"$out/before") complaints without the" \
        "preload, $(wc -l <"$out/after") with; $served calls on the engine"
    grep -E '^[sdcz](ge|po)' "$out/report" | sed 's/^/# /'
    if [ $rc_with -ne $rc_without ]; then
        echo "not ok $name - exit status $rc_with, without the preload $rc_without"
    elif [ "$tests" -eq 0 ] || [ "$served" -lt 10000 ]; then
        echo "not ok $name - $tests tests, $served calls on the engine"
    elif [ -n "$(comm -13 "$out/before" "$out/after")" ]; then
        echo "not ok $name - new complaints:"
        comm -13 "$out/before" "$out/after" | head -20
    else
        echo "ok $name"
        continue
    fi
    failed=1
done
exit $failed
