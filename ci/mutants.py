#!/usr/bin/env python3
"""Weakens the code one line at a time and expects the loom models to notice.

A model that no mutant can break proves nothing, and an ordering that no model
needs is either superfluous or out of loom's sight. So every Release, Acquire,
AcqRel and SeqCst of the code stands in one of two tables: MUTANTS (weakened,
and some model must fail) or UNKILLABLE (with the reason). A site in neither
fails the run, as does a snippet that the code no longer contains.

    ci/mutants.py               all mutants
    ci/mutants.py clear l6      those whose name or models contain a word
    ci/mutants.py --sites       only the completeness check
    ci/mutants.py --survivors   runs the UNKILLABLE ones that can be run, and
                                reports any that a model does kill by now
    ci/mutants.py --jobs N      N at a time (default: one for each CPU, at most 4)
    ci/mutants.py --seconds S   begins no mutant after S seconds, and says how many
                                were not run; the order is drawn from the commit,
                                so that commit after commit all have their turn

Verdicts: `killed` (a model failed), `hung` (it ran into the time limit or
loom's limit of steps; counts only where the table says so), `SURVIVED`,
`BROKEN` (did not compile). Works on a copy in a temporary directory; the
target directories are kept between mutants.
"""

import argparse
import concurrent.futures
import os
import queue
import random
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass, field

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
CRATES = ("percpu", "hp", "rcu-lite", "refcounts", "phash", "rwsems")
FOLDERS = {name: f"bench-suite/{name}" for name in ("refcounts", "phash", "rwsems")}  # where the folder is not called like the crate
LIMIT = 150  # seconds for the models of one mutant

REL, ACQ, AR, RLX = (
    "Ordering::Release",
    "Ordering::Acquire",
    "Ordering::AcqRel",
    "Ordering::Relaxed",
)


@dataclass
class Mutant:
    name: str
    file: str
    edits: list  # of (old, new)
    models: str  # test name filters, space separated, each prefixed by its crate
    why: str = ""
    hang: bool = False  # a hang is the expected way to notice


@dataclass
class Unkillable:
    file: str
    old: str
    token: str  # what in `old` is not covered
    why: str
    new: str = None  # the weakened snippet, where there is one to run
    models: str = ""


MUTANTS = []
UNKILLABLE = []


def weaken(name, file, old, token, to, models, why=""):
    """One ordering made weaker."""
    assert old.count(token) == 1, f"{name}: {token} is not once in the snippet"
    MUTANTS.append(Mutant(name, file, [(old, old.replace(token, to))], models, why))


def change(name, file, edits, models, why="", hang=False):
    """A step dropped or swapped."""
    MUTANTS.append(Mutant(name, file, edits, models, why, hang))


def folder_of(crate):
    return FOLDERS.get(crate, crate)


def unkillable(file, old, token, why, to=None, models=""):
    assert old.count(token) == 1, f"{file}: {token} is not once in {old!r}"
    new = old.replace(token, to) if to else None
    UNKILLABLE.append(Unkillable(file, old, token, why, new, models))


# ---------------------------------------------------------------- percpu

F = "percpu/src/line.rs"
weaken(
    "line: open Relaxed", F,
    "word.compare_exchange(INACTIVE, open(n), Ordering::Release, Ordering::Relaxed)",
    REL, RLX, "percpu:l3",
    "a claim in a line that another thread opened is not covered by the announcement",
)
change(
    "line: announce after open", F,
    [
        ("        self.active.insert(index);\n        for (n, word) in", "        for (n, word) in"),
        (
            "let _ = word.compare_exchange(INACTIVE, open(n), Ordering::Release, Ordering::Relaxed);\n        }",
            "let _ = word.compare_exchange(INACTIVE, open(n), Ordering::Release, Ordering::Relaxed);\n        }\n        self.active.insert(index);",
        ),
    ],
    "percpu:l3",
)
change(
    "line: announce after open, for counts", F,
    [
        ("        self.active.insert(index);\n        for (n, word) in", "        for (n, word) in"),
        (
            "let _ = word.compare_exchange(INACTIVE, open(n), Ordering::Release, Ordering::Relaxed);\n        }",
            "let _ = word.compare_exchange(INACTIVE, open(n), Ordering::Release, Ordering::Relaxed);\n        }\n        self.active.insert(index);",
        ),
    ],
    "rcu-lite:l10a::a_line",
)
change("line: never announced", F, [("        self.active.insert(index);\n        for (n, word) in", "        for (n, word) in")],
       "rcu-lite:l10a::the_first_use")
BARRIER = (
    "belt and braces: an announcement (or a count) comes before the claim that it covers, by program order "
    "or through the opened word, and the barriers order everything before the claim before the scan"
)
unkillable(F, "fetch_or(bit, Ordering::AcqRel)", AR, BARRIER, RLX, "percpu:l3")
unkillable(F, "fetch_max(word + 1, Ordering::Release)", REL, BARRIER, RLX, "percpu:l3")
unkillable(F, "self.len.load(Ordering::Acquire)", ACQ, BARRIER, RLX, "percpu:l3")
unkillable(F, "self.bits[word].load(Ordering::Acquire)", ACQ, BARRIER, RLX, "percpu:l3")

F = "percpu/src/barrier/choice.rs"
weaken(
    "choice: get Relaxed", F, "Rung::from_u8(self.0.load(Ordering::Acquire))",
    ACQ, RLX, "percpu:l9", "a rung is used before its registration",
)
weaken(
    "choice: decide without Release", F,
    "compare_exchange(0, mine as u8, Ordering::AcqRel, Ordering::Acquire)",
    AR, ACQ, "percpu:l9",
)
weaken(
    "choice: losing decider Relaxed", F,
    "mine as u8, Ordering::AcqRel, Ordering::Acquire)",
    ACQ, RLX, "percpu:l9",
)
change(
    "choice: look, then store", F,
    [(
        """        match self
            .0
            .compare_exchange(0, mine as u8, Ordering::AcqRel, Ordering::Acquire)
        {""",
        """        let seen = self.0.load(Ordering::Acquire);
        if seen == 0 {
            self.0.store(mine as u8, Ordering::Release);
        }
        match if seen == 0 { Ok(seen) } else { Err(seen) } {""",
    )],
    "percpu:l9", "two rungs in one process",
)
unkillable(
    F, "compare_exchange(0, mine as u8, Ordering::AcqRel", AR,
    "its Acquire half: a successful exchange reads the initial value, which nobody released",
    REL, "percpu:l9",
)

F = "percpu/src/barrier/fence.rs"
weaken("fence: light AcqRel", F, "pub(crate) fn light() {\n    fence(Ordering::SeqCst);",
       "Ordering::SeqCst", AR, "hp:l1")
weaken("fence: heavy AcqRel", F, "pub(crate) fn heavy() {\n    fence(Ordering::SeqCst);",
       "Ordering::SeqCst", AR, "hp:l1")

F = "percpu/src/section/sim.rs"
FIND = "let now = word.load(Ordering::Acquire);\n        if n == 0"
weaken("section: test of a word Relaxed", F, FIND, ACQ, RLX, "hp:l2 percpu:sections",
       "the claim does not hand on what the last owner released")
SEARCH = "        let value = src.load(Ordering::Acquire);\n        if value.addr() & mask == 0 {"
weaken("section: search_and_load source Relaxed", F, SEARCH, ACQ, RLX, "hp:l14 percpu:sections")
weaken("section: search_and_load commit Relaxed", F,
       "        word.store(value.addr() & mask, Ordering::Release);", REL, RLX, "hp:l2 percpu:sections")
INTO = "        let value = src.load(Ordering::Acquire);\n        if value.addr() & mask != 0 {"
weaken("section: load_into source Relaxed", F, INTO, ACQ, RLX, "hp:l14 percpu:sections")
weaken("section: load_into commit Relaxed", F,
       "            slot.store(value.addr() & mask, Ordering::Release);", REL, RLX, "hp:l2 percpu:sections")
weaken("section: claim commit Relaxed", F, "        word.store(value, Ordering::Release);",
       REL, RLX, "percpu:sections")
weaken("section: load_and_add source Relaxed", F, "let word = src.load(Ordering::Acquire);",
       ACQ, RLX, "percpu:sections")
unkillable(F, "let now = word.load(Ordering::Acquire);\n    if now == INACTIVE", ACQ,
           "two sections on one CPU are ordered by the switch between them; and that the line was announced is hidden by loom's "
           "acquire fence in the barrier, which takes in what any thread in its past has read (`models::l0`). The slot's test has the same shape, and is killed",
           RLX, "rcu-lite:l10a::a_line rcu-lite:l10a::one")
weaken("section: load_and_add commit Relaxed", F, "word.store(now.wrapping_add(1), Ordering::Release);",
       REL, RLX, "percpu:sections")
weaken("section: check_and_add flag Relaxed", F,
       "if flag.load(Ordering::Acquire) != expected {", ACQ, RLX, "percpu:sections")
ADD = """        // Relaxed, Release: only sections on this CPU change the word.
        let old = word.load(Ordering::Relaxed);
        word.store(old.wrapping_add(n), Ordering::Release);"""
weaken("section: check_and_add commit Relaxed", F, ADD, REL, RLX, "percpu:sections")
change(
    "section: claim by exchange", F,
    [(
        "        word.store(value.addr() & mask, Ordering::Release);",
        "        let _ = word.compare_exchange(FREE, value.addr() & mask, Ordering::Relaxed, Ordering::Relaxed);",
    ), (FIND, FIND.replace(ACQ, RLX))],
    "percpu:sections",
    "only shows that the commit's Release is needed for other reasons too: the exchange would carry the last release",
)
change(
    "section: two on one CPU mix", "percpu/src/sim.rs",
    [("    let _running = world.cpus[step.cpu].lock().unwrap();\n    body(step.cpu)",
      "    drop(world.cpus[step.cpu].lock().unwrap());\n    body(step.cpu)")],
    "percpu:machine",
)
SIM = "the simulated machine, not the product; `models::machine` pins what it orders and what it leaves open"
F = "percpu/src/sim.rs"
unkillable(F, "world.mail[here.me].fetch_add(1, Ordering::AcqRel);", AR, SIM)
unkillable(F, "mail.fetch_add(1, Ordering::Release);", REL, SIM)
unkillable(F, "    fence(Ordering::Acquire);\n", ACQ, SIM)
unkillable(F, "    fence(Ordering::SeqCst);\n    for (n, mail)", "Ordering::SeqCst", SIM)
unkillable(F, "    fence(Ordering::Acquire);\n    fence(Ordering::SeqCst);\n    Ok(())", "Ordering::SeqCst", SIM)
change("machine: heavy publishes nothing", F,
       [("mail.fetch_add(1, Ordering::Release);", "let _ = mail;")], "percpu:machine")
change("machine: heavy passes sections over", F,
       [("if world.rung == Rung::Rseq {\n        for cpu", "if false {\n        for cpu")], "percpu:machine")

unkillable("percpu/src/sync.rs", "if order == Ordering::SeqCst {", "Ordering::SeqCst", "a comparison, not an access")

KERNEL = "beside a system call that loom does not have; the call is the barrier"
for where in ("rseq", "membarrier"):
    F = f"percpu/src/barrier/{where}.rs"
    unkillable(F, "    fence(Ordering::SeqCst);\n    linux::expedited", "Ordering::SeqCst", KERNEL)
    unkillable(F, "    fence(Ordering::SeqCst);\n    Ok(())", "Ordering::SeqCst", KERNEL)
unkillable("percpu/src/barrier/mod.rs", "compiler_fence(Ordering::SeqCst);", "Ordering::SeqCst",
           "loom reorders nothing by compiling")
F = "percpu/src/barrier/choose.rs"
RECORD = "the record of the decision, for people; reads the environment and the kernel, so it is not built under loom (Miri runs it)"
unkillable(F, "DECISION.load(Ordering::Acquire)", ACQ, RECORD)
unkillable(F, "Box::into_raw(Box::new(mine)), Ordering::Release)", REL, RECORD)
F = "percpu/src/section/x86_64.rs"
ASM = "beside the assembly, which loom cannot run; plain moves on the only machine that has it"
unkillable(F, "AREA.offset.store(offset, Ordering::Release);", REL, ASM)
unkillable(F, "AREA.by_cpu.store(offset, Ordering::Release);", REL, ASM)
unkillable(F, "AREA.offset.load(Ordering::Acquire);", ACQ, ASM)
for section in ("claim_and_load", "load_and_add", "add"):
    unkillable(F, f"""AREA.by_cpu.load(Ordering::Acquire);
    if off == 0 {{
        // SAFETY: the caller's obligations are the same.
        return unsafe {{ {section}_by_index(""", ACQ, ASM)

# -------------------------------------------------------------- hp: slots

F = "hp/src/slot.rs"
weaken("slot: Clear Relaxed", F, "self.word().store(FREE, Ordering::Release);", REL, RLX, "hp:l1 hp:l2 hp:l5")

F = "hp/src/slots.rs"
SCAN_LINES = """                let word = slot.load(Ordering::Acquire);
                if is_address(word) {
                    f("""
