#!/usr/bin/env bash
# batchlapack-run: what it hands to the program it starts, and what --explain says of
# programs of every kind, each built here. Any machine: no GPU, and no LAPACK call is made.
# Reads BUILD (with ./batchlapack-run and .libs/libbatchlapack.so) and CC. A line a test,
# `ok NAME`, `not ok NAME - detail` or `skip NAME - reason`; exit 1 when one failed.
set -u
unset LD_PRELOAD "${!BATCHLAPACK_@}"
CC=${CC:-gcc}
BUILD=$(cd "${BUILD:-.}" && pwd) || exit 2
T=$(mktemp -d) || exit 2
trap 'rm -rf "$T"' EXIT
failed=0

# The launcher beside the real library; before there is one, beside an empty library.
mkdir -p "$T/b/.libs" "$T/bare" "$T/with space/.libs"
for d in b bare "with space"; do
    cp "$BUILD/batchlapack-run" "$T/$d/" || exit 2
done
run=$T/b/batchlapack-run
if [ -e "$BUILD/.libs/libbatchlapack.so" ]; then
    ln -s "$BUILD/.libs/libbatchlapack.so" "$T/b/.libs/"
else
    echo '# no library in BUILD: an empty one stands in'
    echo 'int bl_stand_in;' >"$T/empty.c"
    $CC -shared -fPIC -Wl,-soname,libbatchlapack.so.0 "$T/empty.c" \
        -o "$T/b/.libs/libbatchlapack.so" || exit 2
fi
library=$(realpath "$T/b/.libs/libbatchlapack.so")
touch "$T/with space/.libs/libbatchlapack.so"
cd "$T" || exit 2

# expect NAME STATUS PATTERN COMMAND...: the status, and in the output (both streams) a
# line that matches the extended pattern. The output stays in $out.
expect() {
    local name=$1 status=$2 pattern=$3 got
    shift 3
    out=$(timeout 60 "$@" 2>&1 </dev/null)
    got=$?
    if [ $got -ne "$status" ]; then
        not_ok "$name" "exit $got, not $status: ${out//$'\n'/ | }"
    elif ! grep -Eq -- "$pattern" <<<"$out"; then
        not_ok "$name" "no line like '$pattern': ${out//$'\n'/ | }"
    else
        echo "ok $name"
    fi
}
not_ok() {
    echo "not ok $1 - $2"
    failed=1
}
skip() {
    echo "skip $1 - $2"
}
explain() {
    local name=$1
    shift
    expect "explain-$name" "$1" "$2" "$run" --explain "$3"
}
# also NAME PATTERN: a further line of the last output.
also() {
    if grep -Eq -- "$2" <<<"$out"; then
        echo "ok $1"
    else
        not_ok "$1" "no line like '$2': ${out//$'\n'/ | }"
    fi
}

# ---- starting ----------------------------------------------------------------------
expect arguments 0 '^<a b><><--mode=x><\*>$' "$run" -- printf '<%s><%s><%s><%s>\n' \
    'a b' '' --mode=x '*'
expect first-word-ends-options 0 '^--report$' "$run" echo --report
expect argv0 0 '^sh$' "$run" sh -c 'echo "$0"'
expect status 37 '' "$run" sh -c 'exit 37'
expect signal 0 '^143$' sh -c "$run sh -c 'kill -TERM \$\$'; echo \$?"
expect stdin 0 '^line$' sh -c "echo line | $run cat"
expect preload 0 "^$library\$" "$run" printenv LD_PRELOAD
expect preload-loaded 0 "$library" "$run" cat /proc/self/maps
expect preload-empty 0 "^$library\$" env LD_PRELOAD= "$run" printenv LD_PRELOAD
expect preload-kept 0 "^$library:libm.so.6:libdl.so.2\$" \
    env 'LD_PRELOAD=libm.so.6 libdl.so.2' "$run" printenv LD_PRELOAD
expect preload-once 0 "^$library:libm.so.6\$" \
    env "LD_PRELOAD=libm.so.6:$library" "$run" printenv LD_PRELOAD
expect preload-nested 0 "^$library\$" "$run" "$run" printenv LD_PRELOAD
expect option-value 0 '^gpu$' "$run" --mode=gpu printenv BATCHLAPACK_MODE
expect option-alone 0 '^1 1$' "$run" --report --verbose \
    sh -c 'echo $BATCHLAPACK_REPORT $BATCHLAPACK_VERBOSE'
expect option-over-environment 0 '^cpu$' env BATCHLAPACK_MODE=gpu "$run" --mode=cpu \
    printenv BATCHLAPACK_MODE
