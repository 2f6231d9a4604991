#!/usr/bin/env bash
# BATCHLAPACK_REPORT and BATCHLAPACK_VERBOSE to files, and batchlapack-report: what is
# counted is what was called, files are the program's last of all, and sums are sums
# (checked by Python's json). Any machine, no GPU: calls run on the mock engine or are
# forwarded. Reads BUILD, SRC, MOCK and CC. A line a test, `ok NAME`, `not ok NAME - why`
# or `skip NAME - why`; exit 1 when one failed.
set -u
unset LD_PRELOAD "${!BATCHLAPACK_@}" "${!OMPI_@}" "${!PMI_@}" "${!SLURM_@}"
CC=${CC:-gcc}
BUILD=$(cd "${BUILD:-.}" && pwd) || exit 2
MOCK=$(realpath "${MOCK:-$BUILD/test/mock_engine.so}") || exit 2
lib=$(realpath "$BUILD/.libs/libbatchlapack.so") || exit 2
reporter=$(realpath "$BUILD/batchlapack-report") || exit 2
if ! command -v python3 >/dev/null; then
    echo 'skip report - no python3 to read JSON with'
    exit 0
fi
T=$(mktemp -d) || exit 2
trap 'rm -rf "$T"' EXIT
cd "$T" || exit 2
failed=0

