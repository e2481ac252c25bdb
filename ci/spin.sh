#!/usr/bin/env bash
# The Promela models of hp's slots and of rcu-lite's grace periods (*/spin/*.pml),
# under Spin: each correct variant must verify, each mutant must produce an error of the
# expected kind. A mutant that survives means that the model, or its bounds, prove
# nothing.
#
#   ci/spin.sh              all of them
#   ci/spin.sh NO_HEAVY     those whose name contains this
#   ci/spin.sh threads      ... one file
source "$(dirname "$0")/common.sh"

if ! command -v spin >/dev/null || ! command -v gcc >/dev/null; then
    command -v apt-get >/dev/null || skip "no apt-get to install spin and gcc"
    { apt-get update && apt-get install -y --no-install-recommends spin gcc libc6-dev; } ||
        skip "packages cannot be installed: spin gcc libc6-dev"
fi

root=$PWD
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"

# live: search for cycles without progress under weak fairness (assertions are
# checked too). safety: assertions and deadlocks. A mutant's error is found early,
# so it does not pay to optimize its verifier.
verify() { # kind optimization switches file; prints the verifier's output
    local define=-DSAFETY search=()
    if [[ $1 == live ]]; then
        define="-DNP -DNFAIR=3"
        search=(-l -f)
    fi
    rm -f pan* ./*.trail
    # shellcheck disable=SC2086
    spin -a $3 "$root"/*/spin/"$4".pml && gcc "$2" -w $define -DMEMLIM=6000 pan.c -o pan &&
        nice ./pan "${search[@]}" -n -m2000000 -w22
}

result_of() { # output of the verifier
    case $1 in
    *"pan:1: assertion violated"*) echo unsafe ;;
    *"pan:1: non-progress cycle"*) echo endless ;;
    *"pan:1: invalid end state"*) echo deadlock ;;
    *"search depth too small"* | *"Search not completed"*) echo truncated ;;
    *"errors: 0"*) echo ok ;;
    *) echo broken ;;
    esac
}

