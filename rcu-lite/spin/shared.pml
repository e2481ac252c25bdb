/* Sharing grace periods: who needs one takes part in one that somebody else runs,
   if it began late enough. `seq` is even when idle and odd while one runs.

   Claims. Safety (assert): when `synchronize` returns, no reader holds what its
   caller had unlinked before the call. Liveness (progress label, weak
   fairness): every call returns although readers and other callers keep coming
   and the lock is unfair.

   snap: s = atomic read-modify-write of seq that changes nothing; target = s + 2
   if s is even, s + 3 if it is odd (the one that runs began too early).
   synchronize: t = snap; loop { seq has reached t: done; try-lock; if got it:
   if seq has not reached t: seq += 1, flip, heavy barrier, wait, seq += 1; unlock }
   "Has reached" compares by wrapping distance.

   Mutants: -DTARGET_2 target s + 2 always (joins one that runs); -DSNAP_EARLY
   snap before the unlink; -DSNAP_LOAD snap by a plain load, which overtakes the
   unlink; -DODD_LATE seq becomes odd after the grace period began; -DEVEN_EARLY
   seq becomes even before the wait; -DBITS=2 too narrow. Liveness only:
   -DNO_SHARE who got no lock does not look at seq again.
   Not a mutant: -DNO_SECOND_LOOK, who got the lock does not look at seq again,
   verifies: it runs a grace period too many.

   Flip, heavy barrier and wait are abstract here, as the other models prove them:
   the readers inside at the beginning are gone at the end.

   Bounds: 2 callers, each with an object of its own and a store buffer of 1 for
   the unlink (x86-TSO); READERS readers; all loop for ever; seq has BITS bits. The
   lock is taken and left by atomic operations, and the stores to seq are made by
   whoever holds it, so they need no buffer but for the first, which the heavy
   barrier flushes before the grace period begins (-DODD_LATE is what happens if
   it does not).
   Liveness is that of caller 0. Assumes, for liveness only (-DASSUME_AWAKE):
   nobody sleeps in the loop through half the range of seq. If he does, he needs
   more grace periods, and is still safe. Cannot show: C11 or ARM reorderings. */
#ifndef READERS
#define READERS 1
#endif
#ifndef BITS
#define BITS 3
#endif
#define RANGE (1 << BITS)
#define REACHED(t) ((seq + RANGE - t) % RANGE < RANGE / 2)

byte seq;
bool locked;
bool linked[2];                 /* object i can be found by readers */
bool pending[2];                /* caller i's unlink is in its store buffer */
byte target[2];
bool waiting[2];                /* ghost: caller i has a target */
byte ref[READERS];              /* ghost: 1 + the object that the reader holds */
bool inside[READERS];
bool old[READERS];              /* inside when the grace period began */

inline flush(i) { if :: pending[i] -> pending[i] = false; linked[i] = false :: else fi }

proctype buffer_of(byte t) {
end: do :: atomic { pending[t] -> flush(t) } od
}

proctype reader(byte t) {
    do
    ::  inside[t] = true;
        if
        :: atomic { linked[0] -> ref[t] = 1 }
        :: atomic { linked[1] -> ref[t] = 2 }
        :: skip
        fi;
        atomic { ref[t] = 0; inside[t] = false; old[t] = false }
    od
}

inline unlink() { pending[t] = true }
inline snap() {
    atomic {
#ifndef SNAP_LOAD
        flush(t);
#endif
#ifdef TARGET_2
        target[t] = (seq + 2) % RANGE;
#else
        target[t] = (seq + 2 + seq % 2) % RANGE;
#endif
        waiting[t] = true
    }
}
/* For liveness: nobody begins a grace period that would take seq more than half
   the range past the target of one who has not looked yet. */
#ifdef ASSUME_AWAKE
#define PAST (seq + 2 + RANGE - target[1 - t])
#define MAY_BEGIN !(waiting[1 - t] && PAST % RANGE == RANGE / 2)
#else
#define MAY_BEGIN true
#endif
inline grace_period() {
#ifndef ODD_LATE
    atomic { MAY_BEGIN -> seq = (seq + 1) % RANGE };
#endif
    atomic { flush(t); old[0] = inside[0]; old[READERS - 1] = inside[READERS - 1] };
#ifdef ODD_LATE
    seq = (seq + 1) % RANGE;
#endif
#ifdef EVEN_EARLY
    seq = (seq + 1) % RANGE;
#endif
    atomic { !old[0] && !old[READERS - 1] -> skip };
#ifndef EVEN_EARLY
    seq = (seq + 1) % RANGE;
#endif
}

proctype caller(byte t) {
    do
    ::
#ifdef SNAP_EARLY
        snap(); unlink();
#else
        unlink(); snap();
#endif
        do
#ifndef NO_SHARE
        :: REACHED(target[t]) -> break
        :: else ->
#else
        ::
#endif
            if
            :: atomic { !locked -> locked = true }
            :: atomic { locked -> goto again }
            fi;
            if
#ifndef NO_SECOND_LOOK
            :: REACHED(target[t])
#endif
            :: else -> grace_period()
            fi;
            locked = false
#ifdef NO_SHARE
            ; break
#endif
            ;
again:      skip
        od;
        if :: t == 0 ->
progress:   skip
           :: else fi;
        atomic {
            assert(ref[0] != t + 1 && ref[READERS - 1] != t + 1);
            waiting[t] = false; target[t] = 0;
            flush(t); linked[t] = true      /* a new object */
        }
    od
}

init {
    atomic {
        linked[0] = true; linked[1] = true;
        run buffer_of(0); run buffer_of(1);
        run reader(0);
        if :: READERS > 1 -> run reader(READERS - 1) :: else fi;
        run caller(0); run caller(1)
    }
}