# ---- saying how it went ----------------------------------------------------------------
not_ok() {
    echo "not ok $1 - $2"
    failed=1
}
# check NAME WHY: passed when WHY is empty.
check() {
    if [ -z "$2" ]; then echo "ok $1"; else not_ok "$1" "${2//$'\n'/ | }"; fi
}
brief() {
    head -c 600 "$1" | tr '\n' '|'
}
# run [VARIABLE=value...] COMMAND...: streams in ./out and ./err, status in $status.
run() {
    timeout 60 env LD_PRELOAD="$lib" BATCHLAPACK_ENGINE="$MOCK" "$@" >out 2>err </dev/null
    status=$?
}
# went STATUS [PATTERN]: why the last run did not end so, saying PATTERN once on stderr
# and nothing else.
went() {
    local said
    [ $status -eq "$1" ] || echo "exit status $status, not $1: $(brief err)"
    said=$(wc -l <err)
    if [ $# -eq 1 ]; then
        [ "$said" -eq 0 ] || echo "stderr: $(brief err)"
    elif [ "$said" -ne 1 ] || ! grep -Eq -- "$2" err; then
        echo "not one line '$2': $(brief err)"
    fi
}
# The reporter, likewise.
report() {
    timeout 60 "$reporter" "$@" >out 2>err </dev/null
    status=$?
}

# ---- a program -------------------------------------------------------------------------
# Words one after the other: a mode (auto, gpu, cpu), a routine with N and COUNT, or
# something that programs do.
cat >app.c <<'C'
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <locale.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

void dgetrf_(int *, int *, double *, int *, int *, int *);
void dpotrf_(char *, int *, double *, int *, int *);
void dgesv_(int *, int *, double *, int *, int *, double *, int *, int *);
void dgetri_(int *, double *, int *, int *, double *, int *, int *);
void xerbla_(void) {} /* LAPACK's would end the program */

static void call(const char *name, int n, int count)
{
    int ld = n ? n : 1, one = 1, query = -1, info = 0, *pivots = calloc(ld, sizeof *pivots);
    double *a = calloc(ld * ld, sizeof *a), *b = calloc(ld, sizeof *b);
    while (count-- > 0) {
        for (int j = 0; j < n * n; j++)
            a[j] = j / n == j % n ? 2.0 * n : 1.0 / (1 + j % 17);
        for (int j = 0; j < n; j++)
            b[j] = 1;
        if (!strcmp(name, "dgetrf"))
            dgetrf_(&n, &n, a, &ld, pivots, &info);
        else if (!strcmp(name, "dpotrf"))
            dpotrf_("L", &n, a, &ld, &info);
        else if (!strcmp(name, "query"))
            dgetri_(&n, a, &ld, pivots, b, &query, &info);
        else
            dgesv_(&n, &one, a, &ld, pivots, b, &ld, &info);
        if (info)
            exit(3);
    }
    free(a);
    free(b);
    free(pivots);
}

/* Batches, which the program finds as it finds batchlapack_set_mode. */
static void batch(const char *name, int n, int count)
{
    int ld = n > 0 ? n : 1, stride = ld * ld, info[8], pivots[64], groups = n;
    double a[512] = {0};
    for (int j = 0; n > 0 && j < 2 * stride; j++)
        a[j] = j % stride % (n + 1) == 0;
    void (*strided)(int *, int *, double *, int *, int *, int *, int *, int *, int *) =
        dlsym(RTLD_DEFAULT, "dgetrf_batch_strided_");
    void (*grouped)(int *, int *, double **, int *, int **, int *, int *, int *) =
        dlsym(RTLD_DEFAULT, "dgetrf_batch_");
    if (!strcmp(name, "no-groups"))
        grouped(NULL, NULL, NULL, NULL, NULL, &groups, NULL, info);
    else
        strided(!strcmp(name, "no-batch") ? NULL : &n, &n, a, &ld, &stride, pivots, &ld,
                &count, info);
}

static void *calls(void *unused)
{
    call("dgetrf", 9, 200);
    return unused;
}

int main(int argc, char **argv)
{
    int (*set_mode)(int) = (int (*)(int))dlsym(RTLD_DEFAULT, "batchlapack_set_mode");
    static const char *const modes[] = {"auto", "gpu", "cpu"};
    pthread_t threads[8];
    for (int i = 1; i < argc; i++) {
        const char *word = argv[i];
        int mode = 0;
        while (mode < 3 && strcmp(word, modes[mode]))
            mode++;
        if (mode < 3) {
            set_mode(mode);
        } else if (!strcmp(word, "fork")) { /* the rest is the child's */
            if (fork()) {
                wait(NULL);
                return 0;
            }
        } else if (!strcmp(word, "also-fork")) { /* the rest is everybody's */
            if (fork())
                wait(NULL);
        } else if (!strcmp(word, "exit")) {
            exit(atoi(argv[++i]));
        } else if (!strcmp(word, "cd")) {
            if (chdir(argv[++i]))
                return 4;
        } else if (!strcmp(word, "locale")) {
            if (!setlocale(LC_ALL, ""))
                return 77;
        } else if (!strcmp(word, "open")) {
            if (open(argv[++i], O_RDWR | O_CREAT, 0666) < 0)
                return 4;
        } else if (!strcmp(word, "close-all")) {
            for (int fd = 3; fd < 100; fd++)
                close(fd);
        } else if (!strcmp(word, "take-all")) {
            int own = open(argv[++i], O_RDWR | O_CREAT | O_APPEND, 0666);
            for (int fd = 3; fd < 100; fd++)
                dup2(own, fd);
        } else if (!strcmp(word, "threads")) {
            for (int t = 0; t < 8; t++)
                pthread_create(&threads[t], NULL, calls, NULL);
            for (int t = 0; t < 8; t++)
                pthread_join(threads[t], NULL);
        } else if (strstr(word, "batch") || !strcmp(word, "no-groups")) {
            batch(word, atoi(argv[i + 1]), atoi(argv[i + 2]));
            i += 2;
        } else {
            call(word, atoi(argv[i + 1]), atoi(argv[i + 2]));
            i += 2;
        }
    }
    return 0;
}
C
$CC -O2 -Wall -Werror app.c -o app -rdynamic -llapack -ldl -pthread || exit 2

# `py CODE FILES...`: python with the files' contents as the list `d`.
py() {
    python3 -c "
import json, sys
d = [json.load(open(name)) for name in sys.argv[1:]]
def routine(r, name):
    return next(x for x in r['routines'] if x['routine'] == name)
def plain(r):
    'Everything that adds up, as a dictionary from a place to a number.'
    flat = {}
    def put(place, x):
        flat[place] = flat.get(place, 0) + x
    for x in r['routines']:
        for key in 'calls', 'nested', 'gpu':
            put((x['routine'], key), x[key])
        for why, n in x['cpu'].items():
            put((x['routine'], 'cpu', why), n)
        for s in x['sizes']:
            for side in 'cpu', 'gpu':
                for key, n in s[side].items():
                    n = round(n * 10**9) if 'seconds' in key else n
                    put((x['routine'], s['from'], side, key), n)
    return flat
$1" "${@:2}" 2>&1
}
# What must hold in any report: sizes sum up to the totals.
consistent='
for r in d:
    for x in r["routines"]:
        side = {s: sum(z[s]["calls"] for z in x["sizes"]) for s in ("cpu", "gpu")}
        cpu = {w: n for w, n in x["cpu"].items()
               if w not in ("workspace query", "empty", "illegal argument")}
        assert side["gpu"] == x["gpu"], x
        assert side["cpu"] == sum(cpu.values()), x
        assert x["calls"] == x["gpu"] + sum(x["cpu"].values()), x
        last = 0
        for z in x["sizes"]:
            assert last < z["from"] <= z["smallest"] <= z["largest"], z
            assert z["largest"] < z["from"] * 1.5 + 1, z
            last = z["largest"]
            for s in "cpu", "gpu":
                assert (z[s]["calls"] > 0) == (z[s]["seconds"] > 0), z
                assert (z[s]["calls"] > 0) == (z[s]["operations"] > 0), z
                assert (z["gpu"]["calls"] > 0) == (z["gpu"]["bytes_in"] > 0), z
'

# ---- BATCHLAPACK_REPORT=name -----------------------------------------------------------
host=$(hostname)
run BATCHLAPACK_REPORT='r-%h-%r-%p-%%-%x-%' OMPI_COMM_WORLD_RANK=3 ./app gpu dgetrf 20 2
made=$(ls -A r-* 2>&1)
check escapes "$(went 0)$([[ $made =~ ^r-$host-3-[0-9]+-%-%x-%$ ]] || echo "$made")"
check escapes-pid "$(pid=${made#*-3-} && py "
assert d[0]['processes'][0]['pid'] == ${pid%%-*}, d[0]['processes']
p = d[0]['processes'][0]
assert (p['host'], p['rank'], p['program']) == ('$host', 3, 'app'), p" "$made")"
for variable in OMPI_COMM_WORLD_RANK PMI_RANK SLURM_PROCID; do
    run BATCHLAPACK_REPORT=rank-%r.json $variable=12 ./app cpu dgetrf 5 1
    check rank-$variable "$(went 0)$(rm rank-12.json 2>&1)"
done
run BATCHLAPACK_REPORT=rank-%r.json ./app cpu dgetrf 5 1
check rank-none "$(went 0)$(rm rank-0.json 2>&1)"

run BATCHLAPACK_REPORT=gpu.json BATCHLAPACK_MODE=gpu ./app dgetrf 20 3 dgetrf 100 2 dpotrf 90 4
check json-gpu "$(went 0)$(python3 -m json.tool gpu.json 2>&1 >/dev/null)$(py "$consistent
x = routine(d[0], 'dgetrf')
assert (x['calls'], x['gpu'], x['cpu']) == (5, 5, {}), x
assert [(s['smallest'], s['largest'], s['gpu']['calls']) for s in x['sizes']] == [(20, 20, 3), (100, 100, 2)]
assert abs(x['sizes'][1]['gpu']['operations'] - 2 * 2 / 3 * 100**3) < 1e4, x
assert x['sizes'][1]['gpu']['predicted_other_seconds'] > 0
p = d[0]['processes'][0]
assert 'mock' in p['device'] and p['why_none'] is None, p
assert p['options']['MODE'] == 'gpu' and p['options']['REPORT'] == 'gpu.json', p
assert p['options']['TUNE'] is None and p['options']['DEVICE'] == 0, p
assert d[0]['batchlapack']" gpu.json)"
run BATCHLAPACK_REPORT=cpu.json BATCHLAPACK_MODE=cpu ./app dgesv 30 3 query 10 2 dgesv 0 1
check json-cpu "$(went 0)$(py "$consistent
x = routine(d[0], 'dgesv')
assert (x['calls'], x['gpu'], x['cpu']) == (4, 0, {'mode cpu': 3, 'empty': 1}), x
assert routine(d[0], 'dgetrf')['nested'] >= 3, d
assert routine(d[0], 'dgetri')['cpu'] == {'workspace query': 2}, d
assert routine(d[0], 'dgetri')['sizes'] == [], d
p = d[0]['processes'][0]
assert p['device'] is None and p['why_none'], p" cpu.json)"
run BATCHLAPACK_REPORT=sizes.json ./app cpu $(for n in {1..70}; do echo dgetrf $n 1; done)
check sizes "$(went 0)$(py "$consistent
assert len(routine(d[0], 'dgetrf')['sizes']) == 12, d" sizes.json)"
run BATCHLAPACK_REPORT=both.json ./app cpu dgetrf 40 5 gpu dgetrf 40 7 threads
check both-sides "$(went 0)$(py "$consistent
x = routine(d[0], 'dgetrf')
assert x['calls'] == 5 + 7 + 1600, x
s = next(s for s in x['sizes'] if s['smallest'] == 40)
assert (s['cpu']['calls'], s['gpu']['calls']) == (5, 7), s" both.json)"
run BATCHLAPACK_REPORT=query.json ./app query 10 1
check no-eligible-call "$(went 0)$(ls query.json* 2>/dev/null)"
run BATCHLAPACK_REPORT=never.json /bin/true
check no-call "$(went 0)$(ls never.json* 2>/dev/null)"
run BATCHLAPACK_REPORT=0 ./app gpu dgetrf 5 1
check off "$(went 0)$(ls 0 2>/dev/null)"
run BATCHLAPACK_REPORT=1 ./app gpu dgetrf 5 1
check table "$(grep -q '^dgetrf  *1 ' err || brief err)$(ls 1 2>/dev/null)"
run BATCHLAPACK_REPORT= BATCHLAPACK_MODE= BATCHLAPACK_THREADS= ./app gpu dgetrf 5 1
check empty-is-unset "$(went 0)"
run BATCHLAPACK_THREADS=0 ./app gpu dgetrf 5 1
check threads-0 "$(went 0 'option BATCHLAPACK_THREADS=0 ignored: it takes N>0')"
mkdir elsewhere
run BATCHLAPACK_REPORT=here.json ./app cpu dgetrf 5 1 cd elsewhere dgetrf 5 1
check relative-name "$(went 0)$(ls here.json 2>&1 >/dev/null)"
cp app $'od"d\\ n\xc3\xa4me\xff'
run BATCHLAPACK_REPORT=odd.json ./$'od"d\\ n\xc3\xa4me\xff' cpu dgetrf 5 1
check odd-program-name "$(went 0)$(py "
assert d[0]['processes'][0]['program'] == 'od\"d\\\\ n\u00e4me\u00ff', d" odd.json)"
mkdir locales
if localedef -i de_DE -f UTF-8 locales/de_DE.UTF-8 2>/dev/null; then
    run LOCPATH="$T/locales" LC_ALL=de_DE.UTF-8 BATCHLAPACK_REPORT=locale.json \
        BATCHLAPACK_VERBOSE=locale.txt ./app locale cpu dgetrf 30 1
    check decimal-comma "$(went 0)$(py "$consistent" locale.json)$(grep , locale.txt)"
else
    echo 'skip decimal-comma - no localedef'
fi

# ---- fork ------------------------------------------------------------------------------
run BATCHLAPACK_REPORT=f-%p.json ./app gpu dgetrf 20 2 also-fork dpotrf 30 3
files=$(ls f-*.json)
check fork "$(went 0)$(py "$consistent
assert len(d) == 2, d
total = [sum(x['calls'] for x in r['routines']) for r in d]
assert sorted(total) == [3, 5], total
child = d[total.index(3)]
assert routine(child, 'dpotrf')['cpu'] == {'forked child': 3}, child" $files)"
rm f-*
run BATCHLAPACK_REPORT=f-%p.json ./app cpu dgetrf 20 2 also-fork
check fork-without-calls "$(went 0)$([ "$(ls f-* | wc -l)" -eq 1 ] || ls f-*)"
rm f-*
run BATCHLAPACK_REPORT=f.json ./app cpu dgetrf 20 2 also-fork dgetrf 20 1
check fork-one-name "$(went 0)$(py "$consistent
assert routine(d[0], 'dgetrf')['calls'] == 3, d" f.json)$(ls f.json.* 2>/dev/null)"

# ---- names that cannot be written --------------------------------------------------------
# refused NAME PATTERN: said once, the exit status kept.
refused() {
    run BATCHLAPACK_REPORT="$2" ./app cpu dgetrf 20 2 exit 7
    check "$1" "$(went 7 "$3")"
}
refused no-directory /nonexistent/x 'no report is written to /nonexistent/x: No such file'
refused device /dev/full '/dev/full: it is not a regular file'
check device-kept "$([ -c /dev/full ] || echo gone)"
refused directory elsewhere "$T/elsewhere: it is not a regular file"
refused below-a-file app/x 'app/x: Not a directory'
refused long-name "$(printf 'x%.0s' {1..5000})" 'the name is too long'
refused long-part "$(printf 'x%.0s' {1..300})" 'File name too long'
echo 'input of the program' >input
refused foreign-file input 'is not batchlapack'
check foreign-file-kept "$([ "$(<input)" = 'input of the program' ] || brief input)"
ln -s input link
refused link link 'not a regular file'
check link-kept "$([ -L link ] && [ "$(<input)" = 'input of the program' ] || brief input)"
mkfifo fifo
refused fifo fifo 'not a regular file'
cp gpu.json open.json
run BATCHLAPACK_REPORT=open.json ./app open open.json cpu dgetrf 20 2
check file-in-use "$(went 0 'the program uses this file')$(cmp open.json gpu.json)"
: >empty
run BATCHLAPACK_REPORT=empty ./app cpu dgetrf 20 2
check empty-file "$(went 0)$(py "$consistent" empty)"
run BATCHLAPACK_REPORT=gpu2.json ./app cpu dgetrf 20 2
run BATCHLAPACK_REPORT=gpu2.json ./app cpu dgetrf 20 4
check own-file-replaced "$(went 0)$(py "$consistent
assert routine(d[0], 'dgetrf')['calls'] == 4, d" gpu2.json)"
run BATCHLAPACK_REPORT=limited.json bash -c 'ulimit -f 1 && exec ./app cpu dgetrf 20 2 dgetrf 40 1 dgetrf 80 1 exit 7'
check file-size-limit "$(went 7 'File too large')$(ls limited* 2>/dev/null)"
run BATCHLAPACK_REPORT=closed.json sh -c 'exec ./app cpu dgetrf 20 2 >&- 2>&- <&-'
check closed-descriptors "$(went 0)$(py "$consistent" closed.json)"
check nothing-left-over "$(ls -A | grep -E 'json\.|[0-9]-[0-9a-f]{6,}$')"

# ---- BATCHLAPACK_VERBOSE -----------------------------------------------------------------
line='^batchlapack: [sdcz][a-z]+ m=[0-9]+ n=[0-9]+( nrhs=[0-9]+)? (GPU|CPU \([A-Za-z -]+\)) [0-9]+\.[0-9]{3} ms$'
run BATCHLAPACK_VERBOSE=1 ./app gpu dgetrf 20 2 cpu dgesv 10 1
check verbose "$([ "$(grep -Ec "$line" err)" -eq 3 ] && [ "$(wc -l <err)" -eq 3 ] || brief err)"
check verbose-where "$(grep -c 'dgetrf m=20 n=20 GPU' err | grep -v '^2$')$(
    grep -q 'dgesv m=10 n=10 nrhs=1 CPU (mode cpu)' err || brief err)"