weaken("scan: line slot Relaxed", F, SCAN_LINES, ACQ, RLX, "hp:l1 hp:l5")
RECORDS = """        let mut index = 0;
        self.overflow.for_each_protected(|slot, word| {
            f(Place { cpu: None, index }, slot, word);
            index += 1;
        });
"""
change(
    "scan: records before lines", F,
    [
        (RECORDS, ""),
        ("        self.lines.for_each_active(|cpu, line| {",
         RECORDS + "        self.lines.for_each_active(|cpu, line| {"),
    ],
    "hp:l5", "a guard that moves out is passed over twice",
)
change("scan: no records", F, [(RECORDS, "")], "hp:l1")
MOVE = """            let new = self.hold(thread, slot.word().load(Ordering::Relaxed));
            core::mem::replace(slot, new).release();"""
change(
    "move: clear before set", F,
    [(MOVE, """            let word = slot.word().load(Ordering::Relaxed);
            slot.word().store(FREE, Ordering::Release);
            *slot = self.hold(thread, word);""")],
    "hp:l5",
)
change(
    "clone: shares a line slot", F,
    [("            self.hold(thread, slot.word().load(Ordering::Relaxed))\n",
      "            let _ = thread;\n            SlotRef::percpu(NonNull::from(slot.word()))\n")],
    "hp:l5", "the first of two clones frees the slot",
)

# ----------------------------------------------------------- hp: overflow

F = "hp/src/overflow.rs"
weaken("overflow: Clear Relaxed", F, "    slot.store(FREE, Ordering::Release);\n}", REL, RLX, "hp:l1 hp:l2")
weaken("overflow: own free slot Relaxed", F,
       ".position(|slot| slot.load(Ordering::Acquire) == FREE)", ACQ, RLX, "hp:l2")
weaken("overflow: hold publishes Relaxed", F,
       "empty.slot.word().store(word, Ordering::Release);", REL, RLX, "hp:l2")
weaken("overflow: leave Relaxed", F,
       "(*record).owner.store(UNOWNED, Ordering::Release)", REL, RLX, "hp:l4",
       "the next owner does not see which slots are held")
weaken("overflow: take record Relaxed", F,
       "compare_exchange(UNOWNED, OWNED, Ordering::Acquire, Ordering::Relaxed)", ACQ, RLX, "hp:l4")
weaken("overflow: Link Relaxed", F,
       "                record.as_ptr(),\n                Ordering::Release,", REL, RLX, "hp:l3")
weaken("overflow: list head Relaxed", F, "self.head.load(Ordering::Acquire)", ACQ, RLX, "hp:l3")
weaken("overflow: shared slot Relaxed", F,
       "compare_exchange(now, RESERVED, Ordering::Acquire, Ordering::Relaxed)", ACQ, RLX, "hp:l2")
weaken("scan: overflow slot Relaxed", F,
       "                let word = slot.load(Ordering::Acquire);", ACQ, RLX, "hp:l1")
unkillable(F, "pool_used.fetch_max(n + 1, Ordering::Release)", REL, BARRIER, RLX, "hp:l3")
unkillable(F, "self.pool_used.load(Ordering::Acquire)", ACQ, BARRIER, RLX, "hp:l3")
change("overflow: pool counted after publishing nothing", F,
       [("                self.pool_used.fetch_max(n + 1, Ordering::Release);\n", "                let _ = n;\n")],
       "hp:l3", "the scan does not know that the pool is in use")
change("overflow: a taken record may be taken", F,
       [("""                && record
                    .owner
                    .compare_exchange(UNOWNED, OWNED, Ordering::Acquire, Ordering::Relaxed)
                    .is_ok()
""", """                && {
                    record.owner.store(OWNED, Ordering::Release);
                    true
                }
""")], "hp:l4")
change("overflow: a shared slot by look and store", F,
       [("""                    && slot
                        .compare_exchange(now, RESERVED, Ordering::Acquire, Ordering::Relaxed)
                        .is_ok())
""", """                    && {
                        slot.store(RESERVED, Ordering::Release);
                        true
                    })
""")], "hp:l3")
change("overflow: link by load and store", F,
       [("""            match self.head.compare_exchange_weak(
                head,
                record.as_ptr(),
                Ordering::Release,
                Ordering::Relaxed,
            ) {""", """            self.head.store(record.as_ptr(), Ordering::Release);
            match Ok::<_, *mut Record>(head) {""")], "hp:l3")

COUNT = "    let mut count = extra.load(Ordering::Acquire);"
weaken("clones: count Relaxed", F, COUNT, ACQ, RLX, "hp:l5")
CAS = "extra.compare_exchange(count, count - 1, Ordering::AcqRel, Ordering::Acquire)"
weaken("clones: leave without Release", F, CAS, AR, ACQ, "hp:l5")
weaken("clones: last one Relaxed", F, CAS, ACQ, RLX, "hp:l5")
unkillable(
    F, "extra.compare_exchange(count, count - 1, Ordering::AcqRel", AR,
    "its Acquire half: clones leave by exchanges only, so the last one's load acquires all of them through the release sequence",
    REL, "hp:l5",
)
change(
    "clones: slot freed before the count", F,
    [
        ("    let mut count = extra.load(Ordering::Acquire);",
         "    let mut count = extra.load(Ordering::Acquire);\n    slot.store(FREE, Ordering::Release);"),
        ("    slot.store(FREE, Ordering::Release);\n}", "}"),
    ],
    "hp:l5",
)
change("clones: not counted", F,
       [("        let old = self.extra[index].fetch_add(1, Ordering::Relaxed);",
         "        let old = self.extra[index].load(Ordering::Relaxed);")], "hp:l5")

weaken("fill: Clear of a held slot Relaxed", F,
       "            slot.store(idle, Ordering::Release);\n            Err(value)", REL, RLX, "hp:l2")
weaken("recheck: Clear Relaxed", F,
       "            slot.store(idle, Ordering::Release);\n            return Err(guess);", REL, RLX, "hp:l2")
PUBLISH = "        slot.store(guess.addr() & mask, Ordering::Release);\n"
LIGHT = "        percpu::barrier::light_on(rung);\n"
weaken("recheck: Publish Relaxed", F, PUBLISH, REL, RLX, "hp:l2")
RECHECK = "        let value = src.load(Ordering::Acquire);\n        if let Some(object)"
weaken("recheck: second load Relaxed", F, RECHECK, ACQ, RLX, "hp:l14")
change("recheck: no light barrier", F, [(LIGHT, "        let _ = rung;\n")], "hp:l1")
change("recheck: light barrier before Publish", F, [(PUBLISH + LIGHT, LIGHT + PUBLISH)], "hp:l1")
change("recheck: none", F, [(RECHECK, RECHECK.replace("src.load(Ordering::Acquire)", "guess"))], "hp:l1")
change("recheck: not compared", F,
       [("            && ptr_eq(guess, value)\n", "            && (ptr_eq(guess, value) || true)\n")],
       "hp:l1", "uses the second value under the first one's slot")
COMPILER = "loom reorders nothing by compiling; for a signal handler on the same thread"
CF = "            compiler_fence(Ordering::SeqCst);\n            if let Some(slot)"
unkillable(F, CF, "Ordering::SeqCst", COMPILER)
CF = "                compiler_fence(Ordering::SeqCst);\n                thread.busy.set(false);"
unkillable(F, CF, "Ordering::SeqCst", COMPILER)
CF = "    thread.busy.set(true);\n    compiler_fence(Ordering::SeqCst);"
unkillable(F, CF, "Ordering::SeqCst", COMPILER)
CF = "    compiler_fence(Ordering::SeqCst);\n    thread.busy.set(false);\n    answer"
unkillable(F, CF, "Ordering::SeqCst", COMPILER)

F = "hp/src/unlink.rs"
SWAP = "src.swap(new, Ordering::AcqRel)"
weaken("unlink: without Release", F, SWAP, AR, ACQ, "hp:l14", "the new object is not published")
change("unlink: without Acquire", F, [(SWAP, SWAP.replace(AR, REL))], "hp:l14",
       "the old object's publication is not taken")
XCHG = "src.compare_exchange(expected, new, Ordering::AcqRel, Ordering::Relaxed)"
weaken("unlink_if: without Release", F, XCHG, AR, ACQ, "hp:l14")
change("unlink_if: without Acquire", F, [(XCHG, XCHG.replace(AR, REL))], "hp:l14")

# ----------------------------------------------------------- hp: structures

F = "hp/src/structures/stack.rs"
PUSH = """                    node.as_ptr().cast(),
                    Ordering::Release,"""
weaken("stack: push Relaxed", F, PUSH, REL, RLX, "hp:l15")
change("stack: next read unprotected", F,
       [("            // SAFETY: protected.\n            let next = unsafe { Node::next(top) };",
         "            slot = None;\n            let next = unsafe { Node::next(top) };")], "hp:l15::two_of")
change("stack: next read after retiring", F,
       [("    *first = unsafe { NonNull::new(Node::next(node).cast()) };\n", ""),
        ("    Some(unsafe { Node::take(keeper, node, None) })",
         "    let value = unsafe { Node::take(keeper, node, None) };\n"
         "    *first = unsafe { NonNull::new(Node::next(node).cast()) };\n    Some(value)")], "hp:l15::two_of")
change("stack: take all by look and store", F,
       [("NonNull::new(unlink(&self.head, ptr::null_mut()).cast())",
         "let first = self.head.load(Ordering::Acquire);\n        self.head.store(ptr::null_mut(), Ordering::Release);\n"
         "        NonNull::new(first.cast())")], "hp:l15::two_of")

F = "hp/src/structures/list.rs"
weaken("list: Publish Relaxed", F, """                link.as_ptr().cast(),
                Ordering::Release,""", REL, RLX, "hp:l16::insert_and_get")
weaken("list: replace, Publish Relaxed", F, ".compare_exchange(next, marked, Ordering::Release, Ordering::Relaxed)",
       REL, RLX, "hp:l16::replace_and_get")
weaken("list: Look Relaxed", F, "let next = link.next.load(Ordering::Acquire);", ACQ, RLX, "hp:l16::leave_and_walk")
weaken("list: Look after the mark Relaxed", F, "Some(unmarked(link.next.load(Ordering::Acquire)))", ACQ, RLX,
       "hp:l16::remove_and_insert")
change("list: goes on from a link that has left", F, [("        !is_marked(self.here)\n", "        self.here = unmarked(self.here);\n        true\n")],
       "hp:l16::remove_two_and_walk", "the validation of every step")
change("list: the link before is not kept", F,
       [("                core::mem::swap(&mut self.before_slot, &mut self.here_slot);\n", "")],
       "hp:l16::remove_neighbours", "its slot is filled with the next one")
change("list: an entry is not protected", F,
       [("                    *none = Some(slot);\n",
         "                    drop(slot);\n                    *none = Some(self.keeper.hold(NonNull::<Link>::dangling().cast()));\n")],
       "hp:l16::remove_and_get", "its slot protects something else")
change("list: retires what another one unlinked", F,
       [("        if !unlinked {\n            return false;\n        }\n", "")], "hp:l16::remove_twice hp:l16::remove_and_get")
change("list: two mark one entry", F, [("    if is_marked(mark(&link.next)) {", "    if is_marked(mark(&link.next)) && false {")],
       "hp:l16::remove_twice")
change("list: a replaced entry is not marked", F, [("let marked = new.map_addr(|a| a | MARK);\n        // Release", "let marked = new;\n        // Release")],
       "hp:l16::replace_and_remove hp:l16::replace_and_get")
change("list: replaces in two steps", F,
       [("        // Release: \"Publish\". Relaxed on failure: not used.\n        if entry",
         "        if mark_entry(&entry.link).is_some() {\n            self.unlink(next);\n        }\n        if entry")],
       "hp:l16::replace_and_get", "the key is absent for a moment")

F = "hp/src/structures/table.rs"
weaken("table: Open, store Relaxed", F, "bucket.state.store(OPEN, Ordering::Release);", REL, RLX, "hp:l17")
weaken("table: Open, load Relaxed", F, "self.state.load(Ordering::Acquire) == OPEN", ACQ, RLX, "hp:l17")
weaken("table: Array, load Relaxed", F, "self.arrays.get(array)?.load(Ordering::Acquire)", ACQ, RLX, "hp:l17")
ARRAY = """            new,
            Ordering::Release,
            Ordering::Acquire,"""
weaken("table: Array, exchange Relaxed", F, ARRAY, REL, RLX, "hp:l17")
weaken("table: Array, another one's Relaxed", F, ARRAY, ACQ, RLX, "hp:l17")
change("table: opened by two", F, [("        if !claimed {\n            return parent;\n        }", "        let _ = claimed;")], "hp:l17",
       "its link leads to itself", hang=True)
change("table: open before it is linked", F,
       [("        let mut walk = unsafe { Walk::<K, T>::new(keeper, parent) };",
         "        bucket.state.store(OPEN, Ordering::Release);\n        let mut walk = unsafe { Walk::<K, T>::new(keeper, parent) };")], "hp:l17")

# ------------------------------------------------------------ hp: retiring

F = "hp/src/shard.rs"
LOCK = "compare_exchange(0, generation(), Ordering::Acquire, Ordering::Relaxed)"
weaken("shard: lock Relaxed", F, LOCK, ACQ, RLX, "hp:l6")
weaken("shard: unlock Relaxed", F, "self.shard.lock.store(0, Ordering::Release);", REL, RLX, "hp:l6")
change("shard: a failed attempt unlocks", F,
       [("        .then(|| Locked { shard: self })", "        .then_some(Locked { shard: self })")], "hp:l6",
       "the guard is made, and dropped, before the test")
change("shard: lock by look and store", F,
       [("                ." + LOCK + "\n                .is_ok())",
         "                .load(Ordering::Acquire)\n                == 0\n            && {\n                self.lock.store(generation(), Ordering::Release);\n                true\n            })")],
       "hp:l6")

