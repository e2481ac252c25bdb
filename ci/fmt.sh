#!/usr/bin/env bash
# The layout of the source is rustfmt's.
source "$(dirname "$0")/common.sh"

cargo fmt --all --check
