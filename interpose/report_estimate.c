/* batchlapack-report: what calls would have taken on the other side.
 *
 * Measured where the same files hold calls of the routine on that side at sizes within a
 * factor of two: the rate of the nearest. Else the cost model of src/tune.c, which the
 * process asked while it counted. The start-up of the engine is no part of either. Calls
 * of one size, half an octave, stay together.
 */
#include <math.h>

#include "report.h"

#define NEAR 2.0

/* A size's place on the axis. */
static double middle(const struct size *s)
{
    return sqrt((double)s->smallest * (double)s->largest);
}

static double apart(const struct size *a, const struct size *b)
{
    double ratio = middle(a) / middle(b);
    return ratio > 1 ? ratio : 1 / ratio;
}

struct estimate elsewhere(const struct routine *r, const struct size *s, int side)
{
    const struct side *here = &s->side[side], *there = NULL;
    double nearest = NEAR * (1 + 1e-9);
    for (size_t i = 0; i < r->size_count; i++) {
        const struct side *other = &r->sizes[i].side[!side];
        double distance = apart(&r->sizes[i], s);
        if (other->operations > 0 && other->ns > 0 && distance < nearest) {
            nearest = distance;
            there = other;
        }
    }
    if (there)
        return (struct estimate){
            here->operations / there->operations * (double)there->ns * 1e-9, MEASURED};
    return (struct estimate){(double)here->other_ns * 1e-9, MODEL};
}

/* What is gained by moving a size's calls away from `side`. */
static void gain(struct estimate *sum, const struct routine *r, const struct size *s,
                 int side)
{
    if (s->side[side].calls == 0)
        return;
    struct estimate there = elsewhere(r, s, side);
    sum->seconds += (double)s->side[side].ns * 1e-9 - there.seconds;
    sum->by |= there.by;
}

struct estimate saved(const struct routine *r)
{
    struct estimate sum = {0, 0};
    for (size_t i = 0; i < r->size_count; i++)
        gain(&sum, r, &r->sizes[i], GPU);
    sum.seconds = 0 - sum.seconds;
    return sum;
}

struct estimate saved_from(const struct routine *r, double n)
{
    struct estimate sum = {0, 0};
    for (size_t i = 0; i < r->size_count; i++)
        gain(&sum, r, &r->sizes[i], middle(&r->sizes[i]) < n ? GPU : CPU);
    return sum;
}

double best_threshold(const struct routine *r)
{
    double best = INFINITY, most = saved_from(r, INFINITY).seconds;
    for (size_t i = r->size_count; i-- > 0;) {
        double n = (double)r->sizes[i].smallest, saves = saved_from(r, n).seconds;
        if (saves > most) {
            best = n;
            most = saves;
        }
    }
    return best;
}

double seconds_of(const struct routine *r, int side)
{
    double sum = 0;
    for (size_t i = 0; i < r->size_count; i++)
        sum += (double)r->sizes[i].side[side].ns * 1e-9;
    return sum;
}
