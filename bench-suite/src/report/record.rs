//! Floor 3, bench-suite. Owns the record of one run, the line format of JSONL and CSV.
//! Touches nothing else.

use crate::engine::job::Job;
use crate::workloads::Workload;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// Version of the record format.
pub(crate) const SCHEMA: u32 = 1;

/// Where the first record of a file holds the machine record.
pub(crate) const MACHINE: &str = "machine_record";

/// How many threads of a run could not be started, of one that was skipped for it.
pub(crate) const MISSING: &str = "threads_missing";

/// How a run ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Status {
    /// It counts.
    Ok,
    /// It read a dead object, crashed or hung: never averaged.
    Failed,
    /// It cannot be had; the note says why.
    Skipped,
}

impl Status {
    /// The word in records.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Status::Ok => "ok",
            Status::Failed => "failed",
            Status::Skipped => "skipped",
        }
    }
}

/// One run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Record {
    /// [`SCHEMA`].
    pub(crate) schema: u32,
    /// What was measured.
    pub(crate) workload: Workload,
    /// Of which variant.
    pub(crate) variant: String,
    /// Threads of the point.
    pub(crate) threads: usize,
    /// Which repetition.
    pub(crate) run: usize,
    /// Operations counted.
    pub(crate) ops: u64,
    /// Measured span.
    pub(crate) elapsed_s: f64,
    /// `ops / elapsed_s`.
    pub(crate) ops_per_s: f64,
    /// CPU time per operation; null when none was completed.
    pub(crate) ns_per_op: Option<f64>,
    /// Reads per second beside the writes; null where there are no readers of their own.
    pub(crate) reads_per_s: Option<f64>,
    /// Everything else that was set or measured.
    pub(crate) params: Map<String, Value>,
    /// How it ended.
    pub(crate) status: Status,
    /// Why, when there is something to say.
    pub(crate) note: String,
}

impl Record {
    /// A record of `job` without results.
    pub(crate) fn empty(job: &Job) -> Self {
        let mut params = Map::new();
        params.insert("readers".into(), job.readers.into());
        params.insert("writers".into(), job.writers.into());
        if let Some(pauses) = job.pauses {
            let hold = u64::try_from(pauses.hold.as_nanos()).unwrap_or(u64::MAX);
            params.insert("hold_ns".into(), hold.into());
            params.insert("idle".into(), pauses.idle.into());
        }
        if !job.more.is_empty() {
            let words = job.more.iter().map(|(name, value)| match value {
                Value::String(word) => format!("{name}={word}"),
                value => format!("{name}={value}"),
            });
            params.insert("point".into(), words.collect::<Vec<_>>().join(", ").into());
            params.extend(job.more.clone());
        }
        params.insert("time_s".into(), job.time.as_secs_f64().into());
        params.insert("warmup_s".into(), job.warmup.as_secs_f64().into());
        params.insert(
            "pin".into(),
            serde_json::to_value(job.pin).expect("a plain word"),
        );
        params.insert("seed".into(), job.seed.into());
        params.insert("order".into(), job.order.into());
        params.insert("quick".into(), job.quick.into());
        Record {
            schema: SCHEMA,
            workload: job.workload,
            variant: job.variant.clone(),
            threads: job.threads,
            run: job.run,
            ops: 0,
            elapsed_s: 0.0,
            ops_per_s: 0.0,
            ns_per_op: None,
            reads_per_s: None,
            params,
            status: Status::Ok,
            note: String::new(),
        }
    }

    /// The record of a run that cannot be had.
    pub(crate) fn skipped(job: &Job, why: &str) -> Self {
        Record {
            status: Status::Skipped,
            note: why.to_owned(),
            ..Record::empty(job)
        }
    }

    /// Stores a parameter or a secondary result.
    pub(crate) fn set(&mut self, key: &str, value: impl Into<Value>) {
        self.params.insert(key.to_owned(), value.into());
    }

    /// A numeric parameter.
    pub(crate) fn number(&self, key: &str) -> Option<f64> {
        self.params.get(key).and_then(Value::as_f64)
    }

    /// A textual parameter.
    pub(crate) fn text(&self, key: &str) -> Option<&str> {
        self.params.get(key).and_then(Value::as_str)
    }

