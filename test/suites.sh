#!/bin/bash
# Foreign test suites under the preload, every call forced onto the engine: what passed
# without us passes with us, and the report says that the engine really served the suite.
#
#   numpy-debian   numpy.linalg's own tests, Debian's numpy: dgesv_ and the like
#   numpy-wheel    the same of the PyPI wheel, with its LAPACK inside: scipy_dgesv_64_
#   scipy-wheel    scipy.linalg's own, the PyPI wheel: solving, inverses, LU, Cholesky and
#                  the wrappers of LAPACK: scipy_dgetrf_ and the like
#   octave         Octave's own tests of inv, det, chol, lu, pinv, mldivide and of every
#                  function in its folder linear-algebra
#   r              the examples of R's help pages, models that use LAPACK among them
#   lapacke        lapacke.c: row- and column-major, bit for bit what it gives without us
#
# Names on the command line choose. A program that is not there is skipped. Needed:
#   apt-get install --no-install-recommends python3-numpy python3-pytest
#       python3-hypothesis octave r-base-core liblapacke-dev
# (octave recommends an OpenBLAS, which would become the system's LAPACK), and for the
# wheels pip, or in $SUITES_CACHE/wheels those of numpy, SciPy, pytest, hypothesis and what
# they need, for the Python that $PYTHON is.
#
# Reads BUILD, SRC, CC; ENGINE where another engine than the one beside the library is
# meant; PYTHON (default: /usr/bin/python3); SUITES_CACHE (default: $BUILD/test/suites-cache);
# KEEP, a folder that gets what the suites wrote.
set -u
unset LD_PRELOAD "${!BATCHLAPACK_@}"
export OPENBLAS_NUM_THREADS=1 OMP_NUM_THREADS=1
CC=${CC:-gcc} PYTHON=${PYTHON:-/usr/bin/python3}
BUILD=$(cd "${BUILD:-.}" && pwd) SRC=$(cd "${SRC:-.}" && pwd) || exit 2
lib=$(realpath -e "$BUILD/.libs/libbatchlapack.so") || exit 2
cache=${SUITES_CACHE:-$BUILD/test/suites-cache}
mkdir -p "$cache" && cache=$(cd "$cache" && pwd) || exit 2
T=$(mktemp -d) || exit 2
trap '[ -z "${KEEP:-}" ] || cp -r "$T/." "$KEEP"; rm -rf "$T"' EXIT
cd "$T" || exit 2
failed=0

# suite NAME LEAST FUNCTION: the function without and with the preload, at the same time,
# each in a folder of its own. It runs the program as "${under[@]}" PROGRAM and writes "pass
# TEST" and "fail TEST" lines into the file `results`, which must be the same, and at least
# LEAST calls must have been served by the engine.
suite() {
    local name=$1 least=$2 begin=$SECONDS served bad=
    local under=(env)
    mkdir -p "$name/without" "$name/with"
    (cd "$name/without" && $3 >out 2>err) &
    local rc without=$!
    under+=(LD_PRELOAD="$lib" BATCHLAPACK_MODE=gpu BATCHLAPACK_ARITHMETIC=exact
        BATCHLAPACK_REPORT=1 ${ENGINE:+BATCHLAPACK_ENGINE="$ENGINE"})
    (cd "$name/with" && $3 >out 2>err)
    rc=$?
    wait $without
    local rc_without=$?
    [ $rc -eq $rc_without ] || bad+=" exit status $rc, without the preload $rc_without;"
    for side in without with; do
        sort "$name/$side/results" >"$name/$side/sorted"
    done
    served=$(awk '$1 ~ /^[sdcz](ge|po)/ && NF == 12 { n += $5 } END { print n + 0 }' \
        "$name/with/err")
    echo "# $name: $(grep -c '^pass' "$name/without/sorted") passed without the preload," \
        "$(grep -c '^pass' "$name/with/sorted") with;" \
        "$(grep -c '^fail' "$name/without/sorted") failed without," \
        "$(grep -c '^fail' "$name/with/sorted") with; $served calls on the engine," \
        "$((SECONDS - begin)) s"
    grep -E '^batchlapack|^[sdcz](ge|po)' "$name/with/err" | sed 's/^/# /'
    grep -q '^pass' "$name/without/sorted" || bad+=" no test ran: $(tail -n 1 "$name/without/err");"
    cmp -s "$name"/with*/sorted ||
        bad+=" results differ: $(diff "$name"/with{out,}/sorted | grep '^[<>]' | head -5 | tr '\n' ';')"
    [ "$served" -ge "$least" ] || bad+=" $served calls on the engine, less than $least;"
    if [ -n "$bad" ]; then
        echo "not ok $name -$bad"
        tail -n 5 "$name/with/err" | sed 's/^/# /'
        failed=1
    else
        echo "ok $name"
    fi
}

