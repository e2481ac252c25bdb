//! Floor 3, bench-suite. Owns the file of `--resume`: records that are there already, and new ones behind them.
//! May touch that file, and reads this program's own image for its identity.
//!
//! A record belongs to a run by its *key*: everything that was asked for, the machine, and the build. The file is only
//! ever appended to; a last line that was cut off (the program was killed, the disk was full) is cut away
//! if it begins as a record does. A file of anything else is refused and left as it is.

use super::record::{MACHINE, Record};
use crate::engine::job::Job;
use crate::machine::Stamp;
use crate::trouble::Trouble;
use serde_json::Value;
use std::collections::HashMap;
use std::fs::{File, OpenOptions};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::io::{Read, Seek, SeekFrom, Write};
use std::path::Path;

/// Where a record holds its key.
const KEY: &str = "key";

/// What the line of every record begins with.
const BEGINNING: &[u8] = b"{\"schema\":";

/// The file.
#[derive(Debug)]
pub(crate) struct Resume {
    file: File,
    label: String,
    /// What machine and build are hashed to.
    here: u64,
    finished: HashMap<String, Record>,
    /// What the first record of the file tells beside.
    whole: Option<Value>,
}

impl Resume {
    /// Opens `path`, which need not exist. `machine` describes this one, `stamp` in full.
    pub(crate) fn open(path: &Path, machine: &str, stamp: &Stamp) -> Result<Self, Trouble> {
        let label = format!("--resume {}", path.display());
        let fail = |error: std::io::Error| Trouble::write(&label, &error);
        let mut file = OpenOptions::new()
            .read(true)
            .write(true)
            .create(true)
            .truncate(false)
            .open(path)
            .map_err(fail)?;
        // A device may have no end.
        if !file.metadata().map_err(fail)?.is_file() {
            return Err(Trouble::Io(format!("{label}: is not a regular file")));
        }
        let mut bytes = Vec::new();
        file.read_to_end(&mut bytes).map_err(fail)?;
        let whole = bytes.len() - cut_off(&bytes).len();
        let mut finished = HashMap::new();
        for (n, line) in bytes[..whole].split(|&b| b == b'\n').enumerate() {
            if line.is_empty() {
                continue;
            }
            let mut record = std::str::from_utf8(line)
                .map_err(|error| error.to_string())
                .and_then(Record::parse)
                .map_err(|why| Trouble::Usage(format!("{label}: line {}: {why}", n + 1)))?;
            if let Some(key) = record.text(KEY).map(str::to_owned) {
                record.params.remove(MACHINE);
                finished.insert(key, record);
            }
        }
        // What was cut off is cut away, so that the next line is one.
        file.set_len(whole as u64).map_err(fail)?;
        file.seek(SeekFrom::End(0)).map_err(fail)?;
        if bytes[..whole].last().is_some_and(|&b| b != b'\n') {
            file.write_all(b"\n").map_err(fail)?;
        }
        let mut here = DefaultHasher::new();
        machine.hash(&mut here);
        std::env::current_exe()
            .and_then(std::fs::read)
            .map_err(|error| {
                Trouble::Environment(format!(
                    "cannot read this program to tell its build: {error}"
                ))
            })?
            .hash(&mut here);
        Ok(Resume {
            file,
            label,
            here: here.finish(),
            finished,
            whole: (whole == 0).then(|| stamp.whole().clone()),
        })
    }

    /// The key of a run: not of its place in the order.
    fn key(&self, job: &Job) -> String {
        let asked = Job {
            order: 0,
            seed: 0,
            ..job.clone()
        };
        let mut hash = DefaultHasher::new();
        self.here.hash(&mut hash);
        serde_json::to_string(&asked)
            .expect("a job is plain data")
            .hash(&mut hash);
        format!("{:016x}", hash.finish())
    }

    /// The record of `job`, if the file has it. Runs that failed, or in which nothing was done, are run again.
    pub(crate) fn find(&self, job: &Job) -> Option<&Record> {
        use super::record::Status;
        self.finished
            .get(&self.key(job))
            .filter(|record| record.status != Status::Failed)
            .filter(|record| record.status == Status::Ok || record.elapsed_s == 0.0)
    }

    /// Appends the record of `job`.
    pub(crate) fn append(&mut self, job: &Job, record: &mut Record) -> Result<(), Trouble> {
        record.set(KEY, self.key(job));
        let line = match self.whole.take() {
            Some(machine) => {
                let mut first = record.clone();
                first.set(MACHINE, machine);
                first.to_line()
            }
            None => record.to_line(),
        };
        self.file
            .write_all(line.as_bytes())
            .and_then(|()| self.file.flush())
            .map_err(|error| Trouble::write(&self.label, &error))
    }
}

/// What is left of a last line that was not finished: the beginning of a record, without its end. Other last lines
/// count as whole, whether or not a newline follows.
fn cut_off(bytes: &[u8]) -> &[u8] {
    let line = bytes.rsplit(|&b| b == b'\n').next().unwrap_or_default();
    let begins = line.starts_with(BEGINNING) || BEGINNING.starts_with(line);
    let ends = || serde_json::from_slice::<serde::de::IgnoredAny>(line).is_ok();
    if begins && !ends() { line } else { &[] }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::record::tests::sample;
    use crate::workloads::Workload;

    #[test]
    fn only_records_are_cut_off() {
        let line = sample(Workload::Read, "hp", 1, 0, 10).to_line();
        assert!(line.as_bytes().starts_with(BEGINNING), "{line}");
        let bare = line.trim_end();
        for end in [1, 5, BEGINNING.len(), bare.len() - 1] {
            let cut = &bare[..end];
            assert_eq!(cut_off(cut.as_bytes()), cut.as_bytes());
            assert_eq!(cut_off((line.clone() + cut).as_bytes()), cut.as_bytes());
        }
        for whole in ["", &line, bare, "my notes", "a\nmy notes", "{\"a\":1", "{}"] {
            assert!(cut_off(whole.as_bytes()).is_empty(), "{whole}");
        }
    }
}
