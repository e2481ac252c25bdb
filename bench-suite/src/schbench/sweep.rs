//! Floor 3, bench-suite. Owns `schbench -H LIST` and `--runs`: a process for each run, and the table of seed 003 beside
//! what others published. May start this program again.
//!
//! A process can leave the global hash no more, so that each size needs one of its own. The sizes take turns, round by
//! round, each round beginning with another one; the row is the median of the rounds.

use super::plan::{self, Ask, Cpus, Format, Pacing, Plan, Rule, Slots};
use super::{complain, say};
use crate::engine::interrupt;
use crate::published::{self, show::columns};
use crate::report::human;
use crate::report::sink::Target;
use crate::trouble::Trouble;
use serde_json::Value;
use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};

/// Runs each of `slots` `rounds` times.
pub(super) fn command(
    ask: &Ask,
    plan: &Plan,
    slots: &[Slots],
    rounds: usize,
) -> Result<(), Trouble> {
    if ask.format == Format::Original {
        return Err(Trouble::Usage(
            "--format original: one run has the original's words, a list of -H or --runs is a table"
                .to_owned(),
        ));
    }
    let mut file = match &ask.results {
        Some(path) => Some(Target::open("-j", path)?),
        None => None,
    };
    interrupt::watch();
    complain(&format!(
        "{} of {} s\n",
        human::plural(slots.len() * rounds, "run"),
        plan.runtime
    ))?;
    let mut rows: Vec<Row> = slots.iter().map(|&slots| Row::new(slots)).collect();
    let mut over = false;
    'rounds: for round in 0..rounds {
        for turn in 0..rows.len() {
            let index = (round + turn) % slots.len();
            let row = &mut rows[index];
            let json = child(ask, row.slots)?;
            if let Some(file) = &mut file {
                file.put(&format!("{json}\n"))?;
            }
            row.add(&json)?;
            if interrupt::asked() {
                over = true;
                break 'rounds;
            }
        }
    }
    let text = render(plan, &rows);
    if ask.results.as_deref() == Some(std::path::Path::new("-")) {
        complain(&text)?;
    } else {
        say(&text)?;
    }
    if let Some(file) = file {
        file.finish()?;
    }
    if over {
        return Err(Trouble::Interrupted(
            "interrupted; finished runs are shown above".to_owned(),
        ));
    }
    Ok(())
}

/// One run in a process of its own: its JSON.
fn child(ask: &Ask, slots: Slots) -> Result<Value, Trouble> {
    let fail = |why: String| Trouble::Environment(format!("a run with -H {slots}: {why}"));
    let program = std::env::current_exe().map_err(|error| fail(error.to_string()))?;
    let mut command = Command::new(program);
    command
        .arg("schbench")
        .args(arguments(ask, slots))
        .args(["-j", "-"])
        .process_group(0)
        .stdin(Stdio::null())
        .stderr(Stdio::piped())
        .stdout(Stdio::piped());
    // SAFETY: one system call between fork and exec.
    unsafe {
        command.pre_exec(|| {
            interrupt::die_with_parent();
            Ok(())
        });
    }
    let output = command.output().map_err(|error| fail(error.to_string()))?;
    if output.status.success() {
        return serde_json::from_slice(&output.stdout).map_err(|error| fail(error.to_string()));
    }
    let said = String::from_utf8_lossy(&output.stderr);
    let last = said.lines().last().unwrap_or("no word");
    let last = last.strip_prefix("hpbench: ").unwrap_or(last).to_owned();
    Err(match output.status.code() {
        Some(2) => Trouble::Usage(last),
        Some(3) => Trouble::Environment(last),
        _ => fail(format!("{}: {last}", output.status)),
    })
}

