#!/usr/bin/env bash
# ThreadSanitizer over the unit and integration tests of percpu, hp, rcu-lite and
# the crates under bench-suite, and the examples, on the two portable rungs.
#
# What is not run, and why:
# * The rseq rung. ThreadSanitizer does not see what inline assembly stores. A
#   section's claim hands on what the slot's previous holder released; with that
#   store invisible the chain would look broken and correct code would be
#   reported. `--cfg percpu_portable` builds without sections. AddressSanitizer
#   and the models cover them.
# * Documentation examples: they would need another instrumented build, for the
#   same calls.
#
# Fences: ThreadSanitizer executes them but derives no order from them. Nothing
# here needs it to. The fences and barriers of this code decide *which* value a
# load sees; what happens before what is carried by the Acquire and Release
# accesses themselves. So both rungs run without suppressions for it, and a report
# is a race. Peers do need their fences: one is a variant of phash (ci/tsan.supp),
# those of structures are left out.
source "$(dirname "$0")/common.sh"

need_host
need_nightly
need_component rust-src

# -Zbuild-std: an instrumented standard library; with the shipped one, Arc,
# Mutex, channels and thread::scope give false reports.
export RUSTFLAGS="-Zsanitizer=thread --cfg percpu_portable"
export TSAN_OPTIONS="suppressions=$PWD/ci/tsan.supp:${TSAN_OPTIONS:-}"
options=(-Zbuild-std --target "$HOST" --target-dir target-tsan)

parts() {
    local rung package
    for rung in membarrier fence; do
        for package in percpu hp rcu-lite refcounts phash rwsems structures examples; do
            echo "$rung $package"
        done
    done
}

not_run=()
status=0
while read -r rung package; do
    if ! in_time; then
        not_run+=("$package with HP_BARRIER=$rung")
        continue
    fi
    echo "== HP_BARRIER=$rung $package"
    export HP_BARRIER=$rung
    if [[ $package == examples ]]; then
        for example in treiber_stack await; do
            cargo +"$NIGHTLY" run -p hp --example "$example" "${options[@]}" </dev/null || status=1
        done
    else
        features=()
        [[ $package == hp ]] && features=(--features structures)
        # The peers of structures order by fences; see above.
        export STRUCTURES_ONLY=hp,hp-membarrier,hp-fence,rcu,rcu-thread,rcu-qsbr,arc,leak
        cargo +"$NIGHTLY" test --no-fail-fast -p "$package" "${features[@]}" --lib --tests "${options[@]}" </dev/null || status=1
    fi
done < <(parts | in_turn)
if ((${#not_run[@]})); then
    echo "NOT RUN for want of time; ci/tsan.sh runs all:"
    printf '  %s\n' "${not_run[@]}"
fi
exit "$status"
