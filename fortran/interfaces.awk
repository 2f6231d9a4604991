# Print the Fortran interfaces of every batched routine: what fortran/batchlapack.f90
# includes. Read: src/routines.def, whose rows B_SDCZ(name, NAME, OPERATION, count,
# "letters") say each routine's arguments, a letter an argument. Run by the Makefile as
#
#     awk -f fortran/interfaces.awk src/routines.def > batchlapack_interfaces.inc
#
# A strided routine dxxx gets two bodies for each kind of integer: one whose arrays have
# rank 1, under its own name, and one whose arrays have their natural rank (matrices 3, IPIV
# 2). The standard wants two binding labels for the two, which the library has: with and
# without an underscore. The generic name xxx has all of them. Of groups, arrays of pointers
# have no kind: dxxx is itself generic, over the kinds of integers.

BEGIN {
    split("s d c z", precision, " ")
    split("real(c_float) real(c_double) complex(c_float_complex) complex(c_double_complex)",
        element, " ")
    split("real(c_float) real(c_double) real(c_float) real(c_double)", real_of, " ")
    split("c_int32_t c_int64_t", integer_kind, " ")
    name_of["m"] = "m"; name_of["n"] = "n"; name_of["r"] = "nrhs"
    name_of["u"] = "uplo"; name_of["t"] = "trans"
    name_of["a"] = name_of["A"] = "a"; name_of["B"] = "b"; name_of["X"] = "ainv"
    name_of["p"] = name_of["P"] = "ipiv"; name_of["D"] = "phase"; name_of["G"] = "logabs"
    name_of["k"] = "batch_size"; name_of["g"] = "group_count"; name_of["z"] = "group_size"
    name_of["i"] = "info"
}

# The names of the arguments, into argument[]: l and s are of the array before them.
function read_arguments(letters,    i, letter) {
    count = length(letters)
    for (i = 1; i <= count; i++) {
        letter = substr(letters, i, 1)
        if (letter == "l")
            argument[i] = "ld" array
        else if (letter == "s")
            argument[i] = "stride_" array
        else if (letter in name_of)
            argument[i] = name_of[letter]
        else {
            print "interfaces.awk: unknown letter " letter " in " $0 >"/dev/stderr"
            exit 1
        }
        if (letter ~ /[aABXpP]/)
            array = argument[i]
    }
}

function declare(type, intent, name) {
    printf "      %s, intent(%s) :: %s\n", type, intent, name
}

# One interface body; shaped: arrays of their natural rank.
function body(fortran, label, letters, p, kind, groups, shaped,    i, letter, many, list) {
    for (i = 1; i <= count; i++)
        list = list (i > 1 ? ", " : "") argument[i]
    printf "    subroutine %s &\n        (%s) &\n", fortran, list
    printf "        bind(C, name='%s')\n", label
    print "      import"
    many = groups ? "(*)" : ""
    for (i = 1; i <= count; i++) {
        letter = substr(letters, i, 1)
        if (letter ~ /[mnrlsk]/)
            declare("integer(" kind ")", "in", argument[i] many)
        else if (letter == "g")
            declare("integer(" kind ")", "in", argument[i])
        else if (letter == "z")
            declare("integer(" kind ")", "in", argument[i] "(*)")
        else if (letter ~ /[ut]/)
            declare("character(kind=c_char)", "in", argument[i] many)
        else if (letter == "i")
            declare("integer(" kind ")", "inout", argument[i] "(*)")
        else if (letter == "D")
            declare(element[p], "inout", argument[i] "(*)")
        else if (letter == "G")
            declare(real_of[p], "inout", argument[i] "(*)")
        else if (groups)
            declare("type(c_ptr)", "in", argument[i] "(*)")
        else if (letter ~ /[pP]/)
            declare("integer(" kind ")", letter == "p" ? "in" : "inout",
                argument[i] (shaped ? "(1, *)" : "(*)"))
        else
            declare(element[p], letter == "a" ? "in" : "inout",
                argument[i] (shaped ? "(1, 1, *)" : "(*)"))
    }
    print "    end subroutine"
}

/^B_SDCZ\(/ {
    split($0, field, "\"")
    letters = field[2]
    routine = $0
    sub(/^B_SDCZ\(/, "", routine)
    sub(/,.*/, "", routine)
    read_arguments(letters)
    groups = letters ~ /g/
    if (!groups)
        print "  interface " routine
    for (p = 1; p <= 4; p++) {
        if (groups)
            print "  interface " precision[p] routine
        for (w = 1; w <= 2; w++) {
            symbol = precision[p] routine (w == 2 ? "_64" : "")
            body(symbol, symbol, letters, p, integer_kind[w], groups, 0)
            if (!groups)
                body(symbol "_shaped", symbol "_", letters, p, integer_kind[w], groups, 1)
        }
        if (groups)
            print "  end interface"
    }
    if (!groups)
        print "  end interface"
}
