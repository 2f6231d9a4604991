# Common to bench/calls and bench/host: what their records begin with, and steps that have
# to end in time. Sourced in the build folder, with the seconds for all in $1.
#
# OPENBLAS and NETLIB name the two LAPACKs; without, OPENBLAS is the system's or numpy's, and
# NETLIB liblapack.so.3. BATCHLAPACK_ENGINE is passed on.
limit=${1:-590}
cores=$(nproc)
if [ ! -e .libs/libbatchlapack.so ] || [ ! -e bench/pairs ]; then
    echo "${0##*/}: run it in the build folder, after make bench test/many_threads" >&2
    exit 2
fi
library() { ldconfig -p | awk -v name="$1" '$1 == name { print $NF; exit }'; }
numpys() {
    python3 -c 'import glob, numpy, os
print(*glob.glob(os.path.dirname(numpy.__file__) + "*libs/*openblas*.so")[:1])' 2>/dev/null || :
}
OPENBLAS=${OPENBLAS:-$(library libopenblas.so.0)}
OPENBLAS=${OPENBLAS:-$(numpys)}
NETLIB=${NETLIB:-$(library liblapack.so.3)}
for lapack in "$OPENBLAS" "$NETLIB"; do
    [ -e "$lapack" ] || { echo "${0##*/}: OPENBLAS and NETLIB: a file each is wanted" >&2; exit 2; }
done
# Programs and what they open by name find the build's library, and netlib's BLAS beside it.
export LD_LIBRARY_PATH=$PWD/.libs:${NETLIB%/*}${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}
export OPENBLAS_NUM_THREADS=$cores # for those who have it before them

# A record's first lines; what it is of comes from the caller.
begin() {
    local gpu cpu version
    gpu=$(nvidia-smi --query-gpu=name --format=csv,noheader 2>/dev/null | head -n 1) || gpu=
    cpu=$(sed -n 's/^model name[^:]*: *//p' /proc/cpuinfo | head -n 1)
    version=$(grep -aom1 'OpenBLAS [0-9][0-9.]*[0-9]' "$OPENBLAS" | head -n 1) || version=OpenBLAS
    echo "# $1, ${gpu:-no GPU}, $cores CPUs (${cpu:-unknown}), $(date +%F), revision $(git -C "$src" \
        rev-parse --short HEAD 2>/dev/null || echo unknown)."
    echo "# $version, $cores threads where it does not say otherwise; pageable memory from malloc."
    echo "# Outputs as they came; \"rc 124\": ended by the time limit."
}
# How many seconds are left for everything.
left() { echo $((limit - SECONDS)); }
# The program itself, not libtool's script, which knows the place where it was made.
program() {
    if [ -x "${1%/*}/.libs/${1##*/}" ]; then echo "${1%/*}/.libs/${1##*/}"; else echo "$1"; fi
}
# step SECONDS COMMAND...: its output, and how it ended where that was not well.
step() {
    local most=$1 begin=$SECONDS rc=0
    shift
    [ "$most" -le "$(left)" ] || most=$(left)
    if [ "$most" -lt 3 ]; then
        echo "-- not run, no time left: $*"
        return
    fi
    timeout -k 5 "$most" "$@" 2>&1 || rc=$?
    [ $rc = 0 ] || echo "-- rc $rc after $((SECONDS - begin)) s: $*"
    echo "${0##*/}: $((SECONDS - begin)) s of $most, rc $rc: $*" >&2
}
