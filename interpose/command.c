/* What batchlapack-run and batchlapack-report share: how they complain. */
#include "command.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

int complain(int code, const char *format, ...)
{
    va_list ap;
    va_start(ap, format);
    fprintf(stderr, "%s: ", program_invocation_short_name);
    vfprintf(stderr, format, ap);
    fputc('\n', stderr);
    va_end(ap);
    return code;
}

void *must(void *memory)
{
    if (!memory)
        exit(complain(2, "out of memory"));
    return memory;
}
