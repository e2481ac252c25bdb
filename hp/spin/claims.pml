/* Hazard slots of CPUs and of threads: claims by restartable sections, overflow by
   publish and recheck, moves from one to the other, scans.

   Claims. Safety (assert): what was unlinked and is in no slot after a heavy barrier
   is used by no reader. Liveness (progress label, weak fairness): a protection ends,
   however often its sections are interrupted.

   Reader: section {c = CPU; slot[c] FREE? p = source; slot[c] = p}: no recheck. Taken,
   or interrupted BOUND times: own = p; light barrier; source still p? else again. Use
   it; with -DMOVE own = p, slot[c] = FREE, use it again. Store FREE, from whatever CPU
   it is on by then.
   Reclaimer: unlink, heavy barrier, look at the CPUs' slots, then at the threads';
   found in none: free.

   Rungs: sections and a barrier that restarts them (default); -DMEMBARRIER no sections,
   the barrier empties store buffers; -DFENCE no sections, fences of one's own.

   Mutants: -DNO_HEAVY; -DNO_RESTART the barrier only empties buffers; -DTORN an
   interrupted section goes on; -DBLIND a claim does not look whether the slot is FREE;
   -DNO_OWN the scan forgets the threads' slots; -DNO_RECHECK; -DEARLY release before
   the last use; with -DMOVE -DCLEAR_FIRST and -DOWN_FIRST (the scan's order); with
   -DFENCE -DNO_LIGHT. Liveness only: -DUNBOUNDED sections are tried for ever.

   Bounds: two CPUs and the reclaimer's, each with a FIFO store buffer of two
   (x86-TSO). READERS threads; BUDGET times a running one is switched out, in again on
   either CPU; a switch empties the buffer and interrupts the section. Which bounds
   matter is decided by the mutants: each must die.

   Cannot show: weaker orders than TSO (loom's models and Miri do), memory that comes
   back under the same address, clones. */

#ifndef READERS
#define READERS 2
#endif
#ifndef BUDGET
#define BUDGET 3
#endif
#ifndef BOUND
#define BOUND 1
#endif

#define FREE 0
#define OLD 1           /* the object that is unlinked */
#define NEW 2

/* Words: the slots of CPU 0 and 1, the source, the threads' slots. */
#define SRC 2
#define OWN(t) (3 + (t))
byte mem[5];

/* Store buffers: how full, then address and value, the oldest first. */
byte held[3];
byte addr[6];
byte val[6];

byte cpu[READERS];      /* where it runs or ran */
bool runs[READERS];
bool over[READERS];
bool cut[READERS];      /* the section was interrupted */
bool moved[READERS];    /* it has done something since it was switched in */
bool freed;

inline load(on, a, to) {
    to = mem[a];
    if :: held[on] > 0 && addr[2 * (on)] == (a) -> to = val[2 * (on)] :: else fi;
    if :: held[on] > 1 && addr[2 * (on) + 1] == (a) -> to = val[2 * (on) + 1] :: else fi
}

inline drain(on) {
    mem[addr[2 * (on)]] = val[2 * (on)];
    addr[2 * (on)] = addr[2 * (on) + 1]; val[2 * (on)] = val[2 * (on) + 1];
    addr[2 * (on) + 1] = 0; val[2 * (on) + 1] = 0;
    held[on] = held[on] - 1
}

inline flush(on) {
    if :: held[on] > 0 -> drain(on) :: else fi;
    if :: held[on] > 0 -> drain(on) :: else fi
}

inline store(on, a, v) {
    if :: held[on] == 2 -> drain(on) :: else fi;
    addr[2 * (on) + held[on]] = a; val[2 * (on) + held[on]] = v;
    held[on] = held[on] + 1
}

active proctype memory() {
end: do
    :: d_step { held[0] > 0 -> drain(0) }
    :: d_step { held[1] > 0 -> drain(1) }
    :: d_step { held[2] > 0 -> drain(2) }
    od
}

#define used(c) ((runs[0] && cpu[0] == (c)) || (READERS > 1 && runs[READERS - 1] && cpu[READERS - 1] == (c)))

#ifdef FOREVER
#define MAY_CUT(t) runs[t] && moved[t]
#define COUNT skip
#else
#define MAY_CUT(t) runs[t] && left > 0
#define COUNT left = left - 1
#endif

