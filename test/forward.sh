#!/usr/bin/env bash
# Programs of every kind under the preload: what they call reaches the LAPACK that they would
# have got without us, and nothing else about them changes. Any machine, no GPU: calls are
# forwarded, or run by the mock engine. Reads BUILD, SRC, MOCK, CC, CXX and FC; the sources
# lie in forward/. A line a test, `ok NAME`, `not ok NAME - detail` or `skip NAME - reason`;
# exit 1 when one failed.
set -u
unset LD_PRELOAD LD_BIND_NOW "${!BATCHLAPACK_@}"
CC=${CC:-gcc} CXX=${CXX:-g++} FC=${FC:-gfortran}
BUILD=$(cd "${BUILD:-.}" && pwd) SRC=$(cd "${SRC:-.}" && pwd) || exit 2
MOCK=$(realpath "${MOCK:-$BUILD/test/mock_engine.so}") || exit 2
lib=$(realpath "$BUILD/.libs/libbatchlapack.so") || exit 2
T=$(mktemp -d) || exit 2
trap 'rm -rf "$T"' EXIT
failed=0
cd "$T" || exit 2

# ---- saying how it went ----------------------------------------------------------------
not_ok() {
    echo "not ok $1 - $2"
    failed=1
}
skip() {
    echo "skip $1 - $2"
}
# The command's streams end in ./out and ./err, its status in $status.
limit=20
preload=$lib
run() {
    timeout "$limit" env ${preload:+LD_PRELOAD="$preload"} "$@" >out 2>err </dev/null
    status=$?
}
brief() {
    head -c 600 "$1" | tr '\n' '|'
}
# prints NAME OUTPUT COMMAND...: exit status 0, OUTPUT on stdout and nothing on stderr.
prints() {
    local name=$1 want=$2
    shift 2
    run "$@"
    if [ $status -ne 0 ] || [ "$(<out)" != "$want" ] || [ -s err ]; then
        not_ok "$name" "exit $status, '$(brief out)' not '$want'; stderr: $(brief err)"
    else
        echo "ok $name"
    fi
}
gpu=(BATCHLAPACK_MODE=gpu BATCHLAPACK_ENGINE="$MOCK")
# both NAME OUTPUT COMMAND...: forwarded, and on the engine.
both() {
    prints "$1-forwarded" "${@:2}"
    prints "$1-offloaded" "$2" "${gpu[@]}" "${@:3}"
}
# reports NAME OUTPUT COUNTS COMMAND...: the same with a report, which must hold lines
# "routine calls nested gpu cpu"; COUNTS lists them, separated by semicolons. An item in
# [brackets] is a text to be found in the report.
reports() {
    local name=$1 want=$2 counts=$3 item bad=
    shift 3
    run BATCHLAPACK_REPORT=1 "$@"
    [ $status -eq 0 ] && [ "$(<out)" = "$want" ] || bad="exit $status, '$(brief out)'"
    awk 'NF == 12 && $1 != "routine" {print $1, $2, $3, $5, $6}' err >counts
    while read -r item; do
        case $item in
        \[*) item=${item#?} && grep -qF -- "${item%?}" err || bad+=" no '${item%?}'" ;;
        ?*) grep -qxF -- "$item" counts || bad+=" no '$item'" ;;
        esac
    done <<<"${counts//;/$'\n'}"
    if [ -n "$bad" ]; then
        not_ok "$name" "$bad; report: $(brief err)"
    else
        echo "ok $name"
    fi
}

# ---- the programs ----------------------------------------------------------------------
from=$SRC/test/forward
build() {
    "$@" -O2 -Wall -Werror || {
        not_ok build "$*"
        exit 1
    }
}
for i in 1 2; do
    build $CC -shared -fPIC -DMAGIC=10$i "$from/fake.c" -o libfake$i.so
    build $CC -shared -fPIC "$from/plugin.c" -o plugin$i.so ./libfake$i.so
