#!/bin/bash
# The program's own LAPACK may be anything. One program (providers/rows.c) calls every row
# of the table over netlib, OpenBLAS (pthread and openmp), BLIS under netlib's LAPACK,
# Debian's 64-bit LAPACKs, MKL and the one inside numpy's wheel, each chosen by
# LD_LIBRARY_PATH in a folder of unpacked packages: the system is left as it is.
#
# For each, as a line a case:
#   NAME-library   without us, it is the library meant that touches the matrices
#   NAME-cpu       forwarded: the bits of the run without us, the same library touches the
#                  matrices, and the report counts the program's calls, nested ones apart
#   NAME-auto      the same in mode auto, where no call is worth the engine's start
#   NAME-gpu       on the engine: IPIV and INFO as without us, small residuals, every legal
#                  call counted there, and the library touches no matrix
#   NAME-one-thread  a batch's calls take one thread each, other calls as many as before
#   NAME-kind      auto: over netlib 20 solves with n = 400 reach the engine, over a fast
#                  LAPACK none does
#
# Reads BUILD, SRC, CC and MOCK. PROVIDERS_CACHE (default: $BUILD/test/providers-cache) keeps
# what is fetched; without a network what is missing is skipped. MKL (220 MB) is only used
# where it has been put there by:   test/providers.sh fetch-mkl
set -u
unset LD_PRELOAD LD_LIBRARY_PATH "${!BATCHLAPACK_@}"
export OPENBLAS_NUM_THREADS=1 OMP_NUM_THREADS=1 BLIS_NUM_THREADS=1
export MKL_NUM_THREADS=1 MKL_THREADING_LAYER=SEQUENTIAL
CC=${CC:-gcc}
BUILD=$(cd "${BUILD:-.}" && pwd) SRC=$(cd "${SRC:-.}" && pwd) || exit 2
lib=$(realpath -e "$BUILD/.libs/libbatchlapack.so") || exit 2
cache=${PROVIDERS_CACHE:-$BUILD/test/providers-cache}
T=$(mktemp -d) || exit 2
trap 'rm -rf "$T"' EXIT
mkdir -p "$cache" && cache=$(cd "$cache" && pwd) || exit 2
cd "$T" || exit 2
failed=0

