# Sourced by the other scripts; not run by itself.

set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

# The nightly toolchain for Miri and the sanitizers. Another one, say a pinned
# date, can be named in the environment.
NIGHTLY=${NIGHTLY:-nightly}
HOST=x86_64-unknown-linux-gnu

# A check that cannot run here says so and exits 77. `.ci/run` counts it as
# skipped and not as passed.
skip() {
    echo "SKIPPED: $*" >&2
    exit 77
}

need_nightly() {
    command -v rustup >/dev/null || skip "rustup is not installed, so there is no $NIGHTLY toolchain"
    rustup run "$NIGHTLY" rustc --version 2>/dev/null ||
        rustup toolchain install "$NIGHTLY" --profile minimal ||
        skip "the $NIGHTLY toolchain cannot be installed"
}

need_component() { # component...
    rustup component add --toolchain "$NIGHTLY" "$@" ||
        skip "$NIGHTLY components cannot be installed: $*"
}

need_host() {
    [[ $(rustc -vV) == *"host: $HOST"* ]] || skip "this check is written for $HOST"
}
