//! Random calls on each lock, against a model of one thread.
//!
//! Guards are held in any order. All calls are made by one thread, so those that
//! would wait are not made: `try_read` and `try_write` say what the model says, and
//! `read` and `write` are called where the model says that they do not wait.

use proptest::prelude::*;
use rwsems::futex::Os;
use rwsems::pi_multi::PiMulti;
use rwsems::{RwSem, VisitLock};

const CALLS: usize = if cfg!(miri) { 12 } else { 60 };

fn config() -> ProptestConfig {
    ProptestConfig {
        cases: if cfg!(miri) { 4 } else { 200 },
        failure_persistence: None,
        ..ProptestConfig::default()
    }
}

#[derive(Clone, Copy)]
struct Calls<'a>(&'a [(u8, usize)]);

impl VisitLock for Calls<'_> {
    type Out = Result<(), TestCaseError>;
    fn visit<L: RwSem>(self) -> Self::Out {
        on(&L::new(), self.0)
    }
}

fn on<L: RwSem>(lock: &L, calls: &[(u8, usize)]) -> Result<(), TestCaseError> {
    let recursive = matches!(L::ABOUT.name, "pi-single" | "pi-multi");
    let mut readers = Vec::new();
    let mut writer = None;
    for &(call, n) in calls {
        // A writer of a recursive lock may read. A reader may always enter again:
        // nobody waits.
        let may_read = writer.is_none() || recursive;
        let may_write = writer.is_none() && readers.is_empty();
        match call {
            0 => {
                let got = lock.try_read();
                prop_assert_eq!(got.is_some(), may_read, "{}", L::ABOUT.name);
                readers.extend(got);
            }
            1 if may_read => readers.push(lock.read()),
            2 | 3 if !readers.is_empty() => drop(readers.swap_remove(n % readers.len())),
            4 => {
                let got = lock.try_write();
                prop_assert_eq!(got.is_some(), may_write, "{}", L::ABOUT.name);
                writer = got.or(writer);
            }
            5 if may_write => writer = Some(lock.write()),
            // The writer leaves last: what it reads is inside its section.
            6 if readers.is_empty() => writer = None,
            _ => {}
        }
    }
    readers.clear();
    writer = None;
    prop_assert!(lock.try_write().is_some() && writer.is_none());
    Ok(())
}

proptest! {
    #![proptest_config(config())]

    #[test]
    fn locks_do_as_the_model(calls in prop::collection::vec((0..7u8, 0..64usize), 0..CALLS)) {
        for about in rwsems::all().iter().filter(|about| about.locks) {
            if about.pi && rwsems::futex::pi_available().is_err() {
                continue;
            }
            rwsems::dispatch_lock(about.name, Calls(&calls)).expect("a lock")?;
        }
        if rwsems::futex::pi_available().is_ok() {
            on(&PiMulti::<Os>::with_limit(3), &calls)?;
        }
    }
}
