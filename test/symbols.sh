#!/bin/bash
# The library exports what the table says and nothing else, and needs nothing it must not:
# the expected symbols are expanded from routines.def by the preprocessor.
set -u
lib=$BUILD/.libs/libbatchlapack.so
failed=0
check() { # NAME WHY: fails where WHY is not empty
    if [ -z "$2" ]; then echo "ok $1"; else echo "not ok $1 - $2"; failed=1; fi
}

expected=$({
    for p in s d c z; do
        for spelling in "$p##name##_" "$p##name##_64_" "scipy_$p##name##_" \
            "scipy_$p##name##_64_"; do
            printf '#define R_SDCZ(name, NAME, nargs, args) %s\n' "$spelling"
            printf '#include "routines.def"\n'
        done
        for spelling in "$p##name" "$p##name##_" "$p##name##_64" "$p##name##_64_"; do
            printf '#define B_SDCZ(name, NAME, OPERATION, nargs, args) %s\n' "$spelling"
            printf '#include "routines.def"\n'
        done
    done
} | ${CC:-gcc} -E -P -x c -I"$SRC/src" - | tr ' ' '\n' | grep . | sort)
rows=$(grep -c '^[RB]_SDCZ' "$SRC/src/routines.def")
[ "$(wc -l <<<"$expected")" -eq $((rows * 16)) ] || check table "expansion of routines.def"

exported=$(nm -D --defined-only "$lib" | awk '{ print $3 }' | sort)
ours=$(grep '^batchlapack_' <<<"$exported")
lapack=$(grep -v '^batchlapack_' <<<"$exported")
check symbols-of-the-table "$(diff <(echo "$expected") <(echo "$lapack") | head -5)"
check symbols-of-the-header "$(for s in $ours; do
    grep -qw "${s%_}" "$SRC/include/batchlapack.h" || echo "$s is not in batchlapack.h"
done)"
needed=$(readelf -d "$lib" | sed -n 's/.*NEEDED.*\[\(.*\)\]/\1/p')
check needs-no-lapack-no-cuda "$(grep -E 'lapack|blas|cuda|gfortran' <<<"$needed")"
check no-text-relocations "$(readelf -d "$lib" | grep TEXTREL)"
check never-unloaded "$(readelf -d "$lib" | grep -q NODELETE || echo 'no NODELETE flag')"

engine=$BUILD/.libs/libbatchlapack_cuda.so
if [ -e "$engine" ]; then
    check engine-exports-one-symbol "$(nm -D --defined-only "$engine" |
        awk '{ print $3 }' | grep -vx bl_engine)"
    check engine-needs-no-shared-cuda-runtime "$(readelf -d "$engine" |
        grep -E 'NEEDED.*(cudart|libcuda)')"
else
    echo "skip engine-symbols - the engine is not built (no nvcc)"
fi
exit $failed