F = "hp/src/reclaim.rs"
POST = "                parcel,\n                Ordering::Release,"
weaken("inbox: post Relaxed", F, POST, REL, RLX, "hp:l6::retire_and")
weaken("inbox: take Relaxed", F, "self.inbox.swap(ptr::null_mut(), Ordering::Acquire)", ACQ, RLX, "hp:l6::retire_and")
change("inbox: never looked at", F,
       [("        if self.inbox.load(Ordering::Relaxed).is_null() {\n            return;\n        }\n",
         "        if self.inbox.load(Ordering::Relaxed).is_null() || true {\n            return;\n        }\n")],
       "hp:l6::retire_and")
change("inbox: post by load and store", F,
       [("""            match self.inbox.compare_exchange_weak(
                head,
                parcel,
                Ordering::Release,
                Ordering::Relaxed,
            ) {""", """            self.inbox.store(parcel, Ordering::Release);
            match Ok::<_, *mut Parcel>(head) {""")], "hp:l6::two_post")
change("pass: no heavy barrier", F,
       [("        percpu::barrier::heavy().inspect_err(|_| {", "        Ok::<(), BarrierLost>(()).inspect_err(|_| {")],
       "hp:l1 hp:l6")
change("pass: barrier after the scan", F,
       [("if let Err(lost) = self.barrier() {", "if let Err(lost) = Ok::<(), BarrierLost>(()) {"),
        ("        let linear = self.held.len() <= LINEAR;", "        self.barrier()?;\n        let linear = self.held.len() <= LINEAR;")],
       "hp:l1 hp:l6")
PUT_BACK = """        self.core
            .put_back(&mut self.objects, &mut self.held, self.kept);
"""
change("pass: what is protected is dropped from the list", F,
       [(PUT_BACK, "        self.objects.clear();\n")], "hp:l8 hp:l6::a_drain",
       "the folly#1632 family: lost batch")
change("pass: leaves before it puts back", F,
       [(PUT_BACK,
         # It leaves a second time with the field, which looks like a count
         # of another generation to everybody.
         "        unsafe { ptr::drop_in_place(&raw mut self.joined) };\n" + PUT_BACK)],
       "hp:l6::a_drain_waits_for_a_pass_in_flight_to_put_back",
       "as if `joined` stood before the fields that it covers")
change("pass: frees without looking", F,
       [("            if protected {\n", "            if protected && false {\n")], "hp:l1 hp:l6")
change("due: locked while deleters run", F,
       [("        drop(list);\n", "")], "hp:l7")
change("due: a pass inside a pass", "hp/src/pass.rs",
       [("        if crate::thread::nesting().inside {\n            return None;", "        if false {\n            return None;")],
       "hp:l7")
change("drain: does not look again", F,
       [("            if inside.retired() == 0 {\n                break;", "            if inside.retired() < 1000 {\n                break;")],
       "hp:l7")
change("drain: no wait afterwards", F,
       [("        // Batches that were taken while this thread was looking.\n        self.flight.wait();\n", "")], "hp:l6::a_drain")
change("drain: no wait before", F,
       [("        // Batches that went back since this call began are in a shard again.\n        self.flight.wait();\n", "")],
       "hp:l6::a_drain")
change("take: inbox forgotten", F,
       [("        if budget == usize::MAX {\n            self.take_inbox(into);\n        }\n", ""),
        ("        if into.len() < budget {\n            self.take_inbox(into);", "        if into.len() < budget {")],
       "hp:l6::retire_and")
change("adopt: drops what it gets", F,
       [("            self.put_back(&mut objects, &mut Vec::new(), 0);\n", "            objects.clear();\n")], "hp:l8")
change("take_all: leaves a list behind", F,
       [("        self.take(&mut all, usize::MAX);\n        all", "        self.take(&mut all, 0);\n        all")], "hp:l8")
STAT = "statistics: `Statistic` is never loom's, so that counters do not multiply what there is to explore"
unkillable(F, "self.reclaimed.load(Ordering::Acquire)", ACQ, STAT)
unkillable(F, "self.scans.load(Ordering::Acquire)", ACQ, STAT)
unkillable(F, "scans.fetch_add(1, Ordering::Release)", REL, STAT)
unkillable(F, "fetch_add(self.count as u64, Ordering::Release)", REL, STAT)

F = "hp/src/pass.rs"
CHECK = "self.phase.fetch_or(0, Ordering::AcqRel)"
weaken("flight: Check without Release", F, CHECK, AR, ACQ, "hp:l6::a_wait_sees", "Flip does not see the count")
change("flight: Check without Acquire", F, [(CHECK, CHECK.replace(AR, REL))], "hp:l6::a_wait_sees")
change("flight: Check is a load", F, [(CHECK, "self.phase.load(Ordering::Acquire)")], "hp:l6::a_wait_sees",
       "store buffering: neither sees the other")
change("flight: no Check", F, [("            if now == side {", "            if now == side || true {")], "hp:l6::a_drain",
       "a pass on the old side is not waited for by the drain's second wait, which looks at the new one")
FLIP = "self.phase.fetch_xor(1, Ordering::AcqRel)"
weaken("flight: Flip without Release", F, FLIP, AR, ACQ, "hp:l6::a_wait_sees")
change("flight: Flip without Acquire", F, [(FLIP, FLIP.replace(AR, REL))], "hp:l6::a_wait_sees")
weaken("flight: Leave Relaxed", F, "self.running[side].fetch_sub(1, Ordering::Release);", REL, RLX, "hp:l6::a_wait_sees")
weaken("flight: wait looks Relaxed", F, "self.running[old].load(Ordering::Acquire);", ACQ, RLX, "hp:l6::a_wait_sees")
weaken("flight: drainers' lock Relaxed", F,
       ".compare_exchange(holder, generation, Ordering::Acquire, Ordering::Relaxed)", ACQ, RLX, "hp:l6::two_waits")
weaken("flight: drainers' unlock Relaxed", F, "self.flipping.store(0, Ordering::Release);", REL, RLX, "hp:l6::two_waits")
change("flight: never follows the phase", F,
       [("        let mut side = self.phase.load(Ordering::Relaxed) & 1;", "        let mut side = 0;"),
        ("            side = now;", "            let _ = &mut side;")], "hp:l6::a_wait_sees", hang=True)

# -------------------------------------------------- not built under loom

SAFE = "structure level, not built under loom; the same shapes as in `overflow` (L1, L2, L14), which are"
F = "hp/src/hazard.rs"
unkillable(F, "let now = src.load(Ordering::Acquire);", ACQ, SAFE)
unkillable(F, "self.slot.word().store(address.addr(), Ordering::Release);", REL, SAFE)
unkillable(F, "self.slot.word().store(RESERVED, Ordering::Release);", REL, SAFE)
KERNEL_LEVEL = "kernel level, not built under loom; the same shapes as in `slots` and `overflow`, which are"
F = "hp/src/slot_array.rs"
unkillable(F, "slot.compare_exchange(FREE, address.addr(), Ordering::AcqRel", AR, KERNEL_LEVEL)
unkillable(F, "slot.compare_exchange(FREE, RESERVED, Ordering::Acquire", ACQ, KERNEL_LEVEL)
unkillable(F, "if line.words()[0].load(Ordering::Acquire) == address.addr() {", ACQ, KERNEL_LEVEL)
unkillable(F, "while line.words()[0].load(Ordering::Acquire) == address.addr() {", ACQ, KERNEL_LEVEL)
unkillable(F, "self.slot(index).store(FREE, Ordering::Release);", REL, KERNEL_LEVEL)
unkillable(F, "self.word().store(FREE, Ordering::Release);", REL, KERNEL_LEVEL)

# ---------------------------------------------------- rcu-lite: per CPU

F = "rcu-lite/src/counters.rs"
COUNTED = "rcu-lite:l10a::one rcu-lite:l10a::two rcu-lite:l10a::the_slot rcu-lite:l10a::a_slot rcu-lite:l10a::the_phase"
weaken("rcu counters: slot cleared Relaxed", F,
       "unsafe { slot.as_ref() }.store(FREE, Ordering::Release)", REL, RLX, COUNTED)
weaken("rcu counters: Left in a shared line Relaxed", F,
       "self.own_shared().words[word].fetch_add(1, Ordering::Release);", REL, RLX, COUNTED)
SECOND = "        if self.now.phase.load(Ordering::Acquire) == phase {\n            return Entered::counted(phase);\n        }\n"
weaken("rcu counters: second look Relaxed", F, SECOND, ACQ, RLX, COUNTED,
       "a reader in the new phase does not see what was unlinked before the turn")
TURN_PHASE = "        self.now.phase.store(other(phase), Ordering::Release);\n"
weaken("rcu counters: phase turned Relaxed", F, TURN_PHASE, REL, RLX, COUNTED)
TURN_EPOCH = """        self.now
            .epoch
            .store(ptr::without_provenance_mut(epoch), Ordering::Release);
    }

    fn barrier"""
weaken("rcu counters: epoch turned Relaxed", F, TURN_EPOCH, REL, RLX, COUNTED)
LOOK_SLOT = "            let slot = words[SLOT].load(Ordering::Acquire);"
weaken("rcu counters: look at a slot Relaxed", F, LOOK_SLOT, ACQ, RLX, COUNTED)
LOOK_LINE = "counted(words[left].load(Ordering::Acquire))"
weaken("rcu counters: look at a line's count Relaxed", F, LOOK_LINE, ACQ, RLX, COUNTED)
LOOK_SHARED = "inside.wrapping_sub(line.words[left].load(Ordering::Acquire));"
weaken("rcu counters: look at a shared count Relaxed", F, LOOK_SHARED, ACQ, RLX, COUNTED)
change("rcu counters: no heavy barrier", F,
       [("    fn barrier(&self) -> Result<(), BarrierLost> {\n        heavy()", "    fn barrier(&self) -> Result<(), BarrierLost> {\n        Ok(())")],
       COUNTED)
change("rcu counters: phase not turned", F, [(TURN_PHASE, "        let _ = phase;\n")], COUNTED)
change("rcu counters: epoch not turned", F, [("            epoch = epoch.wrapping_add(1);\n", "")], COUNTED)
change("rcu counters: no second look", F, [(SECOND, SECOND.replace("if self", "if true || self"))], COUNTED)
change("rcu counters: BOTH is counted once", F,
       [("        // Relaxed: as above.\n        words[other(phase)].fetch_add(1, Ordering::Relaxed);\n        light_on(rung);\n        Entered::counted(BOTH)",
         "        Entered::counted(phase)")], COUNTED,
       "counted in the phase that has ended, perhaps too late")
change("rcu counters: BOTH without a second barrier", F,
       [("        light_on(rung);\n        Entered::counted(BOTH)", "        Entered::counted(BOTH)")], "rcu-lite:l10a::the_phase")
change("rcu counters: shared without a barrier", F,
       [("        light_on(rung);\n        // Acquire: \"Phase\"", "        // Acquire: \"Phase\"")], COUNTED)
change("rcu counters: leaving BOTH is forgotten", F,
       [("            for left in [LEFT + old, LEFT + BOTH] {\n                // Acquire: as above.",
         "            for left in [LEFT + old] {\n                // Acquire: as above.")], COUNTED,
       "the next grace period never ends", hang=True)
change("rcu counters: slots are not looked at", F, [("            held |= slot", "            held |= false && slot")], COUNTED)
change("rcu counters: old and new slots change places", F,
       [("slot != INACTIVE && slot != epoch;", "slot != INACTIVE && slot == epoch;")], COUNTED)
SUM = """        // Relaxed (both): an entering that matters is visible by the barrier,
        // or by the leaving that was read above.
        self.lines.for_each_active(|_, line| {
            let entered = line.words()[old].load(Ordering::Relaxed);
            inside = inside.wrapping_add(counted(entered));
        });
        for line in &self.shared {
            inside = inside.wrapping_add(line.words[old].load(Ordering::Relaxed));
        }
"""
change("rcu counters: entered is summed before left", F,
       [(SUM, ""), ("        let mut inside = 0usize;\n", "        let mut inside = 0usize;\n" + SUM)], COUNTED,
       "a reader that comes and goes meanwhile stands for one that is inside")
change("rcu counters: lines are not summed", F,
       [("            inside = inside.wrapping_add(counted(entered));", "            let _ = entered;")], COUNTED)
change("rcu counters: a slot that is taken is taken", F,
       [("        if let Some(entered) = self.enter_counted() {\n            return entered;\n        }\n        // Decides",
         "        if rung() == Rung::Rseq && self.open_own_line() {\n"
         "            let slot = &self.lines.all()[section::index_hint()].words()[SLOT];\n"
         "            slot.store(self.now.epoch.load(Ordering::Acquire).addr(), Ordering::Release);\n"
         "            return Entered(NonNull::from(slot));\n        }\n        // Decides")],
       COUNTED)

# -------------------------------------------------- rcu-lite: per thread

F = "rcu-lite/src/records.rs"
weaken("rcu records: Enter Relaxed", F, "        self.word.store(epoch, Ordering::Release);", REL, RLX, "rcu-lite:l10b",
       "it may overwrite a leaving that nobody has looked at")
weaken("rcu records: Nest Relaxed", F, "        self.word.store(word + 1, Ordering::Release);", REL, RLX, "rcu-lite:l10b::sections",
       "as it was first: the look may read this store instead of the one that entered")
