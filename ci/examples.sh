#!/usr/bin/env bash
# The examples check themselves and exit with an error if their check fails.
source "$(dirname "$0")/common.sh"

# Built first, so that the limit below is one on running. The development
# profile: the dependencies are there from `cargo test`, and a use after free
# shows sooner than with optimisation.
cargo build -p hp -p rcu-lite --examples

run() { # package example...
    local package=$1 example
    shift
    for example; do
        echo "== $package: $example"
        # A generous limit: each takes about a second. An example that hangs is red.
        timeout 60 cargo run -q -p "$package" "${features[@]}" --example "$example"
    done
}

features=()
run hp config treiber_stack await
run rcu-lite rcu_config list event_loop
features=(--features structures)
cargo build -p hp "${features[@]}" --example sessions
run hp sessions