run BATCHLAPACK_VERBOSE=v-%h-%r-%p ./app gpu dgetrf 20 2 also-fork dgetrf 10 3
check verbose-file "$(went 0)$([ "$(ls v-"$host"-0-* | wc -l)" -eq 2 ] || ls v-*)$(
    [ "$(cat v-* | grep -Ec "$line")" -eq 8 ] || brief <(cat v-*))"
check verbose-advice "$(cat v-* | grep -Ev "$line" | grep -v '^batchlapack: forked child: .*exec')$(
    [ "$(cat v-* | wc -l)" -eq 9 ] || wc -l v-*)"
for mode in gpu cpu; do
    run BATCHLAPACK_VERBOSE=threads-$mode ./app $mode threads
    check verbose-threads-$mode "$(went 0)$(grep -Ev "$line" threads-$mode | head -3)$(
        [ "$(wc -l <threads-$mode)" -eq 1600 ] || wc -l threads-$mode)"
done
for i in 1 2 3 4; do
    LD_PRELOAD=$lib BATCHLAPACK_VERBOSE=together ./app cpu dgetrf 9 300 2>>together.err &
done
wait
check verbose-processes "$(grep -Ev "$line" together | head -3)$([ "$(wc -l <together)" -eq 1200 ] ||
    wc -l together)$(cat together.err)"
