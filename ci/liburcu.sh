#!/usr/bin/env bash
# The optional variants liburcu-memb, liburcu-qsbr and liburcu-bp: the feature builds against Debian's library, its
# tests pass, and short runs of the workloads that have them give records. Figures are not looked at.
source "$(dirname "$0")/common.sh"

packages=(liburcu-dev pkg-config)
variants=liburcu-memb,liburcu-qsbr,liburcu-bp

have() {
    command -v pkg-config >/dev/null && pkg-config --exists liburcu-memb liburcu-qsbr liburcu-bp
}

if ! have; then
    command -v apt-get >/dev/null || skip "no apt-get to install ${packages[*]}"
    { apt-get update && apt-get install -y --no-install-recommends "${packages[@]}"; } ||
        skip "packages cannot be installed: ${packages[*]}"
    have || skip "pkg-config does not find liburcu although ${packages[*]} are installed"
fi

# --no-deps: the other crates have ci/clippy.sh, and the feature changes nothing in them.
cargo clippy -p bench-suite --no-deps --features liburcu --all-targets -- -D warnings
cargo test -p bench-suite --features liburcu

cargo build --release -p bench-suite --features liburcu
hpbench=${CARGO_TARGET_DIR:-target}/release/hpbench
"$hpbench" read --quick --threads 1,2 --variants "$variants,crossbeam-epoch"
"$hpbench" grace --quick --threads 0,1 --variants "$variants,heavy-barrier"
"$hpbench" grace --quick --threads 0 --idle 64 --variants "$variants,heavy-barrier"
"$hpbench" defer --quick --threads 1 --variants "$variants,crossbeam-epoch"
