#!/bin/bash
# The shim's own code under valgrind: forwarding, the pipeline with faults, the report.
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
        --errors-for-leak-kinds=definite --trace-children=no "$@" 2>&1); then
        echo "ok valgrind-$name"
    else
        echo "not ok valgrind-$name - status $?"
        tail -n 25 <<<"$out"
        failed=1
    fi
}
export BATCHLAPACK_REPORT=1
program=$BUILD/test/.libs/faults
[ -x "$program" ] || program=$BUILD/test/faults
export LD_LIBRARY_PATH=$BUILD/.libs
export BATCHLAPACK_ENGINE=$MOCK
try faults "$program" each 0 0
try first "$program" first 1 1
if [ -x "$BUILD/fortran/examples/dipole" ]; then
    echo '41 2' >"$BUILD/test/valgrind.in"
    for mode in gpu cpu; do
        try "dipole-$mode" env BATCHLAPACK_MODE=$mode \
            LD_PRELOAD="$BUILD/.libs/libbatchlapack.so" sh -c \
            "exec '$BUILD/fortran/examples/dipole' <'$BUILD/test/valgrind.in'"
    done
fi
exit $failed