for name in /nonexistent/x /dev/full elsewhere input; do
    run BATCHLAPACK_VERBOSE=$name ./app cpu dgetrf 20 5 exit 7
    check "verbose-refused-${name##*/}" "$(went 7 'no lines are written to .*: ')"
done
check verbose-input-kept "$([ "$(<input)" = 'input of the program' ] || brief input)"
run BATCHLAPACK_VERBOSE=limited.txt bash -c 'ulimit -f 1 && exec ./app cpu dgetrf 5 100 exit 7'
check verbose-size-limit "$(went 7 'File too large')"
run BATCHLAPACK_VERBOSE=reopened ./app cpu dgetrf 5 2 close-all dgetrf 5 3
check verbose-closed "$(went 0)$(wc -l <reopened | grep -v '^5$')"
run BATCHLAPACK_VERBOSE=taken ./app cpu dgetrf 5 2 take-all own dgetrf 5 3
check verbose-descriptor-taken "$(went 0)$(cat own)$(wc -l <taken | grep -v '^5$')"
run BATCHLAPACK_ENGINE=/nowhere/engine.so BATCHLAPACK_VERBOSE=1 ./app gpu dgetrf 20 3
check verbose-no-engine "$([ "$(grep -c 'no GPU used: the engine is not installed: no /nowhere/engine.so. Set BATCHLAPACK_ENGINE' err)" -eq 1 ] ||
    brief err)$([ "$(grep -Ec "$line" err)" -eq 3 ] || brief err)"

