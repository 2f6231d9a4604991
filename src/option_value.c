/* What an option may be set to, by the grammar of options.def. The library, which ignores
 * what does not fit, and the launcher, which refuses it, both ask here.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "bl.h"

int bl_alternative(const char *values, const char *value)
{
    size_t length = strlen(value);
    for (int i = 0;; i++) {
        size_t n = strcspn(values, "|");
        if (n == length && strncmp(values, value, n) == 0)
            return i;
        if (!values[n])
            return -1;
        values += n + 1;
    }
}

static bool count(const char *value, bool bytes, int64_t *out)
{
    if (*value < '0' || *value > '9')
        return false;
    char *end;
    errno = 0;
    long long n = strtoll(value, &end, 10);
    int shift = 0;
    if (bytes && *end) {
        const char *unit = strchr("KMG", *end & ~0x20);
        if (!unit)
            return false;
        shift = 10 * (int)(unit - "KMG" + 1);
        end++;
    }
    if (errno || *end || n < 0 || n > INT64_MAX >> shift)
        return false;
    *out = (int64_t)n << shift;
    return true;
}

bool bl_option_value(const char *values, const char *value, int64_t *number, bool *text)
{
    *text = false;
    if (!*value)
        return false;
    if (strchr(values, '|')) {
        int file = bl_alternative(values, "FILE"), i = bl_alternative(values, value);
        i = i < 0 ? file : i;
        *text = i == file && i >= 0;
        *number = i;
        return i >= 0;
    }
    if (strcmp(values, "N") == 0 || strcmp(values, "BYTES") == 0)
        return count(value, *values == 'B', number);
    if (strcmp(values, "N>0") == 0)
        return count(value, false, number) && *number > 0;
    *text = true;
    return true;
}
