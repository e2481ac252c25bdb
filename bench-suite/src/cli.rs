//! Floor 3, bench-suite. Owns the command line: options, subcommands, and one clear line for every bad one.
//! May touch `parse`, the names of the workloads and `clap`.

mod commands;

pub(crate) use commands::Command;

use crate::baseline;
use crate::engine::job::Pin;
use crate::parse;
use crate::report::compare;
use crate::report::sink::collide;
use crate::trouble::Trouble;
use clap::{Args, Parser};
use std::path::{Path, PathBuf};
use std::time::Duration;

const AFTER: &str = "\
Without a subcommand: a tour of all workloads that prints one table each with the ratio to a reference and writes
results.jsonl, results.csv, one SVG per workload and report.html, a page with all of it, into target/hpbench/ of the
current directory.

Every run is a process of its own; runs of different variants are interleaved in an order drawn from --seed.
Elapsed time is measured. Files are written as NAME.part, run by run, and renamed when complete; what is not a regular
file (a pipe, a device) is written directly. With '-' the records have the standard output to themselves and the
tables go to the standard error.

Environment:
  HPBENCH_HOME   where baselines are kept, in the folder baselines, instead of target/hpbench
  HPBENCH_SYSFS  a folder with the sys (and proc) of another machine, for machine and --dry-run; for tests

Exit codes:
  0  all runs are in (also when the reader of the standard output goes away early)
  1  a file or the output could not be written; compare, --baseline: a point is slower than --fail-if allows
  2  the command line makes no sense
  3  the environment refuses (a thread cannot be bound, a child process cannot be started, a limit is too low for the
     --threads asked for, --strict is not content)
  4  a run read a dead object, crashed or hung
  130  Ctrl-C: the run in progress was finished and its record kept (a second Ctrl-C ends the program at once)";

/// Binding needs Linux.
const DEFAULT_PIN: Pin = if cfg!(target_os = "linux") {
    Pin::CoreFirst
} else {
    Pin::None
};

/// Thread-count sweeps of safe memory reclamation schemes.
#[derive(Debug, Parser)]
#[command(name = "hpbench", version, about, after_help = AFTER, disable_help_subcommand = true)]
pub(crate) struct Cli {
    /// What applies everywhere.
    #[command(flatten)]
    pub(crate) options: Options,
    /// What to measure; the tour if left out.
    #[command(subcommand)]
    pub(crate) command: Option<Command>,
}

