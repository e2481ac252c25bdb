//! Floor 3, bench-suite. Owns what is written once all runs are in: the page, the pictures, the table in Markdown. May
//! touch the files that were asked for, which are opened before anything is measured.

use super::facts::{Facts, by_machine};
use super::record::Record;
use super::sink::Target;
use super::{html, markdown, svg};
use crate::cli::Options;
use crate::trouble::Trouble;
use crate::workloads::Workload;
use std::ffi::OsString;
use std::path::{Path, PathBuf};

/// The page.
#[derive(Debug)]
pub(crate) struct Page(Target);

impl Page {
    /// Opens `path` for `option`.
    pub(crate) fn open(option: &str, path: &Path) -> Result<Self, Trouble> {
        Ok(Page(Target::open(option, path)?))
    }

    /// Writes it, and gives the file its name.
    pub(crate) fn write(
        mut self,
        records: &[Record],
        against: Option<&str>,
    ) -> Result<Option<PathBuf>, Trouble> {
        self.0.put(&html::render(records, against))?;
        self.0.finish()
    }
}

/// What `--markdown`, `--plot` and `--report` ask for.
#[derive(Debug)]
pub(crate) struct Outputs {
    against: Option<String>,
    page: Option<Page>,
    markdown: Option<Target>,
    prefix: Option<PathBuf>,
}

impl Outputs {
    /// Opens what can be opened already.
    pub(crate) fn open(options: &Options) -> Result<Self, Trouble> {
        let page = options.report.as_deref();
        let markdown = options.markdown.as_deref();
        if let Some(prefix) = &options.plot {
            check_prefix(prefix)?;
        }
        Ok(Outputs {
            against: options.against.clone(),
            page: page.map(|path| Page::open("--report", path)).transpose()?,
            markdown: markdown
                .map(|path| Target::open("--markdown", path))
                .transpose()?,
            prefix: options.plot.clone(),
        })
    }

    /// Writes it all; the files that are there now.
    pub(crate) fn write(self, records: &[Record]) -> Result<Vec<PathBuf>, Trouble> {
        let against = self.against.as_deref();
        let mut files = Vec::new();
        if let Some(prefix) = &self.prefix {
            plots(prefix, records, against, &mut files)?;
        }
        if let Some(mut target) = self.markdown {
            target.put(&markdown::render(records, against))?;
            files.extend(target.finish()?);
        }
        if let Some(page) = self.page {
            files.extend(page.write(records, against)?);
        }
        Ok(files)
    }
}

/// `--against` must be one of the variants that are measured.
pub(crate) fn check_measured<'a>(
    name: &str,
    measured: impl Iterator<Item = &'a str>,
) -> Result<(), Trouble> {
    let mut names: Vec<&str> = Vec::new();
    for one in measured {
        if !names.contains(&one) {
            names.push(one);
        }
    }
    if names.contains(&name) {
        return Ok(());
    }
    Err(Trouble::Usage(format!(
        "--against: '{name}' is not one of the variants that are measured here ({})",
        names.join(", ")
    )))
}

/// Pictures have names of their own; their folder can be looked for before.
fn check_prefix(prefix: &Path) -> Result<(), Trouble> {
    let folder = match prefix.parent() {
        Some(folder) if folder != Path::new("") => folder,
        _ => Path::new("."),
    };
    let slash = prefix.to_string_lossy().ends_with(std::path::is_separator);
    if slash || prefix.file_name().is_none() || prefix == Path::new("-") {
        return Err(Trouble::Usage(format!(
            "--plot {}: not the beginning of a file's name",
            prefix.display()
        )));
    }
    if !folder.is_dir() {
        return Err(Trouble::Io(format!(
            "--plot {}: there is no folder {}",
            prefix.display(),
            folder.display()
        )));
    }
    Ok(())
}

fn plots(
    prefix: &Path,
    records: &[Record],
    against: Option<&str>,
    files: &mut Vec<PathBuf>,
) -> Result<(), Trouble> {
    let machines = by_machine(records);
    for (index, records) in machines.iter().enumerate() {
        let topology = Facts::of(records).topology;
        let machine = if machines.len() > 1 {
            format!("-m{}", index + 1)
        } else {
            String::new()
        };
        for &workload in Workload::ALL {
            for drawn in svg::pictures(records, workload, against, topology) {
                let dash = if drawn.kind.is_empty() { "" } else { "-" };
                let mut path: OsString = prefix.as_os_str().to_owned();
                path.push(format!(
                    "{machine}-{}{dash}{}.svg",
                    workload.name(),
                    drawn.kind
                ));
                let mut target = Target::open("--plot", Path::new(&path))?;
                target.put(&drawn.svg)?;
                files.extend(target.finish()?);
            }
        }
    }
    Ok(())
}

/// The command line of this process, as a shell takes it.
pub(crate) fn command_line() -> String {
    let forced = std::env::var(crate::engine::child::RUNG_VARIABLE).ok();
    let rung =
        forced.map(|rung| format!("{}={} ", crate::engine::child::RUNG_VARIABLE, quote(&rung)));
    let arguments = std::env::args_os().skip(1);
    let words = arguments.map(|argument| quote(&argument.to_string_lossy()));
    let all: Vec<String> = std::iter::once("hpbench".to_owned()).chain(words).collect();
    rung.unwrap_or_default() + &all.join(" ")
}

/// A word that a shell leaves as it is.
fn quote(word: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_./:=,+@%".contains(c);
    if !word.is_empty() && word.chars().all(plain) {
        word.to_owned()
    } else {
        format!("'{}'", word.replace('\'', "'\\''"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_quoted_where_they_must_be() {
        assert_eq!(quote("--threads=1,2"), "--threads=1,2");
        assert_eq!(quote(">5%"), "'>5%'");
        assert_eq!(quote("a'b"), "'a'\\''b'");
        assert_eq!(quote(""), "''");
    }

    #[test]
    fn prefixes_are_names_in_folders_that_exist() {
        assert!(check_prefix(Path::new("x")).is_ok());
        assert_eq!(check_prefix(Path::new("/no/such/x")).unwrap_err().code(), 1);
        for bad in ["/", "-", "..", "/tmp/", "/no/such/"] {
            assert_eq!(check_prefix(Path::new(bad)).unwrap_err().code(), 2, "{bad}");
        }
    }
}
