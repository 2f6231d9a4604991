#!/bin/bash
# The device tests: everything that make check proves with the mock engine, through the CUDA
# engine, at full size; and what only a device can show. Runs from a built tree, with or
# without make: BUILD is the build folder.
#
#   --record      write test/device-record when everything ran and passed
#   LIBS          a folder with netlib's liblapack.so.3, libblas.so.3, libgfortran.so.5 and
#                 LAPACK's test programs, where the machine's own LAPACK is another
#   MATRICES      how many matrices a precision the bit comparison takes (2000)
#   LARGEST       order of the largest single matrix that is compared by bits (2047; a
#                 record takes 1100)
#   SECONDS_OF_THREADS  how long many threads use the engine at once (5)
#   SANITIZER=no  leave compute-sanitizer out
#   ONLY          an extended regular expression: run what it finds in the name of
#
# Without --record it is one of make check's tests and says every case again.
set -u
here=$(cd "$(dirname "$0")" && pwd)
export SRC=${SRC:-$(dirname "$here")} BUILD=${BUILD:-$PWD}
BUILD=$(cd "$BUILD" && pwd)
if ! nvidia-smi -L >/dev/null 2>&1 || [ ! -e "$BUILD/.libs/libbatchlapack_cuda.so" ]; then
    echo "device.sh: needs a GPU and a built engine" >&2
    exit 2
fi
unset BATCHLAPACK_ENGINE MOCK
if [ -n "${LIBS:-}" ]; then
    LIBS=$(cd "$LIBS" && pwd)
    export LIBS LAPACK_TEST=$LIBS BL_REFERENCE=$LIBS/liblapack.so.3
fi
export LD_LIBRARY_PATH=$BUILD/.libs${LIBS:+:$LIBS}
export ENGINE='' BATCHLAPACK_MODE=gpu
out=$(mktemp -d)
trap 'rm -rf "$out"' EXIT
cd "$out" || exit 2

# A program behind libtool's wrapper: the wrapper would want to relink it.
program() {
    local real=$BUILD/test/.libs/$1
    if [ -x "$real" ]; then echo "$real"; else echo "$BUILD/test/$1"; fi
}
wrap() { # NAME COMMAND...: a script of that name, for test/run
    [[ $1 =~ ${ONLY:-} ]] || return 0
    local script=$out/$1
    shift
    printf '#!/bin/bash\nexec %s\n' "$*" >"$script"
    chmod +x "$script"
    list="$list $script"
}
list=
engine=$BUILD/.libs/libbatchlapack_cuda.so
# batch links the shim in, and so looks beside itself for the engine.
# The longest come first.
wrap device-entries "$(program entries)" --heavy
wrap device-large env BATCHLAPACK_ENGINE="$engine" "$(program large)" "${LARGEST:-2047}"
wrap device-large-references env BATCHLAPACK_ENGINE="$engine" "$(program large_references)" 4096
wrap device-large-fast env BATCHLAPACK_ENGINE="$engine" "$(program large_fast)" 8192
wrap device-xlintst bash "$here/xlintst.sh"
wrap device-large-panel "$BUILD/test/device/large_panel"
mid_matrices=$((${MATRICES:-2000} * 3 / 2))
wrap device-mid env BATCHLAPACK_ENGINE="$engine" "$(program mid)" $mid_matrices 400
wrap device-mid-solve-shapes env BATCHLAPACK_ENGINE="$engine" "$(program mid_solve)" shapes
wrap device-mid-shapes env BATCHLAPACK_ENGINE="$engine" "$(program mid)" shapes
wrap device-mid-repeats env BATCHLAPACK_ENGINE="$engine" "$(program mid)" repeats
wrap device-compare "$(program compare)" "${MATRICES:-2000}"
wrap device-batch env BATCHLAPACK_ENGINE="$engine" "$(program batch)" --heavy
wrap device-mid-solve env BATCHLAPACK_ENGINE="$engine" "$(program mid_solve)" $mid_matrices 200
wrap device-mid-solve-repeats env BATCHLAPACK_ENGINE="$engine" "$(program mid_solve)" repeats
wrap device-mid-families env BATCHLAPACK_ENGINE="$engine" "$(program mid)" families
wrap device-examples bash "$here/examples.sh"
wrap device-mid-cholesky env BATCHLAPACK_ENGINE="$engine" "$(program tiny_cholesky)" 0 beyond
wrap device-mid-cholesky-more env BATCHLAPACK_ENGINE="$engine" "$(program tiny_cholesky)" 0 more
wrap device-field-faults "$(program field_faults)" --heavy
wrap device-field-faults-fast "$(program field_faults)" --heavy --fast
wrap device-tiny-cholesky env BATCHLAPACK_ENGINE="$engine" "$(program tiny_cholesky)" 20000
wrap device-tiny env BATCHLAPACK_ENGINE="$engine" "$(program tiny)" 20000
wrap device-large-capture "$BUILD/test/device/large_capture" "$engine"
wrap device-large-repeats "$BUILD/test/device/large_repeats" "$engine"
wrap device-large-fallback "$BUILD/test/device/large_fallback"
wrap device-reciprocal "$BUILD/test/device/reciprocal"
whole=yes
[ "${MATRICES:-2000}" -ge 2000 ] && [ "${LARGEST:-2047}" -ge 1100 ] && [ -z "${ONLY:-}" ] || whole=no
if [ "${SANITIZER:-yes}" = no ] || ! command -v compute-sanitizer >/dev/null; then
    whole=no
