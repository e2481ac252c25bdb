#!/usr/bin/env bash
# All tests: units, integration, documentation examples, on this machine's best
# rung. The first command is the README's.
source "$(dirname "$0")/common.sh"

cargo test --workspace
# What hp's feature adds.
cargo test -p hp --features structures --test 'structures_*' --test auto_traits
cargo test -p hp --features structures --doc