# The same words in all four places.
why='no GPU used: the engine is not installed: no /nowhere/engine.so'
run BATCHLAPACK_ENGINE=/nowhere/engine.so BATCHLAPACK_REPORT=1 ./app cpu dgetrf 20 1
check no-gpu-mode "$(grep -q "process [0-9]*: $why\$" err || brief err)"
run BATCHLAPACK_ENGINE=/nowhere/engine.so BATCHLAPACK_REPORT=1 ./app gpu dgetrf 20 1
check no-gpu-table "$(grep -q "process [0-9]*: $why\$" err || brief err)$(
    grep -q '1 on the CPU: no GPU used$' err || brief err)"
run BATCHLAPACK_ENGINE=/nowhere/engine.so BATCHLAPACK_REPORT=none.json ./app gpu dgetrf 20 1
report none.json
check no-gpu-json "$(grep -qx "$why" out || brief out)$(py "
assert routine(d[0], 'dgetrf')['cpu'] == {'no GPU used': 1}, d" none.json)"
run BATCHLAPACK_MODE=cpu BATCHLAPACK_REPORT=1 ./app dgetrf 20 1
check no-gpu-reason "$(grep -q 'process [0-9]*: no GPU used: mode cpu$' err || brief err)$(
    grep -q '1 on the CPU: mode cpu$' err || brief err)"

