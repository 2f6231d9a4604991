#!/bin/bash
# What a user gets: the library is configured and installed into an empty prefix (without
# the engine, which others test), and C, C++, Fortran and CMake programs are built from the
# installed files only and run, on the engine that BATCHLAPACK_ENGINE names and on the CPU:
# among them the examples in README and in the man page. The man pages are read, and
# uninstalled nothing is left.
#
# Reads SRC, CC, CXX, FC, MOCK. Needs SRC/configure, in a tree that is not itself built in.
set -u
mock=${MOCK:-}
unset LD_PRELOAD "${!BATCHLAPACK_@}"
unset MAKEFLAGS MFLAGS MAKELEVEL DESTDIR
CC=${CC:-gcc} CXX=${CXX:-g++}
if [ ! -x "$SRC/configure" ] || [ -e "$SRC/config.status" ]; then
    echo 'skip install - needs a configure script, and a build outside the source tree'
    exit 0
fi
T=$(mktemp -d) || exit 2
trap 'chmod -R u+w "$T"; rm -rf "$T"' EXIT
P=$T/prefix
failed=0
check() { # NAME WHY: fails where WHY is not empty
    if [ -z "$2" ]; then
        echo "ok install-$1"
    else
        echo "not ok install-$1 - ${2//$'\n'/ | }"
        failed=1
    fi
}
brief() { # the last lines of a log, as one
    tail -n 5 "$1" | tr '\n' '|'
}
same() { # WANTED GOT: nothing if they are the same
    [ "$1" = "$2" ] || echo "printed '$2', not '$1'"
}

# ---- install -----------------------------------------------------------------------
mkdir "$T/build" && cd "$T/build" || exit 2
if ! { "$SRC/configure" --prefix="$P" --with-cuda=no CC="$CC" CXX="$CXX" FC="${FC:-}" &&
    make -j2 install; } >log 2>&1; then
    cat log
    check into-empty-prefix "$(brief log)"
    exit 1
fi
check configure-says-what-was-asked \
    "$(grep -Eq '^ *engine +not built: --with-cuda=no *$' log || grep engine log)"
wanted="bin/batchlapack-report bin/batchlapack-run include/batchlapack.h
    include/batchlapack/batchlapack.f90 include/batchlapack/batchlapack_interfaces.inc
    ${FC:+include/batchlapack/batchlapack.mod}
    lib/cmake/batchlapack/batchlapack-config.cmake
    lib/cmake/batchlapack/batchlapack-config-version.cmake lib/libbatchlapack.so
    lib/libbatchlapack.so.0 lib/libbatchlapack.so.0.0.0 lib/pkgconfig/batchlapack.pc"
installed=$(cd "$P" && find . ! -type d | sed 's,^\./,,' | grep -v '^share/man/' | sort)
# shellcheck disable=SC2086
check into-empty-prefix "$(diff <(printf '%s\n' $wanted | sort) <(echo "$installed"))"

# Installed elsewhere than configure was told, and moved from there: all is found again.
check into-another-prefix "$(make install prefix="$T/other" >log 2>&1 || brief log
    mv "$T/other" "$T/moved" && mkdir -p "$T/at" && cd "$T/at" || exit
    grep -rIlF -e "$P" -e "$T/other" "$T/moved"
    for said in --variable=libdir:lib --variable=includedir:include \
        --variable=fmoddir:include/batchlapack --variable=prefix:.; do
        same "$(realpath "$T/moved/${said#*:}")" "$(realpath "$(
            PKG_CONFIG_PATH=$T/moved/lib/pkgconfig pkg-config "${said%:*}" batchlapack)")"
    done
    same "$T/moved/lib/libbatchlapack.so.0.0.0" \
        "$("$T/moved/bin/batchlapack-run" printenv LD_PRELOAD)"
    command -v cmake >/dev/null || exit
    cat >CMakeLists.txt <<END
cmake_minimum_required(VERSION 3.13)
project(where NONE)
set_property(GLOBAL PROPERTY TARGET_SUPPORTS_SHARED_LIBS TRUE)
find_package(batchlapack REQUIRED)
foreach(property IMPORTED_LOCATION INTERFACE_INCLUDE_DIRECTORIES)
    get_target_property(value batchlapack::batchlapack \${property})
    message("got \${value}")
endforeach()
END
    same "got $T/moved/lib/libbatchlapack.so got $T/moved/include;$T/moved/include/batchlapack" \
        "$(cmake -S . -B made -DCMAKE_PREFIX_PATH="$T/moved" 2>&1 | grep '^got' | paste -sd ' ')")"

# From here on nothing but the prefix is known to the compilers.
mkdir "$T/clients" && cd "$T/clients" || exit 2
export PKG_CONFIG_PATH=$P/lib/pkgconfig LD_LIBRARY_PATH=$P/lib
export BATCHLAPACK_ARITHMETIC=exact
[ -z "$mock" ] || export BATCHLAPACK_ENGINE=$mock
version=$("$P/bin/batchlapack-run" --version | grep -oE '[0-9.]+$')
# Debian's pkg-config knows where compilers look by themselves and leaves that out.
read -ra flags <<<"$(pkg-config --cflags --libs batchlapack)"
check pkg-config "$(same "$version" "$(pkg-config --modversion batchlapack)")"

