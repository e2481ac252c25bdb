//! Floor 3, bench-suite. Owns the files that leave the program: opened before anything is measured, complete or
//! recognisably not.
//!
//! A regular file is written under `NAME.part` beside its place, line by line, and renamed when the last run is in.
//! An interrupted program leaves the finished runs under the `.part` name. Pipes, devices and the standard output
//! cannot be renamed and are written directly.

use super::record::{MACHINE, Record};
use crate::trouble::Trouble;
use serde_json::Value;
use std::ffi::OsString;
use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

/// Whether two outputs would be in each other's way: one file by two names, or the `.part` of the other.
pub(crate) fn collide(a: &Path, b: &Path) -> bool {
    let (a, b) = (absolute(a), absolute(b));
    a == b || part(&a) == b || part(&b) == a
}

/// Without links, as far as it is there.
fn absolute(path: &Path) -> PathBuf {
    let folder = || {
        let folder = path.parent().map(|folder| {
            if folder == Path::new("") {
                Path::new(".")
            } else {
                folder
            }
        })?;
        Some(fs::canonicalize(folder).ok()?.join(path.file_name()?))
    };
    let whole = (path != Path::new("-")).then(|| fs::canonicalize(path).ok());
    match whole {
        Some(found) => found.or_else(folder).unwrap_or_else(|| path.to_owned()),
        None => path.to_owned(),
    }
}

/// The name until it is complete.
fn part(path: &Path) -> PathBuf {
    let mut name: OsString = path.as_os_str().to_owned();
    name.push(".part");
    PathBuf::from(name)
}

/// A place to write to, with the option that named it, for messages.
#[derive(Debug)]
pub(crate) struct Target {
    label: String,
    /// As the user gave it.
    shown: PathBuf,
    place: Place,
    written: bool,
}

#[derive(Debug)]
enum Place {
    Stdout,
    Direct(File),
    Renamed {
        file: File,
        part: PathBuf,
        path: PathBuf,
    },
}

/// A file that is read is not written over, neither it nor by way of the `.part` beside an output.
pub(crate) fn not_an_input(option: &str, output: &Path, inputs: &[PathBuf]) -> Result<(), Trouble> {
    let whole = |path: &Path| fs::canonicalize(path).ok();
    let beside = whole(output).unwrap_or_else(|| output.to_owned());
    let mut part: OsString = beside.as_os_str().to_owned();
    part.push(".part");
    let written = [Some(beside), whole(Path::new(&part))];
    for input in inputs {
        let regular = fs::metadata(input).is_ok_and(|meta| meta.is_file());
        if regular && written.contains(&whole(input)) {
            return Err(Trouble::Usage(format!(
                "{option} {}: would be written over the file that is read, {}",
                output.display(),
                input.display()
            )));
        }
    }
    Ok(())
}

impl Target {
    /// Opens `path` for `option`; `-` is the standard output.
    pub(crate) fn open(option: &str, path: &Path) -> Result<Self, Trouble> {
        let label = format!("{option} {}", path.display());
        let place = Self::place(path).map_err(|error| Trouble::write(&label, &error))?;
        Ok(Target {
            label,
            shown: path.to_owned(),
            place,
            written: false,
        })
    }

    fn place(path: &Path) -> io::Result<Place> {
        if path == Path::new("-") {
            return Ok(Place::Stdout);
        }
        // A symbolic link stays one: what it points to is replaced.
        let path = fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
        let in_dev = path.starts_with("/dev") || path.starts_with("/proc");
        if in_dev || fs::metadata(&path).is_ok_and(|meta| !meta.is_file() && !meta.is_dir()) {
            return Ok(Place::Direct(
                File::options()
                    .append(true)
                    .open(&path)
                    .or_else(|_| File::create(&path))?,
            ));
        }
        if path.is_dir() || path.file_name().is_none() {
            return Err(io::Error::other("is a directory, not a file"));
        }
        let part = part(&path);
        Ok(Place::Renamed {
            file: File::create(&part)?,
            part,
            path,
        })
    }

    /// Writes `text` and makes sure that it has left the program.
    pub(crate) fn put(&mut self, text: &str) -> Result<(), Trouble> {
        self.written = true;
        let bytes = text.as_bytes();
        let done = match &mut self.place {
            Place::Stdout => {
                let mut out = io::stdout().lock();
                return out
                    .write_all(bytes)
                    .and_then(|()| out.flush())
                    .map_err(|error| Trouble::stdout(&error));
            }
            Place::Direct(file) | Place::Renamed { file, .. } => {
                file.write_all(bytes).and_then(|()| file.flush())
            }
        };
        match done {
            Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Err(Trouble::Gone),
            other => other.map_err(|error| Trouble::write(&self.label, &error)),
        }
    }

    /// All is written: gives the file its name. Returns the path if there is one to tell.
    pub(crate) fn finish(mut self) -> Result<Option<PathBuf>, Trouble> {
        self.written = true;
        let fail = |error: io::Error| Trouble::write(&self.label, &error);
        match &self.place {
            Place::Stdout | Place::Direct(_) => Ok(None),
            Place::Renamed { file, part, path } => {
                file.sync_all().map_err(fail)?;
                fs::rename(part, path).map_err(fail)?;
                Ok(Some(self.shown.clone()))
            }
        }
    }
}

impl Drop for Target {
    fn drop(&mut self) {
        if let Place::Renamed { part, .. } = &self.place
            && !self.written
        {
            // Nothing was measured; an empty `.part` file helps nobody. Failing to remove it harms nobody.
            let _ = fs::remove_file(part);
        }
    }
}

