#!/usr/bin/env bash
# What `ci/asan.sh` lets cargo start test programs with.
#
# Programs that fork while other threads allocate run without the quarantine:
# AddressSanitizer's runtime does not take the quarantine's lock at a fork (it
# takes the allocator's), so a child could find it locked by a thread that the
# child does not have, and hang at the end of its next thread. Seen once in 180
# runs of `report_47_forks_while_others_retire`, in a child whose only waiting
# thread was inside that lock. Without the quarantine no thread holds it.
case $(basename "$1") in
fork-* | rcu_fork-*)
    export ASAN_OPTIONS="${ASAN_OPTIONS:-}:quarantine_size_mb=0:thread_local_quarantine_size_kb=0"
    ;;
esac
exec "$@"
