//! Floor 3, bench-suite. Owns the baselines: records kept under a name by `--save`, compared with by `--baseline`,
//! listed by `hpbench baselines`. May touch the files in its folder; comparing is `report::compare`'s.
//!
//! A baseline is a file of records like any other, `baselines/NAME.jsonl` in `target/hpbench` of the current directory
//! or in the folder that [`VARIABLE`] names. What is compared with is read before anything is measured, so that a
//! missing or foreign one costs no time, and so that one name can be compared with and saved again.

use crate::cli::Options;
use crate::machine::Stamp;
use crate::points::Points;
use crate::report::compare;
use crate::report::record::{Record, Status};
use crate::report::sink::{Format, Sink};
use crate::report::table;
use crate::trouble::Trouble;
use std::collections::BTreeSet;
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

/// The variable that names the folder instead of `target/hpbench`.
pub(crate) const VARIABLE: &str = "HPBENCH_HOME";

/// Longer names are a mistake.
const LONGEST: usize = 100;

/// A name for a file: the value of `--save` and `--baseline`.
pub(crate) fn name(text: &str) -> Result<String, String> {
    let good = |c: char| c.is_alphanumeric() || "-_.+@".contains(c);
    match text {
        "" => Err("an empty name".to_owned()),
        _ if text.len() > LONGEST => Err(format!("longer than {LONGEST} bytes")),
        _ if text.starts_with(['.', '-']) => {
            Err("a name does not begin with '.' or '-'".to_owned())
        }
        _ if !text.chars().all(good) => {
            Err("a name is made of letters, digits and '-_.+@', without slashes".to_owned())
        }
        _ => Ok(text.to_owned()),
    }
}

fn folder() -> PathBuf {
    let home = std::env::var_os(VARIABLE).filter(|home| !home.is_empty());
    home.map_or_else(|| PathBuf::from("target/hpbench"), PathBuf::from)
        .join("baselines")
}

fn path(name: &str) -> PathBuf {
    folder().join(format!("{name}.jsonl"))
}

/// Names of those that exist, sorted.
fn names() -> Vec<String> {
    let entries = fs::read_dir(folder()).into_iter().flatten().flatten();
    let mut names: Vec<String> = entries
        .filter_map(|entry| {
            Some(
                entry
                    .file_name()
                    .to_str()?
                    .strip_suffix(".jsonl")?
                    .to_owned(),
            )
        })
        .collect();
    names.sort();
    names
}

/// What is to be done with the records when all are in.
#[derive(Debug)]
pub(crate) struct Plan {
    save: Option<(String, bool, Sink)>,
    against: Option<(String, String)>,
    force: bool,
    fail_if: Option<f64>,
}

impl Plan {
    /// What the options ask for: reads the baseline, opens the new one. `here` is this machine.
    pub(crate) fn prepare(
        options: &Options,
        here: &Stamp,
        points: &Points,
    ) -> Result<Self, Trouble> {
        let against = match &options.baseline {
            Some(name) => {
                let text = read(name, here, options.force)?;
                if options.fail_if.is_some() {
                    can_fail(name, &text, points)?;
                }
                Some((name.clone(), text))
            }
            None => None,
        };
        let save = match &options.save {
            Some(name) => {
                let label = format!(
                    "--save {name}: cannot make the folder {}",
                    folder().display()
                );
                fs::create_dir_all(folder()).map_err(|error| Trouble::write(&label, &error))?;
                let mut sink = Sink::open("--save", &path(name), Format::Jsonl)?;
                sink.describe(here.whole());
                Some((name.clone(), path(name).exists(), sink))
            }
            None => None,
        };
        Ok(Plan {
            save,
            against,
            force: options.force,
            fail_if: options.fail_if,
        })
    }

