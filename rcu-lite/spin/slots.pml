/* The per-CPU flavour's fastest way in, the slot, and the way taken when another
   reader has it: counting (as in sections.pml).

   Claims. Safety (assert): what was unlinked before a grace period is held by
   no reader after it, whichever way in. Liveness (progress label, weak fairness):
   every grace period ends although readers keep coming.

   Reader: section {c = CPU; slot[c] FREE? e = epoch; slot[c] = e}. Taken: count in
   the phase. Interrupted: either way, again. Load the pointer, use it; store FREE
   to that very slot, from whatever CPU it is on by then, or count.
   Updater: unlink, flip the phase, epoch += 1, heavy barrier, wait until each slot
   is FREE or holds EXACTLY this epoch, and the sums of the old phase are equal.

   Two epochs are enough: a section that loaded the old one has committed before
   the barrier or starts again, so a slot holds this epoch or the last, and the
   epoch stays as it is until the last is gone. Weaker protocols need more:
     -DSTEP_LATE  epoch += 1 after the heavy barrier. Sound from EPOCHS=3.
     -DLAZY       the barrier does not restart claims. Sound if fewer than
                  EPOCHS - 1 grace periods begin during a section; if nothing
                  bounds them, unsound with any EPOCHS.

   Mutants: -DEPOCHS=1; -DSTEP_LATE, -DLAZY with too few EPOCHS; -DNO_STEP epoch not
   counted up; -DNO_SKIP FREE is one of the epochs; -DNO_HEAVY; -DNO_RESTART the
   barrier restarts neither claims nor counting; -DTORN a preempted claim is not
   restarted; -DBLIND a claim does not look whether the slot is FREE; -DEARLY a
   slot is left before the last access; -DLEAVE_HERE ... the slot of the CPU it is
   on by then is; -DLOOK_EARLY slots are looked at before the barrier; -DONE_SLOT,
   -DNO_SLOTS, -DNO_COUNTS one slot, all slots, the counters are not looked at.
   Liveness only: -DWAIT_FREE waits for slots to be FREE, whatever the epoch;
   -DNO_FLIP.

   Bounds and assumptions: as in sections.pml. With -DSLOTS readers try again
   instead of counting: then two can loop for ever (-DFOREVER). A line's first use
   is left out. The look waits for one slot after the other; the product goes
   back to the first each time, which permits less. TRIPS=2 and SLICES=2 verify,
   too, but take too long for every run. */
#ifndef READERS
#define READERS 2
#endif
#ifndef TRIPS
#define TRIPS 1
#endif
#ifndef GPS
#define GPS 2
#endif
#ifndef SLICES
#define SLICES 1
#endif
#ifndef WRAP
#define WRAP 3
#endif
#ifndef EPOCHS
#define EPOCHS 2
#endif
#ifdef NO_SKIP
#define FREE (EPOCHS - 1)
#else
#define FREE EPOCHS             /* an epoch that there never is */
#endif
#define SLOT(c)      (c)
#define LOCK(p, c)   (2 + (p) * 4 + c)
#define UNLOCK(p, c) (4 + (p) * 4 + c)
#ifdef FOREVER
#define LIMIT(n) skip
#else                           /* the last statement of a loop */
#define LIMIT(n) if :: n > 1 -> n-- :: else -> n = 0; break fi
#endif
#define OFF 2
#define DONE 3
#define RUNS (cpu[t] < OFF)
#define IDLE(c) (cpu[0] != c && cpu[READERS - 1] != c)
#define NONE 0
#define COUNT 1
#define CLAIM 2

byte own[10];                   /* the words as their own CPU sees them */
byte mem[10];                   /* ... and as all others do */
chan buffer[2] = [2] of { byte, byte };
byte epoch;
bit phase, cur;                 /* cur: which object the pointer points to */
byte cpu[READERS];              /* where the thread runs */
byte slices[READERS];           /* context switches left on this trip */
byte section[READERS];          /* in a section that nothing has interrupted */
byte ref[READERS];              /* ghost: 1 + the object that the reader holds */

/* Another CPU's store is seen when it reaches memory, unless an own one is newer. */
inline drain(c) {
    buffer[c]?w, x; mem[w] = x;
    if :: w == SLOT(1 - c) && !(buffer[1 - c]??[eval(w), _]) -> own[w] = x :: else fi;
    w = 0; x = 0
}
inline flush(c) { do :: nempty(buffer[c]) -> drain(c) :: empty(buffer[c]) -> break od }
inline store(c, word, value) { /* a full buffer lets the oldest store go first */
    if :: full(buffer[c]) -> drain(c) :: nfull(buffer[c]) fi;
    if :: word != SLOT(1 - c) -> own[word] = value :: else fi;
    buffer[c]!word, value
}

proctype buffer_of(byte c) { byte w, x;
end: do :: atomic { nempty(buffer[c]) -> drain(c) } od
}

#ifdef TORN                     /* lost claims are to be the only fault */
#define STOP(t) if :: section[t] == COUNT -> section[t] = NONE :: else fi
#define INTERRUPTED(t, c) true
#else
#define STOP(t) section[t] = NONE
#define INTERRUPTED(t, c) (cpu[t] == c)
#endif
proctype scheduler_of(byte t) { byte w, x;
end: do
    :: atomic { RUNS && slices[t] > 0 -> slices[t]--; flush(cpu[t]); STOP(t); cpu[t] = OFF }
    :: atomic { cpu[t] == OFF && IDLE(0) -> cpu[t] = 0 }
    :: atomic { cpu[t] == OFF && IDLE(1) -> cpu[t] = 1 }
    od
}

