//! A scheme that must wait for a moment without a reference says so, and the others do not wait.

mod common;

use phash::{Handle, Phash, Replaced, Replaces, Scheme, Visit};
use std::time::{Duration, Instant};

/// One reference is held for good.
struct Held;

impl Visit for Held {
    type Out = ();

    fn visit<S: Scheme>(self) {
        let hash = Phash::<S>::new(2);
        let (census, holder, other) = (hash.census(), Handle::new(), Handle::new());
        let short = || Some(Instant::now() + Duration::from_millis(30));
        hash.look(&holder, |table| {
            let outcome = hash.replace(&other, 4, short());
            match S::ABOUT.replaces {
                Replaces::Never => assert_eq!(outcome, Replaced::Never),
                Replaces::AtOnce => {
                    assert_eq!(outcome, Replaced::InUse);
                    assert_eq!(
                        (census.completed(), census.freed()),
                        (1, 0),
                        "{}",
                        S::ABOUT.name
                    );
                    assert_eq!(hash.look(&other, |table| table.buckets()), 4);
                }
                Replaces::WhenUnused => {
                    assert_eq!(outcome, Replaced::Pending, "{}", S::ABOUT.name);
                    assert_eq!(census.completed(), 0, "{}", S::ABOUT.name);
                    assert_eq!(hash.look(&other, |table| table.buckets()), 2);
                    // A second request waits for its turn, in vain.
                    assert_eq!(hash.replace(&other, 8, short()), Replaced::Busy);
                }
            }
            assert!(
                table.is_alive() && table.buckets() == 2,
                "{}",
                S::ABOUT.name
            );
        });
        // The pending one was carried out by whoever left last; the one that was refused was not.
        match S::ABOUT.replaces {
            Replaces::Never => return,
            Replaces::AtOnce => {}
            Replaces::WhenUnused => {
                assert!(census.in_use_after()[0] >= Duration::from_millis(30));
            }
        }
        assert_eq!(census.completed(), 1, "{}", S::ABOUT.name);
        assert_eq!(hash.look(&other, |table| table.buckets()), 4);
    }
}

#[test]
fn a_reference_that_is_held() {
    common::each(|| Held);
}

/// Two requests at a time: both are carried out, one after the other.
struct Queued;

impl Visit for Queued {
    type Out = ();

    fn visit<S: Scheme>(self) {
        if !common::replaces::<S>() {
            return;
        }
        let hash = Phash::<S>::new(1);
        let census = hash.census();
        std::thread::scope(|scope| {
            for _ in 0..3 {
                scope.spawn(|| {
                    let thread = Handle::new();
                    for log in 0..50 {
                        assert_eq!(hash.replace(&thread, 1 << (log % 4), None), Replaced::InUse);
                    }
                });
            }
        });
        assert_eq!(
            (census.completed(), census.made()),
            (150, 151),
            "{}",
            S::ABOUT.name
        );
    }
}

#[test]
#[cfg_attr(miri, ignore = "slow")]
fn requests_take_turns() {
    common::each(|| Queued);
}
