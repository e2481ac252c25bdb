#!/usr/bin/env bash
# The benches compile and each runs once. Figures are not looked at: a shared
# machine's are worth nothing.
source "$(dirname "$0")/common.sh"

cargo bench --workspace --no-run
# --test: criterion runs each benchmark once, without measuring.
cargo bench --workspace -- --test
cargo bench -p hp --features structures --bench structures -- --test