#ifdef BLIND
#define TAKEN(c) false
#else
#define TAKEN(c) (own[SLOT(c)] != FREE)
#endif
#ifdef SLOTS
#define OTHER_WAY claim
#else
#define OTHER_WAY count
#endif
#ifdef LEAVE_HERE
#define HELD cpu[t]
#else
#define HELD c
#endif

proctype reader(byte t) { byte c, v, w, x, trips = (t == 0 -> TRIPS : 1); bit p;
claim:
    do
    ::  atomic { RUNS -> c = cpu[t];
            if :: TAKEN(c) -> c = 0; goto OTHER_WAY
               :: else -> section[t] = CLAIM; v = epoch fi }
        atomic { RUNS ->
            if :: section[t] == NONE -> c = 0; v = 0; goto claim
               :: section[t] == NONE -> c = 0; v = 0; goto OTHER_WAY
               :: section[t] != NONE -> store(cpu[t], SLOT(c), v); section[t] = NONE; v = 0 fi }
        atomic { RUNS -> ref[t] = 1 + cur }
#ifdef EARLY
        atomic { RUNS -> store(cpu[t], SLOT(HELD), FREE) }
        atomic { RUNS -> ref[t] = 0; c = 0; goto left }
#else
        atomic { RUNS -> ref[t] = 0; store(cpu[t], SLOT(HELD), FREE); c = 0; goto left }
#endif
count:  atomic { RUNS -> section[t] = COUNT; c = cpu[t]; p = phase; v = own[LOCK(p, c)] }
        atomic { RUNS ->
            if :: section[t] == NONE -> c = 0; p = 0; v = 0; goto count
               :: else -> store(cpu[t], LOCK(p, c), (v + 1) % WRAP);
                  section[t] = NONE; c = 0; v = 0 fi }
        atomic { RUNS -> ref[t] = 1 + cur }
leave:  atomic { RUNS -> ref[t] = 0; section[t] = COUNT; c = cpu[t]; v = own[UNLOCK(p, c)] }
        atomic { RUNS ->
            if :: section[t] == NONE -> c = 0; v = 0; goto leave
               :: else -> store(cpu[t], UNLOCK(p, c), (v + 1) % WRAP);
                  section[t] = NONE; c = 0; v = 0; p = 0 fi }
left:   atomic { RUNS -> slices[t] = SLICES; LIMIT(trips) }
    od;
    atomic { RUNS -> flush(cpu[t]); slices[t] = 0; cpu[t] = DONE }
}

#ifdef NO_RESTART
#define RESTARTS(i) false
#elif defined(LAZY)
#define RESTARTS(i) (section[i] == COUNT)
#else
#define RESTARTS(i) true
#endif
inline restart(i, c) {
    if :: INTERRUPTED(i, c) && RESTARTS(i) -> section[i] = NONE :: else fi
}
inline interrupt(c) { /* what membarrier does on one CPU */
    atomic { flush(c); restart(0, c); restart(READERS - 1, c) }
}
inline heavy() {
#ifndef NO_HEAVY
    if :: interrupt(0); interrupt(1) :: interrupt(1); interrupt(0) fi
#else
    skip
#endif
}
inline flip() {
#ifndef NO_FLIP
    phase = 1 - phase
#else
    skip
#endif
}
inline step() {
#ifndef NO_STEP
    epoch = (epoch + 1) % EPOCHS
#else
    skip
#endif
}
#ifdef WAIT_FREE
#define NEW(c) false
#else
#define NEW(c) (mem[SLOT(c)] == epoch)
#endif
inline look(c) { (mem[SLOT(c)] == FREE || NEW(c)) }
inline look_at_slots() {
#if defined(NO_SLOTS)
    skip
#elif defined(ONE_SLOT)
    look(0)
#else
    look(0); look(1)
#endif
}
inline add(word) { sum = (sum + mem[word]) % WRAP }
inline sub(word) { sum = (sum + WRAP - mem[word]) % WRAP }

active proctype updater() { byte sum, w, x, gps = GPS; bit old;
    do
    ::  cur = 1 - cur;
        old = phase;
#ifdef STEP_LATE
        flip(); heavy(); step(); look_at_slots();
#elif defined(LOOK_EARLY)
        flip(); step(); look_at_slots(); heavy();
#else
        flip(); step(); heavy(); look_at_slots();
#endif
#ifndef NO_COUNTS
        do
        ::  sum = 0;
            sub(UNLOCK(old, 0)); sub(UNLOCK(old, 1)); add(LOCK(old, 0)); add(LOCK(old, 1));
            if :: sum == 0 -> break :: else fi
        od;
#endif
progress: atomic {
            assert(ref[0] != 2 - cur && ref[READERS - 1] != 2 - cur); old = 0; LIMIT(gps)
        }
    od
}

init { byte t;
    atomic {
        for (t : 0 .. 9) { own[t] = WRAP - 1; mem[t] = WRAP - 1 }
        for (t : 0 .. 1) { own[SLOT(t)] = FREE; mem[SLOT(t)] = FREE; run buffer_of(t) }
        for (t : 0 .. READERS - 1) {
            cpu[t] = t; slices[t] = SLICES; run scheduler_of(t); run reader(t)
        }
        t = 0
    }
}