# ---- batches of which nothing runs -------------------------------------------------------
batched='[sdcz][a-z_]+ m=-?[0-9]+ n=-?[0-9]+ batch=-?[0-9]+ CPU'
for mode in cpu gpu; do
    run BATCHLAPACK_VERBOSE=unrun-$mode BATCHLAPACK_REPORT=unrun-$mode.json \
        ./app $mode batch 5 2 batch 5 0 batch 0 2 batch -1 2 batch 5 -1 no-batch 5 2 no-groups 0 0 \
        no-groups -1 0
    check unrun-report-$mode "$([ $status -eq 0 ] || brief err)$(py "$consistent
x = routine(d[0], 'dgetrf_batch_strided')
assert x['calls'] == 6 and x['gpu'] == ('$mode' == 'gpu'), x
assert x['cpu'] == {'empty': 2, 'illegal argument': 3} | ({} if x['gpu'] else {'mode cpu': 1}), x
assert routine(d[0], 'dgetrf_batch')['cpu'] == {'empty': 1, 'illegal argument': 1}, d" unrun-$mode.json)"
    check unrun-verbose-$mode "$([ "$(grep -Ec "$batched \(empty\)" unrun-$mode)" -eq 3 ] &&
        [ "$(grep -Ec "$batched \(illegal argument\)" unrun-$mode)" -eq 4 ] || brief unrun-$mode)"
    check unrun-sizes-$mode "$(for said in 'm=-1 n=-1 batch=2' 'm=5 n=5 batch=-1' 'm=5 n=5 batch=0'; do
        grep -q "dgetrf_batch_strided $said CPU" unrun-$mode || echo "no $said"
    done)"
done

# ---- many files --------------------------------------------------------------------------
for r in 0 1 2 3; do
    LD_PRELOAD=$lib BATCHLAPACK_ENGINE=$MOCK OMPI_COMM_WORLD_RANK=$r \
        BATCHLAPACK_REPORT=job-%r.json ./app cpu dgetrf 10 $((30 + r)) dgetrf $((60 + 10 * r)) 5 \
        dgesv 20 $((r + 1)) gpu dgetrf 100 $((3 * r + 1)) dgetrf 200 2 dpotrf 150 $((r + 2)) &
done
wait
report --json job-?.json
cp out merged.json
check merge "$(went 0)$(py "$consistent
sums = {}
for r in d[1:]:
    for place, n in plain(r).items():
        sums[place] = sums.get(place, 0) + n
assert plain(d[0]) == sums, 'the sums differ'
assert [p['rank'] for p in d[0]['processes']] == [0, 1, 2, 3], d[0]['processes']
assert d[0]['processes'] == [r['processes'][0] for r in d[1:]]
for x in d[0]['routines']:
    for s in x['sizes']:
        parts = [z for r in d[1:] for y in r['routines'] if y['routine'] == x['routine']
                 for z in y['sizes'] if z['from'] == s['from']]
        assert s['smallest'] == min(z['smallest'] for z in parts)
        assert s['largest'] == max(z['largest'] for z in parts)" merged.json job-?.json)"
