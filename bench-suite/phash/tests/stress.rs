//! Threads on each scheme while tables are replaced all the time, on every rung that can be forced here: each is a run
//! of this program of its own, because a rung is chosen once a process.

mod common;

use common::Spurious;
use phash::{Handle, Phash, Replaced, Replaces, Scheme, Visit, Wait};
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicUsize, Ordering::Relaxed, Ordering::SeqCst};
use std::time::{Duration, Instant};

const ROUNDS: u32 = if cfg!(miri) { 20 } else { 1500 };

fn soon() -> Option<Instant> {
    Some(Instant::now() + Duration::from_millis(20))
}

/// Waits for the tables of a hash that is gone.
fn all_freed<S: Scheme>(census: &phash::Census) {
    let other = Phash::<S>::new(1);
    let start = Instant::now();
    while census.freed() != census.made() {
        assert!(
            census.freed() <= census.made(),
            "{}: freed twice",
            S::ABOUT.name
        );
        assert!(
            start.elapsed() < Duration::from_secs(60),
            "{}: {census:?}",
            S::ABOUT.name
        );
        other.flush();
        std::thread::yield_now();
    }
}

/// Replaces until `over`, alternating sizes; requests that take long are left pending.
fn storm<S: Scheme>(hash: &Phash<S>, over: &AtomicBool) -> usize {
    let thread = Handle::new();
    let mut asked = 0;
    // One at least, also where the others are through before this thread runs: they leave at the end.
    match hash.replace(&thread, 8, None) {
        Replaced::Never => return 0,
        _ => asked += 1,
    }
    while !over.load(SeqCst) {
        for buckets in [1, 4, 2, 16] {
            match hash.replace(&thread, buckets, soon()) {
                Replaced::Never => return 0,
                Replaced::Busy => {}
                Replaced::InUse | Replaced::Pending => asked += 1,
            }
        }
    }
    asked
}

/// Two pairs hand a turn back and forth, each by the other's wake: a wake-up that is lost stops them.
struct PingPong;

impl Visit for PingPong {
    type Out = ();

    fn visit<S: Scheme>(self) {
        let hash = Phash::<S>::new(2);
        let census = hash.census();
        let words: Vec<AtomicU32> = (0..2).map(|_| AtomicU32::new(0)).collect();
        let (over, done) = (AtomicBool::new(false), AtomicUsize::new(0));
        let asked = std::thread::scope(|scope| {
            for word in &words {
                for side in 0..2 {
                    let (hash, over, done) = (&hash, &over, &done);
                    scope.spawn(move || {
                        let mut thread = Handle::that_sleeps(Spurious::default());
                        for round in 0..ROUNDS {
                            let turn = 2 * round + side;
                            let start = Instant::now();
                            loop {
                                let now = word.load(SeqCst);
                                if now == turn {
                                    break;
                                }
                                hash.wait(&mut thread, word, now, None);
                                assert!(start.elapsed() < Duration::from_secs(60));
                            }
                            word.store(turn + 1, SeqCst);
                            hash.wake(&mut thread, word, 1);
                        }
                        assert_eq!(thread.dead(), 0, "{}: a freed table", S::ABOUT.name);
                        if done.fetch_add(1, SeqCst) == 3 {
                            over.store(true, SeqCst);
                        }
                    });
                }
            }
            scope.spawn(|| storm(&hash, &over)).join().unwrap()
        });
        assert!(words.iter().all(|word| word.load(SeqCst) == 2 * ROUNDS));
        assert!(census.completed() <= asked, "{census:?}");
        if common::replaces::<S>() {
            assert!(census.completed() > 0, "{}: {census:?}", S::ABOUT.name);
        }
        let thread = Handle::new();
        assert_eq!(hash.look(&thread, |t| (t.queued(), t.announced())), (0, 0));
        drop(hash);
        all_freed::<S>(&census);
        if cfg!(not(miri)) {
            println!("{}: {} replacements", S::ABOUT.name, census.completed());
        }
    }
}

#[test]
fn no_wake_up_is_lost_in_a_storm_of_replacements() {
    common::each(|| PingPong);
}

/// Waits that are over in no time race with wakes and moves: each wake that says that it woke somebody did.
struct TimeOuts;

impl Visit for TimeOuts {
    type Out = ();