done
build $CC -shared -fPIC -DWIDE -DMAGIC=164 "$from/fake.c" -o libfake64.so
build $CC -shared -fPIC "$from/plugin.c" -o plugin0.so -llapack
build $CC -shared -fPIC -DOPENS='"./plugin1.so"' "$from/plugin.c" -o opener.so -ldl
build $CC "$from/host.c" -o host -pthread -ldl
build $CC -Wl,--no-as-needed "$from/host.c" -o early ./opener.so -pthread -ldl
build $CC -DOWN "$from/host.c" -o own ./libfake1.so -pthread -ldl
build $CC "$from/wide.c" -o wide -ldl
build $CC "$from/hidden.c" -o hidden -llapack
build $CC "$from/app.c" -o app -llapack -pthread -ldl -lm
build $CXX -rdynamic "$from/xerbla.cc" -o xerbla -llapack -pthread
if command -v $FC >/dev/null; then build $FC "$from/hello.f90" -o hello -llapack; fi

# ---- plain programs --------------------------------------------------------------------
both c fine ./app
if [ -e hello ]; then
    both fortran "$(./hello)" ./hello
    reports fortran-report "$(./hello)" 'dgesv 1 0 0 1;dpotrf 1 0 0 1;dgetrf 0 1 0 0' ./hello
else
    skip fortran "no $FC"
fi
calls='dgesv 1 0 0 1;dgetrf 1 1 0 1;dgetrs 0 1 0 0;dpotrf 1 0 0 1'
reports c-report fine "$calls;[1 on the CPU: below the threshold]" ./app
reports c-report-offloaded fine 'dgesv 1 0 1 0;dgetrf 1 1 1 0;[mock device 0]' "${gpu[@]}" ./app
reports c-report-mode-cpu fine 'dgesv 1 0 0 1;[on the CPU: mode cpu]' BATCHLAPACK_MODE=cpu ./app
both bind-now fine LD_BIND_NOW=1 ./app

# ---- plug-ins with their own LAPACK ----------------------------------------------------
# same NAME COMMAND...: the output is that of a process without the preload.
same() {
    local name=$1 want
    shift
    want=$("$@" 2>&1)
    prints "$name" "$want" "$@"
}
prints plugin '101 101 0' ./host plugins ./plugin1.so
prints plugin-netlib '22 22 0' ./host plugins ./plugin0.so
prints plugins '101 102 101 102 0' ./host plugins ./plugin1.so ./plugin2.so
prints plugins-three '102 22 101 102 22 101 0' ./host plugins ./plugin2.so ./plugin0.so \
    ./plugin1.so
same plugin-in-a-program-with-lapack ./own plugins ./plugin2.so
same plugins-in-a-program-with-lapack ./own plugins ./plugin1.so ./plugin2.so ./plugin0.so
same plugin-deepbind ./own deepbind ./plugin2.so
# A LAPACK that the user preloads serves everybody, on either side of us.
want=$(LD_PRELOAD=./libfake2.so ./host plugins ./plugin1.so ./plugin0.so)
preload="$lib ./libfake2.so" prints preloaded-lapack-after "$want" ./host plugins ./plugin1.so \
    ./plugin0.so
preload="./libfake2.so $lib" prints preloaded-lapack-before "$want" ./host plugins \
    ./plugin1.so ./plugin0.so
same plugin-early ./early plugins ./plugin2.so
prints plugin-tail-call 101 ./host tail ./plugin1.so
# reload NAME COMMAND...: the second plug-in took the first one's address, and its calls
# went to its own LAPACK.
reload() {
    local name=$1
    shift
    cp plugin2.so replaced.so.new
    cp plugin1.so replaced.so
    run "$@"
    case $(<out) in
    '101 102 same') echo "ok $name" ;;
    '101 102 moved') skip "$name" 'the second plug-in came to lie elsewhere' ;;
    *) not_ok "$name" "exit $status, '$(brief out)'; stderr: $(brief err)" ;;
    esac
}
reload plugin-closed ./host reload ./plugin1.so ./plugin2.so
reload plugin-replaced ./host reload ./replaced.so ./replaced.so
reload plugin-opened-early ./early reload-early ./plugin1.so ./plugin2.so
prints plugin-churn '0 steady' ./host churn ./plugin1.so ./libfake2.so
limit=60 prints plugin-fork '0 wrong 0 hung' ./host fork ./plugin1.so
prints dlopen-lapack 22 ./host handle liblapack.so.3
prints dlsym-default 22 ./host default liblapack.so.3
prints dlsym-default-fake 101 ./host default ./libfake1.so
prints dlsym-default-nothing-loaded 22 ./host default

