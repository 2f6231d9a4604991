#!/bin/bash
# The options table in README and in the man page is options.def's.
exec "$SRC/doc/options-table" --check
