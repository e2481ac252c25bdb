#!/usr/bin/env bash
# The three libraries compile for platforms that this machine cannot run. Only
# the standard library of each target is needed: `check` does not link.
source "$(dirname "$0")/common.sh"

targets=(
    x86_64-pc-windows-gnu      # no libc, no rseq, no membarrier
    aarch64-apple-darwin       # Unix without membarrier
    x86_64-unknown-linux-musl  # Linux whose C library has no rseq symbols
    i686-unknown-linux-gnu     # 32-bit words
    aarch64-unknown-linux-gnu  # Linux without sections in this build
)

command -v rustup >/dev/null || skip "rustup is not installed, so no target can be added"
rustup target add "${targets[@]}" || skip "targets cannot be installed: ${targets[*]}"

# What is unused on another platform is a warning there only.
export RUSTFLAGS="-D warnings"

for target in "${targets[@]}"; do
    echo "== $target"
    cargo check -p percpu -p hp -p rcu-lite --features hp/structures --target "$target"
done
