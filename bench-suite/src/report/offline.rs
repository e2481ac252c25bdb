//! Floor 3, bench-suite. Owns `hpbench report FILE…`: page, pictures and tables of records that were measured before,
//! here or elsewhere. May read the files that are named; measures nothing.

use super::output::{Outputs, Page};
use super::record::{Record, Status};
use super::sink::not_an_input;
use crate::cli::Options;
use crate::command::Voice;
use crate::trouble::Trouble;
use std::collections::HashSet;
use std::fs;
use std::path::{Path, PathBuf};

/// What to show.
#[derive(Debug, clap::Args)]
pub(crate) struct Ask {
    /// Records (JSONL of --json or --resume); several files are put together, machine by machine
    #[arg(required = true, value_name = "FILE")]
    files: Vec<PathBuf>,
    /// The page, or '-' for the standard output; may be left out with --markdown or --plot
    #[arg(short, long, value_name = "FILE.html")]
    output: Option<PathBuf>,
}

/// The records of a file. A last line that was cut off is left out.
fn read(path: &Path) -> Result<Vec<Record>, Trouble> {
    let usage = |why: String| Trouble::Usage(format!("report: {}: {why}", path.display()));
    let text = fs::read_to_string(path).map_err(|error| usage(error.to_string()))?;
    let mut records = Vec::new();
    let mut lines = text.lines().enumerate().peekable();
    while let Some((n, line)) = lines.next() {
        let last = lines.peek().is_none() && !text.ends_with('\n');
        match Record::parse(line) {
            Ok(record) => records.push(record),
            Err(_) if line.trim().is_empty() => {}
            Err(why) if last && why.starts_with("no record") => {}
            Err(why) => return Err(usage(format!("line {}: {why}", n + 1))),
        }
    }
    if records.is_empty() {
        return Err(usage("no record in it".to_owned()));
    }
    Ok(records)
}

/// The subcommand.
pub(crate) fn command(ask: &Ask, options: &Options) -> Result<(), Trouble> {
    options.without_measuring("report")?;
    let page = match (&ask.output, &options.report) {
        (Some(_), Some(_)) => {
            return Err(Trouble::Usage(
                "report: -o and --report are the same, give one of them".to_owned(),
            ));
        }
        (one, other) => one.as_deref().or(other.as_deref()),
    };
    if page.is_none() && options.markdown.is_none() && options.plot.is_none() {
        return Err(Trouble::Usage(
            "report: nothing to write; give -o FILE.html, --markdown FILE or --plot PREFIX"
                .to_owned(),
        ));
    }
    let dash = Some(Path::new("-"));
    if page == dash && options.markdown.as_deref() == dash {
        return Err(Trouble::Usage(
            "-o - and --markdown - cannot share the standard output".to_owned(),
        ));
    }
    let outputs = [("-o", page), ("--markdown", options.markdown.as_deref())];
    for (option, path) in outputs {
        path.map_or(Ok(()), |path| not_an_input(option, path, &ask.files))?;
    }
    let mut seen = HashSet::new();
    let mut records = Vec::new();
    for path in &ask.files {
        // The same run in two files is one run.
        let lines = read(path)?.into_iter();
        records.extend(lines.filter(|record| seen.insert(record.to_line())));
    }
    let against = options.against.as_deref();
    if let Some(name) = against {
        let ran = |record: &&Record| record.status == Status::Ok;
        super::output::check_measured(
            name,
            records.iter().filter(ran).map(|r| r.variant.as_str()),
        )?;
    }
    let page = page.map(|path| Page::open("-o", path)).transpose()?;
    let outputs = Outputs::open(&Options {
        report: None,
        ..options.clone()
    })?;
    let mut files = outputs.write(&records)?;
    if let Some(page) = page {
        files.extend(page.write(&records, against)?);
    }
    let list: String = files
        .iter()
        .map(|file| format!("  {}\n", file.display()))
        .collect();
    if list.is_empty() {
        return Ok(());
    }
    Voice::beside([ask.output.as_deref(), options.markdown.as_deref()])
        .say(&format!("written:\n{list}"))
}