    /// Compares and saves; `say` is for people. A point that is slower than `--fail-if` allows is the last word.
    pub(crate) fn conclude(
        self,
        records: &[Record],
        say: impl Fn(&str) -> Result<(), Trouble>,
    ) -> Result<(), Trouble> {
        let compared = match &self.against {
            Some((name, text)) => {
                say(&format!(
                    "\nagainst baseline {name} (A: the baseline, B: these runs)\n"
                ))?;
                let files = Files::new(text, records)?;
                let ask = compare::Ask::of(&files.a, &files.b, self.force, self.fail_if);
                compare::tell(&ask, &say)
            }
            None => Ok(()),
        };
        if let Some((name, there, mut sink)) = self.save {
            if records.iter().any(|record| record.status == Status::Failed) {
                say(&format!("\nbaseline {name} not saved: a run failed\n"))?;
            } else if !records.iter().any(has_rate) {
                let why = format!("--save {name}: not saved, no run has a rate");
                return compared.and(Err(Trouble::Environment(why)));
            } else {
                for record in records {
                    sink.record(record)?;
                }
                sink.finish()?;
                let over = if there {
                    ", over the one that was there"
                } else {
                    ""
                };
                say(&format!(
                    "\nsaved as baseline {name}{over}: {}\n",
                    path(&name).display()
                ))?;
            }
        }
        compared
    }
}

/// Both sides as files, for as long as they are compared.
struct Files {
    a: PathBuf,
    b: PathBuf,
}

impl Files {
    fn new(baseline: &str, records: &[Record]) -> Result<Self, Trouble> {
        let place = |side: &str| {
            let name = format!("hpbench-{}-{side}.jsonl", std::process::id());
            std::env::temp_dir().join(name)
        };
        let files = Files {
            a: place("baseline"),
            b: place("now"),
        };
        let now: String = records.iter().map(Record::to_line).collect();
        for (path, text) in [(&files.a, baseline), (&files.b, now.as_str())] {
            // Not over a file, or through a link, of somebody else.
            let mut file = fs::File::options();
            let written = file.write(true).create_new(true).open(path);
            written
                .and_then(|mut file| file.write_all(text.as_bytes()))
                .map_err(|error| Trouble::write(&path.display().to_string(), &error))?;
        }
        Ok(files)
    }
}

impl Drop for Files {
    fn drop(&mut self) {
        for path in [&self.a, &self.b] {
            // What is left in the folder for temporary files harms nobody.
            let _ = fs::remove_file(path);
        }
    }
}

/// Whether so many runs could tell a point to be slower.
fn can_fail(name: &str, text: &str, points: &Points) -> Result<(), Trouble> {
    let saved = parse(text).unwrap_or_default();
    let planned: Vec<Record> = points.jobs.iter().map(Record::empty).collect();
    match compare::cannot_fail(&saved, &planned, points.runs) {
        Some(why) => Err(Trouble::Usage(format!("--baseline {name}: {why} (--runs)"))),
        None => Ok(()),
    }
}

/// Something to compare with.
fn has_rate(record: &Record) -> bool {
    record.status == Status::Ok && record.ops_per_s > 0.0
}

/// The text of a baseline that these runs can be compared with.
fn read(name: &str, here: &Stamp, force: bool) -> Result<String, Trouble> {
    let usage = |why: String| Err(Trouble::Usage(format!("--baseline {name}: {why}")));
    let text = match fs::read_to_string(path(name)) {
        Ok(text) => text,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            let known = match names() {
                names if names.is_empty() => "none is saved".to_owned(),
                names => format!("saved are {}", names.join(", ")),
            };
            return usage(format!(
                "there is no such baseline in {}, {known}",
                folder().display()
            ));
        }
        Err(error) => return usage(error.to_string()),
    };
    let records = match parse(&text) {
        Ok(records) => records,
        Err(why) => return usage(why),
    };
    if !records.iter().any(has_rate) {
        return usage("no run in it has a rate".to_owned());
    }
    let foreign = records
        .iter()
        .find(|record| record.status == Status::Ok && !here.made(record));
    if let Some(record) = foreign
        && !force
    {
        let machine = record.text("machine").unwrap_or("unknown machine");
        return usage(format!(
            "it is from another machine ({machine}); --force compares all the same"
        ));
    }
    Ok(text)
}

fn parse(text: &str) -> Result<Vec<Record>, String> {
    let lines = text
        .lines()
        .enumerate()
        .filter(|(_, line)| !line.is_empty());
    lines
        .map(|(n, line)| Record::parse(line).map_err(|why| format!("line {}: {why}", n + 1)))
        .collect()
}

/// The subcommand.
pub(crate) fn list(options: &Options) -> Result<(), Trouble> {
    options.without_runs("baselines")?;
    let names = names();
    if names.is_empty() {
        let text = format!(
            "no baseline in {} (--save NAME makes one)\n",
            folder().display()
        );
        return crate::command::say(&text);
    }
    let mut rows = vec![
        [
            "baseline",
            "saved (UTC)",
            "points",
            "runs",
            "workloads",
            "machine",
        ]
        .map(str::to_owned)
        .to_vec(),
    ];
    rows.extend(names.iter().map(|name| row(name, &path(name))));
    crate::command::say(&table::align(&rows))
}