weaken("rcu records: Leave Relaxed", F, "        self.word.store(self.word() - 1, Ordering::Release);", REL, RLX, "rcu-lite:l10b")
weaken("rcu records: Clear Relaxed", F, "        self.word.store(0, Ordering::Release);", REL, RLX, "rcu-lite:l10b::quiescent")
weaken("rcu records: epoch Relaxed", F, "        self.epoch.0.load(Ordering::Acquire)", ACQ, RLX, "rcu-lite:l10b")
weaken("rcu records: take Relaxed", F,
       ".compare_exchange(from, OWNED, Ordering::Acquire, Ordering::Relaxed)", ACQ, RLX, "rcu-lite:l10b::a_record")
weaken("rcu records: take of a left one Relaxed", F,
       "                    let quiescent = record.word.load(Ordering::Acquire) & DEEPEST == 0;", ACQ, RLX, "rcu-lite:l10b::a_record")
weaken("rcu records: push Relaxed", F,
       ".compare_exchange(head, record, Ordering::Release, Ordering::Relaxed)", REL, RLX, "rcu-lite:l10b::a_thread")
weaken("rcu records: give back Relaxed", F, "        record.owned.store(FREE, Ordering::Release);", REL, RLX, "rcu-lite:l10b::a_record")
weaken("rcu records: abandon Relaxed", F, "        record.owned.store(ABANDONED, Ordering::Release);", REL, RLX, "rcu-lite:l10b::a_record")
weaken("rcu records: list for takers Relaxed", F,
       "        // Acquire: pairs with the push.\n        let mut at: *const Record = self.head.load(Ordering::Acquire);\n        while !at.is_null() {\n            // SAFETY: records are",
       ACQ, RLX, "rcu-lite:l10b::a_thread")
weaken("rcu records: list for looks Relaxed", F,
       "        // Acquire: pairs with the push.\n        let mut at: *const Record = self.head.load(Ordering::Acquire);\n        while !at.is_null() {\n            // SAFETY: as in",
       ACQ, RLX, "rcu-lite:l10b::a_thread")
weaken("rcu records: Look Relaxed", F, "            let word = record.word.load(Ordering::Acquire);", ACQ, RLX, "rcu-lite:l10b")
weaken("rcu records: Turn Relaxed", F, "        self.epoch.0.fetch_add(EPOCH, Ordering::Release);", REL, RLX, "rcu-lite:l10b")
weaken("rcu records: qsbr grace period without fence", F,
       "        percpu::sync::atomic::fence(Ordering::SeqCst);", "Ordering::SeqCst", AR, "rcu-lite:l10b::quiescent")
change("rcu records: no heavy barrier", F, [("        percpu::barrier::heavy()", "        Ok(())")], "rcu-lite:l10b")
change("rcu records: no new epoch", F, [("fetch_add(EPOCH, Ordering::Release)", "fetch_add(0, Ordering::Release)")], "rcu-lite:l10b")
change("rcu records: everything is current", F, [("    (word ^ epoch) & !DEEPEST == 0", "    (word ^ epoch) & !DEEPEST < u64::MAX")], "rcu-lite:l10b")
change("rcu records: current is upside down", F, [("    (word ^ epoch) & !DEEPEST == 0", "    (word ^ epoch) & !DEEPEST != 0")], "rcu-lite:l10b", hang=True)
change("rcu records: a nested reader is quiescent", F,
       [("            if word & DEEPEST != 0 && !is_current", "            if word & DEEPEST == 1 && !is_current")], "rcu-lite:l10b::sections")
change("rcu records: a left record is free", F,
       [("        record.owned.store(ABANDONED, Ordering::Release);", "        record.owned.store(FREE, Ordering::Release);")],
       "rcu-lite:l10b::a_record", "given back before it is clear")
change("rcu records: a left record is looked at, then taken", F,
       [("Err(ABANDONED) if take(ABANDONED).is_ok() => {",
         "Err(ABANDONED) if record.word.load(Ordering::Acquire) & DEEPEST == 0 => {"),
        ("                    if !quiescent {\n                        self.abandon(record);\n                    }\n                    quiescent\n",
         "                    let _ = quiescent;\n                    take(ABANDONED).is_ok()\n")],
       "rcu-lite:l10b::a_record", "as it was first")
change("rcu records: a taken record may be taken", F,
       [("                taken => taken.is_ok(),", "                taken => taken.is_ok() || true,")], "rcu-lite:l10b::a_record")
change("rcu records: pushed by load and store", F,
       [("""            match self
                .head
                .compare_exchange(head, record, Ordering::Release, Ordering::Relaxed)
            {""", """            self.head.store(record, Ordering::Release);
            match Ok::<_, *mut Record>(head) {""")], "rcu-lite:l10b::a_thread")

F = "rcu-lite/src/thread.rs"
LIGHT = "        record.set(records.epoch());\n        light_on(rung);\n"
change("rcu thread: no light barrier", F, [(LIGHT, "        record.set(records.epoch());\n")], "rcu-lite:l10b")
change("rcu thread: light barrier before Enter", F,
       [(LIGHT, "        light_on(rung);\n        record.set(records.epoch());\n")], "rcu-lite:l10b")
change("rcu thread: nesting is not counted", F, [("    record.nest(word);\n", "")], "rcu-lite:l10b::sections")

F = "rcu-lite/src/qsbr.rs"
weaken("rcu qsbr: online without fence", F, "        fence(Ordering::SeqCst);\n", "Ordering::SeqCst", AR, "rcu-lite:l10b::quiescent")
change("rcu qsbr: the first of two handles goes offline", F,
       [("    if holders == 0 {\n        record.clear();", "    if holders == 1 {\n        record.clear();")], "rcu-lite:l10b::quiescent")
change("rcu qsbr: announces the old epoch plus one", F,
       [("    if record.word() != epoch {\n        record.set(epoch);", "    if record.word() != epoch || true {\n        record.set(epoch + (1 << 16));")],
       "rcu-lite:l10b::quiescent")

# ------------------------------------------------ rcu-lite: grace periods

F = "rcu-lite/src/grace.rs"
SNAP = "self.seq.fetch_add(0, Ordering::AcqRel);"
weaken("rcu grace: Snap without Release", F, SNAP, AR, ACQ, "rcu-lite:l10c", "the leader's start does not see the unlinking")
change("rcu grace: Snap is a load", F, [(SNAP, "self.seq.load(Ordering::Acquire);")], "rcu-lite:l10c")
change("rcu grace: Snap joins the one in progress", F,
       [("seq.wrapping_add(if seq & 1 == 0 { 2 } else { 3 })", "seq.wrapping_add(if seq & 1 == 0 { 2 } else { 1 })")], "rcu-lite:l10c")
change("rcu grace: Snap always adds 2", F,
       [("seq.wrapping_add(if seq & 1 == 0 { 2 } else { 3 })", "seq.wrapping_add(2)")], "rcu-lite:l10c")
unkillable(F, SNAP, AR, "its Acquire half: a target is always ahead of the number that it was made of, so nobody frees by that number", REL, "rcu-lite:l10c")
weaken("rcu grace: reached Relaxed", F, "self.seq.load(Ordering::Acquire).wrapping_sub(target)", ACQ, RLX, "rcu-lite:l10c")
START = "            grace.seq.fetch_add(1, Ordering::AcqRel);\n        }"
change("rcu grace: Start without Acquire", F, [(START, START.replace(AR, REL))], "rcu-lite:l10c")
END = "        grace.seq.fetch_add(1, Ordering::AcqRel);\n        Step::Advanced"
weaken("rcu grace: End without Release", F, END, AR, ACQ, "rcu-lite:l10c")
change("rcu grace: End is a store", F,
       [(END, "        let seq = grace.seq.load(Ordering::Relaxed);\n        grace.seq.store(seq.wrapping_add(1), Ordering::Release);\n        Step::Advanced")],
       "rcu-lite:l10c", "cuts the release sequence of the snaps")
unkillable(F, END, AR, "its Acquire half: only the next start needs what the snaps released, and the sequence goes on to it", REL, "rcu-lite:l10c")
unkillable(F, START, AR, "its Release half: nobody acts on an odd number, and the sequence of the end before it goes through", ACQ, "rcu-lite:l10c")
TURNED = """        if !progress.turned {
            readers.turn();
            progress.turned = true;
        }
"""
change("rcu grace: turns after the barrier", F,
       [(TURNED, ""), ("        if !closed && !readers.drained() {", TURNED + "        if !closed && !readers.drained() {")], COUNTED + " rcu-lite:l10b::one")
change("rcu grace: turns at each look", F,
       [("                return Step::Waiting(Timeout::BarrierLost);\n            }\n            progress.ordered = true;",
         "                return Step::Waiting(Timeout::BarrierLost);\n            }\n            (progress.ordered, progress.turned) = (true, false);")],
       COUNTED, "a turn for each look")
change("rcu grace: ends without looking", F,
       [("        if !closed && !readers.drained() {", "        if false && !closed && !readers.drained() {")], "rcu-lite:l10c")
change("rcu grace: one that is left counts as over", F,
       [("                    if deadline.is_some_and(|at| Instant::now() >= at) {\n                        return Err(why);",
         "                    if deadline.is_some_and(|at| Instant::now() >= at) {\n                        return Ok(());")], "rcu-lite:l10c")

weaken("rcu grace: Close Relaxed", F, "        self.closed.store(true, Ordering::Release);", REL, RLX, "rcu-lite:l13",
       "who looks at no reader any more must know that they are gone")
weaken("rcu grace: is closed Relaxed", F, "        self.closed.load(Ordering::Acquire)", ACQ, RLX, "rcu-lite:l13")

F = "rcu-lite/src/lock.rs"
weaken("rcu lock: take Relaxed", F, ".compare_exchange(seen, generation(), Ordering::Acquire, Ordering::Relaxed)", ACQ, RLX, "rcu-lite:l10c rcu-lite:l11::calls")
weaken("rcu lock: give back Relaxed", F, "        self.lock.0.store(0, Ordering::Release);", REL, RLX, "rcu-lite:l10c rcu-lite:l11::calls")
change("rcu lock: a failed attempt unlocks", F,
       [("            .then_some(seen != 0)\n            .map(|orphaned| Locked {\n                lock: self,\n                orphaned,\n            })",
         "            .then_some(Locked {\n                lock: self,\n                orphaned: seen != 0,\n            })")], "rcu-lite:l10c rcu-lite:l11::calls",
       "the guard is made, and dropped, before the test")

# --------------------------------------------------- rcu-lite: callbacks

F = "rcu-lite/src/shard.rs"
POST = ".compare_exchange(head, node, Ordering::AcqRel, Ordering::Relaxed)"
TAKE = "self.head.swap(ptr::null_mut(), Ordering::AcqRel);"
weaken("rcu inbox: post without Release", F, POST, AR, ACQ, "rcu-lite:l11::the_inbox")
change("rcu inbox: post without Acquire", F, [(POST, POST.replace(AR, REL))], "rcu-lite:l11::a_worker",
       "who posts after a worker that left does not see that it has")
change("rcu inbox: take without Acquire", F, [(TAKE, TAKE.replace(AR, REL))], "rcu-lite:l11::calls")
change("rcu inbox: take without Release", F, [(TAKE, TAKE.replace(AR, ACQ))], "rcu-lite:l11::a_worker")
change("rcu inbox: post by load and store", F,
       [("""            match self
                .head
                .compare_exchange(head, node, Ordering::AcqRel, Ordering::Relaxed)
            {""", """            self.head.store(node, Ordering::Release);
            match Ok::<_, *mut Posted>(head) {""")], "rcu-lite:l11::the_inbox")

F = "rcu-lite/src/queue.rs"
QSNAP = "self.pass.fetch_add(0, Ordering::AcqRel);"
QSTART = "                queue.pass.fetch_add(1, Ordering::AcqRel);\n            }"
QEMPTY = "                queue.pass.fetch_add(1, Ordering::AcqRel);\n                return Some(0);"
QEND = "    queue.pass.fetch_add(1, Ordering::AcqRel);\n    drop(lock);"
HANDED_OVER = (
    "belt and braces: a callback that a pass did not take was queued after it, and the shard's lock (or the inbox) "
    "has told the queuing thread of the pass's start"
)
unkillable(F, QSNAP, AR, HANDED_OVER + "; a Relaxed load would do", RLX, "rcu-lite:l11")
change("rcu queue: snap always adds 2", F,
       [("pass.wrapping_add(if pass & 1 == 0 { 2 } else { 3 })", "pass.wrapping_add(2)")], "rcu-lite:l11::a_pass")
change("rcu queue: snap joins the pass in progress", F,
       [("pass.wrapping_add(if pass & 1 == 0 { 2 } else { 3 })", "pass.wrapping_add(if pass & 1 == 0 { 2 } else { 1 })")],
       "rcu-lite:l11::a_barrier rcu-lite:l11::barriers")
weaken("rcu queue: reached Relaxed", F, "self.pass.load(Ordering::Acquire).wrapping_sub(target)", ACQ, RLX, "rcu-lite:l11::barriers")
unkillable(F, QSTART, AR, HANDED_OVER + ", both ways", RLX, "rcu-lite:l11")
unkillable(F, QEMPTY, AR, "what earlier passes did goes through, since this is a read-modify-write", RLX, "rcu-lite:l11")
weaken("rcu queue: end without Release", F, QEND, AR, ACQ, "rcu-lite:l11::barriers")
unkillable(F, QEND, AR, "its Acquire half: " + HANDED_OVER, REL, "rcu-lite:l11")
change("rcu queue: grace period from before the taking", F,
       [("            if queue.take(&mut batch.lists) == 0 {", "            let early = domain.grace().snap();\n            if queue.take(&mut batch.lists) == 0 {"),
        ("*batch.target.insert(domain.grace().snap())", "*batch.target.insert(early)")],
       "rcu-lite:l11::the_unlinking")
