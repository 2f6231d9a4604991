#!/bin/bash
# The options table in README and in the man page is options.def's, README's figures are bench/results'.
"$SRC/bench/figures" --check && exec "$SRC/doc/options-table" --check