expect option-text 0 '^/a b=c$' "$run" '--lapack=/a b=c' printenv BATCHLAPACK_LAPACK
expect option-unknown 2 'unknown option --colour=red' "$run" --colour=red true
expect option-short 2 'unknown option -m' "$run" -m true
expect option-prefix 2 'unknown option --mod=gpu' "$run" --mod=gpu true
expect option-wrong-word 2 '--mode=gpuu.*auto\|gpu\|cpu' "$run" --mode=gpuu true
# What the library would ignore is refused, whatever the option.
for wrong in threads=0 threads=two threads=-1 threads=3x device=x device=1.5 memory=4Q memory=K \
    report= lapack= engine= exclude= arithmetic=exactly writeback=0; do
    expect "option-wrong-$wrong" 2 "option --$wrong: the value must be" "$run" "--$wrong" true
done
for right in threads=1 device=0 memory=0 memory=4g report=name verbose=0 exclude=a,b; do
    expect "option-right-$right" 0 "^${right#*=}\$" "$run" "--$right" \
        sh -c "printenv BATCHLAPACK_$(tr a-z A-Z <<<"${right%=*}")"
done
expect option-no-value 2 '--mode needs a value' "$run" --mode true
expect option-empty-value 2 '--tune=' "$run" --tune= true
expect help 0 '^  --mode=auto\|gpu\|cpu' "$run" --help
also help-explain '--explain'
expect version 0 '^batchlapack-run [^ ]+$' "$run" --version
expect no-program 2 'no program' "$run" --mode=cpu
expect not-found 127 '^batchlapack-run: cannot run no-such-prog: No such file' \
    env PATH=/usr/bin:/bin "$run" no-such-prog
expect not-found-path 127 'cannot run /no/such: No such file' "$run" /no/such
touch plain
expect not-executable 126 'cannot run \./plain: Permission denied' "$run" ./plain
expect no-library 2 'cannot find libbatchlapack.so' bare/batchlapack-run true
also no-library-named '\.libs'
expect library-path-space 2 'with space.*cannot be preloaded' \
    'with space/batchlapack-run' true

# ---- explaining --------------------------------------------------------------------
cat >user.c <<'C'
extern void dgetrf_(void), zpotrf_64_(void), scipy_sgesv_(void), scipy_cposv_64_(void);
void (*volatile user[])(void) = {dgetrf_, zpotrf_64_, scipy_sgesv_, scipy_cposv_64_};
C
cat >own.c <<'C'
#define STUB(name) void name(void) {}
STUB(zpotrf_64_) STUB(scipy_sgesv_) STUB(scipy_cposv_64_)
STUB(dgetrf_)
void own_caller(void) { dgetrf_(); }
C
echo 'extern void dgetrf_(void); int main(void) { dgetrf_(); return 0; }' >caller.c
echo 'extern void own_caller(void); int main(void) { own_caller(); return 0; }' >outer.c
echo 'int main(void) { return 0; }' >none.c
cat >batches.c <<'C'
#define STUB(name) void name(void) {}
STUB(dgetrf_batch_strided) STUB(zpotrf_batch_) STUB(sgesv_batch_strided_64)
STUB(cgeinv_batch_strided_64_)
C
cat >batched.c <<'C'
extern void dgetrf_batch_strided(void), zpotrf_batch_(void), sgesv_batch_strided_64(void),
    cgeinv_batch_strided_64_(void);
int main(void)
{
    dgetrf_batch_strided(), zpotrf_batch_();
    sgesv_batch_strided_64(), cgeinv_batch_strided_64_();
}
C
cat >host.c <<'C'
#include <dlfcn.h>
int main(int c, char **v) { return c > 1 && dlopen(v[1], RTLD_NOW); }
C
echo 'int system(const char *); int main(void) { return system("true"); }' >starter.c
cat >definer.c <<'C'
#include <fcntl.h>
void dgetrf_(void) {}
int main(void) { dgetrf_(); return open("it-ran", O_CREAT | O_WRONLY, 0600); }
C
# interposable: a build whose calls to its own functions go through the PLT.
libs='-shared -fPIC -O0 -fsemantic-interposition'
{
    $CC $libs own.c -o libplt.so -Wl,-soname,libplt.so &&
    $CC $libs own.c -o libsym.so -Wl,-soname,libsym.so,-Bsymbolic &&
    $CC $libs -Wno-all user.c -o libuser.so -L. -lplt -Wl,-soname,libuser.so &&
    R='-L. -Wl,--no-as-needed,-rpath,$ORIGIN' &&
    $CC starter.c -o starter &&
    $CC none.c -o by-library $R -luser -lplt &&
    $CC caller.c -o first-two $R -lsym -lplt &&
    $CC outer.c -o bypassed $R -lsym &&
    $CC outer.c -o inside $R -lplt &&
    $CC none.c -o none &&
    $CC $libs batches.c -o libbatches.so -Wl,-soname,libbatches.so &&
    $CC batched.c -o batched $R -lbatches &&
    $CC host.c -o host -ldl &&
    $CC definer.c -o definer -rdynamic
} || {
    echo 'not ok build - the test programs did not compile'
    exit 1
}