# example FILE BEGINNING: the lines between its marks, without their indentation.
example() {
    sed -n "/$2 begin/,/$2 end/p" "$1" | sed '1d;$d;s/^    //'
}
# runs NAME WANTED COMMAND...: the same output whichever side the calls run on.
runs() {
    local name=$1 want=$2 mode got
    shift 2
    for mode in auto gpu cpu; do
        got=$(BATCHLAPACK_MODE=$mode "$@" 2>&1) || got="$got (exit status $?)"
        check "$name-$mode" "$(same "$want" "$got")"
    done
}
# built NAME COMMAND...
built() {
    local name=$1
    shift
    "$@" >"$name.log" 2>&1 || {
        check "$name" "$(brief "$name.log")"
        return 1
    }
    [ ! -s "$name.log" ] || check "$name-warnings" "$(brief "$name.log")"
}

# ---- C -----------------------------------------------------------------------------
strict="-Wall -Wextra -Wpedantic -Wshadow -Wstrict-prototypes -Werror"
example "$SRC/README.md" example.c >example.c
out=$(example "$SRC/README.md" 'example.c output')
for std in c99 c11 gnu17; do
    # shellcheck disable=SC2086
    built c-$std $CC -std=$std $strict example.c "${flags[@]}" -o example-$std &&
        runs c-$std-readme "$out" ./example-$std
done
sed 's/int n = /int64_t n = /; s/int ipiv/int64_t ipiv/; s/, info\[i\])/, (int)info[i])/' \
    example.c >wide.c
# shellcheck disable=SC2086
built c-ilp64 $CC -std=c99 $strict -DBATCHLAPACK_ILP64 wide.c "${flags[@]}" -o wide &&
    runs c-ilp64 "$out" ./wide
sed 's/dgesv_batch_strided/dgesv_batch_strided_64/' wide.c >wide64.c
# shellcheck disable=SC2086
built c-64 $CC -std=c99 $strict wide64.c "${flags[@]}" -o wide64 &&
    runs c-64 "$out" ./wide64

# Every row of the table is declared with as many arguments, and links.
rows() { # SUFFIX: name and number of arguments, for the four precisions
    sed -n 's/^B_SDCZ(\([a-z_]*\), [A-Z_]*, [A-Z_]*, \([0-9]*\), .*/\1 \2/p' \
        "$SRC/src/routines.def" | while read -r name count; do
        for p in s d c z; do echo "$p$name$1 $count"; done
    done
}
declared=$(echo '#include <batchlapack.h>' | $CC -E -P -x c "${flags[@]}" - | tr '\n' ' ' |
    tr ';' '\n' | sed -n 's/^ *void \([sdcz][a-z_0-9]*\) *(\(.*\)).*/\1 \2/p' |
    awk '{ print $1, gsub(/,/, ",") + 1 }')
check header-declares-the-table "$(diff <({ rows ''; rows _64; } | sort) \
    <(sort <<<"$declared"))"
{
    echo '#include <batchlapack.h>'
    echo 'typedef void any(void); extern any *const all[]; any *const all[] = {'
    awk '{ print "(any *)" $1 "," }' <<<"$declared"
    echo '}; int main(void) { return all[0] == 0; }'
} >all.c
built links-the-table $CC -Wall all.c "${flags[@]}" -o all && check links-the-table ''

# ---- C++ ---------------------------------------------------------------------------
cat >client.cc <<'END'
// The inverse and the determinant of i * [[0, 2], [1, 0]]: -i * [[0, 1], [1/2, 0]] and 2.
#include <batchlapack.h>
#include <cmath>
#include <cstdio>
int main()
{
    typedef std::complex<double> complex;
    const complex i(0, 1);
    complex a[] = {0, i, 2.0 * i, 0}, ainv[4], phase;
    double logabs;
    const int64_t n = 2, stride = 4, batch = 1;
    int64_t info = -1;
    batchlapack_set_stream(nullptr);
    zgeinv_batch_strided_64(&n, a, &n, &stride, ainv, &n, &stride, &batch, &info);
    std::printf("%d %g %g\n", (int)info, ainv[1].imag(), ainv[2].imag());
    zgedet_batch_strided_64(&n, a, &n, &stride, &phase, &logabs, &batch, &info);
    std::printf("%d %g %g\n", (int)info, phase.real(), std::exp(logabs));
    std::printf("%s %s\n", batchlapack_status_text(batchlapack_status()),
                batchlapack_version());
}
END
out=$(printf '0 -0.5 -1\n0 1 2\ndone %s' "$version")
for std in c++11 c++20; do
    built $std $CXX -std=$std -Wall -Wextra -Wpedantic -Wshadow -Werror client.cc \
        "${flags[@]}" -o client-$std && runs $std "$out" ./client-$std
