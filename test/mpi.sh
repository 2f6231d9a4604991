#!/bin/bash
# Four ranks under the preload: right answers, a device for each, a report for each, and the
# reports add up. Reads BUILD, SRC, MOCK.
set -u
if ! command -v mpirun >/dev/null || ! command -v mpicc >/dev/null; then
    echo "skip mpi - no Open MPI (openmpi-bin, libopenmpi-dev)"
    exit 0
fi
unset LD_PRELOAD "${!BATCHLAPACK_@}"
T=$(mktemp -d) || exit 2
trap 'rm -rf "$T"' EXIT
failed=0
check() {
    if [ -z "$2" ]; then echo "ok $1"; else echo "not ok $1 - $2"; failed=1; fi
}
if ! echo '#include <mpi.h>' | mpicc -x c -E - >/dev/null 2>&1; then
    echo "skip mpi - no mpi.h (libopenmpi-dev)"
    exit 0
fi
mpicc -O2 -Wall -Werror "$SRC/test/mpi.c" -o "$T/mpi" -llapack || exit 1
# As root and with more ranks than cores, as in a container.
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
ranks() { # MODE
    timeout 120 mpirun --oversubscribe --mca btl self,vader -np 4 \
        -x LD_PRELOAD="$BUILD/.libs/libbatchlapack.so" -x BATCHLAPACK_MODE="$1" \
        -x BATCHLAPACK_ENGINE="$MOCK" -x BATCHLAPACK_REPORT="$T/$1-%r.json" "$T/mpi" 2>&1
}
for mode in gpu auto; do
    out=$(ranks $mode)
    check mpi-$mode-right "$(grep -qx '4 ranks right' <<<"$out" || echo "$out" | tail -5)"
    for r in 0 1 2 3; do
        file=$T/$mode-$r.json
        [ -s "$file" ] || check mpi-$mode-report-$r "no file"
        [ $mode = auto ] || check mpi-device-of-rank-$r \
            "$(grep -q "mock device $r" "$file" || grep -o '"device[^,]*' "$file")"
    done
    table=$("$BUILD/batchlapack-report" "$T/$mode"-?.json) || check mpi-$mode-merge "$table"
    check mpi-$mode-sum "$(awk '$1 == "dgesv" { n = $2 } END { if (n != 80)
        print "dgesv " n ", not 80 calls" }' <<<"$table")"
done
exit $failed
