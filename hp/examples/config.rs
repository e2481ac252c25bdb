//! A configuration that is reloaded while it is read.
//!
//! ```text
//! cargo run -p hp --example config            demonstrates itself for a second
//! cargo run -p hp --example config -- FILE    follows FILE until interrupted
//! ```
//!
//! The file has one `key = value` a line: `version`, a number, and `greeting`.
//! A thread looks at the file's modification time; when it changes, it parses
//! the file and stores the result in a cell. Readers load the cell whenever
//! they need it: no lock, no reference count, and whoever still uses the old
//! configuration keeps it for as long as its guard lives.

use hp::Atomic;
use std::error::Error;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, SystemTime};
use std::{env, fs, io, process, thread};

struct Config {
    version: u64,
    greeting: String,
}

static CONFIG: Atomic<Config> = Atomic::null();

impl Config {
    fn parse(text: &str) -> Result<Self, Box<dyn Error>> {
        let (mut version, mut greeting) = (None, None);
        for line in text.lines().filter(|line| !line.trim().is_empty()) {
            let (key, value) = line
                .split_once('=')
                .ok_or_else(|| format!("no '=' in {line:?}"))?;
            match key.trim() {
                "version" => version = Some(value.trim().parse()?),
                "greeting" => greeting = Some(value.trim().to_owned()),
                other => return Err(format!("unknown key {other:?}").into()),
            }
        }
        Ok(Self {
            version: version.ok_or("no version")?,
            greeting: greeting.ok_or("no greeting")?,
        })
    }
}

/// Reloads `path` whenever it changes. A file that cannot be read or parsed
/// leaves the last good configuration in place.
fn follow(path: &Path, stop: &AtomicBool) -> u64 {
    let mut seen: Option<(SystemTime, u64)> = None;
    let mut reloads = 0;
    while !stop.load(Ordering::Relaxed) {
        let stamp = fs::metadata(path).and_then(|m| Ok((m.modified()?, m.len())));
        match stamp {
            Ok(now) if seen != Some(now) => {
                seen = Some(now);
                let parsed = fs::read_to_string(path)
                    .map_err(Into::into)
                    .and_then(|text| Config::parse(&text));
                match parsed {
                    Ok(config) => {
                        CONFIG.store(config);
                        reloads += 1;
                    }
                    Err(why) => eprintln!("{}: {why}; keeping the last one", path.display()),
                }
            }
            Ok(_) => {}
            Err(why) => eprintln!("{}: {why}", path.display()),
        }
        thread::sleep(Duration::from_millis(10));
    }
    reloads
}

/// Replaces the file as a whole, so that nobody reads half of it.
fn write(path: &Path, version: u64) -> io::Result<()> {
    let unfinished = path.with_extension("new");
    fs::write(
        &unfinished,
        format!("version = {version}\ngreeting = hello from version {version}\n"),
    )?;
    fs::rename(unfinished, path)
}

/// Reads until told to stop. Returns the number of reads, the last version
/// seen, and whether all that was read was whole and in order.
fn read(stop: &AtomicBool) -> (u64, u64, bool) {
    let (mut reads, mut last, mut good) = (0, 0, true);
    while !stop.load(Ordering::Relaxed) {
        let Some(config) = CONFIG.load() else {
            thread::yield_now();
            continue;
        };
        reads += 1;
        good &= config.version >= last;
        // The text is compared only when the version is new: the comparison
        // would cost more than the read.
        if config.version != last {
            good &= config.greeting == format!("hello from version {}", config.version);
        }
        last = config.version;
    }
    (reads, last, good)
}

const VERSIONS: u64 = 20;

fn demonstrate(path: &Path) -> io::Result<bool> {
    let (stop_reload, stop_read) = (AtomicBool::new(false), AtomicBool::new(false));
    let reads = AtomicU64::new(0);
    write(path, 1)?;
    thread::scope(|scope| {
        let reloader = scope.spawn(|| follow(path, &stop_reload));
        let readers: Vec<_> = (0..2)
            .map(|_| {
                scope.spawn(|| {
                    let (n, last, good) = read(&stop_read);
                    reads.fetch_add(n, Ordering::Relaxed);
                    (last, good)
                })
            })
            .collect();
        // An error must still stop the threads.
        let written = (2..=VERSIONS).try_for_each(|version| {
            thread::sleep(Duration::from_millis(45));
            write(path, version)
        });
        // The last version must be loaded, and then be seen.
        let mut patience = 500;
        while CONFIG.load().is_none_or(|c| c.version != VERSIONS) && patience > 0 {
            patience -= 1;
            thread::sleep(Duration::from_millis(10));
        }
        stop_reload.store(true, Ordering::Relaxed);
        thread::sleep(Duration::from_millis(50));
        stop_read.store(true, Ordering::Relaxed);

        let reloads = reloader.join().expect("the reloader");
        let seen: Vec<_> = readers
            .into_iter()
            .map(|reader| reader.join().expect("a reader"))
            .collect();
        written?;
        println!(
            "{reloads} reloads, {} reads; readers ended at versions {:?} of {VERSIONS}",
            reads.load(Ordering::Relaxed),
            seen.iter().map(|s| s.0).collect::<Vec<_>>(),
        );
        Ok(seen.iter().all(|&(last, good)| good && last == VERSIONS))
    })
}

fn main() -> ExitCode {
    if let Some(path) = env::args_os().nth(1).map(PathBuf::from) {
        let never = AtomicBool::new(false);
        thread::scope(|scope| {
            scope.spawn(|| follow(&path, &never));
            let mut last = None;
            loop {
                if let Some(config) = CONFIG.load()
                    && last != Some(config.version)
                {
                    last = Some(config.version);
                    println!("version {}: {}", config.version, config.greeting);
                }
                thread::sleep(Duration::from_millis(10));
            }
        });
    }
    let path = env::temp_dir().join(format!("hp-config-{}.txt", process::id()));
    let outcome = demonstrate(&path);
    for leftover in [path.clone(), path.with_extension("new")] {
        let _ = fs::remove_file(leftover);
    }
    match outcome {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => {
            eprintln!("check failed: a reader saw a torn or an old configuration");
            ExitCode::FAILURE
        }
        Err(why) => {
            eprintln!("{}: {why}", path.display());
            ExitCode::FAILURE
        }
    }
}