/// `ask` as a command line with one size of the hash, without its outputs.
fn arguments(ask: &Ask, slots: Slots) -> Vec<String> {
    let mut line: Vec<String> = Vec::new();
    let mut put = |option: &str, value: String| line.extend([option.to_owned(), value]);
    put("-H", slots.to_string());
    put("-m", ask.messengers.to_string());
    put("-n", ask.operations.to_string());
    put("-r", ask.runtime.to_string());
    put("-s", ask.sleep.to_string());
    put("-i", ask.interval.to_string());
    put("-z", ask.zero.to_string());
    put("-F", ask.cache.to_string());
    put("--split", ask.split.to_string());
    for (option, value) in [
        ("-t", ask.workers),
        ("-w", ask.warm),
        ("-p", ask.pipe),
        ("-R", ask.rps.map(u64::from)),
        ("-A", ask.auto_rps.map(u64::from)),
    ] {
        if let Some(value) = value {
            put(option, value.to_string());
        }
    }
    for (option, cpus) in [("-M", &ask.message_cpus), ("-W", &ask.worker_cpus)] {
        match cpus {
            None => {}
            Some(Cpus::Auto) => put(option, "auto".to_owned()),
            Some(Cpus::List(list)) => {
                let list: Vec<String> = list.iter().map(usize::to_string).collect();
                put(option, list.join(","));
            }
        }
    }
    if ask.auto_rule == Rule::Readme {
        put("--auto-rule", "readme".to_owned());
    }
    if ask.pacing == Pacing::Open {
        put("--pacing", "open".to_owned());
    }
    if let Some(name) = &ask.jobname {
        put("-J", name.clone());
    }
    for (option, given) in [
        ("-L", ask.unlocked),
        ("-C", ask.calibrate),
        ("-I", ask.immutable),
    ] {
        if given {
            line.push(option.to_owned());
        }
    }
    line
}

/// The runs of one size.
#[derive(Debug)]
struct Row {
    slots: Slots,
    hash: String,
    average: Vec<f64>,
    measured: Vec<f64>,
    p50: Vec<f64>,
    p99: Vec<f64>,
}

impl Row {
    fn new(slots: Slots) -> Self {
        Row {
            slots,
            hash: String::new(),
            average: Vec::new(),
            measured: Vec::new(),
            p50: Vec::new(),
            p99: Vec::new(),
        }
    }

    fn add(&mut self, json: &Value) -> Result<(), Trouble> {
        let number = |group: &str, name: &str| {
            json[group][name].as_f64().ok_or_else(|| {
                Trouble::Environment(format!("a run with -H {}: no {name}", self.slots))
            })
        };
        let all = [
            number("hpbench", "average_rps")?,
            number("hpbench", "measured_rps")?,
            number("int", "wakeup_latency_pct50.0")?,
            number("int", "wakeup_latency_pct99.0")?,
        ];
        self.hash = match json["hpbench"]["hash_slots"].as_u64() {
            Some(0) | None => "global".to_owned(),
            Some(n) => format!("private {n}"),
        };
        let places = [
            &mut self.average,
            &mut self.measured,
            &mut self.p50,
            &mut self.p99,
        ];
        places
            .into_iter()
            .zip(all)
            .for_each(|(list, n)| list.push(n));
        Ok(())
    }
}

fn median(values: &[f64]) -> Option<f64> {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let half = sorted.len() / 2;
    match sorted.len() {
        0 => None,
        n if n % 2 == 1 => Some(sorted[half]),
        _ => Some(f64::midpoint(sorted[half - 1], sorted[half])),
    }
}

/// Where the published rows are: the table, and what its rows are called.
const THEIRS: [(&str, &str); 4] = [
    ("256 cores", "refcounted"),
    ("256 cores", "immutable"),
    ("144 cores", "refcounted"),
    ("144 cores", "immutable"),
];

/// Published requests per second over those of the global hash.
fn theirs(slots: Slots, table: &str, kind: &str) -> Option<f64> {
    let table = published::table("seed003", table);
    let global = table.value("global 0", 0)?;
    match slots {
        Slots::Auto => None,
        Slots::Set(0) => Some(1.0),
        Slots::Set(n) => Some(table.value(&format!("{kind} {n}"), 0)? / global),
    }
}

