#!/bin/bash
# The legacy programs, unchanged, alone and under the preload: PASS against the answers that
# each knows from outside, the same bits in every figure but the time, and a report that
# accounts for every call, all of them on the engine where that was asked for.
set -u
engine=${ENGINE-${MOCK-}}
examples=$SRC/fortran/examples
report=$(mktemp)
trap 'rm -f "$report"' EXIT
failed=0
check() {
    if [ -z "$2" ]; then echo "ok $1"; else echo "not ok $1 - $2"; failed=1; fi
}

# Times differ. What is left of cancelled numbers (ROUNDING) is the same only where every
# routine has netlib's bits, and the CUDA engine does not promise that of potri.
figures() {
    if [ -n "$engine" ] && [ "$engine" = "${MOCK-}" ]; then
        grep -v SECONDS
    else
        grep -v -e SECONDS -e '^ ROUNDING'
    fi
}
passes() { # OUTPUT: nothing if it ends with PASS
    [ "$(tail -n 1 <<<"$1")" = " PASS" ] || tail -n 3 <<<"$1"
}

# The report against the calls that the program is known to make, "routine=calls" each;
# WHERE says on which side they must have run: gpu, cpu or any.
accounted() {
    local where=$1
    shift
    awk -v where="$where" -v expected="$*" '
        BEGIN {
            n = split(expected, pair, " ")
            for (i = 1; i <= n; i++) { split(pair[i], p, "="); calls[p[1]] = p[2] }
        }
        $1 in calls && NF > 6 {
            seen[$1] = 1
            if ($2 != calls[$1]) print $1 ": " $2 " calls, not " calls[$1]
        }
        $1 ~ /^[sdcz](ge|po)/ && NF > 6 && $2 > 0 {
            if (where == "gpu" && ($5 != $2 || $6 != 0)) print $1 ": on GPU " $5 " of " $2
            if (where == "cpu" && ($6 != $2 || $5 != 0)) print $1 ": on CPU " $6 " of " $2
        }
        END { for (r in calls) if (!(r in seen)) print r ": not in the report" }' "$report"
}

preloaded() { # MODE ARITHMETIC COMMAND...
    local mode=$1 arithmetic=$2
    shift 2
    env BATCHLAPACK_MODE="$mode" BATCHLAPACK_REPORT=1 BATCHLAPACK_ARITHMETIC="$arithmetic" \
        ${engine:+BATCHLAPACK_ENGINE="$engine"} LD_PRELOAD="$BUILD/.libs/libbatchlapack.so" \
        "$@" 2>"$report"
}

# example NAME PROGRAM "ARGUMENTS" "ROUTINE=CALLS ...": a call count of "printed" is the
# number that the program itself prints after "DGETRF CALLS".
example() {
    local name=$1 program=$BUILD/fortran/examples/$2 input=$examples/$2.in expected=
    local alone out pair count mode where
    local -a arguments
    read -ra arguments <<<"$3"
    alone=$("$program" "${arguments[@]}" <"$input") ||
        check "$name-alone" "exit status $?"
    check "$name-alone-passes" "$(passes "$alone")"
    for pair in $4; do
        count=${pair#*=}
        if [ "$count" = printed ]; then
            count=$(awk -v r="${pair%=*}" '$1 == toupper(r) && $2 == "CALLS" { print $3 }' \
                <<<"$alone")
        fi
        expected="$expected ${pair%=*}=$count"
    done
    for mode in auto cpu gpu; do
        where=$mode
        [ $mode != auto ] || where=any
        out=$(preloaded $mode exact "$program" "${arguments[@]}" <"$input") ||
            check "$name-$mode" "exit status $?"
        check "$name-$mode-passes" "$(passes "$out")"
        check "$name-$mode-same-figures" \
            "$(diff <(figures <<<"$alone") <(figures <<<"$out"))"
        # shellcheck disable=SC2086
        check "$name-$mode-report" "$(accounted $where $expected)"
        sed 's/^/# /' "$report"
    done
    # The arithmetic that a user gets who sets nothing: right, with whatever bits.
    out=$(preloaded gpu auto "$program" "${arguments[@]}" <"$input") ||
        check "$name-default-arithmetic" "exit status $?"
    check "$name-default-arithmetic-passes" "$(passes "$out")"
    # shellcheck disable=SC2086
    check "$name-default-arithmetic-report" "$(accounted gpu $expected)"
    alone_figures=$(figures <<<"$alone")
}
built() {
    [ -x "$BUILD/fortran/examples/$1" ] && return
    echo "skip $1 - no Fortran compiler"
    return 1
}

if built dipole; then
    example dipole dipole "" "zgesv=5"
fi
if built kriging; then
    example kriging kriging "$examples/surface.txt" "dpotrf=6 dpotrs=7 dpotri=1"
fi
if built chemistry; then
    export OMP_NUM_THREADS
    for OMP_NUM_THREADS in 1 4; do
        example chemistry-$OMP_NUM_THREADS-threads chemistry "" \
            "dgetrf=printed dgetrs=printed"
        [ $OMP_NUM_THREADS != 1 ] || single=$alone_figures
    done
    check chemistry-threads-same-figures "$(diff <(cat <<<"$single") <(cat <<<"$alone_figures"))"
fi
# The one that knows the library is linked with it, not preloaded. With netlib on both
# sides the same bits.
if built slater; then
    first=
    for mode in cpu gpu auto; do
        where=$mode
        [ $mode != auto ] || where=any
        out=$(env BATCHLAPACK_MODE=$mode BATCHLAPACK_ARITHMETIC=exact BATCHLAPACK_REPORT=1 \
            ${engine:+BATCHLAPACK_ENGINE="$engine"} "$BUILD/fortran/examples/slater" \
            <"$examples/slater.in" 2>"$report") || check "slater-$mode" "exit status $?"
        check "slater-$mode-passes" "$(passes "$out")"
        check "slater-$mode-report" "$(accounted $where dgedet_batch_strided=731 \
            dgeinv_batch_strided=30)"
        sed 's/^/# /' "$report"
        [ -n "$first" ] || first=$out
        [ "$engine" != "${MOCK-}" ] || check "slater-$mode-same-figures" \
            "$(diff <(figures <<<"$first") <(figures <<<"$out"))"
    done
fi
exit $failed