change("rcu queue: no grace period", F,
       [("        Running::Free => domain.grace().wait(domain, target, None).is_ok(),", "        Running::Free => target > 0,")],
       "rcu-lite:l11::a_reader")
change("rcu queue: a pass that does not wait runs all the same", F,
       [("    if !over {\n        return Some(0);", "    if !over && false {\n        return Some(0);")], "rcu-lite:l11::a_reader")
change("rcu queue: a pass that is left forgets its batch", F,
       [("    if !over {\n        return Some(0);", "    if !over {\n        batch.target = None;\n        return Some(0);")],
       "rcu-lite:l11::a_pass")
change("rcu queue: ends before it runs", F,
       [("    batch.target = None;\n    let ran", "    batch.target = None;\n    queue.pass.fetch_add(1, Ordering::AcqRel);\n    let ran"),
        (QEND, "    drop(lock);")], "rcu-lite:l11::barriers")
change("rcu queue: the inbox is not emptied", F,
       [("                self.inbox.take(list);\n", "")], "rcu-lite:l11::the_inbox")
change("rcu queue: the inbox is emptied behind the shard's lock", F,
       [("                self.inbox.take(list);\n            }\n            drop(shard);\n",
         "                drop(shard);\n                self.inbox.take(list);\n            }\n")], "rcu-lite:l11::a_worker_comes",
       "as it was first: a worker that comes back moves a callback past the pass that its barrier waits for")
change("rcu queue: starts after the taking", F,
       [("            if queue.pass.load(Ordering::Relaxed) & 1 == 0 {\n", "            let taken = queue.take(&mut batch.lists);\n            if queue.pass.load(Ordering::Relaxed) & 1 == 0 {\n"),
        ("            if queue.take(&mut batch.lists) == 0 {", "            if taken == 0 {")], "rcu-lite:l11::a_barrier rcu-lite:l11::barriers")
change("rcu queue: finish makes one pass", F, [("            Some(n) => empty = n == 0,", "            Some(_) => empty = true,")], "rcu-lite:l13")
change("rcu queue: finish does not wait for another one's pass", F,
       [("            Some(n) => empty = n == 0,\n            None => backoff.snooze(),", "            Some(n) => empty = n == 0,\n            None => empty = true,")],
       "rcu-lite:l13")

F = "rcu-lite/src/worker.rs"
LEFT = """    // Relaxed: handed over by the shards' locks below.
    queue.worker.store(0, Ordering::Relaxed);
"""
change("rcu worker: looks before it says that it has left", F,
       [(LEFT, ""), ("    if !needed || queue.callbacks() != Callbacks::Worker {", LEFT + "    if !needed || queue.callbacks() != Callbacks::Worker {")],
       "rcu-lite:l11::a_worker", "liburcu 51b98c3")
change("rcu worker: due is not set to 1", F,
       [("        Callbacks::Worker => 1,", "        Callbacks::Worker => usize::MAX,")], "rcu-lite:l11::a_worker rcu-lite:l11::the_mode")
change("rcu worker: leaves whatever it finds", F,
       [("    if !needed || queue.callbacks()", "    if !needed || true || queue.callbacks()")], "rcu-lite:l11::a_worker rcu-lite:l11::the_mode")
change("rcu worker: leaves a batch behind", F,
       [("let needed = found || queue.is_under_way();", "let needed = found;")], "rcu-lite:l11::a_worker_leaves")
change("rcu worker: is still there when it has left", F,
       [(LEFT, "")], "rcu-lite:l11::a_worker")
change("rcu queue: the inbox is not looked at when a worker leaves", "rcu-lite/src/queue.rs",
       [("            if n == 0 {\n                self.inbox.take(&mut shard.calls);\n            }\n            found", "            found")],
       "rcu-lite:l11::a_worker")
change("rcu queue: who changes the mode looks after nothing", "rcu-lite/src/queue.rs",
       [("    if waiting || queue.is_under_way() {", "    if false && (waiting || queue.is_under_way()) {")], "rcu-lite:l11::the_mode")

# ------------------------------------------------- rcu-lite: cell and list

F = "rcu-lite/src/cell.rs"
weaken("rcu cell: load Relaxed", F, "        let value = self.value.load(Ordering::Acquire);", ACQ, RLX, "rcu-lite:cell")
weaken("rcu cell: load of an update Relaxed", F, "        let mut current = self.value.load(Ordering::Acquire);", ACQ, RLX, "rcu-lite:cell")
REPLACE = "self.value.swap(Box::into_raw(value), Ordering::AcqRel)"
weaken("rcu cell: replace without Release", F, REPLACE, AR, ACQ, "rcu-lite:cell")
change("rcu cell: replace without Acquire", F, [(REPLACE, REPLACE.replace(AR, REL))], "rcu-lite:cell")
EXCHANGE = ".compare_exchange(current, new, Ordering::AcqRel, Ordering::Acquire)"
weaken("rcu cell: exchange without Release", F, EXCHANGE, AR, ACQ, "rcu-lite:cell")
weaken("rcu cell: exchange that lost Relaxed", F, EXCHANGE, ACQ, RLX, "rcu-lite:cell")
unkillable(F, EXCHANGE, AR, "its Acquire half: the old value was loaded with Acquire before, or it could not be compared with", REL, "rcu-lite:cell")

F = "rcu-lite/src/list.rs"
weaken("rcu list: head Relaxed", F, "            at: self.head.load(Ordering::Acquire),", ACQ, RLX, "rcu-lite:list")
weaken("rcu list: follow Relaxed", F, "        self.at = node.next.load(Ordering::Acquire);", ACQ, RLX, "rcu-lite:list")
weaken("rcu list: link of a new node Relaxed", F,
       "        at.store(node, Ordering::Release);\n        // Relaxed (both): under", REL, RLX, "rcu-lite:list")
weaken("rcu list: link of a replacement Relaxed", F,
       "        at.store(node, Ordering::Release);\n        removed.nodes.push(old);", REL, RLX, "rcu-lite:list")
weaken("rcu list: link past a node Relaxed", F, "        at.store(next, Ordering::Release);", REL, RLX, "rcu-lite:list")
change("rcu list: a node that is taken out loses its next", F,
       [("        at.store(next, Ordering::Release);", "        at.store(next, Ordering::Release);\n        unsafe { &*node }.next.store(ptr::null_mut(), Ordering::Release);")],
       "rcu-lite:list")
change("rcu list: writers do not take turns", F,
       [("    pub fn push_front(&self, value: T) {\n        let _writer = self.lock();", "    pub fn push_front(&self, value: T) {")],
       "rcu-lite:list")

F = "rcu-lite/src/rcu.rs"
UNMADE = "a domain that is made at its first use stands behind a static, which loom's atomics cannot be; one exchange that publishes one block (Miri runs it)"
unkillable(F, "&*self.head.load(Ordering::Acquire)", ACQ, UNMADE)
unkillable(F, "            Ordering::AcqRel,\n            Ordering::Acquire,", AR, UNMADE)
unkillable(F, "            Ordering::AcqRel,\n            Ordering::Acquire,", ACQ, UNMADE)

# ------------------------------------------------------------- refcounts

NEWEST = "loom's read-modify-writes read the newest value in any case, so their order is the order of execution"

F = "bench-suite/refcounts/src/plain.rs"
weaken("refs plain: Put Relaxed", F, "let old = self.count.fetch_sub(UNIT, Ordering::Release);",
       REL, RLX, "refcounts:plain")
weaken("refs plain: last put not Acquire", F, "            self.count.load(Ordering::Acquire);",
       ACQ, RLX, "refcounts:plain")
change("refs plain: a weak get is an addition", F,
       [("            if now == 0 {\n                return false;", "            if false {\n                return false;")],
       "refcounts:plain", "revives the dead")
SHARED_PUT = "    if count.fetch_sub(1, Ordering::Release) != 1 {\n        return false;\n    }\n    // Acquire: pairs with every \"Put\".\n    count.load(Ordering::Acquire);"
weaken("refs shared count: Put Relaxed", F, "if count.fetch_sub(1, Ordering::Release) != 1 {",
       REL, RLX, "refcounts:l13::a_kill_against_two refcounts:t18::a_drop")
weaken("refs shared count: last put not Acquire", F, SHARED_PUT, ACQ, RLX,
       "refcounts:l13::a_kill refcounts:t18::a_drop")

F = "bench-suite/refcounts/src/rcuref.rs"
weaken("refs rcuref: Put Relaxed", F, ".fetch_sub(UNIT, Ordering::Release)", REL, RLX, "refcounts:l12")
DEAD = "                Ordering::Acquire,\n                Ordering::Relaxed,"
weaken("refs rcuref: Dead Relaxed", F, DEAD, ACQ, RLX, "refcounts:l12")
weaken("refs rcuref: is_dead Relaxed", F, "let now = self.word.load(Ordering::Acquire);", ACQ, RLX,
       "refcounts:l12::dead")
change("refs rcuref: a count of 0 is dead", F,
       [("        (RELEASED..Self::NOREF).contains(&now)", "        now >= RELEASED")],
       "refcounts:l12::dead", "the observer frees what a get is about to revive")
change("refs rcuref: the put looks again", F,
       [("    fn put_cold(&self, now: u32) -> Outcome {",
         "    fn put_cold(&self, _: u32) -> Outcome {\n        let now = self.word.load(Ordering::Relaxed);")],
       "refcounts:t17", "Linux until 2025")
change("refs rcuref: no exchange, NOREF is dead", F,
       [("        if now == Self::NOREF {", "        if now == Self::NOREF {\n            self.word.load(Ordering::Acquire);\n            return Outcome::Last;\n        }\n        if now == Self::NOREF {")],
       "refcounts:l12::a_get refcounts:t17")
change("refs rcuref: a failed get parks by a store", F,
       [("""            // Relaxed: keeps the release sequence of the puts alive.
            self.word.swap(DEAD, Ordering::Relaxed);""", """            self.word.store(DEAD, Ordering::Relaxed);""")],
       "refcounts:l12::dead", "breaks the release sequence: the observer frees without the holders' pasts")
change("refs rcuref: saturated is dead", F,
       [("    fn get_cold(&self, now: u32) -> bool {\n        if now >= RELEASED {", "    fn get_cold(&self, now: u32) -> bool {\n        if now >= SATURATED_FROM {")],
       "refcounts:l12::saturated")

F = "bench-suite/refcounts/src/per_cpu.rs"
unkillable(F, "sum.wrapping_add(line.words()[WORD].load(Ordering::Acquire))", ACQ,
           "belt and braces: every section that is summed lies before the heavy barrier, and so does the past of its put", RLX,
           "refcounts:l13 refcounts:t18")
change("refs per-CPU: lines are not zeroed", F,
       [("            line.words()[WORD].store(0, Ordering::Relaxed);", "            let _ = line;")],
       "refcounts:l13::a_switch refcounts:t18::lines")

F = "bench-suite/refcounts/src/shards.rs"
unkillable(F, "word.fetch_add(n.wrapping_mul(ONE), Ordering::AcqRel)", AR,
           "its Acquire half: the bias before an open word. " + NEWEST, REL, "refcounts:l13")
weaken("refs shards: addition Acquire", F, "word.fetch_add(n.wrapping_mul(ONE), Ordering::AcqRel)",
       AR, ACQ, "refcounts:l13::a_kill")
weaken("refs shards: Close Relaxed", F, "word.swap(CLOSED, Ordering::Acquire)", ACQ, RLX, "refcounts:l13::a_kill")
unkillable(F, "word.swap(0, Ordering::Release);", REL, "the bias before an open word. " + NEWEST, RLX, "refcounts:l13")
change("refs shards: closed by look and store", F,
       [("            sum.wrapping_add(value(word.swap(CLOSED, Ordering::Acquire)))",
         "            let now = word.load(Ordering::Acquire);\n            word.store(CLOSED, Ordering::Relaxed);\n            sum.wrapping_add(value(now))")],
       "refcounts:l13::a_kill refcounts:l13::a_switch")
change("refs shards: a closed word counts", F,
       [(" & CLOSED == 0\n", " & CLOSED < 2\n")], "refcounts:l13::a_kill refcounts:l13::a_switch")

F = "bench-suite/refcounts/src/percpu_ref.rs"
change("refs percpu_ref: no barrier before the sum", F,
       [("        if rung() == Rung::Rseq {\n            heavy()?;\n        }\n", "        let _ = (rung(), Rung::Rseq, heavy);\n")],
       "refcounts:l13::a_kill refcounts:l13::a_switch", "a section that saw the open gate adds after the sum")
change("refs percpu_ref: the gate is shut after the barrier", F,
       [("        self.mode.store(mode, Ordering::Relaxed);\n        if switch.folded {\n            return Ok(());\n        }\n",
         "        if switch.folded {\n            self.mode.store(mode, Ordering::Relaxed);\n            return Ok(());\n        }\n"),
        ("            heavy()?;\n        }\n", "            heavy()?;\n        }\n        self.mode.store(mode, Ordering::Relaxed);\n")],
       "refcounts:l13::a_kill refcounts:l13::a_switch")
