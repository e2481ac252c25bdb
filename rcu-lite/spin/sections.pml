/* The per-CPU flavour on the rseq rung: readers count themselves in restartable
   sections, one flip of the phase makes a grace period.

   Claims. Safety (assert): what was unlinked before a grace period is held by
   no reader after it. Liveness (progress label, weak fairness): every grace
   period ends although readers keep coming. ONE flip suffices, because the
   heavy barrier restarts every section that saw the old phase and has not
   committed; for the same reason the order of summing does not matter here.

   Reader: section {c = CPU; p = phase; lock[p][c] += 1}, load the pointer, use
   it, section {unlock[p][c'] += 1} on whatever CPU it is by then.
   Updater: unlink, flip, heavy barrier, wait until the sums of the old phase
   are equal.

   Mutants: -DNO_HEAVY; -DNO_RESTART the heavy barrier only flushes store
   buffers; -DFLIP_LATE heavy barrier before the flip; -DTORN a preempted section
   is not restarted (lost updates: needs two readers); -DONE_CPU sums forget a
   CPU; -DEARLY release before the last access. Liveness only: -DNO_FLIP; -DBOTH waits
   for the readers of both phases.
   Not mutants: -DLOCKS_FIRST sums the lock words first. It must verify, except
   together with -DPORTABLE.
   -DPORTABLE: the last reader has no rseq and counts itself as in portable.pml
   (atomic increments of shared words, which enter the same sums).

   Bounds: 2 CPUs, each with a FIFO store buffer of 2 (x86-TSO). READERS threads,
   each switched out and in again, on any free CPU, up to SLICES times a trip;
   an updater on a CPU of its own. TRIPS of reader 0, one of reader 1, GPS grace
   periods; with -DFOREVER (feasible for one reader only) all loop for ever. Words
   start at their last value before they wrap, at WRAP. The sums differ by READERS
   at most, so WRAP = READERS + 1 is the narrowest sound width.
   Assumes: a context switch is a full barrier and restarts the section; updaters
   take turns (shared.pml). The updater's own store buffer is left out: it loads
   nothing before the heavy barrier empties it. Liveness is checked with one
   reader, who is not interrupted in each of his sections for ever. Cannot show:
   C11 or ARM reorderings. */
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
#define LOCK(p, c)   ((p) * 6 + c)     /* c == 2: the shared word */
#define UNLOCK(p, c) ((p) * 6 + 3 + c)
#ifdef FOREVER
#define LIMIT(n) skip
#else                           /* the last statement of a loop */
#define LIMIT(n) if :: n > 1 -> n-- :: else -> n = 0; break fi
#endif
#define OFF 2
#define DONE 3
#define RUNS (cpu[t] < OFF)
#define FREE(c) (cpu[0] != c && cpu[READERS - 1] != c)

byte own[12];                   /* the words as their own CPU sees them */
byte mem[12];                   /* ... and as all others do */
chan buffer[2] = [2] of { byte, byte };
bit phase, cur;                 /* cur: which object the pointer points to */
byte cpu[READERS];              /* where the thread runs */
byte slices[READERS];           /* context switches left on this trip */
bool section[READERS];          /* in a section that nothing has interrupted */
byte ref[READERS];              /* ghost: 1 + the object that the reader holds */

inline drain(c) { buffer[c]?w, x; mem[w] = x; w = 0; x = 0 }
inline flush(c) { do :: nempty(buffer[c]) -> drain(c) :: empty(buffer[c]) -> break od }
inline store(c, word, value) { /* a full buffer lets the oldest store go first */
    if :: full(buffer[c]) -> drain(c) :: nfull(buffer[c]) fi;
    own[word] = value; buffer[c]!word, value
}
inline rmw(word) { mem[word] = (mem[word] + 1) % WRAP }

proctype buffer_of(byte c) { byte w, x;
end: do :: atomic { nempty(buffer[c]) -> drain(c) } od
}

proctype scheduler_of(byte t) { byte w, x;
end: do
    :: atomic { RUNS && slices[t] > 0 ->
            slices[t]--; flush(cpu[t]);
#ifndef TORN
            section[t] = false;
#endif
            cpu[t] = OFF }
    :: atomic { cpu[t] == OFF && FREE(0) -> cpu[t] = 0 }
    :: atomic { cpu[t] == OFF && FREE(1) -> cpu[t] = 1 }
    od
}

