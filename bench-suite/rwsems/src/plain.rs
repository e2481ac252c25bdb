//! The locks that Rust programs use.
//!
//! Floor 3 (`rwsems`). Owns nothing; calls the standard library and
//! `parking_lot`.

use crate::{About, AtOnce, RwSem};
use std::sync::{PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard, TryLockError};

/// `std::sync::RwLock`, its poison ignored.
#[derive(Debug)]
pub struct Std(RwLock<()>);

impl RwSem for Std {
    const ABOUT: About = About {
        name: "std",
        what: "std::sync::RwLock: on Linux one word of readers and flags, a futex for readers and one for writers",
        progress: "waits for those inside; readers also for writers that wait",
        fairness: "writers before new readers; no promise",
        inherits: "nothing",
        source: "the standard library, used as it is",
        readers: AtOnce::All,
        nests: false,
        pi: false,
        percpu: false,
        locks: true,
    };

    type Read<'a> = RwLockReadGuard<'a, ()>;
    type Write<'a> = RwLockWriteGuard<'a, ()>;

    fn new() -> Self {
        Self(RwLock::new(()))
    }

    #[inline]
    fn read(&self) -> Self::Read<'_> {
        self.0.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn try_read(&self) -> Option<Self::Read<'_>> {
        match self.0.try_read() {
            Ok(guard) => Some(guard),
            Err(TryLockError::Poisoned(poisoned)) => Some(poisoned.into_inner()),
            Err(TryLockError::WouldBlock) => None,
        }
    }

    #[inline]
    fn write(&self) -> Self::Write<'_> {
        self.0.write().unwrap_or_else(PoisonError::into_inner)
    }

    fn try_write(&self) -> Option<Self::Write<'_>> {
        match self.0.try_write() {
            Ok(guard) => Some(guard),
            Err(TryLockError::Poisoned(poisoned)) => Some(poisoned.into_inner()),
            Err(TryLockError::WouldBlock) => None,
        }
    }
}

/// `parking_lot::RwLock`.
#[derive(Debug)]
pub struct ParkingLot(parking_lot::RwLock<()>);

impl RwSem for ParkingLot {
    const ABOUT: About = About {
        name: "parking-lot",
        what: "parking_lot::RwLock: one word, queues in a table of the process",
        progress: "waits for those inside and, as a reader, for a writer that waits",
        fairness: "task-fair; now and then a lock is handed over",
        inherits: "nothing",
        source: "the crate, used as it is",
        readers: AtOnce::All,
        nests: false,
        pi: false,
        percpu: false,
        locks: true,
    };

    type Read<'a> = parking_lot::RwLockReadGuard<'a, ()>;
    type Write<'a> = parking_lot::RwLockWriteGuard<'a, ()>;

    fn new() -> Self {
        Self(parking_lot::RwLock::new(()))
    }

    #[inline]
    fn read(&self) -> Self::Read<'_> {
        self.0.read()
    }

    fn try_read(&self) -> Option<Self::Read<'_>> {
        self.0.try_read()
    }

    #[inline]
    fn write(&self) -> Self::Write<'_> {
        self.0.write()
    }

    fn try_write(&self) -> Option<Self::Write<'_>> {
        self.0.try_write()
    }
}