# ---- nested calls ----------------------------------------------------------------------
for way in longjmp throw exit cancel; do
    reports xerbla-$way 5 'dgetrf 5 0 5 0' "${gpu[@]}" ./xerbla $way
    reports xerbla-$way-forwarded 5 'dgetrf 5 0 0 5' ./xerbla $way
done

# ---- ourselves in the way ----------------------------------------------------------------
mkdir other && cp "$lib" other/libbatchlapack.so
preload="$lib other/libbatchlapack.so"
both twice fine ./app
reports twice-counted fine 'dgesv 1 0 0 1' ./app
if [ "$(grep -c '^dgesv' err)" -ne 1 ]; then not_ok twice-once 'counted by both'; fi
preload=$lib
both lapack-is-us fine BATCHLAPACK_LAPACK="$lib" ./app
both lapack-is-a-copy-of-us fine BATCHLAPACK_LAPACK=other/libbatchlapack.so ./app
run BATCHLAPACK_LAPACK=/nowhere/liblapack.so ./app
if [ $status -eq 0 ] && [ "$(<out)" = fine ]; then
    echo 'ok lapack-missing'
else
    not_ok lapack-missing "exit $status: $(brief out) $(brief err)"
fi
prints lapack-chosen 101 BATCHLAPACK_LAPACK=./libfake1.so ./host default
prints lapack-chosen-over-own '102 102' BATCHLAPACK_LAPACK=./libfake2.so ./own default
# A program that links us and nothing else, and one whose own table of calls leads to us.
rpath=-Wl,-rpath,$(dirname "$lib")
build $CC "$from/app.c" -o linked "$lib" $rpath -pthread -ldl -lm
build $CC -fno-pie -no-pie "$from/app.c" -o fixed -llapack -pthread -ldl -lm
build $CC -fno-pie -no-pie "$from/app.c" -o fixed-linked "$lib" $rpath -pthread -ldl -lm
reports fixed-addresses fine 'dgetrf 1 0 0 1' ./fixed pointer
both fixed-addresses fine ./fixed pointer
preload=
both linked fine ./linked
for i in 1 2; do
    build $CC -shared -fPIC -Wl,--no-as-needed "$from/plugin.c" -o linking$i.so "$lib" \
        $rpath ./libfake$i.so
done
prints linked-plugin '101 101 0' ./host plugins ./linking1.so
prints linked-plugins '101 102 101 102 0' ./host plugins ./linking1.so ./linking2.so
both fixed-addresses-linked fine ./fixed-linked pointer
both fixed-addresses-linked-all fine ./fixed-linked
preload=$lib