/// Options before or after the subcommand.
#[derive(Debug, Clone, Args)]
pub(crate) struct Options {
    /// Thread counts, like 1,2,4 or 1..192:x2 or 1..N:+8 (N: CPUs) or cpus, cores, 2cores, auto; scan counts idle threads, stall counts the parked reader too, grace counts readers
    /// [default: 1,2; write, defer 1; scan 1,16,256,2048; stall, structures 2; grace 0,1; rwsem 1,2,4 readers]
    #[arg(long, global = true, value_name = "LIST", value_parser = |text: &str| parse::counts(text).map(List))]
    pub(crate) threads: Option<List<usize>>,
    /// Variants, like hp,haphazard [default: all that the workload can measure]
    #[arg(long, global = true, value_name = "LIST", value_parser = |text: &str| parse::variants(text).map(List))]
    pub(crate) variants: Option<List<String>>,
    /// How long each run is measured, like 1s or 200ms [default: 1s; quick 100ms; the tour fits its budget]
    #[arg(long, global = true, value_name = "TIME", value_parser = parse::positive_duration)]
    pub(crate) time: Option<Duration>,
    /// How long each run goes on before [default: 200ms; quick 20ms; the tour fits its budget]
    #[arg(long, global = true, value_name = "TIME", value_parser = parse::duration)]
    pub(crate) warmup: Option<Duration>,
    /// Repetitions of each point [default: 3; quick 1]
    #[arg(long, global = true, value_name = "N", value_parser = parse::runs)]
    pub(crate) runs: Option<usize>,
    /// Wall time for all runs together, like 10m: what is not set by --time and --warmup is scaled to fit
    #[arg(long, global = true, value_name = "TIME", value_parser = parse::positive_duration)]
    pub(crate) budget: Option<Duration>,
    /// Show which runs there would be and how long they would take; measure nothing, write nothing
    #[arg(long, global = true)]
    pub(crate) dry_run: bool,
    /// Short runs, one each: to see that it works, not for claims
    #[arg(long, global = true)]
    pub(crate) quick: bool,
    /// Seed of the order of runs
    #[arg(long, global = true, value_name = "N", default_value_t = 1)]
    pub(crate) seed: u64,
    /// Where thread i runs, round robin over the allowed CPUs [default: core-first on Linux, else none; ctxsw smt-pair]
    #[arg(long, global = true, value_enum)]
    pub(crate) pin: Option<Pin>,
    /// One JSON object per run into FILE, or to the standard output
    #[arg(long, global = true, value_name = "FILE|-")]
    pub(crate) json: Option<PathBuf>,
    /// One CSV row per run into FILE, or to the standard output
    #[arg(long, global = true, value_name = "FILE|-")]
    pub(crate) csv: Option<PathBuf>,
    /// A speedup table in Markdown into FILE, or to the standard output: a row for each thread count
    #[arg(long, global = true, value_name = "FILE|-")]
    pub(crate) markdown: Option<PathBuf>,
    /// Pictures as PREFIX-WORKLOAD-WHAT.svg
    #[arg(long, global = true, value_name = "PREFIX")]
    pub(crate) plot: Option<PathBuf>,
    /// One page with everything: machine, tables, pictures, records; needs no network
    #[arg(long, global = true, value_name = "FILE.html")]
    pub(crate) report: Option<PathBuf>,
    /// The variant that ratios refer to, one of those that are measured [default: hp; grace heavy-barrier, defer
    /// crossbeam-epoch]
    #[arg(long, global = true, value_name = "VARIANT")]
    pub(crate) against: Option<String>,
    /// One JSON object per run appended to FILE; runs that are in it already (same points, machine and build) are not
    /// run again
    #[arg(long, global = true, value_name = "FILE")]
    pub(crate) resume: Option<PathBuf>,
    /// Length of the windows that a run's rate is recorded in, from 10ms on; at least three, or none
    #[arg(long, global = true, value_name = "TIME", value_parser = parse::window)]
    pub(crate) window: Option<Duration>,
    /// Refuse a debug build, a loaded machine, another governor than 'performance'; run again once what more than 1 %
    /// of the time was stolen from
    #[arg(long, global = true)]
    pub(crate) strict: bool,
    /// Keep the records as baseline NAME, in target/hpbench/baselines or $HPBENCH_HOME/baselines
    #[arg(long, global = true, value_name = "NAME", value_parser = baseline::name)]
    pub(crate) save: Option<String>,
    /// Compare with baseline NAME when all runs are in
    #[arg(long, global = true, value_name = "NAME", value_parser = baseline::name)]
    pub(crate) baseline: Option<String>,
    /// Compare with a baseline of another machine, too
    #[arg(long, global = true)]
    pub(crate) force: bool,
    /// Exit with 1 if a point is slower than the baseline by more than this, like '>5%'
    #[arg(long, global = true, value_name = ">N%", value_parser = compare::limit)]
    pub(crate) fail_if: Option<f64>,
    /// Show workloads and variants, what each measures and how the peer is used
    #[arg(long, global = true)]
    pub(crate) list: bool,
}

impl Options {
    /// Where threads run.
    pub(crate) fn pin(&self) -> Pin {
        self.pin.unwrap_or(DEFAULT_PIN)
    }

    /// Refuses options of runs, and of what is made of them, for a command that has none.
    pub(crate) fn without_runs(&self, command: &str) -> Result<(), Trouble> {
        self.without_runs_but(command, &[])
    }

    /// The same, but for those that it has.
    pub(crate) fn without_runs_but(&self, command: &str, has: &[&str]) -> Result<(), Trouble> {
        self.refuse(command, |option| !has.contains(&option))
    }

    /// Refuses options of runs that a workload has no use for.
    pub(crate) fn without(&self, command: &str, lost: &[&str]) -> Result<(), Trouble> {
        self.refuse(command, |option| lost.contains(&option))
    }

    /// Refuses options of measuring for a command that shows what was measured before.
    pub(crate) fn without_measuring(&self, command: &str) -> Result<(), Trouble> {
        const REPORTS: [&str; 4] = ["--markdown", "--plot", "--report", "--against"];
        self.without_runs_but(command, &REPORTS)
    }

    fn refuse(&self, command: &str, lost: impl Fn(&str) -> bool) -> Result<(), Trouble> {
        for (option, given) in [
            ("--threads", self.threads.is_some()),
            ("--variants", self.variants.is_some()),
            ("--time", self.time.is_some()),
            ("--warmup", self.warmup.is_some()),
            ("--runs", self.runs.is_some()),
            ("--window", self.window.is_some()),
            ("--pin", self.pin.is_some()),
            ("--quick", self.quick),
            ("--strict", self.strict),
            ("--save", self.save.is_some()),
            ("--baseline", self.baseline.is_some()),
            ("--budget", self.budget.is_some()),
            ("--dry-run", self.dry_run),
            ("--json", self.json.is_some()),
            ("--csv", self.csv.is_some()),
            ("--resume", self.resume.is_some()),
            ("--markdown", self.markdown.is_some()),
            ("--plot", self.plot.is_some()),
            ("--report", self.report.is_some()),
            ("--against", self.against.is_some()),
        ] {
            if given && lost(option) {
                return Err(Trouble::Usage(format!(
                    "{option}: has no meaning for {command}"
                )));
            }
        }
        Ok(())
    }

