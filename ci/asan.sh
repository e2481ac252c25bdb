#!/usr/bin/env bash
# AddressSanitizer and LeakSanitizer over the tests: a use after free in the real
# code with the real sections, and objects that nobody frees.
source "$(dirname "$0")/common.sh"

need_host
need_nightly

# Judged by exit code: LeakSanitizer reports after libtest has printed "ok".
# --target: without it the flags would reach build scripts and procedural macros.
# --target-dir: the instrumented build keeps apart from the usual one.
export RUSTFLAGS="-Zsanitizer=address"
# For documentation examples, which rustdoc compiles.
export RUSTDOCFLAGS="-Zsanitizer=address"
# detect_leaks is the default on Linux; said here because it is half the point.
export ASAN_OPTIONS="detect_leaks=1:${ASAN_OPTIONS:-}"
# One known leak of the C library, with its reason.
export LSAN_OPTIONS="suppressions=$PWD/ci/lsan.supp:print_suppressions=0:${LSAN_OPTIONS:-}"
# Options of single programs.
export CARGO_TARGET_X86_64_UNKNOWN_LINUX_GNU_RUNNER=$PWD/ci/asan-runner.sh
# --skip under_valgrind: valgrind cannot run an instrumented program.
cargo +"$NIGHTLY" test --no-fail-fast -p percpu -p hp -p rcu-lite -p refcounts -p phash -p tests --target "$HOST" --target-dir target-asan \
    -- --skip under_valgrind
