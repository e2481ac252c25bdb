//! A routing table: a list that many walk while one changes it.
//!
//! `cargo run -p rcu-lite --example list`
//!
//! The table is kept in order, longest prefix first, so that a walk ends at the
//! first match. The last route matches everything and is never taken out. The
//! writer adds, replaces and removes the others. The check: every look-up finds
//! a route that matches and was not dropped, every walk meets prefixes in order,
//! and in the end every route that left the table has been dropped.

use rcu_lite::{RcuList, ThreadRcu};
use std::process::ExitCode;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

struct Route {
    network: u32,
    /// 0 matches everything.
    prefix: u32,
    hop: u64,
}

static MADE: AtomicU64 = AtomicU64::new(0);
static DROPPED: AtomicU64 = AtomicU64::new(0);
const DEAD: u64 = u64::MAX;

impl Route {
    fn new(network: u32, prefix: u32, hop: u64) -> Self {
        MADE.fetch_add(1, Ordering::Relaxed);
        Self {
            network,
            prefix,
            hop,
        }
    }

    fn matches(&self, address: u32) -> bool {
        // A shift by 32 is none.
        let host = 32 - self.prefix;
        (address ^ self.network).checked_shr(host).unwrap_or(0) == 0
    }
}

impl Drop for Route {
    fn drop(&mut self) {
        // A walker that stands on a dropped route is caught.
        self.hop = DEAD;
        DROPPED.fetch_add(1, Ordering::Relaxed);
    }
}

/// A table of the per-thread flavour: walks are short, and stay on a thread.
type Table = RcuList<Route, ThreadRcu>;

/// The hop for `address`: one section for the whole walk, and no lock.
fn look_up(table: &Table, address: u32) -> Option<u64> {
    let guard = ThreadRcu.read();
    let route = table.iter(&guard).find(|route| route.matches(address))?;
    (route.hop != DEAD).then_some(route.hop)
}

/// Whether a walk meets ever shorter prefixes.
fn in_order(table: &Table) -> bool {
    let guard = ThreadRcu.read();
    table
        .iter(&guard)
        .is_sorted_by(|a, b| a.prefix >= b.prefix && b.hop != DEAD)
}

/// One change of the table.
fn change(table: &Table, step: u64) {
    let network = (step as u32 % 16) << 24;
    let same = |route: &Route| route.network == network && route.prefix == 8;
    match step / 16 % 3 {
        0 => {
            let new = Route::new(network, 8, step);
            table.insert_before(new, |route| route.prefix < 8);
        }
        1 => {
            table.replace_first(|route| same(route).then(|| Route::new(network, 8, step)));
        }
        _ => {
            table.remove_first(same);
        }
    }
}

const WALKERS: u32 = 3;
const TIME: Duration = Duration::from_millis(500);

fn main() -> ExitCode {
    let table = Table::new_in(ThreadRcu);
    table.push_back(Route::new(0, 0, 0));
    let stop = AtomicBool::new(false);

    let (walks, bad) = thread::scope(|scope| {
        let walkers: Vec<_> = (0..WALKERS)
            .map(|walker| {
                let (table, stop) = (&table, &stop);
                scope.spawn(move || {
                    let (mut walks, mut bad) = (0_u64, 0_u64);
                    let mut address = walker;
                    while !stop.load(Ordering::Relaxed) {
                        // Any sequence that visits all networks.
                        address = address.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
                        let found = look_up(table, address >> 4).is_some();
                        let ordered = walks % 16 != 0 || in_order(table);
                        bad += u64::from(!found || !ordered);
                        walks += 1;
                    }
                    (walks, bad)
                })
            })
            .collect();
        let begin = Instant::now();
        let mut step = 0;
        while begin.elapsed() < TIME {
            change(&table, step);
            step += 1;
            // What waits has no bound of its own: the writer helps when it
            // grows. (Not inside a section.)
            if step % 100 == 0 && ThreadRcu.stats().pending > 1000 {
                ThreadRcu.barrier();
            }
        }
        stop.store(true, Ordering::Relaxed);
        walkers.into_iter().fold((0, 0), |sum, walker| {
            let (walks, bad) = walker.join().expect("a walker");
            (sum.0 + walks, sum.1 + bad)
        })
    });

    let left = table.len() as u64;
    ThreadRcu.barrier();
    let (made, dropped) = (
        MADE.load(Ordering::Relaxed),
        DROPPED.load(Ordering::Relaxed),
    );
    println!(
        "{walks} walks, {bad} of them bad; {made} routes made, {left} in the table, {dropped} dropped, in {} grace periods",
        ThreadRcu.stats().grace_periods
    );
    if walks > 0 && bad == 0 && dropped > 0 && dropped == made - left {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    }
}
