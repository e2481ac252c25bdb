//! Floor 3, bench-suite. Owns the course of a command: open outputs, run the plan, report, give the files their names.
//! May touch `engine`, `report`, `workloads` and the terminal.

use crate::cli::Options;
use crate::engine::job::Job;
use crate::engine::{child, interrupt, plan};
use crate::machine::{Stamp, strict};
use crate::points::{Points, about, refuse_foreign};
use crate::ready::{self, Ready};
use crate::report::output::{Outputs, Page, check_measured, command_line};
use crate::report::record::{MACHINE, MISSING, Record, Status};
use crate::report::resume::Resume;
use crate::report::sink::{Format, Sink, Target};
use crate::report::{svg, table};
use crate::schemes::{self, About, Support};
use crate::trouble::Trouble;
use crate::workloads::{self, Ask, Workload, capabilities::Machine};
use indicatif::{ProgressBar, ProgressStyle};
use std::io::{self, IsTerminal, Write};
use std::path::{Path, PathBuf};

/// Where the tour writes, from the current directory.
const FOLDER: &str = "target/hpbench";

/// The files that the tour writes by itself.
pub(crate) fn tour_files() -> Vec<PathBuf> {
    let pictures = Workload::ALL.iter().map(|&workload| picture(workload));
    let names = ["report.html", "results.jsonl", "results.csv"].map(str::to_owned);
    let names = names.into_iter().chain(pictures);
    names.map(|name| Path::new(FOLDER).join(name)).collect()
}

fn picture(workload: Workload) -> String {
    format!("{}.svg", workload.name())
}

/// How this program was built, in records.
const BUILD: &str = if cfg!(debug_assertions) {
    "debug (not for claims)"
} else {
    "release"
};

/// Text for people: the standard output, unless records or tables have it.
pub(crate) struct Voice {
    stderr: bool,
}

impl Voice {
    fn new(options: &Options) -> Self {
        Voice {
            stderr: options
                .files()
                .iter()
                .any(|(_, path)| *path == Path::new("-")),
        }
    }

    /// Beside files of which one may be the standard output.
    pub(crate) fn beside<const N: usize>(files: [Option<&Path>; N]) -> Self {
        Voice {
            stderr: files.contains(&Some(Path::new("-"))),
        }
    }

    pub(crate) fn say(&self, text: &str) -> Result<(), Trouble> {
        if self.stderr {
            let mut err = io::stderr().lock();
            return err
                .write_all(text.as_bytes())
                .map_err(|error| Trouble::write("standard error", &error));
        }
        say(text)
    }
}

/// Writes to the standard output and makes sure that it has left the program.
pub(crate) fn say(text: &str) -> Result<(), Trouble> {
    let mut out = io::stdout().lock();
    out.write_all(text.as_bytes())
        .and_then(|()| out.flush())
        .map_err(|error| Trouble::stdout(&error))
}

/// One workload.
pub(crate) fn workload(workload: Workload, ask: &Ask, options: &Options) -> Result<(), Trouble> {
    refuse_foreign(workload, options)?;
    let voice = Voice::new(options);
    let points = Points::of(workload, ask, options);
    check_against(&points, options)?;
    let ready = Ready::of(&points, options)?;
    if options.dry_run {
        return say(&(points.plan() + &ready::order(options)));
    }
    let outputs = Outputs::open(options)?;
    let sinks = asked_sinks(options)?;
    voice.say(&Machine::look().heading())?;
    if let Some(line) = points.beyond() {
        voice.say(&line)?;
    }
    let Performed {
        records,
        sinks,
        stopped,
    } = perform(&points, sinks, options)?;
    if stopped.is_none() || ran(&records) > 0 {
        let against = options.against.as_deref();
        voice.say(&table::render(&records, workload, against))?;
    }
    if let Some(trouble) = stopped {
        return Err(trouble);
    }
    let files = outputs.write(&records)?;
    finish(&voice, sinks, files)?;
    let compared = ready.conclude(&records, |text| voice.say(text));
    verdict(&records).and(compared)
}