explain true 1 '^served: no \(none' /bin/true
explain none 1 '^served: no \(none' ./none
explain path-search 1 '/true: the program' true
explain library-imports 0 '^served: yes$' ./by-library
also explain-importer "libuser.so imports, from $T/libplt.so: dgetrf_"
also explain-spellings 'dgetrf_.* zpotrf_64_| zpotrf_64_.*dgetrf_'
also explain-scipy 'libuser.so imports.* scipy_sgesv_.* scipy_cposv_64_'
explain first-in-order 0 "first-two imports, from $T/libsym.so: dgetrf_\$" ./first-two
also explain-symbolic-noted 'libsym.so is linked -Bsymbolic .*dgetrf_'
also explain-symbolic-served '^served: yes$'
explain symbolic 1 '^served: no \(-Bsymbolic\)$' ./bypassed
explain inside 0 '^served: only calls inside libraries$' ./inside
also explain-inside-names 'libplt.so defines, and calls through the loader: dgetrf_$'
explain host 0 '^served: only through plug-ins$' ./host
also explain-host-limits 'imports dlopen.*RTLD_DEEPBIND'
explain batched 0 '^served: yes$' ./batched
for name in dgetrf_batch_strided zpotrf_batch_ sgesv_batch_strided_64 cgeinv_batch_strided_64_; do
    also "explain-$name" "batched imports, from $T/libbatches.so:.* $name( |\$)"
done
explain starter 0 '^served: only through programs that it starts$' ./starter
also explain-starter-names "starter starts other programs"
explain definer 1 "^served: no \(the program's own definitions\)\$" ./definer
also explain-definer-names 'definer defines.*: dgetrf_$'
[ ! -e it-ran ] && echo 'ok explain-runs-nothing' || not_ok explain-runs-nothing 'it ran'
out=$(env "LD_PRELOAD=$library" "$run" --explain ./first-two)
also explain-without-ourselves "imports, from $T/libsym.so: dgetrf_\$"
out=$(env "LD_PRELOAD=$T/libplt.so" "$run" --explain ./first-two)
also explain-with-preload "imports, from $T/libplt.so: dgetrf_\$"

if $CC caller.c -o lapack -llapack 2>/dev/null; then
    explain lapack 0 '^served: yes$' ./lapack
    also explain-lapack-from 'lapack imports, from /.*lib.*\.so.*: dgetrf_$'
else
    skip explain-lapack 'no liblapack to link with'
fi
if $CC -static none.c -o static 2>/dev/null; then
    explain static 1 '^served: no \(static' ./static
else
    skip explain-static 'no static libc'
fi
if $CC -static-pie none.c -o static-pie 2>/dev/null; then
    explain static-pie 1 '^served: no \(static' ./static-pie
else
    skip explain-static-pie 'no static libc'
fi
# Plug-ins: with a LAPACK of their own, as NumPy's has, with one that is not found without
# the program, and with the program's.
$CC $libs -Wno-all user.c -o plug-in.so $R -lplt
explain plug-in 0 '^served: yes$' ./plug-in.so
also explain-plug-in-said "^$T/plug-in.so: a shared library\$"
also explain-plug-in-names "plug-in.so imports, from $T/libplt.so:.* scipy_cposv_64_"
also explain-plug-in-limits 'plug-in.so is served in .*RTLD_DEEPBIND'
explain plug-in-lost 0 '^served: yes$' ./libuser.so
also explain-plug-in-lost-named 'libplt.so: cannot open'
$CC $libs caller.c -o bare.so
explain plug-in-bare 0 '^served: yes$' ./bare.so
also explain-plug-in-bare-names 'bare.so imports, from no library so far: dgetrf_$'
explain shared-library 0 '^served: only calls inside libraries$' ./libplt.so
explain shared-library-symbolic 1 '^served: no \(-Bsymbolic\)$' ./libsym.so
$CC $libs none.c -o none.so
explain shared-library-none 1 '^served: no \(none' ./none.so