# ---- no LAPACK at all ------------------------------------------------------------------
if $CC -shared -fPIC -fexceptions -fvisibility=hidden -O1 -D_GNU_SOURCE -I"$SRC/src" \
    -I"$SRC/include" -DPACKAGE_VERSION='"0"' -DBL_LAPACK_SONAME='"libnothere.so"' \
    "$SRC"/src/*.c "$SRC/interpose/entries.c" -Wl,-z,nodelete -ldl -lm \
    -pthread -o bare.so; then
    preload=./bare.so
    run ./host default
    if [ $status -ne 127 ] || ! grep -q 'dgetrf_: .*libnothere.so' err; then
        not_ok nothing-found "exit $status: $(brief err)"
    else
        echo 'ok nothing-found'
    fi
    run BATCHLAPACK_LAPACK=/nowhere/chosen.so ./host default
    if [ $status -ne 127 ] || ! grep -q '/nowhere/chosen.so' err; then
        not_ok nothing-found-names-choice "exit $status: $(brief err)"
    else
        echo 'ok nothing-found-names-choice'
    fi
    prints nothing-needed '' /bin/true
    preload=$lib
else
    not_ok nothing-found 'does not compile with another soname'
fi

# ---- widths and hidden arguments -------------------------------------------------------
both hidden-lengths '0 wrong' ./hidden
both wide-names '0 wrong' ./wide names
both narrow-names '0 wrong' ./wide widths
both wide-unused '0 wrong' ./wide unused
prints wide-own 164 ./wide magic ./libfake64.so
prints wide-chosen 164 BATCHLAPACK_LAPACK=./libfake64.so ./wide magic
for name in dgetrf_64_ scipy_dgetrf_64_; do
    for mode in auto gpu; do
        run BATCHLAPACK_ENGINE="$MOCK" BATCHLAPACK_MODE=$mode ./wide big $name
        if [ $status -eq 127 ] && grep -q "$name: .*do not fit" err; then
            echo "ok big-$name-$mode"
        else
            not_ok big-$name-$mode "exit $status: $(brief out) $(brief err)"
        fi
    done
done

both mxcsr fine ./app mxcsr

# ---- processes that have nothing to do with us -------------------------------------------
prints true '' /bin/true
same pipeline sh -c 'for i in 1 2 3; do /bin/true; done; ls / | wc -l'
if command -v strace >/dev/null && strace -o trace /bin/true 2>/dev/null; then
    # quiet NAME FORBIDDEN COMMAND...: no system call of that pattern.
    quiet() {
        local name=$1 pattern=$2
        shift 2
        preload='' run strace -f -o trace -E LD_PRELOAD="$lib" "$@"
        if [ $status -ne 0 ]; then
            not_ok "$name" "exit $status: $(brief err)"
        elif grep -E "$pattern" trace >found; then
            not_ok "$name" "$(brief found)"
        else
            echo "ok $name"
        fi
    }
    quiet lazy-true 'nvidia|cuda|clone|liblapack|write[(]' /bin/true
    quiet lazy-calls 'nvidia|cuda|clone' ./app
else
    skip lazy 'no strace'
fi
# The two are timed in turns, so that whatever else runs slows both.
cost() {
    local begin=${EPOCHREALTIME/./} i
    for ((i = 0; i < 20; i++)); do "$@" /bin/true; done
    us=$((us + ${EPOCHREALTIME/./} - begin))
}
with=0 without=0
for i in {0..10}; do
    us=$without && cost env && without=$us
    us=$with && cost env LD_PRELOAD="$lib" && with=$us
    if [ $i -eq 0 ]; then with=0 without=0; fi # the first one warms up
done
us=$(((with - without) / 200))
echo "# start-up: $us us a process more than without"
if [ $us -lt 2000 ]; then echo 'ok start-up'; else not_ok start-up "$us us"; fi

# ---- when the engine starts, and on which device -----------------------------------------
# Each call is predicted to save some 50 ms (a threshold of 6 makes the model believe in a
# slow CPU): the engine starts with the one that lifts the sum over half a second, and the
# same call each time. On the device that the MPI launcher's or our own variable says.
build $CC "$from/auto.c" -o auto -llapack
echo 'dgesv 6' >tune
auto=(BATCHLAPACK_TUNE=tune BATCHLAPACK_ENGINE="$MOCK")
waited() {
    run BATCHLAPACK_REPORT=1 "${auto[@]}" ./auto 100 20
    sed -n 's/^ *\([0-9]*\) on the CPU: not yet worth.*/\1/p' err
}
first=$(waited)
if [ "${first:-0}" -lt 5 ] || [ "$first" -gt 15 ]; then
    not_ok start-up-rule "started after '$first' of 20 calls: $(brief err)"
elif [ "$(waited)" != "$first" ]; then
    not_ok start-up-rule 'not with the same call each time'
else
    echo 'ok start-up-rule'