/// What a sink makes of a record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Format {
    /// One JSON object per line.
    Jsonl,
    /// Comma-separated values with a heading.
    Csv,
}

/// A target that takes records.
#[derive(Debug)]
pub(crate) struct Sink {
    target: Target,
    format: Format,
    headed: bool,
    /// What the first record of the file tells beside.
    machine: Option<Value>,
}

impl Sink {
    /// Opens `path` for `option`.
    pub(crate) fn open(option: &str, path: &Path, format: Format) -> Result<Self, Trouble> {
        Ok(Sink {
            target: Target::open(option, path)?,
            format,
            headed: false,
            machine: None,
        })
    }

    /// The first record of a file of JSON lines will hold the machine record.
    pub(crate) fn describe(&mut self, machine: &Value) {
        self.machine = Some(machine.clone());
    }

    /// Writes one record.
    pub(crate) fn record(&mut self, record: &Record) -> Result<(), Trouble> {
        match self.format {
            Format::Jsonl => match self.machine.take() {
                Some(machine) => {
                    let mut first = record.clone();
                    first.set(MACHINE, machine);
                    self.target.put(&first.to_line())
                }
                None => self.target.put(&record.to_line()),
            },
            Format::Csv => {
                let mut text = String::new();
                if !std::mem::replace(&mut self.headed, true) {
                    text = csv_line(&Record::COLUMNS);
                }
                text.push_str(&csv_line(&record.to_row()));
                self.target.put(&text)
            }
        }
    }

    /// Whether what is in stays in a `.part` file if it is never finished.
    pub(crate) fn keeps_part(&self) -> bool {
        self.target.written && matches!(self.target.place, Place::Renamed { .. })
    }

    /// Gives the file its name.
    pub(crate) fn finish(self) -> Result<Option<PathBuf>, Trouble> {
        self.target.finish()
    }
}

/// One CSV line with its newline.
fn csv_line<T: AsRef<[u8]>>(fields: &[T]) -> String {
    let mut writer = csv::WriterBuilder::new().from_writer(Vec::new());
    writer
        .write_record(fields)
        .expect("a vector takes every write");
    let bytes = writer.into_inner().expect("a vector takes every flush");
    String::from_utf8(bytes).expect("all fields are strings")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::record::tests::sample;
    use crate::workloads::Workload;

    #[test]
    fn the_name_appears_when_all_is_written() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("out.jsonl");
        let mut sink = Sink::open("--json", &path, Format::Jsonl).unwrap();
        sink.record(&sample(Workload::Read, "hp", 1, 0, 10))
            .unwrap();
        let part = folder.path().join("out.jsonl.part");
        assert!(part.exists() && !path.exists());
        assert_eq!(fs::read_to_string(&part).unwrap().lines().count(), 1);
        sink.finish().unwrap();
        assert!(!part.exists() && path.exists());
    }

    #[test]
    fn an_unused_part_is_removed_and_a_used_one_is_kept() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("out.csv");
        drop(Sink::open("--csv", &path, Format::Csv).unwrap());
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
        let mut sink = Sink::open("--csv", &path, Format::Csv).unwrap();
        sink.record(&sample(Workload::Read, "hp", 1, 0, 10))
            .unwrap();
        drop(sink);
        assert!(folder.path().join("out.csv.part").exists() && !path.exists());
    }

    #[test]
    fn csv_comes_back() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("out.csv");
        let mut sink = Sink::open("--csv", &path, Format::Csv).unwrap();
        let mut record = sample(Workload::Read, "hp", 1, 0, 10);
        record.remark("a, \"b\"");
        sink.record(&record).unwrap();
        sink.record(&record).unwrap();
        sink.finish().unwrap();
        let mut reader = csv::Reader::from_path(&path).unwrap();
        assert_eq!(
            reader.headers().unwrap().iter().collect::<Vec<_>>(),
            Record::COLUMNS
        );
        let rows: Vec<_> = reader.records().map(Result::unwrap).collect();
        assert_eq!(rows.len(), 2);
        assert_eq!(&rows[0][12], "a, \"b\"");
        let params: serde_json::Value = serde_json::from_str(&rows[0][10]).unwrap();
        assert_eq!(params["seed"], 9);
    }

    #[cfg(unix)]
    #[test]
    fn one_file_by_two_names() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        fs::write(at("there"), "").unwrap();
        std::os::unix::fs::symlink(at("there"), at("link")).unwrap();
        for (a, b, same) in [
            ("there", "there", true),
            ("there", "link", true),
            ("new", "./new", true),
            ("new", "new.part", true),
            ("new.part", "new", true),
            ("new", "newer", false),
            ("there", "new", false),
        ] {
            assert_eq!(collide(&at(a), &at(b)), same, "{a} {b}");
        }
        assert!(collide(Path::new("-"), Path::new("-")));
        assert!(!collide(Path::new("-"), Path::new("./-")));
        assert!(collide(Path::new("x"), Path::new("./x")));
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn a_full_disk_is_noticed() {
        let mut sink = Sink::open("--json", Path::new("/dev/full"), Format::Jsonl).unwrap();
        let trouble = sink
            .record(&sample(Workload::Read, "hp", 1, 0, 10))
            .unwrap_err();
        assert_eq!(trouble.code(), 1);
        assert!(trouble.to_string().starts_with("--json /dev/full: "));
    }

    #[test]
    fn a_missing_directory_is_named() {
        let trouble = Target::open("--json", Path::new("/no/such/place/x")).unwrap_err();
        assert!(trouble.to_string().starts_with("--json /no/such/place/x: "));
        assert_eq!(Target::open("--csv", Path::new("/")).unwrap_err().code(), 1);
    }
}