    fn visit<S: Scheme>(self) {
        let (hash, word) = (Phash::<S>::new(1), AtomicU32::new(0));
        let (woken, told) = (AtomicUsize::new(0), AtomicUsize::new(0));
        let over = AtomicBool::new(false);
        std::thread::scope(|scope| {
            let waiters: Vec<_> = (0..2)
                .map(|_| {
                    scope.spawn(|| {
                        let mut thread = Handle::new();
                        for round in 0..ROUNDS {
                            let until =
                                Instant::now() + Duration::from_micros(u64::from(round % 40));
                            match hash.wait(&mut thread, &word, 0, Some(until)) {
                                Wait::Woken => woken.fetch_add(1, SeqCst),
                                Wait::TimedOut => 0,
                                Wait::Mismatch => unreachable!("nobody changes the word"),
                            };
                        }
                        assert_eq!(thread.dead(), 0);
                    })
                })
                .collect();
            scope.spawn(|| {
                let mut thread = Handle::new();
                while !over.load(SeqCst) {
                    told.fetch_add(hash.wake(&mut thread, &word, 1), SeqCst);
                    std::thread::yield_now();
                }
            });
            scope.spawn(|| storm(&hash, &over));
            for waiter in waiters {
                waiter.join().unwrap();
            }
            over.store(true, SeqCst);
        });
        assert_eq!(woken.load(SeqCst), told.load(SeqCst), "{}", S::ABOUT.name);
        let thread = Handle::new();
        assert_eq!(hash.look(&thread, |t| (t.queued(), t.announced())), (0, 0));
    }
}

#[test]
fn time_outs_race_with_wakes_and_moves() {
    common::each(|| TimeOuts);
}

/// Operations as fast as they go, as the benchmark has them, while tables are replaced: no table is looked at that was
/// freed.
struct Hammer;

impl Visit for Hammer {
    type Out = ();

    fn visit<S: Scheme>(self) {
        let hash = Phash::<S>::new(4);
        let census = hash.census();
        let over = AtomicBool::new(false);
        std::thread::scope(|scope| {
            for _ in 0..2 {
                scope.spawn(|| {
                    let mut thread = Handle::new();
                    let words: Vec<AtomicU32> = (0..8).map(|_| AtomicU32::new(0)).collect();
                    while !over.load(Relaxed) {
                        for word in &words {
                            assert_eq!(hash.wait(&mut thread, word, 1234, None), Wait::Mismatch);
                        }
                    }
                    assert_eq!(thread.dead(), 0, "{}", S::ABOUT.name);
                });
            }
            let thread = Handle::new();
            for round in 0..ROUNDS / 8 {
                if hash.replace(&thread, 1 << (round % 5), soon()) == Replaced::Busy {
                    break;
                }
            }
            over.store(true, Relaxed);
        });
        // Nobody is left who could keep a pending one waiting.
        if common::replaces::<S>() {
            assert_eq!(hash.replace(&Handle::new(), 2, None), Replaced::InUse);
        }
        let all = (ROUNDS / 8) as usize;
        assert!(S::ABOUT.replaces != Replaces::AtOnce || census.completed() > all);
        let waiting = census.completed();
        drop(hash);
        all_freed::<S>(&census);
        assert_eq!(census.freed_after().len(), waiting, "{}", S::ABOUT.name);
    }
}

#[test]
fn no_freed_table_is_looked_at() {
    common::each(|| Hammer);
}

/// The tests above, on the rungs that this process has not chosen.
#[test]
#[cfg_attr(miri, ignore = "starts programs")]
fn on_every_rung() {
    const MARK: &str = "PHASH_STRESS_RUNG";
    if std::env::var_os(MARK).is_some() {
        return;
    }
    for (name, value) in [
        ("HP_BARRIER", "fence"),
        ("HP_BARRIER", "membarrier"),
        ("HP_BARRIER", "rseq"),
        ("GLIBC_TUNABLES", "glibc.pthread.rseq=0"),
    ] {
        let run = std::process::Command::new(std::env::current_exe().expect("this program"))
            .env(MARK, "1")
            .env(name, value)
            .output()
            .expect("a run of this program");
        assert!(
            run.status.success(),
            "{name}={value}:\n{}{}",
            String::from_utf8_lossy(&run.stdout),
            String::from_utf8_lossy(&run.stderr),
        );
    }
}