fi
reports start-up-rest fine "dgesv 20 0 $((20 - first)) $first" "${auto[@]}" ./auto 100 20
reports never-worth-it fine '[20 on the CPU: below the threshold]' "${auto[@]}" ./auto 8 20
for variable in OMPI_COMM_WORLD_LOCAL_RANK MPI_LOCALRANKID SLURM_LOCALID BATCHLAPACK_DEVICE; do
    reports "device-$variable" fine '[mock device 5]' $variable=5 "${gpu[@]}" ./app
done
reports device-option-first fine '[mock device 2]' BATCHLAPACK_DEVICE=2 SLURM_LOCALID=5 \
    "${gpu[@]}" ./app

# ---- interrupted ------------------------------------------------------------------------
build $CC -rdynamic "$from/interrupted.c" -o interrupted -llapack -pthread -lm
for what in longjmp altstack fork; do both interrupted-$what fine ./interrupted $what; done
run "${gpu[@]}" BATCHLAPACK_VERBOSE=1 ./interrupted rawfork
if [ "$(<out)" != fine ] || [ "$(grep -c 'n=4[02] .*GPU' err)" -ne 2 ] ||
    ! grep -q 'n=41 .*CPU (forked child)' err; then
    not_ok interrupted-raw-fork "$(brief out) $(brief err)"
else
    echo 'ok interrupted-raw-fork'
fi
prints interrupted-start-cancelled fine "${gpu[@]}" BL_MOCK_OPEN_MS=400 ./interrupted cancel
both flags-nothing-rounded fine ./interrupted flags
# Without an engine a call that would be worth it costs no system call.
if preload='' run ./interrupted quiet && [ "$(<out)" = fine ]; then
    prints no-engine-no-system-call fine BATCHLAPACK_MODE=gpu BATCHLAPACK_ENGINE=/nowhere \
        ./interrupted quiet
else
    skip no-engine-no-system-call 'the LAPACK here makes some itself'
fi
both options-nul 'DPOTRF 1 fine' ./interrupted nul
# A relative path to the library, and another directory when the engine is looked for: the
# mock in the engine's place, beside a copy of the library.
mkdir beside && cp "$lib" beside/libbatchlapack.so && cp "$MOCK" beside/libbatchlapack_cuda.so
preload=./libbatchlapack.so
(cd beside && reports relative-preload fine 'dgetrf 1 0 1 0;[mock device 0]' \
    BATCHLAPACK_MODE=gpu ../interrupted chdir && exit $failed) || failed=1
preload=$lib

# ---- a threshold file that is none --------------------------------------------------------
mkfifo fifo
{ printf '#%300s' ''; echo 'dgesv 10'; } >long-comment
for tune in fifo /dev/zero . long-comment; do
    reports "tune-${tune//[^a-z]/-}" fine '[20 on the CPU: below the threshold]' \
        BATCHLAPACK_TUNE=$tune BATCHLAPACK_ENGINE="$MOCK" ./auto 30 20
done

# ---- options and descriptors -----------------------------------------------------------
# says NAME PATTERN...: exit status 0, and each pattern on exactly one line of stderr.
says() {
    local name=$1 pattern
    shift
    [ $status -eq 0 ] && [ "$(<out)" = fine ] || {
        not_ok "$name" "exit $status: $(brief out) $(brief err)"
        return
    }
    for pattern; do
        if [ "$(grep -c -- "$pattern" err)" -ne 1 ]; then
            not_ok "$name" "'$pattern' not once in: $(brief err)"
            return
        fi
    done
    echo "ok $name"
}
run BATCHLAPACK_FOO=1 BATCHLAPACK_MODE=fast BATCHLAPACK_REPORT=1 ./app
says options-unknown BATCHLAPACK_FOO BATCHLAPACK_MODE=fast 'dgesv .* 1 '
run BATCHLAPACK_TUNE=/nowhere/tune ./app first-calls
says options-tune /nowhere/tune
prints options-empty fine BATCHLAPACK_EXCLUDE=other ./app
reports exclude fine '[program excluded];dgesv 1 0 0 1' BATCHLAPACK_EXCLUDE=x,app,y \
    "${gpu[@]}" ./app
