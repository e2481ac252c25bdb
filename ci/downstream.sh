#!/usr/bin/env bash
# A crate outside of the workspace that uses hp, as in the chapter "Verifying your
# own structure with loom": on threads, under loom, and with a planted bug, which
# the models must find.
source "$(dirname "$0")/common.sh"

unset LOOM_MAX_PREEMPTIONS LOOM_MAX_BRANCHES LOOM_MAX_DURATION LOOM_MAX_PERMUTATIONS
root=$PWD
cd docs/examples/loom-stack

cargo test --target-dir "$root/target"
RUSTFLAGS="--cfg loom" cargo test --release --test loom --target-dir "$root/target-loom" -- --show-output

echo "== with the planted bug"
log=$(mktemp)
trap 'rm -f "$log"' EXIT
if RUSTFLAGS="--cfg loom" cargo test --release --test loom --features planted --target-dir "$root/target-loom" >"$log" 2>&1; then
    cat "$log"
    echo "the planted bug was not found" >&2
    exit 1
fi
# Red for the right reason: not because it does not compile.
grep -E "Causality violation|use after free" "$log" || { cat "$log" >&2; exit 1; }
grep -E "^model .* failed: rung" "$log"