else
    sanitize() { # TOOL NAME PROGRAM ARGUMENTS...
        wrap "device-$1-$2" env BATCHLAPACK_ENGINE="$engine" \
            bash "$here/device/sanitize.sh" "$@"
    }
    # racecheck takes a minute for what memcheck does in a second, and so gets small sizes.
    sanitize memcheck large "$(program large)" 330 z
    sanitize memcheck large_fast "$(program large_fast)" 600 dc graded
    sanitize memcheck large_fallback "$BUILD/test/device/large_fallback" few
    sanitize racecheck large_panel "$BUILD/test/device/large_panel" race
    sanitize racecheck batch "$(program batch)" --tiny
    sanitize racecheck tiny "$(program tiny)" 0 small
    sanitize memcheck tiny "$(program tiny)" 0 small
    sanitize racecheck tiny_cholesky "$(program tiny_cholesky)" 0 small
    sanitize memcheck tiny_cholesky "$(program tiny_cholesky)" 0 small
    sanitize synccheck tiny "$(program tiny)" 0 small
    sanitize synccheck tiny_cholesky "$(program tiny_cholesky)" 0 small
    sanitize racecheck mid "$(program mid)" 32 100
    sanitize racecheck mid_solve "$(program mid_solve)" 11 80 dc
    sanitize memcheck mid "$(program mid)" 64 300
    sanitize memcheck mid_solve "$(program mid_solve)" 24 200
    # Every kind of kernel of the mid sizes, in one real and one complex precision each.
    for p in d z; do
        sanitize racecheck mid-small-$p "$(program mid)" small $p
        sanitize racecheck mid-cholesky-$p "$(program tiny_cholesky)" 0 brief $p
    done
    for p in s c; do
        sanitize racecheck mid-solve-small-$p "$(program mid_solve)" small $p
        sanitize racecheck mid-cholesky-spread-$p "$(program tiny_cholesky)" 0 spread $p
    done
    sanitize memcheck mid-cholesky "$(program tiny_cholesky)" 0 brief
    sanitize memcheck mid-cholesky-spread "$(program tiny_cholesky)" 0 spread
    sanitize memcheck batch "$(program batch)" --small
    for row in geinv_batch_strided gedet_batch_strided getrf_batch; do
        sanitize memcheck $row "$(program entries)" --only $row
    done
fi
# These two want the card for themselves: they fill its memory, or count it.
list="$list --"
wrap device-crowd bash "$here/device/crowd.sh"
wrap device-streams "$BUILD/test/device/streams"
wrap device-many-threads "$(program many_threads)" "${SECONDS_OF_THREADS:-5}"
wrap device-manners "$BUILD/test/device/manners"
# shellcheck disable=SC2086
JOBS=${JOBS:-8} bash "$here/run" $list | tee "$out/result"
rc=${PIPESTATUS[0]}
grep -hE '^(ok|not ok|skip) ' test/logs/*.log >"$out/cases"
[ -z "${OUT:-}" ] || cp -r test/logs "$out/result" "$OUT/" 2>/dev/null
if [ "${1:-}" = --record ] && [ $whole = no ]; then
    echo "device.sh: no record of a part: it takes all tests, 2000 matrices, order 1100 and compute-sanitizer" >&2
elif [ "${1:-}" = --record ] && [ "$rc" -eq 0 ]; then
    card=$(nvidia-smi --query-gpu=name --format=csv,noheader | head -1)
    "$here/device-record-check" --write "$card" "$(tail -1 "$out/result")" \
        >"$SRC/test/device-record"
    [ -z "${OUT:-}" ] || cp "$SRC/test/device-record" "$OUT/"
fi
[ "${1:-}" = --record ] || cat "$out/cases"
exit "$rc"