change("refs percpu_ref: no bias", F,
       [("const BIAS: usize = 1 << (usize::BITS - 1);", "const BIAS: usize = 0;")],
       "refcounts:l13::a_kill refcounts:l13::a_switch", "a put reaches zero before the lines are folded in")
change("refs percpu_ref: the bias goes before the sum comes", F,
       [("        let sum = self.per_cpu.sum().wrapping_add(self.shards.close());\n",
         "        self.count.fetch_sub(BIAS, Ordering::Relaxed);\n        let sum = self.per_cpu.sum().wrapping_add(self.shards.close());\n"),
        (".fetch_add(sum.wrapping_sub(BIAS), Ordering::Relaxed);", ".fetch_add(sum, Ordering::Relaxed);")],
       "refcounts:l13::a_kill refcounts:l13::a_switch")
change("refs percpu_ref: the initial reference goes before the sum comes", F,
       [("        self.fold(&mut switch, ATOMIC | DEAD)?;\n        switch.killed = true;\n        confirm();\n        drop(switch);\n        Ok(plain::put(&self.count))",
         "        let last = plain::put(&self.count);\n        self.fold(&mut switch, ATOMIC | DEAD)?;\n        switch.killed = true;\n        confirm();\n        drop(switch);\n        Ok(last || self.count.load(Ordering::Acquire) == 0)")],
       "refcounts:l13::a_kill", "nobody, or two, are the last")
change("refs percpu_ref: shards are not closed", F,
       [(".wrapping_add(self.shards.close());", ".wrapping_add(self.shards.sum());")], "refcounts:l13::a_kill refcounts:l13::a_switch")
change("refs percpu_ref: opened before the bias is on", F,
       [("        self.count\n            .fetch_add(BIAS.wrapping_add(more), Ordering::Relaxed);\n        self.per_cpu.reset();\n        self.shards.open();\n",
         "        self.per_cpu.reset();\n        self.shards.open();\n        self.count\n            .fetch_add(BIAS.wrapping_add(more), Ordering::Relaxed);\n")],
       "refcounts:l13::a_switch refcounts:l13::a_revival", "counted in an open word, put in the shared count: a false zero")
change("refs percpu_ref: zeroed after opening", F,
       [("        self.per_cpu.reset();\n", ""),
        ("        self.mode.store(PER_CPU, Ordering::Release);\n", "        self.mode.store(PER_CPU, Ordering::Release);\n        self.per_cpu.reset();\n")],
       "refcounts:l13::a_switch refcounts:l13::a_revival")
weaken("refs percpu_ref: Open Relaxed", F, "self.mode.store(PER_CPU, Ordering::Release);", REL, RLX,
       "refcounts:l13::a_switch", "a section adds to what a line held before")

F = "bench-suite/refcounts/src/split.rs"
SPLIT = "refcounts:split"
weaken("refs split: load Relaxed", F, "self.word.fetch_add(ONE, Ordering::Acquire);", ACQ, RLX, SPLIT)
weaken("refs split: Publish Acquire only", F, "self.word.swap(word, Ordering::AcqRel);", AR, ACQ, SPLIT)
weaken("refs split: swap Release only", F, "let old = self.word.swap(word, Ordering::AcqRel);", AR, REL, SPLIT,
       "frees without the pasts of those who left by the cell")
LEAVE = "                now - ONE,\n                Ordering::Release,"
weaken("refs split: Leave by the cell Relaxed", F, LEAVE, REL, RLX, SPLIT)
weaken("refs split: Leave by the object Relaxed", F, "internal.fetch_add(by, Ordering::Release);", REL, RLX, SPLIT)
weaken("refs split: who frees is not Acquire", F, "internal.load(Ordering::Acquire);", ACQ, RLX, SPLIT)
unkillable(F, "                address(now),\n                Ordering::Release,", REL,
           "the object's count before the cell's is gone. " + NEWEST, RLX, SPLIT)
change("refs split: no bias", F, [("const BIAS: u64 = 1 << 62;", "const BIAS: u64 = 0;")], SPLIT,
       "freed at an internal zero before the merging")
change("refs split: the cell's count is not merged", F,
       [("external(old).wrapping_sub(BIAS)", "0u64.wrapping_sub(BIAS)")], SPLIT)
change("refs split: folded out of the cell first", F,
       [("            internal.fetch_add(moved, Ordering::Relaxed);\n", ""),
        ("                Ok(_) => return,\n                Err(seen) => now = seen,\n            }\n            // Relaxed: cannot be the last, the caller has a reference.\n            internal.fetch_sub(moved, Ordering::Relaxed);\n",
         "                Ok(_) => {\n                    internal.fetch_add(moved, Ordering::Relaxed);\n                    return;\n                }\n                Err(seen) => now = seen,\n            }\n")],
       SPLIT, "a replacement in between frees it under its holders")
change("refs split: a fold in vain is not undone", F,
       [("            internal.fetch_sub(moved, Ordering::Relaxed);\n", "")], SPLIT, "never freed")
change("refs split: released to a cell that was replaced", F,
       [("        while Node::at(now) == Some(node) && external(now) > 0 {", "        while external(now) > 0 {")], SPLIT)
change("refs split: released to a cell that counts nothing", F,
       [("        while Node::at(now) == Some(node) && external(now) > 0 {\n            // Release:", "        while Node::at(now) == Some(node) {\n            // Release:"),
        ("                now - ONE,\n                Ordering::Release,", "                now.wrapping_sub(ONE),\n                Ordering::Release,")], SPLIT,
       "65 535 references that nobody has")
F = "bench-suite/refcounts/src/lazy_slots.rs"
KERNEL = "the kernel has it for its membarrier; the order that the scan needs comes by the count of users"
unkillable(F, "        fence(Ordering::SeqCst);\n    }", "Ordering::SeqCst", KERNEL)
unkillable(F, "        fence(Ordering::SeqCst);\n        Ok(())", "Ordering::SeqCst", KERNEL)
weaken("refs lazy: Grab Relaxed", F, "slot.store(address, Ordering::Release);", REL, RLX, "refcounts:lazy",
       "the uses of what was in the slot before")
weaken("refs lazy: Clear Relaxed", F, "self.slots[cpu].store(FREE, Ordering::Release);", REL, RLX, "refcounts:lazy")
weaken("refs lazy: Find Relaxed", F, "self.slots[cpu].load(Ordering::Acquire) == address", ACQ, RLX, "refcounts:lazy")
change("refs lazy: a slot is not looked at", F, [("for cpu in 0..self.slots.len() {", "for cpu in 1..self.slots.len() {")],
       "refcounts:lazy")
change("refs lazy: cleared as it is grabbed", F,
       [("        slot.store(address, Ordering::Release);\n", "        slot.store(address, Ordering::Release);\n        slot.store(FREE, Ordering::Release);\n")],
       "refcounts:lazy", "a borrower that no scan finds")

F = "bench-suite/refcounts/src/lookups.rs"
T18 = "refcounts:lookups refcounts:t18::a_second refcounts:t18::a_drop_against_get refcounts:t18::a_get"
weaken("refs lookups: end Relaxed", F, "self.0.fetch_sub(1, Ordering::Release);", REL, RLX, T18)
weaken("refs lookups: look Relaxed", F, "while words[old].load(Ordering::Acquire) != 0 {", ACQ, RLX, T18)
weaken("refs lookups: second look Relaxed", F, "if self.phase.load(Ordering::Acquire) == phase {", ACQ, RLX, T18)
weaken("refs lookups: Turn Relaxed", F, "self.phase.store(1 - old, Ordering::Release);", REL, RLX, T18)
change("refs lookups: no barrier", F, [("        heavy()?;\n", "        let _ = heavy;\n")], T18)
change("refs lookups: no light barrier", F, [("            light();\n", "            let _ = light;\n")], T18)
change("refs lookups: nobody is waited for", F,
       [("while words[old].load(Ordering::Acquire) != 0 {", "while words[old].load(Ordering::Acquire) > 9 {")], T18)
change("refs lookups: no second look", F,
       [("if self.phase.load(Ordering::Acquire) == phase {", "if self.phase.load(Ordering::Acquire) < 2 {")], T18)

F = "bench-suite/refcounts/src/futex_ref.rs"
change("refs futex_ref: no grace period after the publication", F,
       [("        if writer.graces == writer.published && number > 0 {", "        if false && writer.graces == writer.published && number > 0 {")],
       "refcounts:t18::a_second", "T18: the bias of the next table lets a get succeed on a dead one")
change("refs futex_ref: no grace period before the fold", F,
       [("        // No addition to lines and lanes may still be under way.\n        self.grace(&mut writer)?;\n", "")],
       "refcounts:t18::a_drop_against_get refcounts:t18::a_get")
change("refs futex_ref: no bias", F, [("const BIAS: usize = isize::MAX as usize;", "const BIAS: usize = 0;")],
       "refcounts:t18::a_drop_against_get refcounts:t18::a_get")
change("refs futex_ref: biased after the state", F,
       [("        self.count.store(BIAS, Ordering::Relaxed);\n", ""),
        ("        state.store(atomic(number), Ordering::Release);\n", "        state.store(atomic(number), Ordering::Release);\n        self.count.store(BIAS, Ordering::Relaxed);\n")],
       "refcounts:t18::a_drop_against_get refcounts:t18::a_get")
weaken("refs futex_ref: Atomic Relaxed", F, "state.store(atomic(number), Ordering::Release);", REL, RLX, "refcounts:t18::a_get")
weaken("refs futex_ref: cold look at the state Relaxed", F,
       "let state = self.state(number).load(Ordering::Acquire);", ACQ, RLX, "refcounts:t18::a_get refcounts:t18::a_second")
unkillable(F, "if self.state(number).load(Ordering::Acquire) == per_cpu(number) {", ACQ,
           "the bias before the subtraction. " + NEWEST, RLX, "refcounts:t18")
weaken("refs futex_ref: Fold Relaxed", F, "let before = self.count.fetch_add(change, Ordering::Release);", REL, RLX,
       "refcounts:t18::a_drop_against_two")
weaken("refs futex_ref: a fold to zero is not Acquire", F, "        self.count.load(Ordering::Acquire);\n        Ok(true)", ACQ, RLX,
       "refcounts:t18::a_drop_against_two")
weaken("refs futex_ref: pivot's look Relaxed", F, "if self.count.load(Ordering::Acquire) != 0 {", ACQ, RLX,
       "refcounts:t18::a_pivot")
weaken("refs futex_ref: Ready Relaxed", F, "self.state(next).store(per_cpu(next), Ordering::Release);", REL, RLX,
       "refcounts:t18::a_second refcounts:t18::lines")
change("refs futex_ref: the initial reference stays", F,
       [(".wrapping_sub(BIAS).wrapping_sub(1);", ".wrapping_sub(BIAS);")], "refcounts:t18::a_drop_against_get")
change("refs futex_ref: lanes do not begin anew", F,
       [("            lane.store(usize::from(n == 0), Ordering::Relaxed);", "            let _ = n;")], "refcounts:t18::a_drop_against_get")

# ---------------------------------------------------------------- rwsems

F = "bench-suite/rwsems/src/pi.rs"
weaken("rwsems pi: Lock Relaxed", F, "word.compare_exchange(0, me, Ordering::Acquire, Ordering::Relaxed)", ACQ, RLX, "rwsems:pi::two")
weaken("rwsems pi: Unlock Relaxed", F, "compare_exchange(me, 0, Ordering::Release, Ordering::Relaxed)", REL, RLX, "rwsems:pi::two")
unkillable(F, "word.compare_exchange(seen, mine, Ordering::Acquire, Ordering::Relaxed)", ACQ,
           "a thread that ends inside: the simulated kernel has none")
change("rwsems pi: given back without the kernel", F,
       [("            self.unlock_cold();\n", "            self.word.value.store(0, Ordering::Release);\n")],
       "rwsems:pi::two", "who waits is forgotten")

F = "bench-suite/rwsems/src/os/sim.rs"
KERNEL_SIM = "the simulated kernel, whose changes of a PI futex are fully ordered, as the real one's"
unkillable(F, "word.value.fetch_or(WAITERS, Ordering::AcqRel)", AR, KERNEL_SIM)
unkillable(F, "word.value.swap(me | more, Ordering::AcqRel);", AR, KERNEL_SIM)
unkillable(F, "word.value.swap(next, Ordering::AcqRel);", AR, KERNEL_SIM)

F = "bench-suite/rwsems/src/rwbase.rs"
BASE = "rwsems:rwbase::a_reader rwsems:rwbase::attempts"
weaken("rwsems rwbase: reader's addition Relaxed", F, "                now + 1,\n                Ordering::Acquire,", ACQ, RLX, BASE)
weaken("rwsems rwbase: Enter Relaxed", F, "compare_exchange(0, INSIDE, Ordering::Acquire, Ordering::Relaxed)", ACQ, RLX, BASE)
weaken("rwsems rwbase: Leave Relaxed", F, "self.readers.fetch_sub(1, Ordering::Release)", REL, RLX, BASE)
weaken("rwsems rwbase: Open Relaxed", F, "self.readers.fetch_add(BIAS - INSIDE, Ordering::Release);", REL, RLX, BASE)
unkillable(F, "let heard = self.last.value.load(Ordering::Acquire);", ACQ, "the 0 behind the message. " + NEWEST, RLX, "rwsems:rwbase::a_reader")
unkillable(F, "self.last.value.fetch_add(1, Ordering::Release);", REL, "the 0 before the message. " + NEWEST, RLX, "rwsems:rwbase::a_reader")
HEARD = "            // Acquire: \"Listen\", pairs with \"Tell\".\n            let heard = self.last.value.load(Ordering::Acquire);\n"
FINISH = "            if self.finish() {\n                return Write::new(self);\n            }\n"
change("rwsems rwbase: listens after it has looked", F, [(HEARD + FINISH, FINISH + HEARD)], "rwsems:rwbase::a_reader",
       "falls asleep behind the last reader")