"$reporter" --json job-0.json job-3.json >part1.json && "$reporter" --json job-1.json job-2.json >part2.json
"$reporter" --json part1.json part2.json >whole.json
check merge-of-merged "$(py "assert plain(d[0]) == plain(d[1])" merged.json whole.json)"
report job-?.json
check merge-table "$(went 0)$(py "
rows = {w[0]: w for w in (l.split() for l in open('out')) if len(w) > 8 and w[1].isdigit()}
for x in d[0]['routines']:
    if x['calls']:
        w = rows[x['routine']]
        assert [int(n) for n in w[1:4]] == [x['calls'], x['gpu'], sum(x['cpu'].values())], w
        for i, side in (4, 'gpu'), (5, 'cpu'):
            s = sum(z[side]['seconds'] for z in x['sizes'])
            assert (w[i] == '-') == (s == 0) and (s == 0 or abs(float(w[i]) - s) < 1e-4), w
assert int(rows['total'][1]) == sum(x['calls'] for x in d[0]['routines']), rows
" merged.json)"
check merge-heading "$(grep -q "4 processes of app on $host, ranks 0 to 3" out || brief out)"

# ---- what the GPU saved, worked out by hand -----------------------------------------------
# At 100, a second on the CPU for what took the GPU two; at 1000 the model's five for one.
side() {
    echo "{\"calls\":$1,\"seconds\":$2,\"operations\":$3,\"predicted_other_seconds\":$4}"
}
cat >hand.json <<J
{"batchlapack": "9", "later": {"x": [1, {"y": null}], "z": "\\u00e4\\n"},
 "processes": [{"program": "hand", "new": true, "rank": 0, "device": "a card", "start_up_seconds": 0.5}],
 "routines": [{"routine": "dgetrf", "calls": 21, "gpu": 11, "cpu": {"below the threshold": 10},
  "sizes": [
   {"from": 91, "smallest": 100, "largest": 100, "cpu": $(side 10 1.0 1e9 77), "gpu": $(side 10 2 1e9 77)},
   {"from": 725, "smallest": 1000, "largest": 1000, "cpu": $(side 0 0 0 0), "gpu": $(side 1 1.0 1e10 5.0)}]}]}
J
report --threshold dgetrf=50 --threshold=dgetrf=5000 --threshold dgesv=3 hand.json
row='dgetrf +21 +11 +10 +3\.0000 +1\.0000 +3\.0000 both +n = 1000 +1\.0000 measured'
check saved "$(went 0)$(grep -Eq "^$row\$" out || brief out)"
check thresholds "$(grep -qx 'dgetrf from n = 50 on the GPU: 5.0000 s instead of 4.0000 s, would have cost 1.0000 s (measured)' out ||
    tail -3 out)$(grep -qx 'dgetrf from n = 5000 on the GPU: 7.0000 s instead of 4.0000 s, would have cost 3.0000 s (both)' out ||
    tail -3 out)$(grep -qx 'dgesv: no calls' out || tail -3 out)"

# ---- plots ---------------------------------------------------------------------------------
if command -v gnuplot >/dev/null; then
    report -o plot.svg job-?.json
    check plot-svg "$(went 0)$(grep -q '</svg>' plot.svg || echo 'no svg')$(
        for text in calls time 'on the CPU' 'on the GPU' dgetrf dpotrf 'larger dimension'; do
            grep -q "$text" plot.svg || echo "no '$text' in it"
        done)$(python3 -c 'import sys, xml.dom.minidom as x; x.parse("plot.svg")' 2>&1)"
    report -o plot.png job-?.json
    check plot-png "$(went 0)$([ "$(head -c 4 plot.png)" = $'\x89PNG' ] &&
        [ "$(stat -c %s plot.png)" -gt 4000 ] || ls -l plot.png)"
    report -o quote\'d.svg odd.json sizes.json hand.json
    check plot-odd-names "$(went 0)$(ls quote\'d.svg 2>&1 >/dev/null)"
    report -o /nonexistent/plot.svg hand.json
    check plot-unwritable "$([ $status -eq 1 ] && grep -q 'could not write /nonexistent/plot.svg' err || brief err)"
else
    echo 'skip plot - no gnuplot'