# ---- numpy -----------------------------------------------------------------------------
python_tests() { # MODULE...
    "${under[@]}" "$PYTHON" -m pytest -q -rA -p no:cacheprovider -p no:warnings --pyargs "$@"
    local rc=$?
    sed -nE 's,^(PASSED|FAILED|ERROR) (.*tests/test_|::),\1 ,
        s,^PASSED,pass,p; s,^(FAILED|ERROR) ([^ ]*).*,fail \2,p' out >results
    return $rc
}
numpy_tests() {
    python_tests numpy.linalg
}
numpy-debian() {
    local missing
    # The shell's own Python may have a numpy of its own: this one must be the system's.
    missing=$("$PYTHON" -c 'import pytest, hypothesis, numpy
assert "site-packages" not in numpy.__file__, "no numpy of the system"' 2>&1) || {
        echo "skip numpy-debian - $PYTHON: ${missing##*$'\n'}"
        return
    }
    suite numpy-debian 200000 numpy_tests
}
numpy-wheel() {
    wheel_suite numpy-wheel 200000 numpy_tests
}
wheel_suite() { # as suite
    if unpack_wheels; then
        PYTHONPATH=$cache/wheels/unpacked suite "$@"
    else
        echo "skip $1 - $(tail -n 1 fetch.log)"
    fi
}
# numpy, SciPy and what runs their tests, from PyPI. False, with the reason in fetch.log,
# when they cannot be fetched.
unpack_wheels() {
    local wheels=$cache/wheels pip=python3 wheel
    local into=$wheels/unpacked
    if ! ls "$wheels"/numpy-*.whl "$wheels"/scipy-*.whl >/dev/null 2>&1; then
        "$PYTHON" -m pip --version >/dev/null 2>&1 && pip=$PYTHON
        $pip -m pip download -q --only-binary=:all: -d "$wheels" --python-version \
            "$("$PYTHON" -c 'import sys; print("%d.%d" % sys.version_info[:2])')" \
            numpy==2.4.6 scipy==1.17.1 pytest hypothesis >fetch.log 2>&1 || return
        rm -rf "$into"
    fi
    [ ! -e "$into" ] || return 0
    for wheel in "$wheels"/*.whl; do
        "$PYTHON" -m zipfile -e "$wheel" "$into.part" >fetch.log 2>&1 || return
    done
    mv "$into.part" "$into"
}

# ---- SciPy -----------------------------------------------------------------------------
scipy_tests() {
    python_tests scipy.linalg.tests.test_{basic,decomp_cholesky,decomp_lu,lapack}
}
scipy-wheel() {
    wheel_suite scipy-wheel 4000 scipy_tests
}

# ---- R ---------------------------------------------------------------------------------
# A line a help page whose examples call LAPACK, directly or within a statistical model,
# with the digest of all they print. The CUDA engine promises the values of an inverse and
# not its bits: beside it the digest is left out.
r_tests() {
    local digest=
    case ${ENGINE:-} in *mock*) digest=yes ;; esac
    DIGEST=$digest "${under[@]}" Rscript --vanilla -e '
        pdf(NULL)
        pages <- list(base = c("solve", "chol", "chol2inv", "det", "kappa", "qr"),
                      stats = c("lm", "summary.lm", "glm", "summary.glm", "mahalanobis",
                                "factanal", "ar", "arima", "arima0", "predict.Arima",
                                "predict.lm", "predict.glm", "anova.lm", "aov", "TukeyHSD",
                                "manova", "SSD", "mauchly.test", "cancor", "confint",
                                "influence.measures", "step", "StructTS", "lsfit",
                                "se.contrast", "profile.nls", "SSlogis", "estVar"))
        for (p in names(pages)) for (page in pages[[p]]) {
            set.seed(1)
            result <- try(text <- capture.output(example(
                page, package = p, character.only = TRUE, ask = FALSE)), silent = TRUE)
            writeLines(text, "text")
            cat(if (inherits(result, "try-error")) "fail" else "pass", page,
                if (nzchar(Sys.getenv("DIGEST"))) tools::md5sum("text"), "\n",
                file = "results", append = TRUE)
        }'
}
r() {
    if ! command -v Rscript >/dev/null; then
        echo 'skip r - no Rscript'
        return
    fi
    suite r 100 r_tests
}

# ---- Octave ----------------------------------------------------------------------------
# A line a file: how many of its tests passed, and how many did not. A few fail over
# netlib's LAPACK, with us and without: inv (Inf (2)), chol, lscov.
octave_tests() {
    "${under[@]}" octave-cli -qf --eval '
        rand ("twister", 1); randn ("twister", 1);
        m = fileparts (which ("linsolve"));
        etc = fullfile (fileparts (fileparts (m)), "etc", "tests");
        builtin = strcat ({"inv", "det", "chol", "lu", "pinv"}, ".cc-tst");
        files = [fullfile(etc, "libinterp", "corefcn", builtin)(:);
                 fullfile(etc, "fixed", {"leftdiv.tst"; "diag-perm.tst"});
                 glob(fullfile (m, "*.m"))];
        results = fopen ("results", "w");
        for i = 1:numel (files)
          [n, most] = test (files{i}, "quiet", "log");
          [~, name] = fileparts (files{i});
          for k = 1:n fprintf (results, "pass %s %d\n", name, k); end
          for k = 1:most - n fprintf (results, "fail %s %d\n", name, k); end
        end
        fclose (results); exit (0)'
}
octave() {
    if ! command -v octave-cli >/dev/null; then
        echo 'skip octave - no octave-cli'
        return
    fi
    suite octave 150 octave_tests
}

# ---- LAPACKE ---------------------------------------------------------------------------
# A line a call. The CUDA engine promises the values of an inverse, which lapacke.c checks,
# and not its bits.
lapacke_tests() {
    local values='/^.(getri|potri)/s/ a=[^ ]*//'
    "${under[@]}" "$T/rows" >calls || return
    case ${ENGINE:-} in *mock*) values= ;; esac
    sed -nE "$values; s/.* info=/pass &/p" calls >results
}
lapacke() {
    if ! $CC -O2 -Wall "$SRC/test/lapacke.c" -o rows -llapacke -llapack -lm 2>cc.log; then
        echo "skip lapacke - $(grep -m1 -E 'error|cannot' cc.log)"
        return
    fi
    suite lapacke "$(./rows | awk '$1 == "calls" { print $2 }')" lapacke_tests
}

[ $# -gt 0 ] || set -- numpy-debian numpy-wheel scipy-wheel octave r lapacke
for name; do
    $name
done
exit $failed