ran=0
surprises=0
begin=$SECONDS
printf '%-48s %-9s %-9s %9s %7s\n' case expected result states seconds
while read -r expected kind file switches; do
    [[ -n $expected && $expected != "#" ]] || continue
    name="$file $kind${switches:+ $switches}"
    [[ -z $switches ]] || switches="-D${switches// / -D}"
    [[ $name == *"${1-}"* ]] || continue
    level=-O1
    [[ $expected == ok ]] || level=-O0
    start=${EPOCHREALTIME//[!0-9]/}
    output=$(verify "$kind" "$level" "$switches" "$file" 2>&1) || true
    took=$((${EPOCHREALTIME//[!0-9]/} - start))
    result=$(result_of "$output")
    states=$(awk '/states, stored/ { print $1 + 0; exit }' <<<"$output")
    flag=
    if [[ $result != "$expected" ]]; then
        flag="  <== surprise"
        surprises=$((surprises + 1))
        [[ $result != broken ]] || echo "$output" >&2
    fi
    printf '%-48s %-9s %-9s %9s %5d.%d%s\n' "$name" "$expected" "$result" "${states:--}" \
        $((took / 1000000)) $((took / 100000 % 10)) "$flag"
    ran=$((ran + 1))
done <<'CASES'
# Hazard slots: claims by sections, overflow, moves, scans; progress.
ok      live   claims FOREVER READERS=1
ok      live   claims FOREVER READERS=1 BOUND=2
ok      safety claims
ok      safety claims MOVE
ok      safety claims MEMBARRIER
ok      safety claims FENCE
unsafe  safety claims NO_HEAVY
unsafe  safety claims NO_RESTART
unsafe  safety claims TORN
unsafe  safety claims BLIND
unsafe  safety claims NO_OWN
unsafe  safety claims NO_RECHECK
unsafe  safety claims EARLY
unsafe  safety claims MOVE CLEAR_FIRST
unsafe  safety claims MOVE OWN_FIRST
unsafe  safety claims MEMBARRIER NO_HEAVY
unsafe  safety claims MEMBARRIER NO_RECHECK
unsafe  safety claims MEMBARRIER NO_OWN
unsafe  safety claims FENCE NO_LIGHT
unsafe  safety claims FENCE NO_RECHECK
endless live   claims FOREVER READERS=1 UNBOUNDED

# Per-CPU words, restartable sections. One reader for ever; two readers bounded.
ok      live   sections FOREVER READERS=1 WRAP=2
ok      safety sections
ok      safety sections TRIPS=2
ok      safety sections SLICES=2
ok      safety sections GPS=3
ok      safety sections LOCKS_FIRST
ok      safety sections PORTABLE
unsafe  safety sections PORTABLE LOCKS_FIRST
unsafe  safety sections NO_HEAVY
unsafe  safety sections NO_RESTART
unsafe  safety sections FLIP_LATE
unsafe  safety sections TORN
unsafe  safety sections ONE_CPU
unsafe  safety sections EARLY
endless live   sections FOREVER READERS=1 WRAP=2 NO_FLIP
endless live   sections FOREVER READERS=1 WRAP=2 BOTH

# Slots, and counting when they are taken. Two readers for ever with slots alone.
ok      live   slots FOREVER READERS=1 WRAP=2
ok      live   slots FOREVER SLOTS
ok      safety slots
ok      safety slots GPS=3
ok      safety slots EPOCHS=3
ok      safety slots FOREVER SLOTS STEP_LATE EPOCHS=3
ok      safety slots LAZY EPOCHS=4 GPS=3
unsafe  safety slots EPOCHS=1
unsafe  safety slots STEP_LATE
unsafe  safety slots LAZY
unsafe  safety slots LAZY EPOCHS=3 GPS=3
unsafe  safety slots FOREVER SLOTS LAZY EPOCHS=4
unsafe  safety slots NO_STEP
unsafe  safety slots NO_SKIP
unsafe  safety slots NO_HEAVY
unsafe  safety slots NO_RESTART EPOCHS=4
unsafe  safety slots TORN
unsafe  safety slots BLIND
unsafe  safety slots EARLY
deadlock safety slots LEAVE_HERE
unsafe  safety slots LOOK_EARLY
unsafe  safety slots ONE_SLOT
unsafe  safety slots NO_SLOTS
unsafe  safety slots NO_COUNTS
endless live   slots FOREVER READERS=1 WRAP=2 WAIT_FREE
endless live   slots FOREVER READERS=1 WRAP=2 NO_FLIP

# Atomic increments: membarrier rung, fence rung, x86.
ok      live   portable READERS=1
ok      live   portable X86 WRAP=3
ok      safety portable WRAP=3
ok      safety portable FENCE
ok      safety portable X86 WORDS=2 WRAP=3
unsafe  safety portable DEPTH=1 NO_HEAVY
unsafe  safety portable DEPTH=1 NO_RECHECK
unsafe  safety portable DEPTH=1 LOCKS_FIRST
unsafe  safety portable X86 WORDS=2 LOCKS_FIRST
unsafe  safety portable DEPTH=1 EARLY
unsafe  safety portable DEPTH=1 FLIP_LATE
unsafe  safety portable DEPTH=1 SWITCH
unsafe  safety portable DEPTH=1 FENCE NO_LIGHT
unsafe  safety portable DEPTH=1 FENCE NO_LIGHT_2
unsafe  safety portable FENCE WRAP=3
endless live   portable X86 NO_FLIP
endless live   portable X86 BOTH

# Per-thread words and epochs.
ok      live   threads DEPTH=1
ok      live   threads RECHECK EPOCHS=2 DEPTH=1
ok      safety threads
ok      safety threads EPOCHS=8
ok      safety threads EQUAL
ok      safety threads RECHECK
ok      safety threads RECHECK EPOCHS=2
ok      safety threads HEAVY_BETWEEN EPOCHS=8
ok      safety threads HEAVY_BETWEEN RECHECK
unsafe  safety threads HEAVY_BETWEEN RECHECK EPOCHS=2
unsafe  safety threads ASSUME_NOTHING
unsafe  safety threads ASSUME_NOTHING EPOCHS=8
unsafe  safety threads ASSUME_NOTHING EQUAL
unsafe  safety threads NO_HEAVY
unsafe  safety threads NO_HEAVY RECHECK
unsafe  safety threads HEAVY_EARLY
unsafe  safety threads EARLY
unsafe  safety threads NO_STEP
unsafe  safety threads NESTED_EPOCH
unsafe  safety threads NESTED_CLEAR
unsafe  safety threads NESTED_SKIP
unsafe  safety threads EPOCH_ONLY
endless live   threads DEPTH=1 WAIT_ALL

# Sharing of grace periods.
ok      live   shared ASSUME_AWAKE
ok      live   shared ASSUME_AWAKE READERS=2
ok      safety shared READERS=2
ok      safety shared BITS=4 READERS=2
ok      safety shared NO_SECOND_LOOK
unsafe  safety shared TARGET_2
unsafe  safety shared SNAP_EARLY
unsafe  safety shared SNAP_LOAD
unsafe  safety shared ODD_LATE
unsafe  safety shared EVEN_EARLY
unsafe  safety shared BITS=2
endless live   shared
endless live   shared ASSUME_AWAKE NO_SHARE
CASES

((ran)) || { echo "no case matches '$1'" >&2; exit 1; }
echo "$ran cases, $surprises surprises, $((SECONDS - begin)) s"
((surprises == 0))