    /// The files that may be the standard output, with the options that named them.
    pub(crate) fn files(&self) -> Vec<(&'static str, &Path)> {
        [
            ("--json", &self.json),
            ("--csv", &self.csv),
            ("--markdown", &self.markdown),
            ("--report", &self.report),
        ]
        .into_iter()
        .filter_map(|(option, path)| Some((option, path.as_deref()?)))
        .collect()
    }
}

/// A list that is one value of an option.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct List<T>(pub(crate) Vec<T>);

/// What clap made of the arguments.
#[derive(Debug)]
pub(crate) enum Parsed {
    /// Go on with this.
    Run(Box<Cli>),
    /// Help or version: print and leave.
    Show(String),
}

/// Parses the arguments of the process; complaints become one line.
pub(crate) fn parse() -> Result<Parsed, Trouble> {
    parse_from(std::env::args_os())
}

fn parse_from(
    arguments: impl IntoIterator<Item = impl Into<std::ffi::OsString> + Clone>,
) -> Result<Parsed, Trouble> {
    match Cli::try_parse_from(arguments) {
        Ok(cli) => {
            check(&cli)?;
            Ok(Parsed::Run(Box::new(cli)))
        }
        Err(error) if !error.use_stderr() => Ok(Parsed::Show(error.render().to_string())),
        Err(error) => Err(Trouble::Usage(condense(&error.render().to_string()))),
    }
}

/// One line out of clap's paragraphs: the complaint, and its tips.
/// (A value may be longer than any line.)
fn condense(text: &str) -> String {
    const LONGEST: usize = 500;
    let line = whole(text);
    let count = line.chars().count();
    if count <= LONGEST {
        return line;
    }
    let part = |from, to: usize| line.chars().skip(from).take(to - from).collect::<String>();
    format!("{} ... {}", part(0, 150), part(count - 300, count))
}

/// The line in full.
fn whole(text: &str) -> String {
    let mut paragraphs = text.split("\n\n");
    let join = |paragraph: &str| paragraph.split_whitespace().collect::<Vec<_>>().join(" ");
    let complaint = join(paragraphs.next().unwrap_or_default());
    let mut line = complaint
        .strip_prefix("error: ")
        .unwrap_or(&complaint)
        .to_owned();
    for tip in paragraphs
        .map(join)
        .filter(|paragraph| paragraph.starts_with("tip: "))
    {
        line.push_str("; ");
        line.push_str(&tip);
    }
    line
}

/// No two options write one file.
fn check_files(cli: &Cli) -> Result<(), Trouble> {
    let dash = Path::new("-");
    let mut files = cli.options.files();
    if let Some(path) = &cli.options.resume {
        if path == dash {
            return Err(Trouble::Usage(
                "--resume -: what can be gone on with is a file, not the standard output"
                    .to_owned(),
            ));
        }
        files.push(("--resume", path));
    }
    let tour = crate::command::tour_files();
    if cli.command.is_none() {
        files.extend(tour.iter().map(|path| ("the tour", path.as_path())));
    }
    for (n, &(option, path)) in files.iter().enumerate() {
        let Some(&(first, _)) = files[..n].iter().find(|other| collide(other.1, path)) else {
            continue;
        };
        return Err(Trouble::Usage(if path == dash {
            format!("{first} - and {option} - cannot share the standard output")
        } else {
            format!(
                "{first} and {option} cannot write the same file '{}'",
                path.display()
            )
        }));
    }
    Ok(())
}

