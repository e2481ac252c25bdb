#!/usr/bin/env bash
# The portable rung under Miri: undefined behaviour, data races, leaks, and weak
# memory (a load may return an older store).
#
#   ci/miri.sh                 everything
#   CI_SECONDS=600 ci/miri.sh  what can begin in that time, drawn from the commit
source "$(dirname "$0")/common.sh"

need_nightly
need_component miri rust-src

# One line a part: package, seeds, and what of it (options of cargo). Units are small: more seeds
# (each has its own schedule and stale loads). Whole scenarios are slow: fewer,
# and those of rcu-lite take minutes each: one.
parts() {
    local folder package file seeds features
    for folder in percpu hp rcu-lite bench-suite/refcounts bench-suite/phash bench-suite/structures bench-suite/rwsems; do
        package=$(basename "$folder")
        features=
        [[ $package == hp ]] && features="--features structures "
        # (The units of structures are scenarios.)
        seeds=0..8
        [[ $package == structures ]] && seeds=0..1
        echo "$package $seeds $features--lib"
        seeds=0..2
        [[ $package == rcu-lite ]] && seeds=0..1
        for file in "$folder"/tests/*.rs; do
            [[ -f $file ]] && echo "$package $seeds $features--test $(basename "$file" .rs)"
        done
    done
}

# Tests that panic on purpose would print one each, which takes Miri seconds.
export RUST_BACKTRACE=0

not_run=()
status=0
while read -r package seeds what; do
    if ! in_time; then
        not_run+=("$package $what")
        continue
    fi
    echo "== $package $what, seeds $seeds"
    # A part that began in time gets some more to end.
    limit=0
    [[ -n ${CI_SECONDS:-} ]] && limit=$((CI_SECONDS - SECONDS > 0 ? CI_SECONDS - SECONDS + 240 : 240))
    ended=0
    # -Zmiri-disable-isolation: the code reads the clock and the environment.
    # shellcheck disable=SC2086 # words
    MIRIFLAGS="-Zmiri-disable-isolation -Zmiri-many-seeds=$seeds" \
        timeout "$limit" cargo +"$NIGHTLY" miri test --no-fail-fast -p "$package" $what --target-dir target-miri </dev/null || ended=$?
    case $ended in
    0) ;;
    124) not_run+=("$package $what (cut off)") ;;
    *) status=1 ;;
    esac
done < <(parts | in_turn)
if ((${#not_run[@]})); then
    echo "NOT RUN for want of time; ci/miri.sh runs all:"
    printf '  %s\n' "${not_run[@]}"
fi
exit "$status"