/* Out, which empties the buffer and interrupts a section; in, on either CPU. */
#define TURNS(t) \
    :: d_step { MAY_CUT(t) -> COUNT; flush(cpu[t]); cut[t] = true; runs[t] = false } \
    :: d_step { !runs[t] && !over[t] && !used(0) -> cpu[t] = 0; runs[t] = true; moved[t] = false } \
    :: d_step { !runs[t] && !over[t] && !used(1) -> cpu[t] = 1; runs[t] = true; moved[t] = false }

active proctype scheduler() {
    byte left = BUDGET;
end: do
    TURNS(0)
#if READERS > 1
    TURNS(1)
#endif
    od
}

#define GO atomic { runs[t] -> moved[t] = true
#ifdef TORN
#define WHOLE true
#else
#define WHOLE !cut[t]
#endif

#define USE(t) assert(!(p == OLD && freed)); GO; assert(!(p == OLD && freed)) }

proctype reader(byte t) {
    byte c, s, p, r, tries;
    bool own;
again:
    own = false; tries = 0;
#if defined(MEMBARRIER) || defined(FENCE)
    goto overflow;
#endif
claim:
    GO; c = cpu[t]; cut[t] = false }
    GO; if :: WHOLE -> d_step { load(cpu[t], c, s) } :: else -> goto interrupted fi }
#ifndef BLIND
    if :: s != FREE -> goto overflow :: else fi;
#endif
    GO; if :: WHOLE -> d_step { load(cpu[t], SRC, p) } :: else -> goto interrupted fi }
    GO; if :: WHOLE -> d_step { store(cpu[t], c, p) } :: else -> goto interrupted fi }
    goto protected;
interrupted:
#ifdef UNBOUNDED
    goto claim;
#else
    tries++;
    if :: tries < BOUND -> goto claim :: else fi;
#endif
overflow:
    own = true;
    GO; d_step { load(cpu[t], SRC, p) } }
    GO; d_step { store(cpu[t], OWN(t), p) } }
#if defined(FENCE) && !defined(NO_LIGHT)
    GO; d_step { flush(cpu[t]) } }
#endif
    GO; d_step { load(cpu[t], SRC, r) } }
#ifndef NO_RECHECK
    if :: r != p -> goto overflow :: else fi;
#endif
protected:
    USE(t);
#ifdef MOVE
    if
    :: !own ->
#ifdef CLEAR_FIRST
        GO; d_step { store(cpu[t], c, FREE) } }
        GO; d_step { store(cpu[t], OWN(t), p) } }
#else
        GO; d_step { store(cpu[t], OWN(t), p) } }
        GO; d_step { store(cpu[t], c, FREE) } }
#endif
        own = true
    :: else
    fi;
#endif
#ifndef EARLY
    USE(t);
#endif
    GO; if
        :: own -> d_step { store(cpu[t], OWN(t), FREE) }
        :: else -> d_step { store(cpu[t], c, FREE) }
        fi }
#ifdef EARLY
    USE(t);
#endif
#ifdef FOREVER
progress:
    goto again;
#endif
    GO; runs[t] = false; over[t] = true }
}

/* An interrupt on a CPU: its buffer empties, a section there starts again. */
inline interrupt(on) {
    d_step {
        flush(on);
#ifndef NO_RESTART
        if :: runs[0] && cpu[0] == (on) -> cut[0] = true :: else fi;
        if :: READERS > 1 && runs[READERS - 1] && cpu[READERS - 1] == (on) -> cut[READERS - 1] = true :: else fi;
#endif
        skip
    }
}

inline look(a) {
    d_step { load(2, a, s) };
    if :: s == OLD -> goto found :: else fi
}

proctype reclaimer() {
    byte s;
    /* A read-modify-write: the unlinking is everybody's to see. */
    d_step { flush(2); mem[SRC] = NEW };
#ifndef NO_HEAVY
#ifndef FENCE
    if
    :: interrupt(0); interrupt(1)
    :: interrupt(1); interrupt(0)
    fi;
#endif
#endif
#if defined(OWN_FIRST) && !defined(NO_OWN)
    look(OWN(0));
    look(OWN(READERS - 1));
#endif
    look(0);
    look(1);
#if !defined(OWN_FIRST) && !defined(NO_OWN)
    look(OWN(0));
    look(OWN(READERS - 1));
#endif
    freed = true;
found:
    skip
}

init {
    atomic {
        mem[SRC] = OLD;
        cpu[0] = 0; runs[0] = true;
        run reader(0);
#if READERS > 1
        cpu[1] = 1; runs[1] = true;
        run reader(1);
#endif
        run reclaimer()
    }
}