/// What no single option can see.
fn check(cli: &Cli) -> Result<(), Trouble> {
    let usage = |text: &str| Err(Trouble::Usage(text.to_owned()));
    let options = &cli.options;
    check_files(cli)?;
    if let Some(list) = &options.variants {
        let command = cli.command.as_ref();
        let workload = command.and_then(|command| command.workload(options));
        parse::known(&list.0, workload.map(|(workload, _)| workload)).map_err(|why| {
            let all = list.0.join(",");
            Trouble::Usage(format!(
                "invalid value '{all}' for '--variants <LIST>': {why}"
            ))
        })?;
    }
    let grace = matches!(cli.command, Some(Command::Grace { .. }));
    let has_threads = |n| {
        options
            .threads
            .as_ref()
            .is_some_and(|list| list.0.contains(&n))
    };
    if has_threads(0) && !grace {
        return usage(
            "invalid value '0' for '--threads <LIST>': a run needs at least 1 thread (grace alone can do without readers)",
        );
    }
    let compares = matches!(cli.command, Some(Command::Compare(_)));
    if options.baseline.is_none() && !compares {
        for (option, given) in [
            ("--fail-if", options.fail_if.is_some()),
            ("--force", options.force),
        ] {
            if given {
                return usage(&format!(
                    "{option}: there is nothing to compare with, --baseline NAME is missing"
                ));
            }
        }
    }
    match &cli.command {
        Some(Command::Write { readers, writers }) => {
            if options.threads.is_some() && (readers.is_some() || writers.is_some()) {
                return usage(
                    "--threads counts writers alone and cannot be combined with --readers or --writers",
                );
            }
            if *writers == Some(0) {
                return usage(
                    "invalid value '0' for '--writers <N>': write needs at least 1 writer",
                );
            }
        }
        #[cfg(target_os = "linux")]
        Some(Command::Grace {
            hold,
            idle,
            original: Some(_),
        }) if hold.is_some() || idle.is_some() => {
            return usage("--hold, --idle: rcuscale, which the other parameters ask for, has none");
        }
        Some(Command::Stall) if has_threads(1) => {
            return usage(
                "invalid value '1' for '--threads <LIST>': stall needs 2, a parked reader and a writer",
            );
        }
        #[cfg(target_os = "linux")]
        Some(Command::Rwsem(ask)) => {
            if let Err(why) = ask.check() {
                return usage(why);
            }
        }
        Some(Command::Structures(ask)) => {
            if let Err(why) = ask.check(options.threads.is_some()) {
                return usage(&why);
            }
        }
        Some(Command::Capabilities) if options.csv.is_some() => {
            return usage("--csv: capabilities has no table, use --json");
        }
        _ => {}
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    fn complaint(arguments: &[&str]) -> String {
        let all = ["hpbench"].iter().chain(arguments);
        match parse_from(all) {
            Err(trouble) => {
                assert_eq!(trouble.code(), 2);
                let text = trouble.to_string();
                assert!(!text.contains('\n'), "{text}");
                text
            }
            Ok(parsed) => panic!("{arguments:?} was accepted: {parsed:?}"),
        }
    }

    #[test]
    fn the_definition_is_sound() {
        Cli::command().debug_assert();
    }

    /// clap keeps values by name: an option of a subcommand that is called like a global one would set both.
    #[test]
    fn subcommands_do_not_reuse_names_of_global_options() {
        let program = Cli::command();
        let global: Vec<_> = program
            .get_arguments()
            .filter(|argument| argument.is_global_set())
            .map(|argument| argument.get_id().as_str())
            .collect();
        assert!(global.contains(&"report"), "{global:?}");
        let mut rooms: Vec<_> = program.get_subcommands().collect();
        while let Some(room) = rooms.pop() {
            rooms.extend(room.get_subcommands());
            for argument in room.get_arguments() {
                let id = argument.get_id().as_str();
                // The same options, read in both places.
                if room.get_name() == "compare" && ["force", "fail_if"].contains(&id) {
                    continue;
                }
                assert!(!global.contains(&id), "{}: {id}", room.get_name());
            }
        }
    }

    #[test]
    fn complaints_name_option_and_value() {
        for (arguments, option, value) in [
            (vec!["--threads", "0"], "--threads", "0"),
            (vec!["read", "--threads", "1,,2"], "--threads", "1,,2"),
            (vec!["read", "--threads", "abc"], "--threads", "abc"),
            (vec!["--time", "0s", "read"], "--time", "0s"),
            (vec!["read", "--runs", "0"], "--runs", "0"),
            (
                vec!["read", "--variants", "hp,,none"],
                "--variants",
                "hp,,none",
            ),
            (vec!["read", "--variants", "hpp"], "--variants", "hpp"),
            (vec!["read", "--pin", "x"], "--pin", "x"),
            (vec!["write", "--writers", "0"], "--writers", "0"),
            (vec!["stall", "--threads", "1,2"], "--threads", "1"),
            (vec!["defer", "--threads", "1,0"], "--threads", "0"),
            (vec!["grace", "--hold", "1parsec"], "--hold", "1parsec"),
            (vec!["grace", "--hold", ""], "--hold", "empty"),
            (vec!["grace", "--idle", "x"], "--idle", "x"),
            (vec!["--json", "-", "--csv", "-"], "--json", "-"),
            (vec!["--thread", "1"], "--thread", "tip"),
            (vec!["no-such"], "no-such", "no-such"),
        ] {
            let text = complaint(&arguments);
            assert!(text.contains(option) && text.contains(value), "{text}");
        }
    }

    #[test]
    fn options_go_before_and_after() {
        for arguments in [
            ["hpbench", "--threads", "1,2", "read"],
            ["hpbench", "read", "--threads", "1,2"],
        ] {
            match parse_from(arguments).unwrap() {
                Parsed::Run(cli) => assert_eq!(cli.options.threads.unwrap().0, [1, 2]),
                Parsed::Show(text) => panic!("{text}"),
            }
        }
    }
}
