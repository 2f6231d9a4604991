#!/bin/bash
# Too many for one card, or too little of it: the antenna program with its published answer,
# 8 at a time, as the ranks of an MPI job, on a card that is nearly or entirely full, in a
# small address space, and with no card to be seen. Every one must pass.
set -u
program=$BUILD/fortran/examples/dipole
input=$SRC/fortran/examples/dipole.in
hog=$BUILD/test/device/hog
failed=0
export BATCHLAPACK_REPORT=1 BATCHLAPACK_MODE=gpu
out=$(mktemp -d)
trap 'rm -rf "$out"' EXIT
run() { # NAME: one program, its report in $out/NAME
    LD_PRELOAD=$BUILD/.libs/libbatchlapack.so "$program" <"$input" >"$out/$1.out" \
        2>"$out/$1" && grep -q PASS "$out/$1.out"
}
check() { # NAME STATUS
    if [ "$2" -eq 0 ]; then echo "ok crowd-$1"; else echo "not ok crowd-$1 - failed"; failed=1; fi
    awk '$1 == "zgesv" { print "# on GPU " $5 ", on CPU " $6 }' "$out/$1" 2>/dev/null
}
for i in 1 2 3 4 5 6 7 8; do
    (run "eight-$i") &
    pids[i]=$!
done
for i in 1 2 3 4 5 6 7 8; do
    wait "${pids[i]}"
    check "eight-$i" $?
done
export OMPI_COMM_WORLD_LOCAL_SIZE=8 OMPI_COMM_WORLD_LOCAL_RANK=3
run mpi-rank-of-eight
check mpi-rank-of-eight $?
unset OMPI_COMM_WORLD_LOCAL_SIZE OMPI_COMM_WORLD_LOCAL_RANK
(ulimit -v 4000000 && run small-address-space)
check small-address-space $?
CUDA_VISIBLE_DEVICES= run no-device-visible
check no-device-visible $?
CUDA_VISIBLE_DEVICES=-1 run device-minus-one
check device-minus-one $?
BATCHLAPACK_MEMORY=1M run memory-1M
check memory-1M $?
export -f run
export out program input BUILD
for left in 0 100 600 2000; do
    "$hog" $left bash -c "run full-card-$left"
    check "full-card-$left" $?
done
exit $failed
