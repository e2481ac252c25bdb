#!/usr/bin/env bash
# Every weakened ordering and every swapped step of the list must turn a model
# red: a model that no mutant can break proves nothing.
source "$(dirname "$0")/common.sh"

[[ -f ci/mutants.py ]] || skip "ci/mutants.py does not exist"
command -v python3 >/dev/null || skip "python3 is not installed"
python3 ci/mutants.py ${CI_SECONDS:+--seconds "$CI_SECONDS"} "$@"