fn render(plan: &Plan, rows: &[Row]) -> String {
    let mut text = format!(
        "schbench, for real on this kernel: {}\n{}requests/s: median of the runs, all requests over the {} s configured (measured: over measured time)\n",
        plan::short(plan),
        plan.notes
            .iter()
            .map(|note| format!("note: {note}\n"))
            .collect::<String>(),
        plan.runtime
    );
    let global = rows
        .iter()
        .find(|row| row.slots == Slots::Set(0))
        .and_then(|row| median(&row.average));
    let mut table = vec![
        [
            "-H",
            "hash",
            "runs",
            "requests/s",
            "least",
            "most",
            "measured",
            "x global",
            "wakeup p50 µs",
            "p99 µs",
        ]
        .map(str::to_owned)
        .to_vec(),
    ];
    for row in rows {
        let show = |value: Option<f64>, digits: usize| {
            value.map_or("-".to_owned(), |value| format!("{value:.digits$}"))
        };
        let average = median(&row.average);
        table.push(vec![
            row.slots.to_string(),
            row.hash.clone(),
            row.average.len().to_string(),
            show(average, 2),
            show(row.average.iter().copied().reduce(f64::min), 2),
            show(row.average.iter().copied().reduce(f64::max), 2),
            show(median(&row.measured), 2),
            show(average.zip(global).map(|(ours, global)| ours / global), 3),
            show(median(&row.p50), 0),
            show(median(&row.p99), 0),
        ]);
    }
    text.push_str(&columns(&table));
    let mut heading = vec!["-H".to_owned()];
    heading.extend(THEIRS.map(|(table, kind)| format!("{table}, {kind}")));
    let mut beside = vec![heading];
    for row in rows {
        let values = THEIRS.map(|(table, kind)| theirs(row.slots, table, kind));
        if values.iter().any(Option::is_some) {
            let shown = values.map(|value| value.map_or("-".to_owned(), |x| format!("{x:.3}")));
            beside.push([vec![row.slots.to_string()], shown.to_vec()].concat());
        }
    }
    if beside.len() > 1 {
        text.push_str(
            "theirs, published (seed003): requests/s x global, on their machines with -L -m 4 -M auto -t 256 -n 0 -r 60 -s 0\n",
        );
        text.push_str(&columns(&beside));
        text.push_str(
            "  refcounted is the hash of 6.16-rc; kernels from 6.17 on count per CPU, which is neither (hpbench published seed003)\n",
        );
    }
    text
}

#[cfg(test)]
mod tests {
    use super::super::plan::tests::{ask, plan};
    use super::*;

    /// What a child is told is what was asked.
    #[test]
    fn arguments_come_back() {
        for line in [
            &[][..],
            &[
                "-L", "-m", "4", "-M", "auto", "-t", "256", "-n", "0", "-r", "60", "-s", "0",
            ],
            &[
                "-R", "500", "--pacing", "open", "-W", "0", "-C", "-F", "64", "--split", "20",
            ],
            &[
                "-A",
                "30",
                "-z",
                "5",
                "-i",
                "2",
                "-M",
                "0",
                "--auto-rule",
                "readme",
                "-J",
                "x y",
            ],
            &["-p", "4096", "-w", "3"],
            &["-w", "3", "-H", "64", "-I"],
        ] {
            let before = ask(line);
            let words = arguments(&before, Slots::Set(64));
            let words: Vec<&str> = words.iter().map(String::as_str).collect();
            let after = ask(&words);
            let here = [0, 1];
            assert_eq!(
                Plan::of(&before, &here).unwrap(),
                Plan::of(&after, &here).unwrap(),
                "{line:?}"
            );
            assert_eq!(before.immutable, after.immutable);
            assert_eq!(before.jobname, after.jobname);
            assert_eq!(after.hash.unwrap().0, [Slots::Set(64)]);
        }
    }

    #[test]
    fn published_rows_stand_beside() {
        assert_eq!(theirs(Slots::Set(0), "256 cores", "immutable"), Some(1.0));
        let half = theirs(Slots::Set(1024), "256 cores", "refcounted").unwrap();
        assert!((half - 785_446.07 / 1_701_947.02).abs() < 1e-9);
        assert_eq!(theirs(Slots::Set(64), "256 cores", "refcounted"), None);
        let mut row = Row::new(Slots::Set(1024));
        row.add(&serde_json::json!({
            "int": { "wakeup_latency_pct50.0": 5, "wakeup_latency_pct99.0": 50 },
            "hpbench": { "average_rps": 100.0, "measured_rps": 101.0, "hash_slots": 1024 },
        }))
        .unwrap();
        assert!(row.add(&serde_json::json!({})).is_err());
        let mut global = Row::new(Slots::Set(0));
        global.average.push(200.0);
        let text = render(&plan(&["-r", "5"], &[0]), &[global, row]);
        insta::assert_snapshot!(text);
    }

    #[test]
    fn medians() {
        assert_eq!(median(&[]), None);
        assert_eq!(median(&[3.0, 1.0, 2.0]), Some(2.0));
        assert_eq!(median(&[4.0, 1.0]), Some(2.5));
    }
}