/// The tour.
pub(crate) fn tour(options: &Options) -> Result<(), Trouble> {
    let points = Points::tour(options);
    if points.jobs.is_empty() {
        return Err(Trouble::Usage(
            "--variants: the tour has none of them".to_owned(),
        ));
    }
    check_against(&points, options)?;
    let ready = Ready::of(&points, options)?;
    if options.dry_run {
        return say(&(points.plan() + &ready::order(options)));
    }
    let voice = Voice::new(options);
    let folder = Path::new(FOLDER);
    std::fs::create_dir_all(folder)
        .map_err(|error| Trouble::write(&format!("cannot make the folder {FOLDER}"), &error))?;
    let outputs = Outputs::open(options)?;
    let page = Page::open("tour file", &folder.join("report.html"))?;
    let mut sinks = asked_sinks(options)?;
    sinks.push(Sink::open(
        "tour file",
        &folder.join("results.jsonl"),
        Format::Jsonl,
    )?);
    sinks.push(Sink::open(
        "tour file",
        &folder.join("results.csv"),
        Format::Csv,
    )?);
    let mut plots = Vec::new();
    for workload in Workload::toured() {
        plots.push((
            workload,
            Target::open("tour file", &folder.join(picture(workload)))?,
        ));
    }
    voice.say(&Machine::look().heading())?;
    voice.say(&format!(
        "tour: {} runs, {} repetition(s) of each point, about {:.0} ms each with warm-up, some {:.0} s in all{}\n",
        points.count(),
        points.runs,
        points.wall().as_secs_f64() * 1e3 / points.count().max(1) as f64,
        points.wall().as_secs_f64() * 1.12,
        if options.quick { " (quick: not for claims)" } else { "" }
    ))?;
    if let Some(line) = points.beyond() {
        voice.say(&line)?;
    }
    let Performed {
        records,
        sinks,
        stopped,
    } = perform(&points, sinks, options)?;
    let has_run = |workload| move |record: &&Record| record.workload == workload;
    for workload in Workload::toured() {
        if stopped.is_none() || ran(records.iter().filter(has_run(workload))) > 0 {
            let against = options.against.as_deref();
            voice.say(&table::render(&records, workload, against))?;
        }
    }
    if let Some(trouble) = stopped {
        return Err(trouble);
    }
    let mut files = Vec::new();
    for (workload, mut target) in plots {
        if let Some(plot) = svg::overview(&records, workload, options.against.as_deref()) {
            target.put(&plot)?;
            files.extend(target.finish()?);
        }
    }
    files.extend(page.write(&records, options.against.as_deref())?);
    files.extend(outputs.write(&records)?);
    finish(&voice, sinks, files)?;
    let compared = ready.conclude(&records, |text| voice.say(text));
    verdict(&records).and(compared)
}

/// `--against` names a variant that runs.
fn check_against(points: &Points, options: &Options) -> Result<(), Trouble> {
    let Some(name) = &options.against else {
        return Ok(());
    };
    let runs = |job: &&Job| workloads::support(about(job), job) == Support::Yes;
    let measured = points.jobs.iter().filter(runs);
    check_measured(name, measured.map(|job| job.variant.as_str()))
}

fn asked_sinks(options: &Options) -> Result<Vec<Sink>, Trouble> {
    let mut sinks = Vec::new();
    if let Some(path) = &options.json {
        sinks.push(Sink::open("--json", path, Format::Jsonl)?);
    }
    if let Some(path) = &options.csv {
        sinks.push(Sink::open("--csv", path, Format::Csv)?);
    }
    Ok(sinks)
}

/// What became of a plan.
struct Performed {
    /// Of the runs that are in, and of those that cannot be had.
    records: Vec<Record>,
    sinks: Vec<Sink>,
    /// Why it was given up before its end.
    stopped: Option<Trouble>,
}

