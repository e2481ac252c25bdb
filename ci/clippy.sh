#!/usr/bin/env bash
# No warning of the compiler or of clippy.
source "$(dirname "$0")/common.sh"

# --all-targets: tests, examples and benches too. `-D warnings` behind `--`
# reaches the workspace's own crates only and keeps the build cache valid
# (RUSTFLAGS would rebuild every dependency).
cargo clippy --workspace --all-targets -- -D warnings
# What the feature adds. (Above hp is without it.)
cargo clippy -p hp --features structures --all-targets -- -D warnings

# What loom compiles: the models, and the crates on its primitives. (The tests on
# real threads do not build there.)
for profile in dev test; do
    RUSTFLAGS="--cfg loom" \
        cargo clippy -p percpu -p hp -p rcu-lite -p refcounts -p phash -p rwsems --lib --profile "$profile" \
        --target-dir target-loom -- -D warnings
done

# The portable build compiles other files (`section/none.rs`), and its own
# combinations of "used" and "unused". RUSTFLAGS is the only way to pass a
# --cfg, hence a target directory of its own.
RUSTFLAGS="--cfg percpu_portable" \
    cargo clippy -p percpu -p hp -p rcu-lite --features hp/structures --all-targets --target-dir target-portable -- -D warnings
