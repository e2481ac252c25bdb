//! Floor 3, bench-suite. Owns the ways to fail and their exit codes. Touches nothing else.

use std::fmt;
use std::io;

/// Exit code of a clean run.
pub(crate) const OK: u8 = 0;

/// Why the program stops.
#[derive(Debug)]
pub(crate) enum Trouble {
    /// A file or pipe could not be written (exit 1).
    Io(String),
    /// The command line asks for something that makes no sense (exit 2).
    Usage(String),
    /// The machine refuses what the run needs (exit 3).
    Environment(String),
    /// A run read a dead object, or its process died (exit 4).
    Correctness(String),
    /// Ctrl-C (exit 130); what is in is kept.
    Interrupted(String),
    /// Whoever read the standard output has gone; there is nobody left to tell.
    Gone,
}

impl Trouble {
    /// The exit code, as documented in `--help`.
    pub(crate) fn code(&self) -> u8 {
        match self {
            Trouble::Io(_) => 1,
            Trouble::Usage(_) => 2,
            Trouble::Environment(_) => 3,
            Trouble::Correctness(_) => 4,
            Trouble::Interrupted(_) => 130,
            Trouble::Gone => OK,
        }
    }

    /// A failed write to `target`.
    pub(crate) fn write(target: &str, error: &io::Error) -> Self {
        Trouble::Io(format!("{target}: {error}"))
    }

    /// A failed write to the standard output: a closed pipe is no failure.
    pub(crate) fn stdout(error: &io::Error) -> Self {
        match error.kind() {
            io::ErrorKind::BrokenPipe => Trouble::Gone,
            _ => Trouble::write("standard output", error),
        }
    }
}

impl fmt::Display for Trouble {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Trouble::Io(why)
            | Trouble::Usage(why)
            | Trouble::Environment(why)
            | Trouble::Correctness(why)
            | Trouble::Interrupted(why) => f.write_str(why),
            Trouble::Gone => f.write_str("nobody reads the output"),
        }
    }
}
