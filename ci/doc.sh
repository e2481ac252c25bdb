#!/usr/bin/env bash
# The documentation builds without a warning: no broken link, no bad code block.
source "$(dirname "$0")/common.sh"

export RUSTDOCFLAGS="-D warnings"
# As users see it: a public page must not link to a private item.
cargo doc --workspace --no-deps
cargo doc -p hp --features structures --no-deps
# As contributors read it: the module pages hold the ordering arguments, and
# their links must work too.
cargo doc --workspace --no-deps --document-private-items
cargo doc -p hp --features structures --no-deps --document-private-items
