//! Runs a child program and reads its summary line.

use std::collections::BTreeMap;
use std::fmt;
use std::os::unix::process::ExitStatusExt;
use std::process::{Command, ExitStatus};

/// What a child left behind.
#[derive(Debug)]
pub struct Outcome {
    /// How it ended.
    pub status: ExitStatus,
    /// All that it wrote.
    pub text: String,
    fields: BTreeMap<String, String>,
}

impl Outcome {
    /// A field of the summary line.
    ///
    /// # Panics
    ///
    /// If there is no such field: the child did not get that far.
    #[must_use]
    pub fn field(&self, name: &str) -> &str {
        self.fields
            .get(name)
            .unwrap_or_else(|| panic!("no field {name} in {self}"))
    }

    /// A field of the summary line that is a number.
    ///
    /// # Panics
    ///
    /// As [`field`](Self::field), and if it is no number.
    #[must_use]
    pub fn number(&self, name: &str) -> u64 {
        self.field(name)
            .parse()
            .unwrap_or_else(|_| panic!("{name} is no number in {self}"))
    }

    /// Fails unless the child succeeded and says so in its summary.
    ///
    /// # Panics
    ///
    /// If it did not.
    #[must_use]
    pub fn expect_ok(self) -> Self {
        assert!(self.status.success(), "{self}");
        assert_eq!(self.field("result"), "ok", "{self}");
        self
    }
}

impl fmt::Display for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "child ended with {} (signal {:?}):\n{}",
            self.status,
            self.status.signal(),
            self.text
        )
    }
}

/// Runs `program` with a clean environment, as far as this workspace is
/// concerned, and `environment` on top.
///
/// # Panics
///
/// If the program cannot be started.
pub fn run(program: &mut Command, environment: &[(&str, &str)]) -> Outcome {
    for name in ["HP_BARRIER", "HP_INDEX", "GLIBC_TUNABLES"] {
        program.env_remove(name);
    }
    let output = program
        .envs(environment.iter().copied())
        .output()
        .unwrap_or_else(|error| panic!("cannot run {program:?}: {error}"));
    let mut text = String::from_utf8_lossy(&output.stdout).into_owned();
    text.push_str(&String::from_utf8_lossy(&output.stderr));
    let fields = text
        .lines()
        .find_map(|line| line.strip_prefix("SUMMARY "))
        .into_iter()
        .flat_map(str::split_ascii_whitespace)
        .filter_map(|word| word.split_once('='))
        .map(|(name, value)| (name.to_string(), value.to_string()))
        .collect();
    Outcome {
        status: output.status,
        text,
        fields,
    }
}
