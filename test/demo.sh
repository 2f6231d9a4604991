#!/bin/bash
# The legacy antenna program, unchanged, alone and under the preload: the same bits in every
# figure but the time, PASS against the published impedance, and the engine really served it.
set -u
program=$BUILD/fortran/examples/dipole
input=$SRC/fortran/examples/dipole.in
if [ ! -x "$program" ]; then
    echo "skip dipole - no Fortran compiler"
    exit 0
fi
failed=0
check() {
    if [ -z "$2" ]; then echo "ok $1"; else echo "not ok $1 - $2"; failed=1; fi
}
figures() {
    grep -v SECONDS
}
alone=$("$program" <"$input") || check dipole-alone "exit status $?"
check dipole-alone-passes "$(grep -q PASS <<<"$alone" || echo "$alone" | tail -3)"
engine=${ENGINE-${MOCK-}}
report=$(mktemp)
for mode in auto cpu gpu; do
    out=$(env BATCHLAPACK_MODE=$mode BATCHLAPACK_REPORT=1 BATCHLAPACK_ARITHMETIC=exact \
        ${engine:+BATCHLAPACK_ENGINE="$engine"} LD_PRELOAD="$BUILD/.libs/libbatchlapack.so" \
        "$program" <"$input" 2>"$report") || check "dipole-$mode" "exit status $?"
    check "dipole-$mode-same-figures" "$(diff <(figures <<<"$alone") <(figures <<<"$out"))"
    check "dipole-$mode-report" "$(grep -q '^zgesv  *5 ' "$report" || cat "$report")"
done
check dipole-gpu-on-engine "$(awk '$1 == "zgesv" && $5 != 5' "$report")"
sed 's/^/# /' "$report"
rm -f "$report"
exit $failed
