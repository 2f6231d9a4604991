#!/bin/bash
# The shim's own code under valgrind: forwarding, the pipeline with faults, the report. A
# subset of the other tests, which take too long so.
set -u
if ! command -v valgrind >/dev/null; then
    echo "skip valgrind - not installed"
    exit 0
fi
failed=0
try() { # NAME COMMAND...
    local name=$1
    shift
    if out=$(valgrind -q --error-exitcode=99 --leak-check=full \
        --errors-for-leak-kinds=definite "$@" 2>&1); then
        echo "ok valgrind-$name"
    else
        echo "not ok valgrind-$name - status $?"
        tail -n 25 <<<"$out"
        failed=1
    fi
}
export BATCHLAPACK_REPORT=1 BATCHLAPACK_ENGINE=$MOCK
# The program behind libtool's wrapper.
faults=$BUILD/test/.libs/faults
[ -x "$faults" ] || faults=$BUILD/test/faults
export LD_LIBRARY_PATH=$BUILD/.libs
try faults "$faults" some 0 0 0
try first-call "$faults" first 1 1 13
try batch "$BUILD/test/batch" --tiny
if [ -x "$BUILD/fortran/examples/dipole" ]; then
    export LD_PRELOAD=$BUILD/.libs/libbatchlapack.so
    for mode in gpu cpu; do
        export BATCHLAPACK_MODE=$mode
        try "dipole-$mode" "$BUILD/fortran/examples/dipole" <<<'41 2'
    done
fi
exit $failed