    /// The record of one line of JSONL; or what is wrong with it.
    pub(crate) fn parse(line: &str) -> Result<Self, String> {
        let value: Value =
            serde_json::from_str(line).map_err(|error| format!("no record: {error}"))?;
        let schema = value.get("schema").and_then(Value::as_u64);
        if schema != Some(u64::from(SCHEMA)) {
            let found = schema.map_or("no schema".to_owned(), |n| format!("schema {n}"));
            return Err(format!("{found}, this program writes schema {SCHEMA}"));
        }
        serde_json::from_value(value).map_err(|error| format!("no record: {error}"))
    }

    /// Adds to the note.
    pub(crate) fn remark(&mut self, text: &str) {
        if !self.note.is_empty() {
            self.note.push_str("; ");
        }
        self.note.push_str(text);
    }

    /// Fails the run if `bad` reads met dead objects.
    pub(crate) fn judge(&mut self, bad: u64) {
        self.set("dead_reads", bad);
        if bad > 0 {
            self.status = Status::Failed;
            self.remark(&format!("{bad} reads met a dead object"));
        }
    }

    /// One line of JSONL, with its newline.
    pub(crate) fn to_line(&self) -> String {
        let mut line = serde_json::to_string(self).expect("a record is plain data");
        line.push('\n');
        line
    }

    /// The columns of the CSV file.
    pub(crate) const COLUMNS: [&'static str; 13] = [
        "schema",
        "workload",
        "variant",
        "threads",
        "run",
        "ops",
        "elapsed_s",
        "ops_per_s",
        "ns_per_op",
        "reads_per_s",
        "params",
        "status",
        "note",
    ];

    /// One row of the CSV file.
    pub(crate) fn to_row(&self) -> [String; 13] {
        let optional = |value: Option<f64>| value.map_or(String::new(), |v| v.to_string());
        [
            self.schema.to_string(),
            self.workload.name().to_owned(),
            self.variant.clone(),
            self.threads.to_string(),
            self.run.to_string(),
            self.ops.to_string(),
            self.elapsed_s.to_string(),
            self.ops_per_s.to_string(),
            optional(self.ns_per_op),
            optional(self.reads_per_s),
            serde_json::to_string(&self.params).expect("plain data"),
            self.status.name().to_owned(),
            self.note.clone(),
        ]
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::engine::job::Pin;
    use std::time::Duration;

    pub(crate) fn sample(
        workload: Workload,
        variant: &str,
        threads: usize,
        run: usize,
        ops: u64,
    ) -> Record {
        let job = Job {
            workload,
            variant: variant.into(),
            threads,
            readers: threads,
            writers: 0,
            pauses: None,
            more: Default::default(),
            run,
            order: 3,
            seed: 9,
            time: Duration::from_secs(1),
            warmup: Duration::from_millis(200),
            pin: Pin::CoreFirst,
            quick: false,
        };
        let mut record = Record::empty(&job);
        record.ops = ops;
        record.elapsed_s = 1.0;
        record.ops_per_s = ops as f64;
        record.ns_per_op = Some(1e9 / ops as f64);
        record
    }

    #[test]
    fn a_line_comes_back_as_it_was() {
        let mut record = sample(Workload::Write, "hp", 2, 1, 12345);
        record.reads_per_s = Some(1.5);
        record.set("rung", "rseq");
        record.remark("one");
        record.remark("two \"quoted\", with comma");
        let line = record.to_line();
        assert_eq!(line.matches('\n').count(), 1);
        assert_eq!(serde_json::from_str::<Record>(&line).unwrap(), record);
    }

    #[test]
    fn the_line_has_the_promised_fields() {
        let value: Value =
            serde_json::from_str(&sample(Workload::Scan, "hp", 16, 0, 5).to_line()).unwrap();
        for key in Record::COLUMNS {
            assert!(value.get(key).is_some(), "{key}");
        }
        assert_eq!(value["workload"], "scan");
        assert_eq!(value["status"], "ok");
    }

    #[test]
    fn dead_reads_fail_the_run() {
        let mut record = sample(Workload::Read, "broken", 1, 0, 5);
        record.judge(0);
        assert_eq!(record.status, Status::Ok);
        record.judge(2);
        assert_eq!(record.status, Status::Failed);
        assert!(record.note.contains("2 reads"));
    }
}
