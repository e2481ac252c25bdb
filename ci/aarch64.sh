#!/usr/bin/env bash
# Tests of percpu, hp and rcu-lite as AArch64 programs under qemu-user.
#
# This runs the portable rung on another architecture: code generation, sizes,
# the hidden pointer comparison's assembly. It does not show weak memory: qemu
# on x86-64 executes with x86-64's ordering. Orderings rest on loom and Miri.
source "$(dirname "$0")/common.sh"

target=aarch64-unknown-linux-gnu
packages=(gcc-aarch64-linux-gnu libc6-dev-arm64-cross qemu-user)

if ! command -v qemu-aarch64 >/dev/null || ! command -v aarch64-linux-gnu-gcc >/dev/null; then
    command -v apt-get >/dev/null || skip "no apt-get to install ${packages[*]}"
    { apt-get update && apt-get install -y --no-install-recommends "${packages[@]}"; } ||
        skip "packages cannot be installed: ${packages[*]}"
fi
rustup target add "$target" || skip "target cannot be installed: $target"

export CARGO_TARGET_AARCH64_UNKNOWN_LINUX_GNU_LINKER=aarch64-linux-gnu-gcc
# -L: where the emulated program finds the AArch64 C library.
export CARGO_TARGET_AARCH64_UNKNOWN_LINUX_GNU_RUNNER="qemu-aarch64 -L /usr/aarch64-linux-gnu"

# --lib --tests: documentation examples would start one emulator each and prove
# nothing more.
cargo test --no-fail-fast -p percpu -p hp -p rcu-lite --lib --tests --target "$target"
