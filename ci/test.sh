#!/usr/bin/env bash
# All tests: units, integration, documentation examples, on this machine's best
# rung. The same command stands in the README and in .ci/run.
source "$(dirname "$0")/common.sh"

cargo test --workspace
