/* What bench/copies.so tells the program that loads it. */
#ifndef BL_BENCH_COPIES_H
#define BL_BENCH_COPIES_H

#include <stdbool.h>

struct copies {
    bool only; /* set by the program: no run is made, INFO is 0 */
    double
        arrived; /* seconds on the monotonic clock: all was there, of the last such run */
    unsigned long runs; /* so far */
};
#define COPIES_SYMBOL "copies"

#endif