fn row(name: &str, path: &Path) -> Vec<String> {
    let saved = fs::metadata(path).and_then(|meta| meta.modified());
    let saved = saved.map_or_else(|_| "unknown".to_owned(), date);
    let records = fs::read_to_string(path).map_err(|error| error.to_string());
    let records = match records.and_then(|text| parse(&text)) {
        Ok(records) => records,
        Err(why) => {
            return [name, &saved, "-", "-", "-", &why]
                .map(str::to_owned)
                .to_vec();
        }
    };
    let ran = || records.iter().filter(|record| record.status == Status::Ok);
    let points: BTreeSet<String> = ran()
        .map(|record| {
            let shape = ["readers", "writers", "hold_ns", "idle", "point", "pin"]
                .map(|key| record.params.get(key));
            format!(
                "{} {} {} {shape:?}",
                record.workload.name(),
                record.variant,
                record.threads
            )
        })
        .collect();
    let workloads: BTreeSet<&str> = ran().map(|record| record.workload.name()).collect();
    let machines: BTreeSet<&str> = ran().filter_map(|record| record.text("machine")).collect();
    let joined = |set: BTreeSet<&str>| set.into_iter().collect::<Vec<_>>().join(", ");
    vec![
        name.to_owned(),
        saved,
        points.len().to_string(),
        ran().count().to_string(),
        joined(workloads),
        joined(machines),
    ]
}

/// `2026-11-30 21:05`, UTC.
#[cfg(unix)]
fn date(time: SystemTime) -> String {
    let seconds = time
        .duration_since(SystemTime::UNIX_EPOCH)
        .map_or(0, |since| since.as_secs());
    let seconds = libc::time_t::try_from(seconds).unwrap_or(0);
    let mut parts = std::mem::MaybeUninit::<libc::tm>::zeroed();
    // SAFETY: reads the number, writes the struct; zeroed is a valid `tm` should it fail.
    let parts = unsafe {
        libc::gmtime_r(&raw const seconds, parts.as_mut_ptr());
        parts.assume_init()
    };
    format!(
        "{:04}-{:02}-{:02} {:02}:{:02}",
        parts.tm_year + 1900,
        parts.tm_mon + 1,
        parts.tm_mday,
        parts.tm_hour,
        parts.tm_min
    )
}

#[cfg(not(unix))]
fn date(_: SystemTime) -> String {
    "unknown".to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_files() {
        for good in ["main", "v1.2-rc+3", "a_b@c", "größe", "0"] {
            assert_eq!(name(good), Ok(good.to_owned()));
        }
        for (bad, word) in [
            ("", "empty"),
            ("a/b", "slashes"),
            ("..", "begin"),
            ("-x", "begin"),
            ("a b", "letters"),
            ("a\nb", "letters"),
            (&"x".repeat(101), "longer"),
        ] {
            assert!(name(bad).unwrap_err().contains(word), "{bad}");
        }
    }

    #[test]
    fn what_nothing_can_be_compared_with_is_not_saved() {
        use crate::report::record::tests::sample;
        use crate::workloads::Workload;

        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("x.jsonl");
        for (ops, code) in [(0, Some(3)), (10, None)] {
            let sink = Sink::open("--save", &file, Format::Jsonl).unwrap();
            let plan = Plan {
                save: Some(("x".to_owned(), false, sink)),
                against: None,
                force: false,
                fail_if: None,
            };
            let record = sample(Workload::Read, "hp", 1, 0, ops);
            let done = plan.conclude(&[record], |_| Ok(()));
            assert_eq!(done.err().map(|trouble| trouble.code()), code);
            assert_eq!(file.exists(), code.is_none());
        }
    }

    #[cfg(unix)]
    #[test]
    fn dates() {
        let at = |seconds| date(SystemTime::UNIX_EPOCH + std::time::Duration::from_secs(seconds));
        assert_eq!(at(0), "1970-01-01 00:00");
        assert_eq!(at(951_782_399), "2000-02-28 23:59");
        assert_eq!(at(951_782_400), "2000-02-29 00:00");
    }
}
