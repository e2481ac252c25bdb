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
# --skip under_valgrind: valgrind cannot run an instrumented program.
# --skip report_47_forks_: forks while other threads allocate. AddressSanitizer's
# runtime does not take all of its locks at a fork (that of the quarantine, for
# one), so now and then a child hangs inside the runtime, at the end of its next
# thread: once in 180 runs, with the stack to show it. The same tests run without
# it, and the forks beside threads that are parked run with it.
# (tests/plugin is left out: a shared library that is instrumented wants its host
# to have the runtime, and does not load without.)
cargo +"$NIGHTLY" test --no-fail-fast -p percpu -p hp -p rcu-lite -p refcounts -p phash -p structures -p rwsems -p tests -p torture --features hp/structures \
    --target "$HOST" --target-dir target-asan \
    -- --skip under_valgrind --skip report_47_forks_