printf '#! %s -x\n' "$T/first-two" >script
explain script 0 '^served: yes$' ./script
also explain-script-names "script: a script for $T/first-two\$"
printf '#!%s\n' "$T/script" >script-of-script
explain script-of-script 0 '^served: yes$' ./script-of-script
printf '#!/usr/bin/env -S A=b host -x\n' >env-script
PATH=$T:$PATH explain env-script 0 'only through plug-ins and through programs' ./env-script
printf '#!%s' "$T/none" >shell-script
explain shell-script 0 '^served: only through programs that it starts$' ./shell-script
printf '#!%s\n' "$T/loop" >loop
explain script-loop 1 'neither an ELF' ./loop
printf '#!/no/such\n' >lost
explain script-lost 2 'cannot explain /no/such: No such file' ./lost
echo text >text
explain text 1 '^served: no \(neither an ELF' ./text
: >empty
explain empty 1 '^served: no \(neither an ELF' ./empty
mkdir dir
explain directory 2 'cannot explain ./dir: Is a directory' ./dir
mkfifo fifo
explain fifo 2 'cannot explain ./fifo: not a regular file' ./fifo
explain nonexistent 2 'cannot explain ./no-such: No such file' ./no-such
explain not-in-path 2 'cannot explain no-such-prog: not on PATH; .* by its path, as ./no-such-prog$' no-such-prog
expect explain-nothing 2 'no program' "$run" --explain

mv libuser.so kept-libuser.so
explain missing-library 1 '^served: no \(it cannot be loaded\)$' ./by-library
also explain-missing-named 'libuser\.so'
mv kept-libuser.so libuser.so
if $CC caller.c -o no-loader -L. -lplt -Wl,--dynamic-linker=/no/ld.so; then
    explain no-loader 1 'its loader cannot be run: /no/ld.so' ./no-loader
fi
printf '#!/bin/sh\ntouch %s/loader-ran\n' "$T" >evil-loader
chmod +x evil-loader
$CC caller.c -o evil -L. -lplt "-Wl,--dynamic-linker=$T/evil-loader"
explain foreign-loader 0 'evil-loader is not a loader of this system' ./evil
[ ! -e loader-ran ] && echo 'ok explain-no-foreign-loader' ||
    not_ok explain-no-foreign-loader 'it ran'
if [ "$(id -u)" = 0 ]; then
    cp lapack privileged 2>/dev/null || cp first-two privileged
    chown 65534 privileged && chmod u+s privileged
    explain setuid 1 '^served: no \(setuid' ./privileged
else
    skip explain-setuid 'not root: nobody else to own a file'
fi

# ---- files that are no ELF files any more --------------------------------------------
size=$(stat -c %s first-two)
bad=0
for n in 4 15 16 20 63 64 65 119 120 600 4096 $((size / 2)) $((size - 1)); do
    head -c "$n" first-two >./cut
    out=$(timeout 20 "$run" --explain ./cut 2>&1)
    [ $? -eq 1 ] && grep -q '^served: no (a truncated ELF' <<<"$out" ||
        { bad=1 && not_ok explain-truncated "at $n bytes: $out"; }
done
[ $bad = 1 ] || echo 'ok explain-truncated'
printf '\1' >one
cp first-two other-class && dd if=one of=other-class bs=1 seek=4 conv=notrunc status=none
explain 32-bit 1 '^served: no \(32-bit\)$' ./other-class
printf '\377' >byte
cp first-two other-machine &&
    dd if=byte of=other-machine bs=1 seek=19 conv=notrunc status=none
explain other-machine 1 '^served: no \(built for another machine\)$' ./other-machine

# Damage in the headers and tables: any verdict, but no crash and no hang.
bad=0
RANDOM=7
for i in $(seq 300); do
    cp libplt.so damaged
    [ $((i % 2)) = 0 ] && cp first-two damaged
    size=$(stat -c %s damaged)
    for _ in 1 2 3; do
        at=$((i % 3 == 0 ? RANDOM % 1024 : i % 3 == 1 ? size - 1 - RANDOM % 2048
            : RANDOM % size))
        dd if=byte of=damaged bs=1 seek=$at conv=notrunc status=none
    done
    timeout 20 "$run" --explain ./damaged >/dev/null 2>&1
    status=$?
    [ $status -le 2 ] || { bad=1 && not_ok explain-damaged "round $i: exit $status"; }
done
[ $bad = 1 ] || echo 'ok explain-damaged'
exit $failed
