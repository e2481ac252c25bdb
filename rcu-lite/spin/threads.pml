/* The per-thread flavour: every thread has a word with the epoch it saw and its
   nesting; the global epoch `gp` is a counter that wraps.

   Claims. Safety (assert): what was unlinked before a grace period is held by
   no reader after it. Liveness (progress label, weak fairness): every grace
   period ends although readers keep coming.

   Reader: outermost lock {e = gp; ctr = (e, 1)}, a compiler barrier only; nested
   lock and unlock change the nesting; the last unlock stores 0.
   Updater: unlink, gp += 1 (now k), heavy barrier, then wait for each thread
   until it is outside or its epoch is not older than k.

   A reader may sleep between loading gp and storing it. Which test for "older"
   is right depends on what may happen meanwhile:
     default     wrapping distance. Sound if fewer than EPOCHS/2 grace periods
                 begin meanwhile (so the updater is held back here).
     -DEQUAL     "not k". Sound if fewer than EPOCHS - 1 begin meanwhile. (gp
                 cannot move on during the wait: updaters take turns.)
     -DRECHECK   after storing e the reader looks at gp again; if it moved, the
                 reader marks itself as in no epoch, and whoever waits waits for
                 it. Test: "not k". Sound without any assumption, even with
                 -DEPOCHS=2, and still wait-free.
   -DASSUME_NOTHING takes the assumption away: kills the first two, not the third.

   Mutants: -DNO_HEAVY; -DHEAVY_EARLY heavy barrier before the unlink; -DEARLY
   quiescent before the last access; -DNESTED_EPOCH a nested lock stores the
   epoch anew; -DNESTED_CLEAR a nested unlock announces quiescence; -DNESTED_SKIP
   nested readers are not waited for; -DEPOCH_ONLY "outside" is read off the
   epoch, which may be 0 inside; -DNO_STEP does not increment gp. Liveness only:
   -DWAIT_ALL waits for everybody to be outside, whatever the epoch.
   Not a mutant: -DHEAVY_BETWEEN, the heavy barrier after the unlink and before
   gp += 1, verifies, with one epoch less of slack (so -DRECHECK needs 3).

   Bounds: READERS threads that loop for ever, each with a FIFO store buffer of
   DEPTH (x86-TSO), nesting up to 2; one updater that loops for ever. Moving a thread to
   another CPU is a full barrier, which the buffer may do at any time. Assumes:
   updaters take turns (shared.pml). The updater's store buffer is left out: gp +=
   1 is atomic. Cannot show: C11 or ARM reorderings. */
#ifndef DEPTH
#define DEPTH 2
#endif
#ifndef READERS
#define READERS 2
#endif
#ifndef EPOCHS
#define EPOCHS 4
#endif
#define NOWHERE EPOCHS          /* an epoch that gp never has */
#define WORD(epoch, nesting) (nesting * 16 + epoch)
#define EPOCH(word)   (word % 16)
#define NESTING(word) (word / 16)

byte ctr[READERS];
chan buffer[READERS] = [DEPTH] of { byte };
byte gp;
bit cur;
byte ref[READERS];              /* ghost: 1 + the object that the reader holds */
byte seen[READERS];             /* epoch loaded */
bool between[READERS];          /* ghost: epoch loaded and not yet stored */

inline drain(i) { buffer[i]?ctr[i] }
inline flush(i) { do :: nempty(buffer[i]) -> drain(i) :: empty(buffer[i]) -> break od }
inline store(value) { /* a full buffer lets the oldest store go first */
    if :: full(buffer[t]) -> drain(t) :: nfull(buffer[t]) fi; buffer[t]!value
}

proctype buffer_of(byte t) {
end: do :: atomic { nempty(buffer[t]) -> drain(t) } od
}

proctype reader(byte t) {
    do
    ::  atomic { seen[t] = gp; between[t] = true };
        atomic { store(WORD(seen[t], 1)); between[t] = false };
#ifdef RECHECK
        if :: gp != seen[t] -> atomic { seen[t] = NOWHERE; store(WORD(seen[t], 1)) }
           :: else fi;
#endif
        ref[t] = 1 + cur;
        if
        ::  skip
        ::
#ifdef NESTED_EPOCH
            seen[t] = gp;
#endif
            atomic { store(WORD(seen[t], 2)) };
#ifdef NESTED_CLEAR
            atomic { store(0) }
#else
            atomic { store(WORD(seen[t], 1)) }
#endif
        fi;
#ifndef EARLY
        ref[t] = 0;
#endif
        atomic { store(0); seen[t] = 0 };
        ref[t] = 0
    od
}

#ifdef EPOCH_ONLY
#define OUTSIDE(w) (EPOCH(w) == 0)
#elif defined(NESTED_SKIP)
#define OUTSIDE(w) (NESTING(w) != 1)
#else
#define OUTSIDE(w) (NESTING(w) == 0)
#endif
#ifdef WAIT_ALL
#define NEW(w) false
#elif defined(EQUAL) || defined(RECHECK)
#define NEW(w) (EPOCH(w) == gp)
#else
#define NEW(w) ((EPOCH(w) + EPOCHS - gp) % EPOCHS < EPOCHS / 2)
#endif
/* If this reader stores its epoch during the coming grace period, would the one
   after that take it for new? (HEAVY_BETWEEN: one later, as the store may stay
   invisible for one.) */
#ifdef HEAVY_BETWEEN
#define AGE(i) ((gp + 3 + EPOCHS - seen[i]) % EPOCHS)
#else
#define AGE(i) ((gp + 2 + EPOCHS - seen[i]) % EPOCHS)
#endif
#ifdef EQUAL
#define TOO_LATE(i) (between[i] && AGE(i) == 0)
#else
#define TOO_LATE(i) (between[i] && (AGE(i) > EPOCHS / 2 || AGE(i) < 2))
#endif

inline interrupt(i) { atomic { flush(i) } }
inline heavy() {
#ifdef NO_HEAVY
    skip
#elif READERS == 1
    interrupt(0)
#else
    if :: interrupt(0); interrupt(1) :: interrupt(1); interrupt(0) fi
#endif
}
inline step() {
#ifdef NO_STEP
    skip
#elif defined(ASSUME_NOTHING) || defined(RECHECK)
    gp = (gp + 1) % EPOCHS
#else
    atomic { !TOO_LATE(0) && !TOO_LATE((READERS - 1)) -> gp = (gp + 1) % EPOCHS }
#endif
}

active proctype updater() { byte i;
    do
    ::
#ifdef HEAVY_EARLY
        heavy(); cur = 1 - cur; step();
#elif defined(HEAVY_BETWEEN)
        cur = 1 - cur; heavy(); step();
#else
        cur = 1 - cur; step(); heavy();
#endif
        do
        :: atomic { OUTSIDE(ctr[i]) || NEW(ctr[i]) -> i++;
               if :: i == READERS -> break :: else fi }
        :: atomic { !(OUTSIDE(ctr[i]) || NEW(ctr[i])) -> skip }
        od;
progress: atomic { assert(ref[0] != 2 - cur && ref[READERS - 1] != 2 - cur); i = 0 }
    od
}

init { byte t;
    atomic { for (t : 0 .. READERS - 1) { run buffer_of(t); run reader(t) } t = 0 }
}