# ---- what is fetched -------------------------------------------------------------------
# debian PACKAGE: its files lie in $cache/PACKAGE afterwards.
debian() {
    [ -e "$cache/$1/done" ] && return
    rm -rf "${cache:?}/$1" fetched && mkdir fetched
    { download "$1" || { apt-get -q update && download "$1"; }; } >fetch.log 2>&1 || return
    dpkg -x fetched/"$1"_*.deb "$cache/$1" && touch "$cache/$1/done"
}
download() {
    (cd fetched && apt-get -q download "$1")
}
# wheel PACKAGE FILES...: the files of that name in a wheel, flat, in $cache/PACKAGE.
wheel() {
    local name=${1%%=*}
    [ -e "$cache/$name/done" ] && return
    rm -rf fetched
    python3 -m pip download -q --no-deps --only-binary=:all: -d fetched "$1" >fetch.log 2>&1 ||
        return
    mkdir -p "$cache/$name"
    python3 - fetched/*.whl "$cache/$name" "${@:2}" <<'PY' && touch "$cache/$name/done"
import fnmatch, os, sys, zipfile
wheel = zipfile.ZipFile(sys.argv[1])
for item in wheel.namelist():
    name = os.path.basename(item)
    if any(fnmatch.fnmatch(name, pattern) for pattern in sys.argv[3:]):
        with open(os.path.join(sys.argv[2], name), "wb") as f:
            f.write(wheel.read(item))
PY
}
fetch_mkl() {
    wheel mkl 'libmkl_rt.so.*' 'libmkl_core.so.*' 'libmkl_intel_*lp64.so.*' \
        'libmkl_sequential.so.*' 'libmkl_def.so.*' 'libmkl_avx*.so.*'
}
if [ "${1:-}" = fetch-mkl ]; then
    fetch_mkl || cat fetch.log
    exit
fi

# ---- the programs ----------------------------------------------------------------------
# program NAME LIBRARIES OPTIONS...: rows linked with them, in order.
build=("$CC" -O2 -Wall -I"$SRC/src" -I"$BUILD" "$SRC/test/providers/rows.c" "$SRC/src/table.c"
    "$SRC/src/call.c")
program() {
    # shellcheck disable=SC2086
    "${build[@]}" "${@:3}" -o "$1" -Wl,--no-as-needed $2 -Wl,--as-needed -lm \
        -Wl,--allow-shlib-undefined || exit 1
}
# ---- one provider ----------------------------------------------------------------------
say() { # say NAME WHAT-IS-WRONG
    if [ -n "$2" ]; then
        echo "not ok $1 - $2"
        failed=1
    else
        echo "ok $1"
    fi
}
pivots() {
    sed 's/ bits=[^ ]*//' "$1"
}
# sum COLUMN: of all rows of the report.
sum() {
    awk -v c="$1" 'NF == 12 && $1 ~ /^[sdcz](ge|po)/ { n += $c } END { print n + 0 }' report
}
with() { # with MODE PROGRAM...
    env LD_PRELOAD="$lib" BATCHLAPACK_MODE="$1" BATCHLAPACK_ENGINE="$MOCK" \
        BATCHLAPACK_REPORT=1 "${@:2}" 2>report
}
# provider NAME PROGRAM PATH TOUCHES KIND: PATH is searched for libraries; TOUCHES is a
# pattern that the path of whoever touches a matrix matches; KIND is reference or fast.
provider() {
    local name=$1 program=./$2 touches=$4 kind=$5 bad='' calls legal nested
    local -x LD_LIBRARY_PATH=$3
    "$program" >plain 2>&1 || bad="exit status $?"
    "$program" touch >touched
    grep -q LARGE plain && bad=$(grep -m1 LARGE plain)
    grep -Evq "$touches" touched && bad=$(grep -Ev "$touches" touched | head -3 | tr '\n' ';')
    [ "$(wc -l <touched)" -eq 8 ] || bad="$(wc -l <touched) of 8 routines ran"
    say "$name-library" "$bad"
    calls=$(awk '$1 == "calls" { n += $3 } END { print n }' plain)
    legal=$((calls - 4 * 8)) # but for the queries of getri
    for mode in cpu auto; do
        bad=
        with $mode "$program" >out || bad="exit status $?"
        cmp -s plain out || bad+=" other results: $(diff plain out | grep -m1 '^>')"
        [ "$(sum 2) $(sum 5) $(sum 6)" = "$calls 0 $calls" ] ||
            bad+=" calls $(sum 2) gpu $(sum 5) cpu $(sum 6), not $calls 0 $calls"
        diff <(awk '$1 == "calls" { print $2, $3 }' plain | sort) <(awk \
            'NF == 12 && $1 != "routine" { print $1, $2 }' report | sort) >difference ||
            bad+=" not the program's calls: $(head -n 4 difference | tr '\n' ';')"
        nested=$(sum 3)
        with $mode "$program" touch >out
        cmp -s touched out || bad+=" touched by $(diff touched out | grep -m1 '^>')"
        say "$name-$mode" "$bad"
    done
    bad=
    with gpu "$program" >out || bad="exit status $?"
    diff <(pivots plain) <(pivots out) >difference || bad+=" $(grep -c '^>' difference) lines \
differ: $(grep -m1 '^<' difference) $(grep -m1 '^>' difference)"
    [ "$(sum 2) $(sum 5)" = "$calls $legal" ] ||
        bad+=" calls $(sum 2) gpu $(sum 5), not $calls $legal"
    echo "# $name: $calls calls, $(sum 5) on the engine; forwarded, $nested nested"
    with gpu "$program" touch >out
    [ "$(grep -Ec 'info=0 .*/(libc|libbatchlapack|mock)[^/]*$' out)" -eq 8 ] ||
        bad+=" touched by $(head -n 2 out | tr '\n' ';')"
    say "$name-gpu" "$bad"
    bad=
    with auto "$program" loop 20 400 >out || bad="exit status $?"
    case $kind-$(sum 2)-$(sum 5) in
    reference-20-[1-9]* | fast-20-0) ;;
    *) bad+=" taken for another LAPACK than a $kind one: $(sum 5) of $(sum 2) calls on the GPU" ;;
    esac
    say "$name-kind" "$bad"
}
# one_thread NAME PATH LIBRARY SYMBOL KIND SIZE: see single_thread.c.
one_thread() {
    local bad
    bad=$(OPENBLAS_NUM_THREADS=2 OMP_NUM_THREADS=2 BLIS_NUM_THREADS=2 LD_LIBRARY_PATH=$2 \
        timeout 300 "$BUILD/test/single_thread" "${@:3}" 2>&1) || bad="${bad:-status $?}"
    say "$1-one-thread" "$bad"
}
# needs NAME PACKAGE...: fetched, or the provider is skipped.
needs() {
    local name=$1
    for p in "${@:2}"; do
        debian "$p" || {
            echo "skip $name - no package $p: $(tail -n 1 fetch.log)"
            return 1
        }
    done
}
in_package() { # in_package PACKAGE FOLDER
    echo "$cache/$1/usr/lib/$($CC -print-multiarch)/$2"
}