done

# ---- Fortran -----------------------------------------------------------------------
if [ -n "${FC:-}" ]; then
    example "$SRC/README.md" example.f90 >example.f90
    out_fortran=$(example "$SRC/README.md" 'example.f90 output')
    built fortran $FC -Wall -Wextra -Werror -std=f2018 example.f90 "${flags[@]}" \
        -o fortran && runs fortran-readme "$out_fortran" ./fortran
    cp "$SRC/test/module.f90" "$SRC/test/module_body.inc" "$SRC"/fortran/examples/slater.* .
    built module $FC -std=f2018 module.f90 "${flags[@]}" -o module &&
        check module "$(./module | grep -v '^ok ')"
    built slater $FC -std=f2018 -O2 slater.f90 "${flags[@]}" -o slater &&
        check slater "$(./slater <slater.in | tail -n 1 | grep -vx ' PASS')"
    # Another compiler would compile the module itself: so must this one.
    fmoddir=$(pkg-config --variable=fmoddir batchlapack)
    mkdir own
    built own-module $FC -std=f2018 -Jown -c "$fmoddir/batchlapack.f90" -o own/module.o &&
        check own-module "$(cmp own/batchlapack.mod "$fmoddir/batchlapack.mod")"
    # The man page's: without a device that they know they run on the host.
    for model in openacc openmp; do
        example "$SRC/doc/batchlapack.7" $model.f90 | sed 's/\\-/-/g' >$model.f90
        built $model $FC -f$model $model.f90 "${flags[@]}" -o $model &&
            runs $model-manual " all solved: T" ./$model
    done
else
    echo 'skip install-fortran - no Fortran compiler'
fi

# ---- CMake -------------------------------------------------------------------------
if command -v cmake >/dev/null; then
    cat >CMakeLists.txt <<END
cmake_minimum_required(VERSION 3.13)
project(client C CXX ${FC:+Fortran})
find_package(batchlapack 0.1 REQUIRED)
add_executable(cmake-c example.c)
target_link_libraries(cmake-c PRIVATE batchlapack::batchlapack)
add_executable(cmake-cxx client.cc)
target_link_libraries(cmake-cxx PRIVATE batchlapack::batchlapack)
${FC:+add_executable(cmake-fortran example.f90)}
${FC:+target_link_libraries(cmake-fortran PRIVATE batchlapack::batchlapack)}
END
    if built cmake sh -c "cmake -S . -B cmake -DCMAKE_PREFIX_PATH='$P' >cmake.out &&
        cmake --build cmake >>cmake.out"; then
        runs cmake-c "$(example "$SRC/README.md" 'example.c output')" cmake/cmake-c
        runs cmake-cxx "$out" cmake/cmake-cxx
        [ -z "${FC:-}" ] || runs cmake-fortran "$out_fortran" cmake/cmake-fortran
    fi
    sed -i 's/batchlapack 0.1 /batchlapack 999 /' CMakeLists.txt
    check cmake-refuses-a-later-version "$(cmake -S . -B later -DCMAKE_PREFIX_PATH="$P" \
        2>&1 | grep -q 'is not compatible\|compatible with requested' || echo 'it did not')"
else
    echo 'skip install-cmake - no cmake'
fi

# ---- man pages ---------------------------------------------------------------------
if [ "$(command -v man groff col | wc -l)" -eq 3 ]; then
    export MANPATH=$P/share/man MANROFFOPT=-rHY=0 LC_ALL=C.UTF-8
    complaints=$(for page in "$SRC"/doc/*.[1-9]; do
        man --warnings=w -E UTF-8 -l -Tutf8 -Z "$page" 2>&1 >/dev/null
    done)
    check man-pages-are-clean "$complaints"
    check man-pages-for-all-routines "$({ rows ''; } | while read -r name count; do
        man -w 3 "$name" 2>/dev/null | grep -q . || echo "no $name(3)"
        man 3 "$name" 2>/dev/null | col -b | grep -q "${name#?}" ||
            echo "$name(3) is another"
    done)"
    check man-pages-hold-the-arguments "$(rows '' | grep ^d | while read -r name count; do
        got=$(man 3 "$name" | col -b | tr '\n' ' ' | grep -oE "void $name\([^)]*\)" |
            tr -cd , | wc -c)
        [ "$((got + 1))" -eq "$count" ] || echo "$name has $((got + 1)) arguments, not $count"
    done)"
else
    echo 'skip install-man-pages - no man, groff or col'
fi

# ---- uninstall ---------------------------------------------------------------------
make -C "$T/build" uninstall >log 2>&1
check uninstall-leaves-nothing "$(find "$P" ! -type d; ls -d "$P"/include/batchlapack \
    "$P"/lib/cmake/batchlapack 2>/dev/null)"
exit $failed
