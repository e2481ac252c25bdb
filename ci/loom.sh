#!/usr/bin/env bash
# The loom models: every interleaving of small programs on the real code, with
# loom's atomics in place of the standard ones.
#
#   ci/loom.sh                all of them
#   ci/loom.sh models::l6     those whose name contains this
source "$(dirname "$0")/common.sh"

# A limit from the environment makes loom stop early and report success.
unset LOOM_MAX_PREEMPTIONS LOOM_MAX_BRANCHES LOOM_MAX_DURATION LOOM_MAX_PERMUTATIONS

# --release: the models execute millions of steps. --lib: the models are unit
# tests. A target directory of its own, because --cfg rebuilds everything.
# --show-output: each model says how many orders and iterations it ran, and
# whether its search was bounded. (ci/mutants.py runs the same tests, on a
# mutated copy.)
RUSTFLAGS="--cfg loom" \
    cargo test -p percpu -p hp -p rcu-lite -p refcounts -p phash -p rwsems --release --lib --target-dir target-loom \
    "${1:-models}" -- --show-output