/// Runs the plan; every record reaches the sinks before the next run starts.
fn perform(points: &Points, mut sinks: Vec<Sink>, options: &Options) -> Result<Performed, Trouble> {
    let stamp = Stamp::here();
    for sink in &mut sinks {
        sink.describe(stamp.whole());
    }
    let plan = plan::interleave(
        &points.jobs,
        points.runs,
        points.jobs.first().map_or(0, |job| job.seed),
    );
    let mut resume = match &options.resume {
        Some(path) => Some(Resume::open(path, &Machine::look().heading(), &stamp)?),
        None => None,
    };
    let machine = Machine::look().name();
    let command = command_line();
    interrupt::watch();
    let bar = progress(points.count() as u64);
    let mut records = Vec::with_capacity(plan.len());
    let mut stopped = None;
    for job in &plan {
        let record = match workloads::support(about(job), job) {
            // The reason does not change from one repetition to the next.
            Support::No(_) if job.run > 0 => continue,
            Support::No(why) => stamp.on(Record::skipped(job, why)),
            Support::Yes => match resume.as_ref().and_then(|resume| resume.find(job)) {
                Some(record) => {
                    bar.inc(1);
                    record.clone()
                }
                None if interrupt::asked() => {
                    let kept = sinks.iter().any(Sink::keeps_part);
                    let said = interrupted(&records, points, options, kept);
                    stopped = Some(Trouble::Interrupted(said));
                    break;
                }
                None => {
                    bar.set_message(describe(job));
                    let run = || child::run(job, about(job), &ready::for_child(options));
                    let mut record = stamp.on(strict::steady(options.strict, run)?);
                    record.set("machine", machine.clone());
                    record.set("command", command.clone());
                    record.set("build", BUILD);
                    if let Some(resume) = &mut resume {
                        resume.append(job, &mut record)?;
                    }
                    bar.inc(1);
                    record
                }
            },
        };
        if points.asked && record.number(MISSING).is_some() {
            stopped = Some(Trouble::Environment(format!("--threads: {}", record.note)));
        }
        for sink in &mut sinks {
            sink.record(&record)?;
        }
        records.push(record);
        if stopped.is_some() {
            break;
        }
    }
    bar.finish_and_clear();
    // For the page; in files it is on the first record already.
    if let Some(first) = records.first_mut() {
        first.set(MACHINE, stamp.whole().clone());
    }
    Ok(Performed {
        records,
        sinks,
        stopped,
    })
}

/// How many of them took place.
fn ran<'a>(records: impl IntoIterator<Item = &'a Record>) -> usize {
    let took_place = |record: &&Record| record.status != Status::Skipped;
    records.into_iter().filter(took_place).count()
}

/// What is said after Ctrl-C; `kept`: under their `.part` names there are files.
fn interrupted(records: &[Record], points: &Points, options: &Options, kept: bool) -> String {
    let rest = match &options.resume {
        Some(path) => format!("; go on with --resume {}", path.display()),
        None if kept => "; files keep the name that ends in .part".to_owned(),
        None => String::new(),
    };
    format!(
        "interrupted: {} of {} runs are in{rest}",
        ran(records),
        points.count()
    )
}

fn describe(job: &Job) -> String {
    format!(
        "{} {} ({} threads)",
        job.workload.name(),
        job.variant,
        job.threads
    )
}

/// A bar on the standard error if that is a terminal. It moves between runs only, never during one.
fn progress(length: u64) -> ProgressBar {
    if !io::stderr().is_terminal() {
        return ProgressBar::hidden();
    }
    let style = ProgressStyle::with_template("{bar:30} {pos}/{len} {eta} left  {msg}")
        .unwrap_or_else(|_| ProgressStyle::default_bar());
    ProgressBar::new(length).with_style(style)
}

fn finish(voice: &Voice, sinks: Vec<Sink>, mut files: Vec<PathBuf>) -> Result<(), Trouble> {
    for sink in sinks {
        files.extend(sink.finish()?);
    }
    if files.is_empty() {
        return Ok(());
    }
    let list: String = files
        .iter()
        .map(|file| format!("  {}\n", file.display()))
        .collect();
    voice.say(&format!("\nwritten:\n{list}"))
}

