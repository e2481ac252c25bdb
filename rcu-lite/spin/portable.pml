/* The per-CPU flavour on the portable path: threads without restartable
   sections count themselves with atomic increments, on the membarrier rung and
   (-DFENCE) on the fence rung.

   Claims. Safety (assert): what was unlinked before a grace period is held by
   no reader after it, with one flip a grace period and at most two increments a
   reader (wait-free). Liveness (progress label, weak fairness): every grace
   period ends although readers keep coming.

   Reader: p = phase; lock[p] += 1; light barrier; if phase is not p any more:
   lock[1-p] += 1, light barrier, and hold both, without a further look. Load the
   pointer, use it, unlock what is held.
   Updater: unlink, flip, heavy barrier, wait until the sums of the old phase are
   equal, where ALL unlock words are read before the lock words.

   Mutants: -DNO_HEAVY; -DNO_RECHECK a reader counts in a stale phase;
   -DLOCKS_FIRST; -DEARLY release before the last access; -DFLIP_LATE heavy
   barrier before the flip; -DSWITCH a reader that finds the phase changed moves
   to the new one instead of holding both; with -DFENCE also -DNO_LIGHT,
   -DNO_LIGHT_2 no light barrier after the second increment. Liveness only:
   -DNO_FLIP; -DBOTH waits for the readers of both phases.

   Weak memory: an increment is atomic but not a barrier. It waits in a FIFO of
   its thread while later loads are satisfied, until it drains by itself or a
   barrier (the reader's own or the updater's heavy one) empties the FIFO. This
   is weaker than x86, where an atomic increment is a full barrier, and like ARM
   in this one respect. Cannot show: other C11 or ARM reorderings (increments of
   one thread that overtake each other, loads that overtake loads).

   -DX86 makes an increment a full barrier again (a smaller model, for liveness
   with two readers).

   Bounds: READERS threads that loop for ever, each with a FIFO of DEPTH; one
   updater that loops for ever; counters wrap at WRAP. One counter of each kind
   and phase, or (-DWORDS=2) one for each thread. WRAP=3 is sound for two readers
   behind a heavy barrier. It is not with -DFENCE, where a release that is not
   visible yet and the next, stale increment of the same thread make a difference
   of 2: the range must be twice the number of threads at least.
   Assumes: updaters take turns (shared.pml). */
#ifndef DEPTH
#define DEPTH 2
#endif
#ifndef READERS
#define READERS 2
#endif
#ifndef WRAP
#define WRAP 4
#endif
#ifndef WORDS
#define WORDS 1
#endif
#define LOCK(p, i)   ((p) * 4 + i)
#define UNLOCK(p, i) ((p) * 4 + 2 + i)
#define MINE (t % WORDS)

byte mem[8];
chan buffer[READERS] = [DEPTH] of { byte };   /* words to be incremented */
bit phase, cur;
byte ref[READERS];              /* ghost: 1 + the object that the reader holds */

inline drain(i) { buffer[i]?w; mem[w] = (mem[w] + 1) % WRAP; w = 0 }
inline flush(i) { do :: nempty(buffer[i]) -> drain(i) :: empty(buffer[i]) -> break od }
#ifdef X86
inline add(word) { mem[word] = (mem[word] + 1) % WRAP }
#else
inline add(word) { /* a full FIFO lets the oldest go first */
    if :: full(buffer[t]) -> drain(t) :: nfull(buffer[t]) fi; buffer[t]!word
}
#endif
#if defined(FENCE) && !defined(NO_LIGHT)
#define LIGHT flush(t)
#else
#define LIGHT skip
#endif
#if defined(FENCE) && !defined(NO_LIGHT_2)
#define LIGHT_2 flush(t)
#else
#define LIGHT_2 skip
#endif

proctype buffer_of(byte t) { byte w;
end: do :: atomic { nempty(buffer[t]) -> drain(t) } od
}

proctype reader(byte t) { byte w; bit p; bool both;
    do
    ::  p = phase;
        atomic { add(LOCK(p, MINE)); LIGHT }
#ifndef NO_RECHECK
        both = (phase != p);
        if
        :: both ->
#ifdef SWITCH
            atomic { add(UNLOCK(p, MINE)); p = 1 - p; both = false };
#endif
            atomic { add(LOCK(1 - p, MINE)); LIGHT_2 }
        :: else
        fi;
#endif
        ref[t] = 1 + cur;
#ifndef EARLY
        ref[t] = 0;
#endif
        atomic { add(UNLOCK(p, MINE)) }
        if :: both -> atomic { add(UNLOCK(1 - p, MINE)) } :: else fi;
        atomic { ref[t] = 0; p = 0; both = false }
    od
}

inline interrupt(i) { atomic { flush(i) } }
inline heavy() {
#if defined(NO_HEAVY) || defined(FENCE)
    skip
#elif READERS == 1
    interrupt(0)
#else
    if :: interrupt(0); interrupt(1) :: interrupt(1); interrupt(0) fi
#endif
}
inline flip() {
#ifndef NO_FLIP
    phase = 1 - phase
#else
    skip
#endif
}
inline plus(word) { sum = (sum + mem[word]) % WRAP }
inline minus(word) { sum = (sum + WRAP - mem[word]) % WRAP }
#if WORDS == 1
#define SUM(op, what, p) op(what(p, 0))
#else
#define SUM(op, what, p) op(what(p, 0)); op(what(p, 1))
#endif

active proctype updater() { byte sum, w; bit old;
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
            SUM(plus, LOCK, old); SUM(minus, UNLOCK, old);
#else
            SUM(minus, UNLOCK, old); SUM(plus, LOCK, old);
#endif
#ifdef BOTH
            SUM(minus, UNLOCK, 1 - old); SUM(plus, LOCK, 1 - old);
#endif
            if :: sum == 0 -> break :: else fi
        od;
progress: atomic { assert(ref[0] != 2 - cur && ref[READERS - 1] != 2 - cur); old = 0 }
    od
}

init { byte t;
    atomic { for (t : 0 .. READERS - 1) {
#ifndef X86
        run buffer_of(t);
#endif
        run reader(t)
    } t = 0 }
}