change("rwsems rwbase: the last reader says nothing", F, [("            self.tell();\n", "")], "rwsems:rwbase::a_reader")
change("rwsems rwbase: the message does not change", F,
       [("        self.last.value.fetch_add(1, Ordering::Release);\n", "")], "rwsems:rwbase::a_reader")
change("rwsems rwbase: inside by look and store", F,
       [("            .compare_exchange(0, INSIDE, Ordering::Acquire, Ordering::Relaxed)\n            .is_ok()",
         "            .load(Ordering::Acquire)\n            == 0\n            && {\n                self.readers.store(INSIDE, Ordering::Relaxed);\n                true\n            }")],
       "rwsems:rwbase::a_reader", "a reader that overtakes is overwritten")
change("rwsems rwbase: overtakes a writer inside", F, [("while now != INSIDE {", "while now != 1 {")], "rwsems:rwbase::a_reader")
change("rwsems rwbase: a vain attempt keeps the bias", F,
       [("        self.readers.fetch_add(BIAS, Ordering::Relaxed);\n", "")], "rwsems:rwbase::attempts")
change("rwsems rwbase: counted before the mutex", F,
       [("        self.take_writer();\n        // Relaxed: the mutex has brought what the writers did.\n        self.readers.fetch_add(1, Ordering::Relaxed);\n",
         "        self.readers.fetch_add(1, Ordering::Relaxed);\n        self.take_writer();\n")],
       "rwsems:rwbase::one_reader", "the next writer waits for it, and it for the next writer")

F = "bench-suite/rwsems/src/vanilla.rs"
V = "rwsems:vanilla::a_reader rwsems:vanilla::two rwsems:vanilla::attempts"
weaken("rwsems vanilla: Grant Relaxed", F, "self.state.value.store(1, Ordering::Release);", REL, RLX, V)
weaken("rwsems vanilla: sleeper Relaxed", F, "while self.state.value.load(Ordering::Acquire) == 0 {", ACQ, RLX, V)
weaken("rwsems vanilla: reader's Down Relaxed", F, "self.count.fetch_add(READER, Ordering::Acquire) & (WRITER | WAITERS | HANDOFF)", ACQ, RLX, V)
weaken("rwsems vanilla: try_read Relaxed", F, "                now + READER,\n                Ordering::Acquire,", ACQ, RLX, "rwsems:vanilla::attempts")
weaken("rwsems vanilla: writer's Down Relaxed", F, "compare_exchange(0, WRITER, Ordering::Acquire, Ordering::Relaxed)", ACQ, RLX, V)
weaken("rwsems vanilla: reader's Up Relaxed", F, "self.count.fetch_sub(READER, Ordering::Release)", REL, RLX, V)
weaken("rwsems vanilla: writer's Up Relaxed", F, "self.count.fetch_sub(WRITER, Ordering::Release)", REL, RLX, V)
weaken("rwsems vanilla: inside after all Relaxed", F, "if self.count.load(Ordering::Acquire) & WRITER == 0 {", ACQ, RLX, V)
unkillable(F, "compare_exchange(now, now | WRITER, Ordering::Acquire, Ordering::Relaxed)", ACQ, "spinning is left out of the models; the same shape as `grab`, which is killed")
weaken("rwsems vanilla: queued writer's Down Relaxed", F, "compare_exchange(now, new, Ordering::Acquire, Ordering::Relaxed)", ACQ, RLX, V)
weaken("rwsems vanilla: letting in Relaxed", F, "let old = self.count.fetch_add(READER, Ordering::Acquire);", ACQ, RLX, V)
change("rwsems vanilla: the last reader wakes nobody", F,
       [("        if now & (HELD | WAITERS) == WAITERS {\n            self.wake_first(lock(&self.queue));\n        }\n", "        let _ = now;\n")], V)
change("rwsems vanilla: the writer wakes nobody", F,
       [("        if self.count.fetch_sub(WRITER, Ordering::Release) & WAITERS != 0 {", "        if self.count.fetch_sub(WRITER, Ordering::Release) & WAITERS > WAITERS {")], V)
change("rwsems vanilla: a unit that meant nothing keeps others asleep", F,
       [("        if now & HELD == 0 || first && now & WRITER == 0 {", "        if first && now & WRITER == 0 {")],
       "rwsems:vanilla::a_reader_and_a_writer rwsems:vanilla::two_readers rwsems:vanilla::a_reader_and_two")
change("rwsems vanilla: out in one step, waiting in the next", F,
       [("        let change = if first { WAITERS } else { 0 }.wrapping_sub(READER);\n",
         "        let change = 0usize.wrapping_sub(READER);\n"),
        ("        if now & HELD == 0 || first && now & WRITER == 0 {",
         "        let now = now & WAITERS | now & !WAITERS;\n        if first {\n            self.count.fetch_or(WAITERS, Ordering::Relaxed);\n        }\n        if now & HELD == 0 || first && now & WRITER == 0 {")],
       V, "who leaves in between wakes nobody")
change("rwsems vanilla: the queue stays announced", F,
       [("            change = change.wrapping_sub(WAITERS);\n", "")], V)
change("rwsems vanilla: a writer leaves the queue announced", F,
       [("(now | WRITER) & !(HANDOFF | waiters)", "{ let _ = waiters; (now | WRITER) & !HANDOFF }")], V)
change("rwsems vanilla: the promise stays", F,
       [("(now | WRITER) & !(HANDOFF | waiters)", "(now | WRITER) & !waiters")], V)
change("rwsems vanilla: a writer tries before it is announced", F,
       [("        while !self.attempt(&mut queue, &me) {", "        while {\n            let failed = !self.attempt(&mut queue, &me);\n            if failed && queue.len() == 1 {\n                self.count.fetch_or(WAITERS, Ordering::Relaxed);\n            }\n            failed\n        } {"),
        ("        if queue.len() == 1 {\n            // Relaxed: whoever leaves", "        if queue.len() == 0 {\n            // Relaxed: whoever leaves")],
       V, "who leaves in between wakes nobody")

F = "bench-suite/rwsems/src/per_cpu.rs"
P = "rwsems:per_cpu::a_reader rwsems:per_cpu::attempts"
weaken("rwsems percpu: shared word entered Relaxed", F, "self.shared[place].fetch_add(ONE, Ordering::Acquire)", ACQ, RLX, P)
weaken("rwsems percpu: Listen Relaxed", F, "let heard = self.told.value.load(Ordering::Acquire);", ACQ, RLX, P)
weaken("rwsems percpu: Tell Relaxed", F, "self.told.value.fetch_add(1, Ordering::Release);", REL, RLX, P)
weaken("rwsems percpu: Left without a section Relaxed", F, "self.left.fetch_add(1, Ordering::Release);", REL, RLX, P)
weaken("rwsems percpu: Left a shared word Relaxed", F, "self.shared[place].fetch_sub(ONE, Ordering::Release)", REL, RLX, P)
weaken("rwsems percpu: Sum of lines Relaxed", F, "line.words()[LEFT].load(Ordering::Acquire)", ACQ, RLX, P)
weaken("rwsems percpu: Sum of those without a section Relaxed", F, "self.left.load(Ordering::Acquire)", ACQ, RLX, P)
weaken("rwsems percpu: Sum of shared words Relaxed", F, "word.load(Ordering::Acquire) / ONE", ACQ, RLX, P)
weaken("rwsems percpu: Open of shared words Relaxed", F, "word.fetch_and(!CLOSED, Ordering::Release);", REL, RLX, P)
weaken("rwsems percpu: Open of the flag Relaxed", F, "self.flag.store(OPEN, Ordering::Release);", REL, RLX, P)
change("rwsems percpu: no heavy barrier", F,
       [("        if rung() == Rung::Rseq {\n            heavy()?;\n        }\n", "        let _ = (rung(), Rung::Rseq, heavy);\n")], P)
FLAG = "        // Relaxed: the barrier makes it visible to sections.\n        self.flag.store(SHUT, Ordering::Relaxed);\n"
change("rwsems percpu: the flag after the barrier", F,
       [(FLAG, ""), ("            heavy()?;\n        }\n", "            heavy()?;\n        }\n" + FLAG)], P)
change("rwsems percpu: no light barrier", F, [("                light();\n", "                let _ = light;\n")],
       P, "the writer misses that it left, and it misses the flag")
change("rwsems percpu: looks at the flag before it leaves", F,
       [("                if self.section(&self.always, LEFT).is_err() {\n                    self.leave_again();\n                }\n                light();\n                // Relaxed: the barriers order it after what was counted.\n                if self.flag.load(Ordering::Relaxed) != OPEN {",
         "                let up = self.flag.load(Ordering::Relaxed) != OPEN;\n                if self.section(&self.always, LEFT).is_err() {\n                    self.leave_again();\n                }\n                light();\n                if up {")], P)
change("rwsems percpu: leaves while the flag is down only", F,
       [("                if self.section(&self.always, LEFT).is_err() {", "                if self.section(&self.flag, LEFT).is_err() && false {")],
       P, "a reader that is never counted out")
change("rwsems percpu: shared words are not closed", F,
       [("            word.fetch_or(CLOSED, Ordering::Relaxed);\n", "            let _ = word;\n")], P)
change("rwsems percpu: a closed word counts", F,
       [("        if self.shared[place].fetch_add(ONE, Ordering::Acquire) & CLOSED == 0 {", "        if self.shared[place].fetch_add(ONE, Ordering::Acquire) & CLOSED < 2 {")], P)
change("rwsems percpu: a vain entry stays counted", F,
       [("        self.leave_shared(place);\n        None", "        None")], P)
change("rwsems percpu: nobody tells from a shared word", F,
       [("        if self.shared[place].fetch_sub(ONE, Ordering::Release) & CLOSED != 0 {", "        if self.shared[place].fetch_sub(ONE, Ordering::Release) & CLOSED > CLOSED {")], P)
change("rwsems percpu: nobody tells from a line", F,
       [("                if self.flag.load(Ordering::Relaxed) != OPEN {", "                if self.flag.load(Ordering::Relaxed) > SHUT {")], P)

F = "bench-suite/rwsems/src/pi_multi.rs"
change("rwsems pi-multi: a seat is left out", F,
       [("        for seat in &self.seats {\n            let _ = seat.owner.lock();", "        for seat in &self.seats[..self.seats.len() - 1] {\n            let _ = seat.owner.lock();")],
       "rwsems:pi_multi")
change("rwsems pi-multi: the door is not given back", F,
       [("        self.door.unlock();\n        seat", "        seat")], "rwsems:pi_multi")

F = "bench-suite/rwsems/src/vma.rs"
NOT_LOOM = "not built under loom; the shape of `refcounts`' and `rcu-lite`'s cells, which is"
unkillable(F, "let found = self.current.load(Ordering::Acquire);", ACQ, NOT_LOOM)
unkillable(F, "self.current.store(fresh(next), Ordering::Release);", REL, NOT_LOOM)


# ----------------------------------------------------------------- phash

F = "bench-suite/phash/src/park.rs"
WAIT, MOVE = "phash:waiters::a_wait", "phash:waiters"
GIVE_UP = "phash:waiters::giving_up"
unkillable(F, "self.word.store(AWAKE, Ordering::Release);", REL,
           "the fence that every waker passes before carries its past, too", RLX, WAIT)
weaken("phash: the sleeper's look Relaxed", F, "if self.word.load(Ordering::Acquire) == AWAKE {", ACQ, RLX, WAIT)
change("phash: woken before it is said", F,
       [("        self.word.store(AWAKE, Ordering::Release);\n        self.sleep.wake(&self.word);",
         "        self.sleep.wake(&self.word);\n        self.word.store(AWAKE, Ordering::Release);")], WAIT,
       "sleeps again after the only wake", hang=True)
change("phash: prepared by nobody", F, [("        self.word.store(QUEUED, Ordering::Relaxed);\n", "")], MOVE,
       "returns before anybody woke it")

F = "bench-suite/phash/src/table.rs"
weaken("phash: lock Relaxed", F, ".compare_exchange(0, 1, Ordering::Acquire, Ordering::Relaxed)", ACQ, RLX, MOVE)
weaken("phash: Unlock Relaxed", F, "self.locked.store(0, Ordering::Release);", REL, RLX, MOVE)
change("phash: no look at the word under the lock", F, [("if word.load(Ordering::SeqCst) != expected {", "if false {")], WAIT,
       "sleeps although the word was changed and its waker has been", hang=True)
SC = "Ordering::SeqCst"
AS_ACQREL = "loom takes SeqCst accesses for AcqRel: the fence beside the announcement stands for them"
unkillable(F, "self.waiters.fetch_add(1, Ordering::SeqCst);", SC, AS_ACQREL)
unkillable(F, "if word.load(Ordering::SeqCst) != expected {", SC, AS_ACQREL)
unkillable(F, "if bucket.waiters.load(Ordering::SeqCst) == 0 {", SC, AS_ACQREL)
unkillable(F, "bucket.waiters.fetch_or(MOVED, Ordering::SeqCst);", SC, AS_ACQREL)
change("phash: no fence after the announcement", F,
       [("        #[cfg(loom)]\n        fence(Ordering::SeqCst);\n", "")], WAIT, "lost: each looks before the other's store")