proctype reader(byte t) { byte c, v, w, x, trips = (t == 0 -> TRIPS : 1); bit p;
enter:
    do
    ::  atomic { RUNS -> section[t] = true; c = cpu[t]; p = phase; v = own[LOCK(p, c)] }
        atomic { RUNS ->
            if :: !section[t] -> v = 0; goto enter
               :: else -> store(cpu[t], LOCK(p, c), (v + 1) % WRAP);
                  section[t] = false; c = 0; v = 0 fi }
        atomic { RUNS -> ref[t] = 1 + cur }
#ifndef EARLY
        atomic { RUNS -> ref[t] = 0 }
#endif
leave:  atomic { RUNS -> section[t] = true; c = cpu[t]; v = own[UNLOCK(p, c)] }
        atomic { RUNS ->
            if :: !section[t] -> v = 0; goto leave
               :: else -> store(cpu[t], UNLOCK(p, c), (v + 1) % WRAP);
                  section[t] = false; c = 0; v = 0 fi }
        atomic { RUNS -> ref[t] = 0; p = 0; slices[t] = SLICES; LIMIT(trips) }
    od;
    atomic { RUNS -> flush(cpu[t]); slices[t] = 0; cpu[t] = DONE }
}

#ifdef PORTABLE
proctype portable(byte t) { byte w, x, trips = (t == 0 -> TRIPS : 1); bit p; bool both;
    do
    ::  atomic { RUNS -> p = phase }
        atomic { RUNS -> flush(cpu[t]); rmw(LOCK(p, 2)) }
        atomic { RUNS -> both = (phase != p) }
        if :: both -> atomic { RUNS -> flush(cpu[t]); rmw(LOCK(1 - p, 2)) }
           :: else fi;
        atomic { RUNS -> ref[t] = 1 + cur }
        atomic { RUNS -> ref[t] = 0; flush(cpu[t]); rmw(UNLOCK(p, 2)) }
        if :: both -> atomic { RUNS -> flush(cpu[t]); rmw(UNLOCK(1 - p, 2)) }
           :: else fi;
        atomic { RUNS -> p = 0; both = false; slices[t] = SLICES; LIMIT(trips) }
    od;
    atomic { RUNS -> flush(cpu[t]); slices[t] = 0; cpu[t] = DONE }
}
#endif

#ifdef TORN                     /* lost updates are to be the only fault */
#define INTERRUPTED(t, c) true
#else
#define INTERRUPTED(t, c) (cpu[t] == c)
#endif
inline interrupt(c) { /* what membarrier does on one CPU */
    atomic { flush(c);
#ifndef NO_RESTART
        if :: INTERRUPTED(0, c) -> section[0] = false :: else fi;
        if :: INTERRUPTED(READERS - 1, c) -> section[READERS - 1] = false :: else fi
#endif
    }
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
inline add(word) { sum = (sum + mem[word]) % WRAP }
inline sub(word) { sum = (sum + WRAP - mem[word]) % WRAP }
#ifdef ONE_CPU
#define WORDS(op, what, p) op(what(p, 0)); op(what(p, 2))
#elif defined(PORTABLE)
#define WORDS(op, what, p) op(what(p, 0)); op(what(p, 1)); op(what(p, 2))
#else
#define WORDS(op, what, p) op(what(p, 0)); op(what(p, 1))
#endif

active proctype updater() { byte sum, w, x, gps = GPS; bit old;
    do
    ::  cur = 1 - cur;
        old = phase;
#ifdef FLIP_LATE
        heavy(); flip();
#else
        flip(); heavy();
#endif
        do
        ::  sum = 0;
#ifdef LOCKS_FIRST
            WORDS(add, LOCK, old); WORDS(sub, UNLOCK, old);
#else
            WORDS(sub, UNLOCK, old); WORDS(add, LOCK, old);
#endif
#ifdef BOTH
            WORDS(sub, UNLOCK, 1 - old); WORDS(add, LOCK, 1 - old);
#endif
            if :: sum == 0 -> break :: else fi
        od;
progress: atomic {
            assert(ref[0] != 2 - cur && ref[READERS - 1] != 2 - cur); old = 0; LIMIT(gps)
        }
    od
}

init { byte t;
    atomic {
        for (t : 0 .. 11) { own[t] = WRAP - 1; mem[t] = WRAP - 1 }
        run buffer_of(0); run buffer_of(1);
        for (t : 0 .. READERS - 1) {
            cpu[t] = t; slices[t] = SLICES; run scheduler_of(t);
#ifdef PORTABLE
            if :: t == READERS - 1 -> run portable(t) :: else -> run reader(t) fi
#else
            run reader(t)
#endif
        }
        t = 0
    }
}
