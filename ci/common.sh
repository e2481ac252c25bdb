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

# For checks that grow with the project: `.ci/run` may give them CI_SECONDS.
# Their parts are taken in an order drawn from the commit; none begins late.

# Lines of the input in the order of this commit, or as they are without a limit.
in_turn() {
    if [[ -n ${CI_SECONDS:-} ]]; then
        shuf --random-source=<(yes "$(git rev-parse HEAD 2>/dev/null || echo none)")
    else
        cat
    fi
}

# Whether a part may begin. The first always may.
parts_begun=0
in_time() {
    if [[ -n ${CI_SECONDS:-} ]] && ((parts_begun > 0 && SECONDS > CI_SECONDS)); then
        return 1
    fi
    parts_begun=$((parts_begun + 1))
}