change("phash: no fence after the change", F,
       [("    // SeqCst: pairs with \"Announce\".\n    fence(Ordering::SeqCst);\n", "    let _ = fence;\n")], WAIT, "as above")
change("phash: announced after the look", F,
       [("        bucket.announce();\n        let attempt = bucket.with(|inside| {\n            if inside.moved {\n                return Attempt::Moved;\n            }\n            // SeqCst: after",
         "        let attempt = bucket.with(|inside| {\n            if inside.moved {\n                return Attempt::Moved;\n            }\n            // SeqCst: after"),
        ("        if attempt != Attempt::Done(true) {\n            bucket.leave(1);\n        }\n",
         "        if attempt == Attempt::Done(true) {\n            bucket.announce();\n        }\n")], WAIT,
       "a waker believes the zero")
# The mark in the count of waiters is needed where SeqCst accesses stand without the fence, as in the product.
change("phash: no mark inside", F, [("                inside.moved = true;\n", "")], MOVE,
       "queued where nobody looks any more", hang=True)
change("phash: moved without an announcement", F, [("                    home.announce();\n", "")], MOVE,
       "a waker believes the new table's zero")
change("phash: given up without leaving", F,
       [("        if attempt == Attempt::Done(true) {\n            bucket.leave(1);\n        }\n", "")], GIVE_UP)
change("phash: woken without leaving", F,
       [("            bucket.leave(u32::try_from(taken).expect(\"fewer waiters than that\"));", "            let _ = taken;")], WAIT)
unkillable(F, "self.superseded.store(true, Ordering::Release);", REL,
           "who finds the old table once more meets the mark once more, and comes back", RLX, MOVE)
unkillable(F, "while !self.superseded.load(Ordering::Acquire) {", ACQ,
           "who finds the old table once more meets the mark once more, and comes back", RLX, MOVE)

F = "bench-suite/phash/src/map.rs"
change("phash: gives up without looking who took it out", F,
       [("                    handle.parker.park(None);\n                    return Wait::Woken;", "                    return Wait::TimedOut;")], GIVE_UP)


# ------------------------------------------------------------ completeness

SITE = re.compile(r"Ordering::(?:Release|Acquire|AcqRel|SeqCst)")


def sources():
    """Every file of the crates that is not a test."""
    for crate in CRATES:
        for folder, _, files in os.walk(os.path.join(ROOT, folder_of(crate), "src")):
            for name in sorted(files):
                path = os.path.relpath(os.path.join(folder, name), ROOT)
                # The schemes of phash are not compiled for models: what protects is modelled where it is.
                skipped = "/models" in path or "phash/src/schemes/" in path
                if name.endswith(".rs") and name != "tests.rs" and not skipped:
                    yield path


def text_of(path):
    with open(os.path.join(ROOT, path), encoding="utf-8") as file:
        return file.read()


def without_tests(text):
    """Blanks test modules at the end of a file and comment lines."""
    cut = re.search(r"^#\[cfg\((?:test|all\(test[^\n]*)\)\]\nmod \w+ \{", text, re.M)
    if cut:
        text = text[: cut.start()]
    return re.sub(r"^ *//.*$", lambda m: " " * len(m.group()), text, flags=re.M)


def check_sites():
    """Every site in a table, every snippet in the code, once."""
    problems, texts, covered = [], {}, {}
    for path in sources():
        texts[path] = text_of(path)
        covered[path] = set()

    def place(path, old, what):
        count = texts.get(path, "").count(old)
        if count != 1:
            problems.append(f"{what}: its snippet is {count} times in {path}:\n{old}")
            return None
        return texts[path].index(old)

    for mutant in MUTANTS:
        for old, new in mutant.edits:
            at = place(mutant.file, old, f"mutant `{mutant.name}`")
            if at is None:
                continue
            for site in SITE.finditer(old):
                if old.count(site.group()) > new.count(site.group()):
                    covered[mutant.file].add(at + site.start())
    for entry in UNKILLABLE:
        at = place(entry.file, entry.old, "UNKILLABLE")
        if at is not None:
            covered[entry.file].add(at + entry.old.index(entry.token))
    total = 0
    for path, text in texts.items():
        for site in SITE.finditer(without_tests(text)):
            total += 1
            if site.start() not in covered[path]:
                line = text.count("\n", 0, site.start()) + 1
                problems.append(
                    f"{path}:{line}: {text.splitlines()[line - 1].strip()}\n"
                    "    is in neither table: add a mutant that a model kills, or say why none can"
                )
    return total, problems


# ------------------------------------------------------------------ running


def sections_of(toml):
    """A manifest as (header, lines) pairs."""
    parts, header, lines = [], None, []
    for line in toml.splitlines():
        if line.startswith("["):
            parts.append((header, lines))
            header, lines = line.strip(), []
        else:
            lines.append(line)
    parts.append((header, lines))
    return parts


def manifest(toml, drop, members=None):
    out = []
    for header, lines in sections_of(toml):
        if header and any(header.startswith(d) for d in drop):
            continue
        if header:
            out.append(header)
        body = "\n".join(lines)
        if members is not None and header == "[workspace]":
            body = re.sub(r"(?s)\bmembers = \[.*?\]", f"members = {members}", body, count=1)
            body = re.sub(r"(?m)^(default-members|exclude).*$", "", body)
            body = body.replace("default-" + f"members = {members}", "")
        out.append(body)
    return "\n".join(out)


def copy_workspace(to):
    """The crates with a root manifest of their own, without what only
    their other tests and benches need."""
    members = "[" + ", ".join(f'"{folder_of(crate)}"' for crate in CRATES) + "]"
    root = manifest(text_of("Cargo.toml"), ["[profile"], members)
    root = re.sub(r"(?m)^(bench-suite|tests) = .*$", "", root)
    root += (
        "\n[profile.release]\nopt-level = 1\ndebug = false\nincremental = true\ncodegen-units = 16\n"
        '[profile.release.package."*"]\nopt-level = 3\n'
    )
    os.makedirs(to, exist_ok=True)
    with open(os.path.join(to, "Cargo.toml"), "w", encoding="utf-8") as file:
        file.write(root)
    shutil.copy(os.path.join(ROOT, "Cargo.lock"), to)
    for home in map(folder_of, CRATES):
        shutil.copytree(os.path.join(ROOT, home, "src"), os.path.join(to, home, "src"))
        with open(os.path.join(to, home, "Cargo.toml"), "w", encoding="utf-8") as file:
            file.write(manifest(text_of(f"{home}/Cargo.toml"), ["[dev-dependencies", "[[bench", "[[test", "[[example"]))


def cargo(folder, crate, extra, limit, offline=("--offline",)):
    """Runs `cargo test` as ci/loom.sh does. (status, output), status None if
    it ran into the limit."""
    env = {k: v for k, v in os.environ.items() if not k.startswith("LOOM_")}
    env.update(RUSTFLAGS="--cfg loom -Awarnings", CARGO_TERM_COLOR="never", RUST_BACKTRACE="0", RUST_MIN_STACK="16777216")
    command = ["cargo", "test", *offline, "-q", "-p", crate, "--release", "--lib", *extra]
    process = subprocess.Popen(
        command, cwd=folder, env=env, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
        text=True, errors="replace", start_new_session=True,
    )
    try:
        output, _ = process.communicate(timeout=limit)
        return process.returncode, output
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        output, _ = process.communicate()
        return None, output


def by_crate(models):
    """"percpu:l3 hp:l1" as {crate: [test filters]}."""
    table = {}
    for name in models.split():
        crate, model = name.split(":", 1)
        # A module, or one test in it.
        table.setdefault(crate, []).append(f"models::{model}" if "::" in model else f"models::{model}::")
    return table


# What loom says of a race or a deadlock, and any panic in the code or a model.
FAILURE = re.compile(
    r"(Causality violation[^\n]*|deadlock; threads[^\n]*|"
    r"(?<=panicked at )(?:percpu|hp|rcu-lite|bench-suite/(?:refcounts|phash|rwsems))/src/[^\n]*\n[^\n]*)"
)


def judge(folder, models):
    """Runs the models; (verdict, detail)."""
    hung = None
    for crate, filters in by_crate(models).items():
        status, output = cargo(folder, crate, ["--no-run"], 600)
        if status != 0:
            return "BROKEN", output[-3000:]
        # First failure wins: the filters one by one, quick ones first.
        for name in filters:
            status, output = cargo(folder, crate, [name, "--", "--test-threads=2"], LIMIT)
            if re.search(r"running 0 tests|0 passed; 0 failed", output):
                return "BROKEN", f"no test is called {name}"
            if status == 0:
                continue
            # A model that failed before another one hung is enough.
            found = FAILURE.search(output)
            if found:
                where = re.search(r"model (.*?) failed: rung (\w+)", output)
                where = f"{where.group(1)}, {where.group(2)}" if where else name
                return "killed", f"{where}: {' '.join(found.group(1).split())[:80]}"
            if status is None or "exceeded maximum number of branches" in output:
                hung = f"{crate} {name}"
            else:
                return "BROKEN", output[-3000:]
    return ("hung", hung) if hung else ("SURVIVED", "")


def apply(folder, file, edits):
    path = os.path.join(folder, file)
    with open(path, encoding="utf-8") as source:
        before = source.read()
    after = before
    for old, new in edits:
        if after.count(old) != 1:
            raise ValueError(f"{after.count(old)} times: {old}")
        after = after.replace(old, new)
    with open(path, "w", encoding="utf-8") as target:
        target.write(after)
    return path, before


class Bench:
    """Copies of the workspace, one for each job."""

    def __init__(self, jobs, base):
        self.free = queue.Queue()
        first = os.path.join(base, "0")
        copy_workspace(first)
        print("building once …", flush=True)
        for crate in CRATES:
            status, output = cargo(first, crate, ["--no-run"], 1200, offline=())
            if status != 0:
                sys.exit(f"the code does not build under loom:\n{output[-4000:]}")
        self.free.put(first)
        for n in range(1, jobs):
            folder = os.path.join(base, str(n))
            # cp -a keeps the times by which cargo knows what is fresh.
            subprocess.run(["cp", "-a", first, folder], check=True)
            self.free.put(folder)

    def run(self, file, edits, models):
        folder = self.free.get()
        started = time.monotonic()
        path = before = None
        try:
            path, before = apply(folder, file, edits)
            verdict, detail = judge(folder, models)
        except ValueError as error:
            verdict, detail = "BROKEN", str(error)
        finally:
            if path:
                with open(path, "w", encoding="utf-8") as target:
                    target.write(before)
            self.free.put(folder)
        return verdict, detail, time.monotonic() - started


def commit():
    found = subprocess.run(["git", "rev-parse", "HEAD"], cwd=ROOT, capture_output=True, text=True)
    return found.stdout.strip()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("words", nargs="*")
    parser.add_argument("--sites", action="store_true")
    parser.add_argument("--survivors", action="store_true")
    parser.add_argument("--jobs", type=int, default=min(os.cpu_count() or 1, 4))
    parser.add_argument("--seconds", type=float)
    args = parser.parse_args()
    started = time.monotonic()

    total, problems = check_sites()
    for problem in problems:
        print(f"PROBLEM {problem}", file=sys.stderr)
    print(f"{total} orderings, {len(MUTANTS)} mutants, {len(UNKILLABLE)} entries in UNKILLABLE, {len(problems)} problems")
    if args.sites or problems:
        return 1 if problems else 0

    if args.survivors:
        work = [
            (f"{u.file}: {u.old.strip().splitlines()[0]}", u.file, [(u.old, u.new)], u.models, "SURVIVED")
            for u in UNKILLABLE if u.new
        ]
    else:
        work = [(m.name, m.file, m.edits, m.models, "hung" if m.hang else "killed") for m in MUTANTS]
    if args.words:
        work = [w for w in work if any(word in w[0] or word in w[3] for word in args.words)]

    if args.seconds is not None:
        random.Random(commit()).shuffle(work)

    base = tempfile.mkdtemp(prefix="hp-mutants-")
    bad = []
    late = 0

    def in_time(file, edits, models):
        # The first ones are always run: a check that runs nothing shows nothing.
        if args.seconds is not None and time.monotonic() - started > args.seconds:
            return None
        return bench.run(file, edits, models)

    try:
        bench = Bench(args.jobs, base)
        with concurrent.futures.ThreadPoolExecutor(args.jobs) as pool:
            jobs = {pool.submit(bench.run if n < 4 else in_time, file, edits, models): (name, expected)
                    for n, (name, file, edits, models, expected) in enumerate(work)}
            for job in concurrent.futures.as_completed(jobs):
                name, expected = jobs[job]
                if job.result() is None:
                    late += 1
                    continue
                verdict, detail, took = job.result()
                fine = verdict == expected or (expected == "hung" and verdict == "killed")
                print(f"{'ok ' if fine else 'BAD'} {verdict:<8} {took:5.1f} s  {name:<52} {detail}", flush=True)
                if not fine:
                    bad.append(name)
    finally:
        shutil.rmtree(base, ignore_errors=True)
    run = len(work) - late
    print(f"{run - len(bad)} of {run} as expected, {time.monotonic() - started:.0f} s")
    if late:
        print(f"NOT RUN for want of time: {late} of {len(work)}; ci/mutants.sh runs all")
    for name in bad:
        print(f"BAD: {name}", file=sys.stderr)
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
