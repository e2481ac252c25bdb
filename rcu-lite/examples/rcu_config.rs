//! A configuration that many threads read and one replaces.
//!
//! `cargo run -p rcu-lite --example rcu_config`
//!
//! A configuration has several parts that must fit together. Readers take one
//! section a request and look at all parts in it; the updater makes the next
//! configuration out of the current one. The check: no reader sees parts that do
//! not fit, or a configuration that was dropped, and in the end all but the last
//! one have been dropped.

use rcu_lite::{Rcu, RcuCell};
use std::process::ExitCode;
use std::sync::LazyLock;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

struct Config {
    version: u64,
    /// As many as the version says, modulo 10, and one more.
    servers: Vec<String>,
}

static MADE: AtomicU64 = AtomicU64::new(0);
static DROPPED: AtomicU64 = AtomicU64::new(0);
static CONFIG: LazyLock<RcuCell<Config>> = LazyLock::new(|| RcuCell::new(Config::new(1)));

impl Config {
    fn new(version: u64) -> Self {
        MADE.fetch_add(1, Ordering::Relaxed);
        Self {
            version,
            servers: (0..=version % 10).map(|n| format!("s{n}")).collect(),
        }
    }

    fn fits(&self) -> bool {
        self.version != 0 && self.servers.len() as u64 == self.version % 10 + 1
    }
}

impl Drop for Config {
    fn drop(&mut self) {
        // A reader that meets it afterwards sees that it does not fit.
        self.version = 0;
        DROPPED.fetch_add(1, Ordering::Relaxed);
    }
}

/// What a server does with a request. Returns the version it was served with,
/// or `None` if the configuration was not whole.
fn serve(request: u64) -> Option<u64> {
    let guard = Rcu::global().read();
    let config = CONFIG.load(&guard);
    // Any number of looks, all at the same configuration.
    let server = &config.servers[request as usize % config.servers.len()];
    (config.fits() && server.starts_with('s')).then_some(config.version)
}

const READERS: usize = 3;
const TIME: Duration = Duration::from_millis(500);

fn main() -> ExitCode {
    let stop = AtomicBool::new(false);
    let (served, bad) = thread::scope(|scope| {
        let readers: Vec<_> = (0..READERS)
            .map(|_| {
                scope.spawn(|| {
                    let (mut served, mut bad, mut newest) = (0_u64, 0_u64, 0);
                    while !stop.load(Ordering::Relaxed) {
                        match serve(served) {
                            // Versions never go back.
                            Some(version) if version >= newest => newest = version,
                            _ => bad += 1,
                        }
                        served += 1;
                    }
                    (served, bad)
                })
            })
            .collect();
        let begin = Instant::now();
        while begin.elapsed() < TIME {
            CONFIG.update(|now| Config::new(now.version + 1));
            thread::sleep(Duration::from_micros(50));
        }
        stop.store(true, Ordering::Relaxed);
        readers.into_iter().fold((0, 0), |sum, reader| {
            let (served, bad) = reader.join().expect("a reader");
            (sum.0 + served, sum.1 + bad)
        })
    });

    // Everything that was replaced has been dropped when this returns.
    Rcu::global().barrier();
    let (made, dropped) = (
        MADE.load(Ordering::Relaxed),
        DROPPED.load(Ordering::Relaxed),
    );
    let stats = Rcu::global().stats();
    println!(
        "{served} requests served, {bad} of them badly; {made} configurations made, {dropped} dropped, in {} grace periods",
        stats.grace_periods
    );
    if served > 0 && bad == 0 && made > 1 && dropped == made - 1 && stats.pending == 0 {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    }
}
