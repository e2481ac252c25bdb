#!/usr/bin/env bash
# The portable rung under Miri: undefined behaviour, data races, leaks, and weak
# memory (a load may return an older store).
source "$(dirname "$0")/common.sh"

need_nightly
need_component miri rust-src

# -Zmiri-disable-isolation: the code reads the clock and the environment.
# -Zmiri-many-seeds: one run a seed, each with its own schedule and stale loads.
flags="-Zmiri-disable-isolation"

# Units are small: more seeds.
MIRIFLAGS="$flags -Zmiri-many-seeds=0..8" \
    cargo +"$NIGHTLY" miri test --no-fail-fast -p percpu -p hp -p refcounts --lib --target-dir target-miri
# Whole scenarios are slow: fewer. (Named one by one, because `--tests` would
# run the units again, and a pattern fails where it matches nothing.)
tests=()
for file in percpu/tests/*.rs hp/tests/*.rs bench-suite/refcounts/tests/*.rs; do
    [[ -f $file ]] && tests+=(--test "$(basename "$file" .rs)")
done
if ((${#tests[@]})); then
    MIRIFLAGS="$flags -Zmiri-many-seeds=0..2" \
        cargo +"$NIGHTLY" miri test --no-fail-fast -p percpu -p hp -p refcounts "${tests[@]}" --target-dir target-miri
fi
