//! Against a sequential model: waits, wakes and replacements in random orders on few words.
//!
//! A wait is a thread that sleeps until it is woken. The model knows who waits on which word, the longest first; after
//! each step the program must agree, and a wait that the model takes to be queued must be.

mod common;

use phash::{Handle, Phash, Replaced, Scheme, Visit, Wait};
use proptest::prelude::*;
use std::collections::VecDeque;
use std::sync::atomic::{AtomicU32, Ordering::SeqCst};
use std::sync::mpsc;
use std::time::{Duration, Instant};

const WORDS: usize = 3;
const STEPS: usize = if cfg!(miri) { 8 } else { 30 };

#[derive(Clone, Debug)]
enum Step {
    /// A thread waits on the word for what it holds.
    Wait(usize),
    /// A thread waits for what the word does not hold.
    Mismatch(usize),
    /// A thread waits, but not for long.
    Short(usize),
    Wake(usize, usize),
    /// By a table of two to the so-manieth.
    Replace(u32),
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        4 => (0..WORDS).prop_map(Step::Wait),
        1 => (0..WORDS).prop_map(Step::Mismatch),
        1 => (0..WORDS).prop_map(Step::Short),
        3 => (0..WORDS, 0..4usize).prop_map(|(word, most)| Step::Wake(word, most)),
        2 => (0..4u32).prop_map(Step::Replace),
    ]
}

struct Run<'a>(&'a [Step]);

impl Visit for Run<'_> {
    type Out = Result<(), TestCaseError>;

    fn visit<S: Scheme>(self) -> Self::Out {
        let hash = Phash::<S>::new(1);
        let census = hash.census();
        let words: [AtomicU32; WORDS] = Default::default();
        let mut replaced = 0;
        std::thread::scope(|scope| {
            let (tell, told) = mpsc::channel();
            let mut queues: [VecDeque<usize>; WORDS] = Default::default();
            let mut thread = Handle::new();
            // Waits for the program to agree with the model, and lets everybody go at a disagreement.
            let outcome = (|| {
                for (number, step) in self.0.iter().enumerate() {
                    let mut gone = Vec::new();
                    match *step {
                        Step::Wait(word) => {
                            let (hash, words, tell) = (&hash, &words, tell.clone());
                            scope.spawn(move || {
                                let mut thread = Handle::that_sleeps(common::Spurious::default());
                                let wait = hash.wait(&mut thread, &words[word], 0, None);
                                // Nobody listens any more to those that are let go at the end.
                                let _ = tell.send((number, wait, thread.dead()));
                            });
                            queues[word].push_back(number);
                        }
                        Step::Mismatch(word) => {
                            let wait = hash.wait(&mut thread, &words[word], 1, None);
                            prop_assert_eq!(wait, Wait::Mismatch);
                        }
                        Step::Short(word) => {
                            let until = Instant::now() + Duration::from_micros(200);
                            let wait = hash.wait(&mut thread, &words[word], 0, Some(until));
                            prop_assert_eq!(wait, Wait::TimedOut);
                        }
                        Step::Wake(word, most) => {
                            let woken = hash.wake(&mut thread, &words[word], most);
                            prop_assert_eq!(woken, most.min(queues[word].len()));
                            gone.extend(queues[word].drain(..woken));
                        }
                        Step::Replace(log) => {
                            let outcome = hash.replace(&thread, 1 << log, None);
                            if common::replaces::<S>() {
                                prop_assert_eq!(outcome, Replaced::InUse);
                                replaced += 1;
                                prop_assert_eq!(hash.look(&thread, |t| t.buckets()), 1 << log);
                            } else {
                                prop_assert_eq!(outcome, Replaced::Never);
                            }
                        }
                    }
                    // Exactly those who were taken out return.
                    for _ in 0..gone.len() {
                        let (who, wait, dead) =
                            told.recv_timeout(Duration::from_secs(30)).map_err(|_| {
                                TestCaseError::fail(format!("{}: a lost wake-up", S::ABOUT.name))
                            })?;
                        prop_assert!(gone.contains(&who), "{}: {who} of {gone:?}", S::ABOUT.name);
                        prop_assert_eq!((wait, dead), (Wait::Woken, 0));
                    }
                    let waiting = queues.iter().map(VecDeque::len).sum();
                    let start = Instant::now();
                    while hash.look(&thread, |t| t.queued()) != waiting {
                        prop_assert!(start.elapsed() < Duration::from_secs(30), "never queued");
                        std::thread::yield_now();
                    }
                    // A thread that is queued is announced, and nobody else is.
                    prop_assert_eq!(hash.look(&thread, |t| t.announced()), waiting);
                }
                Ok(())
            })();
            for word in &words {
                word.store(7, SeqCst);
                hash.wake(&mut thread, word, usize::MAX);
            }
            outcome
        })?;
        prop_assert_eq!(census.completed(), replaced);
        drop(hash);
        flushed::<S>(&census);
        Ok(())
    }
}

