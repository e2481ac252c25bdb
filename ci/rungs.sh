#!/usr/bin/env bash
# Tests of percpu, hp, rcu-lite and refcounts on every rung that can be forced on one machine. A rung
# is chosen once a process, so each is a run of its own of the same binaries.
source "$(dirname "$0")/common.sh"

run() { # VARIABLE=value...
    echo "== $*"
    env "$@" cargo test --no-fail-fast -p percpu -p hp -p rcu-lite -p refcounts --features hp/structures --lib --tests
}

# Fences on both sides; the kernel is not even asked.
run HP_BARRIER=fence
# Publish and recheck against membarrier.
run HP_BARRIER=membarrier
# The top rung, named: the name must be accepted.
run HP_BARRIER=rseq
# Lines indexed by concurrency id, as on machines with very many CPUs, and by
# CPU number, as on all others and on kernels without mm_cid.
run HP_INDEX=mm_cid
run HP_INDEX=cpu_id
# glibc does not register its threads: what old C libraries look like.
run GLIBC_TUNABLES=glibc.pthread.rseq=0
