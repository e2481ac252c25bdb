#!/usr/bin/env bash
# The main job, shortened: the tour of the benchmarks runs, no run reads a dead
# object (exit 4), and the files are there and not empty.
source "$(dirname "$0")/common.sh"

out=target/hpbench
rm -rf "$out"
cargo run --release -p bench-suite -- --quick

for file in report.html results.jsonl results.csv {read,write,scan,stall,grace,defer,think,track,sched,rwsem,phash,structures}.svg; do
    [[ -s $out/$file ]] || { echo "missing or empty: $out/$file" >&2; exit 1; }
done
# A file that was being written has another name until it is whole.
if compgen -G "$out/*.part" >/dev/null; then
    echo "unfinished files: $(echo "$out"/*.part)" >&2
    exit 1
fi