/// All tables are freed, once each.
fn flushed<S: Scheme>(census: &phash::Census) {
    let other = Phash::<S>::new(1);
    let start = Instant::now();
    while census.freed() != census.made() {
        assert!(
            start.elapsed() < Duration::from_secs(30),
            "{}: {} tables of {} are never freed",
            S::ABOUT.name,
            census.made() - census.freed(),
            census.made()
        );
        other.flush();
        std::thread::yield_now();
    }
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: if cfg!(miri) { 2 } else { 24 },
        failure_persistence: None,
        ..ProptestConfig::default()
    })]

    #[test]
    fn agrees_with_the_model(steps in prop::collection::vec(step(), 0..STEPS)) {
        for (_, outcome) in common::each(|| Run(&steps)) {
            outcome?;
        }
    }
}

/// The longest queued is woken first, also after it was moved.
#[test]
fn first_come_first_woken() {
    struct Order;
    impl Visit for Order {
        type Out = ();

        fn visit<S: Scheme>(self) {
            let (hash, word) = (Phash::<S>::new(2), AtomicU32::new(0));
            let (tell, told) = mpsc::channel();
            let mut thread = Handle::new();
            std::thread::scope(|scope| {
                for number in 0..4 {
                    let (hash, word, tell) = (&hash, &word, tell.clone());
                    scope.spawn(move || {
                        hash.wait(&mut Handle::new(), word, 0, None);
                        tell.send(number).unwrap();
                    });
                    while hash.look(&thread, |t| t.queued()) <= number {
                        std::thread::yield_now();
                    }
                }
                hash.replace(&thread, 8, None);
                for number in 0..4 {
                    assert_eq!(hash.wake(&mut thread, &word, 1), 1, "{}", S::ABOUT.name);
                    assert_eq!(told.recv(), Ok(number), "{}", S::ABOUT.name);
                }
                assert_eq!(hash.wake(&mut thread, &word, 1), 0);
            });
        }
    }
    common::each(|| Order);
}

#[test]
fn the_registry_names_each_scheme_once() {
    let names: Vec<_> = phash::schemes::ALL.iter().map(|about| about.name).collect();
    assert_eq!(
        names,
        [
            "global",
            "immutable",
            "refcount",
            "rcuref",
            "percpu-ref",
            "futex-ref",
            "split-count",
            "hp",
            "rcu",
            "crossbeam-epoch",
            "seize"
        ]
    );
    struct Name;
    impl Visit for Name {
        type Out = &'static str;

        fn visit<S: Scheme>(self) -> &'static str {
            S::ABOUT.name
        }
    }
    for (name, found) in common::each(|| Name) {
        assert_eq!(name, found);
    }
    assert!(phash::schemes::dispatch("rwlock", Name).is_none());
}

#[test]
fn words_spread_over_buckets() {
    let words = vec![0u32; 4096];
    let mut taken = vec![0u32; 1024];
    for word in &words {
        taken[phash::index(std::ptr::from_ref(word).addr(), 1023)] += 1;
    }
    // Four a bucket. A hash that leaves neighbours together would fill few buckets or all alike.
    let empty = taken.iter().filter(|&&n| n == 0).count();
    let most = *taken.iter().max().unwrap();
    assert!((5..45).contains(&empty), "{empty} empty");
    assert!((9..20).contains(&most), "{most} in one");
    assert!(
        words
            .iter()
            .all(|word| phash::index(std::ptr::from_ref(word).addr(), 0) == 0)
    );
}