fi
PATH=$T/elsewhere "$reporter" -o plot2.svg hand.json >out 2>err
status=$?
check plot-without-gnuplot "$(went 1 'gnuplot is not installed')$(grep -q '^dgetrf' out || brief out)"
report -o plot.pdf hand.json
check plot-ending "$(went 2 'must end in .svg or .png')"

# ---- bad input -----------------------------------------------------------------------------
# skipped NAME FILE PATTERN: named and skipped, the other file counted.
skipped() {
    report "$2" gpu.json
    check "$1" "$(went 1 "batchlapack-report: $2 skipped: .*$3")$(grep -q '^dgetrf  *5 ' out || brief out)"
}
skipped malformed-text app.c 'line 1: an object is expected'
skipped malformed-binary app 'line 1'
skipped malformed-none missing.json 'No such file'
skipped malformed-directory elsewhere 'Is a directory'
printf '' >blank
skipped malformed-empty blank 'line 1: an object is expected'
echo '{"a": 1}' >other.json
skipped malformed-other other.json 'it is no report of batchlapack'
sed 's/"calls": 3/"calls": -3/' gpu.json >negative.json
skipped malformed-negative negative.json 'negative'
sed 's/"calls": 3/"calls": "3"/' gpu.json >text.json
skipped malformed-type text.json 'line [0-9]+: a number is expected'
sed 's/"smallest": 20/"smallest": 2/' gpu.json >range.json
skipped malformed-size range.json 'range'
(cat gpu.json && echo '{}') >twice.json
skipped malformed-tail twice.json 'more after the end'
python3 -c 'print("{\"batchlapack\": \"1\", \"x\": " + "[" * 100000)' >deep.json
skipped malformed-deep deep.json 'too deeply'
# Every beginning of a file, and a thousand files with some bytes changed: refused or read,
# and no other way out.
check malformed-anything "$(python3 - "$reporter" gpu.json 2>&1 <<'P'
import random, subprocess, sys
whole = open(sys.argv[2], 'rb').read().rstrip()
def run(data):
    open('mutant', 'wb').write(data)
    return subprocess.run([sys.argv[1], 'mutant'], capture_output=True)
for n in range(0, len(whole), 7):
    p = run(whole[:n])
    assert p.returncode == 1 and p.stderr.count(b'\n') == 1, (n, p)
random.seed(1)
for i in range(300):
    data = bytearray(whole)
    for k in range(random.randint(1, 5)):
        data[random.randrange(len(data))] = random.randrange(256)
    p = run(bytes(data))
    assert p.returncode in (0, 1), (i, p)
P
)"
sed 's/"calls": 3/"calls": 18446744073709551615/; s/"seconds": 0\.[0-9]*/"seconds": 18446744072.5/' \
    gpu.json >huge.json
report --json huge.json huge.json gpu.json
check huge "$(went 0)$(cp out huge2.json && py "
s = routine(d[0], 'dgetrf')['sizes'][0]['gpu']
assert s['calls'] == 2**64 - 1, s
assert json.loads(open('huge2.json').read(), parse_float=str), s
assert s['seconds'] >= 18446744072, s" huge2.json)"
report huge.json gpu.json
check huge-table "$(went 0)$(grep -q '^dgetrf' out || brief out)"
sed 's/"calls": 3/"calls": 99999999999999999999999999/' gpu.json >huger.json
report --json huger.json
check huger "$(went 0)$(cp out huge2.json && py "
assert routine(d[0], 'dgetrf')['sizes'][0]['gpu']['calls'] == 2**64 - 1" huge2.json)"

# ---- its command line ------------------------------------------------------------------------
# usage NAME STATUS PATTERN ARGUMENTS...
usage() {
    report "${@:4}"
    check "$1" "$(went "$2" "$3")"
}
usage usage-no-file 2 'no file named'
usage usage-unknown 2 'unknown option --what' --what hand.json
usage usage-no-value 2 'option -o needs a value' hand.json -o
usage usage-threshold 2 'it takes a routine and a size' --threshold dgetrf hand.json
usage usage-threshold-negative 2 'it takes a routine and a size' --threshold dgetrf=-1 hand.json
report --help
check usage-help "$(went 0)$(grep -q -- '--threshold ROUTINE=N' out || brief out)"
report --version
check usage-version "$(went 0)$(grep -Eqx 'batchlapack-report [^ ]+' out || brief out)"
cp hand.json ./-o.json
report -- -o.json
check usage-dashes "$(went 0)$(grep -q '^dgetrf' out || brief out)"
"$reporter" hand.json >/dev/full 2>err
status=$?
check usage-full "$(went 1 'cannot write the table')"

exit $failed