noisy=(BATCHLAPACK_REPORT=1 BATCHLAPACK_VERBOSE=1 "${gpu[@]}")
# survives NAME STATUS COMMAND: a shell command about ./app, its descriptors as given.
survives() {
    local name=$1 want=$2
    timeout 20 env LD_PRELOAD="$lib" "${noisy[@]}" sh -c "$3" </dev/null >out 2>err
    status=$?
    if [ $status -eq "$want" ]; then echo "ok $name"; else not_ok "$name" "exit $status"; fi
}
survives closed-both 0 'exec ./app >&- 2>&-'
survives closed-stderr 0 'exec ./app 2>&-'
survives full 0 'exec ./app 2>/dev/full'
survives broken-pipe 0 \
    '{ sleep 0.2; ./app; echo $? >piped; } 2>&1 >/dev/null | true; exit $(cat piped)'
survives no-home 0 'unset HOME; exec ./app'
mkdir read-only && chmod a-w read-only
survives read-only 0 'cd read-only && exec ../app'
survives file-as-stderr 0 'exec ./app file-as-stderr 2>&-'
if [ "$(<data)" != data ]; then not_ok file-as-stderr-kept "$(brief data)"; fi
survives stderr-replaced 0 'exec ./app stderr-replaced'
if [ "$(<data)" != data ]; then not_ok stderr-replaced-kept "$(brief data)"; fi

# ---- the end -----------------------------------------------------------------------------
for how in main thread atexit atexit-before dlclose sigterm; do
    both end-$how fine ./app end-$how
done

# ---- fork ----------------------------------------------------------------------------------
both fork-after fine ./app fork-after
reports fork-after-report fine '[on the CPU: forked child]' "${gpu[@]}" ./app fork-after
reports fork-report-counts-own-calls fine 'dgetrf 1 1 0 1' "${gpu[@]}" ./app fork-after
reports fork-before-report fine 'dgetrf 1 1 1 0' "${gpu[@]}" ./app fork-before
both forks-in-threads fine ./app forks-in-threads

# ---- threads -----------------------------------------------------------------------------
for mode in auto gpu; do
    bad=
    for i in {1..20}; do
        run BATCHLAPACK_MODE=$mode BATCHLAPACK_ENGINE="$MOCK" ./app first-calls
        [ $status -eq 0 ] && [ "$(<out)" = fine ] || bad+=" $i: exit $status $(brief out)"
    done
    if [ -z "$bad" ]; then echo "ok first-calls-$mode"; else not_ok first-calls-$mode "$bad"; fi
done
both read-only-factors fine ./app read-only
both small-stack fine ./app small-stack
both small-limit fine bash -c 'ulimit -s 256 && exec ./app'

# ---- out of reach --------------------------------------------------------------------------
prints deepbind 101 ./host deepbind ./plugin1.so
if $CC -O2 "$from/hidden.c" -static -o static -llapack -lblas -lgfortran -lquadmath -lm \
    2>/dev/null; then
    prints static '0 wrong' ./static
else
    skip static 'no static LAPACK'
fi

# ---- arithmetic and errno --------------------------------------------------------------------
both traps fine ./app traps
both inexact fine ./app exact
both upward fine ./app upward
reports upward-report fine '[on the CPU: rounding mode not nearest];dgesv 1 0 0 1' "${gpu[@]}" \
    ./app upward
both errno fine ./app errno
both errno-options fine BATCHLAPACK_DEVICE=0 ./app errno
prints errno-rank fine SLURM_LOCALID=0 ./app errno
survives errno-no-stderr 0 'exec ./app errno 2>&-'
survives errno-closed-stderr 0 'exec ./app errno-closed'
survives errno-full-stderr 0 'exec ./app errno 2>/dev/full'
run BATCHLAPACK_TUNE=/nowhere/tune ./app errno
says errno-tune /nowhere/tune

exit $failed