/// The correctness gate: any failed run fails the program.
fn verdict(records: &[Record]) -> Result<(), Trouble> {
    let failed: Vec<&Record> = records
        .iter()
        .filter(|record| record.status == Status::Failed)
        .collect();
    match failed.first() {
        None => Ok(()),
        Some(first) => Err(Trouble::Correctness(format!(
            "{} of {} runs failed, the first: {} {} ({} threads): {}",
            failed.len(),
            records.len(),
            first.workload.name(),
            first.variant,
            first.threads,
            first.note
        ))),
    }
}

/// `capabilities`.
pub(crate) fn capabilities(options: &Options) -> Result<(), Trouble> {
    options.without_runs_but("capabilities", &["--json"])?;
    let machine = Machine::look();
    match &options.json {
        None => say(&machine.to_string()),
        Some(path) => {
            let mut target = Target::open("--json", path)?;
            let mut text = serde_json::to_string(&machine).expect("a description is plain data");
            text.push('\n');
            target.put(&text)?;
            target.finish().map(|_| ())
        }
    }
}

/// `--list`.
pub(crate) fn list() -> Result<(), Trouble> {
    let mut text = String::from("Workloads:\n");
    let kinds = Workload::ALL
        .iter()
        .map(|workload| (workload.name(), workload.kind().what));
    let capabilities = (
        "capabilities",
        "which rung runs here and why, topology, kernel features",
    );
    let more = [
        ("inversion", "how long an urgent thread waits for each lock"),
        ("compare", "two files of records, point by point"),
        ("report", "files of records as one page, pictures, tables"),
        ("published", "numbers of others, with source and errata"),
        ("calibrate", "what lines, fences and barriers cost here"),
        ("machine", "the machine record"),
        ("baselines", "the baselines that --save has kept"),
        ("overhead", "what the engine adds to an operation"),
        (
            "model",
            "contention predicted, beside the published numbers",
        ),
    ];
    for (name, what) in kinds.chain([capabilities]).chain(more) {
        text.push_str(&format!("  {name:<18}{what}\n"));
    }
    text.push_str(
        "\nVariants (how the peer is used is the fairest use that its documentation allows):\n",
    );
    let line = |about: &About| {
        format!(
            "  {:<18}{}\n  {:<18}holder: {}\n",
            about.name, about.measures, "", about.holder
        )
    };
    for about in schemes::listed() {
        text.push_str(&line(about));
        for (what, support) in about.supports() {
            if let Support::No(why) = support {
                text.push_str(&format!("  {:<18}not in {what}: {why}\n", ""));
            }
        }
    }
    for (names, variants) in own_variants() {
        text.push_str(&format!("\nVariants of {}:\n", names.join(", ")));
        for about in variants.iter().filter(|about| !about.hidden) {
            text.push_str(&line(about));
        }
    }
    say(&text)
}

/// Workloads that compare something else, those with the same variants together.
fn own_variants() -> Vec<(Vec<&'static str>, &'static [About])> {
    let mut own: Vec<(Vec<&str>, &[About])> = Vec::new();
    for workload in Workload::ALL {
        let variants = (workload.kind().variants)();
        if std::ptr::eq(variants, schemes::all()) {
            continue;
        }
        match own.iter_mut().find(|(_, of)| std::ptr::eq(*of, variants)) {
            Some((names, _)) => names.push(workload.name()),
            None => own.push((vec![workload.name()], variants)),
        }
    }
    own
}

/// The hidden subcommand: one run in this process.
pub(crate) fn run_one(job: &str, options: &Options) -> Result<(), Trouble> {
    use crate::engine::crew::Refusal;
    let job: Job = serde_json::from_str(job)
        .map_err(|error| Trouble::Usage(format!("{}: {error}", child::SUBCOMMAND)))?;
    interrupt::die_with_parent();
    child::set_alarm(&job);
    child::end_on_panic();
    let weather = ready::in_child(options);
    let record = match workloads::run(&job) {
        Ok(record) => weather.after(record),
        Err(Refusal::Skipped(why, _)) => Record::skipped(&job, &why),
        Err(Refusal::Environment(why)) => return Err(Trouble::Environment(why)),
    };
    say(&record.to_line())
}
