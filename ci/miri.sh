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
    cargo +"$NIGHTLY" miri test --no-fail-fast -p percpu -p hp -p rcu-lite -p refcounts --lib --target-dir target-miri
# Whole scenarios are slow: fewer. (Named one by one, because `--tests` would
# run the units again, and a pattern fails where it matches nothing.)
for folder in percpu hp rcu-lite bench-suite/refcounts; do
    package=$(basename "$folder")
    tests=()
    for file in "$folder"/tests/*.rs; do
        [[ -f $file ]] && tests+=(--test "$(basename "$file" .rs)")
    done
    if ((${#tests[@]})); then
        # The scenarios of rcu-lite take minutes each: one.
        seeds=0..2
        [[ $package == rcu-lite ]] && seeds=0..1
        MIRIFLAGS="$flags -Zmiri-many-seeds=$seeds" \
            cargo +"$NIGHTLY" miri test --no-fail-fast -p "$package" "${tests[@]}" --target-dir target-miri
    fi
done