lapack=$(in_package liblapack3 lapack) blas=$(in_package libblas3 blas)
lapack64=$(in_package liblapack64-3 lapack64) blas64=$(in_package libblas64-3 blas64)
needs netlib libblas3 liblapack3 || exit 0
program rows "$lapack/liblapack.so.3"
provider netlib rows "$lapack:$blas" '/(lapack|blas)/lib(lapack|blas)\.so\.3' reference
threaded=threaded
[ "$(env -u OMP_NUM_THREADS nproc)" -gt 1 ] || threaded=single # OpenBLAS takes no more than there are CPUs
one_thread netlib "$blas" "$lapack/liblapack.so.3" dgetrf_ single 300
for threads in pthread openmp; do
    needs openblas-$threads libopenblas0-$threads || continue
    d=$(in_package libopenblas0-$threads openblas-$threads)
    provider openblas-$threads rows "$d" "/openblas-$threads/lib" fast
    one_thread openblas-$threads "$d" "$d/liblapack.so.3" dgetrf_ $threaded 700
done
if needs blis libblis4-pthread; then
    d=$(in_package libblis4-pthread blis-pthread)
    provider blis rows "$d:$lapack" '/(blis-pthread/libblas|lapack/liblapack)\.so' fast
    # BLIS linked by its own name, before the LAPACK that names netlib's BLAS: the loader
    # gives the LAPACK the first dgemm_ in the program's search order, which is BLIS's.
    mkdir blis && ln -s "$d/libblis.so.4" blis
    program rows-blis "blis/libblis.so.4 $lapack/liblapack.so.3"
    provider blis-by-name rows-blis "$T/blis:$lapack:$blas" \
        '/(blis/libblis|lapack/liblapack)\.so' fast
    # The libblas.so.3 of BLIS hides what it could be told by. Small: its threads wait for
    # each other by spinning.
    LD_PRELOAD=$d/libblis.so.4 one_thread blis-by-name "$blas" "$lapack/liblapack.so.3" \
        dgetrf_ threaded 20
fi
# Debian's 64-bit LAPACKs export the plain names.
if needs lapack64 libblas64-3 liblapack64-3; then
    program rows64 "$lapack64/liblapack64.so.3" -DINT=int64_t
    provider lapack64 rows64 "$lapack64:$blas64" '/(lapack|blas)64/lib' reference
    if needs openblas64 libopenblas64-0-pthread; then
        d=$(in_package libopenblas64-0-pthread openblas64-pthread)
        provider openblas64 rows64 "$d" /openblas64-pthread/lib fast
        one_thread openblas64 "$d" "$d/liblapack64.so.3" dgetrf_ $threaded 700
    fi
fi
if wheel numpy==2.4.6 '*openblas*.so' '*gfortran*.so*' '*quadmath*.so*'; then
    program rows-numpy "$(echo "$cache"/numpy/*openblas*.so)" -DINT=int64_t \
        -D'SYMBOL(x)=scipy_##x##_64_'
    provider numpy-wheel rows-numpy "$cache/numpy" /numpy/libscipy_openblas64_ fast
    one_thread numpy-wheel "$cache/numpy" "$(echo "$cache"/numpy/*openblas*.so)" \
        scipy_dgetrf_64_ $threaded 700
else
    echo "skip numpy-wheel - $(tail -n 1 fetch.log)"
fi
if [ -e "$cache/mkl/done" ]; then
    rt=$(echo "$cache"/mkl/libmkl_rt.so.*)
    mkdir mkl && ln -s "$rt" mkl/liblapack.so.3
    provider mkl rows "$T/mkl:$cache/mkl" /mkl/libmkl_ fast
    one_thread mkl "$cache/mkl" "$rt" dgetrf_ single 300
    program rows-mkl64 "$rt" -DINT=int64_t -D'SYMBOL(x)=x##_64_'
    provider mkl-64_ rows-mkl64 "$cache/mkl" /mkl/libmkl_ fast
    program rows-mkl-ilp64 "$rt" -DINT=int64_t
    MKL_INTERFACE_LAYER=ILP64 provider mkl-ilp64 rows-mkl-ilp64 "$cache/mkl" /mkl/libmkl_ fast
else
    echo "skip mkl - not in $cache; test/providers.sh fetch-mkl puts it there (220 MB)"
fi
exit $failed
