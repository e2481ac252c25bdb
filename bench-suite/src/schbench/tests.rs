//! Floor 3, bench-suite. The threads of `schbench` under a futex that returns for no reason, on one CPU, with a pace,
//! and what is printed of a run.

use super::crew::{Crew, Running};
use super::futex::{Kernel, tests::Moody};
use super::histogram::{Histogram, Sum};
use super::plan::{Plan, tests::plan};
use super::watch::{Delays, Outcome, Sight};
use super::{clock, hash, show};
use crate::engine::pin;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Arc, mpsc};
use std::time::{Duration, Instant};

/// A wake-up that was lost shows as a thread that stands still for this long.
const STUCK: Duration = Duration::from_secs(60);

fn here() -> Vec<usize> {
    pin::allowed()
}

/// Runs until each worker has answered `each`, and to the end, or says which did not.
fn until<F: super::futex::Futex + std::fmt::Debug>(
    plan: Plan,
    futex: F,
    each: u64,
) -> Arc<Crew<F>> {
    let mut running = Running::start(Crew::new(plan, futex)).unwrap();
    while !running.is_ready().unwrap() {
        std::thread::sleep(Duration::from_millis(1));
    }
    let begin = Instant::now();
    let behind = |crew: &Crew<F>| {
        crew.workers
            .iter()
            .position(|worker| worker.loops.load(Relaxed) < each)
    };
    while let Some(worker) = behind(&running.crew) {
        assert!(begin.elapsed() < STUCK, "worker {worker} stands still");
        std::thread::sleep(Duration::from_millis(5));
    }
    let (tell, told) = mpsc::channel();
    std::thread::spawn(move || tell.send(running.stop()));
    let end = told.recv_timeout(STUCK).expect("the end is not reached");
    end.unwrap()
}

#[test]
fn no_wake_up_is_lost() {
    let plan = plan(&["-m", "2", "-t", "3", "-n", "0", "-s", "0", "-L"], &here());
    for _ in 0..10 {
        let crew = until(plan.clone(), Moody::default(), 100);
        assert!(crew.loops() >= 600);
    }
}

#[test]
fn no_request_is_lost() {
    for pacing in ["original", "open"] {
        let arguments = [
            "-m", "2", "-t", "2", "-n", "0", "-s", "0", "-R", "4000", "--pacing", pacing,
        ];
        let plan = plan(&arguments, &here());
        let crew = until(plan, Moody::default(), 200);
        let (unanswered, _) = crew.count_unanswered(clock::ns());
        assert_eq!(
            crew.sent.load(Relaxed),
            crew.loops() + unanswered,
            "{pacing}"
        );
        assert_eq!(crew.count_unanswered(clock::ns()).0, 0, "counted twice");
    }
}

#[test]
fn all_on_one_cpu() {
    let cpu = [here()[0]];
    let one = plan(
        &[
            "-m", "2", "-M", "auto", "-t", "4", "-n", "1", "-F", "8", "-s", "1",
        ],
        &cpu,
    );
    assert!(one.notes[0].contains("wrapped round"));
    let crew = until(one, Kernel, 20);
    assert!(
        crew.workers
            .iter()
            .all(|worker| worker.busy_us.load(Relaxed) > 0)
    );
    let slept = Sum::of(crew.workers.iter().map(|worker| &worker.request));
    // Each request sleeps for at least a microsecond.
    assert_eq!(slept.count(), crew.loops());
}

#[test]
fn pages_are_handed_over() {
    let crew = until(plan(&["-t", "2", "-p", "4096"], &here()), Kernel, 50);
    assert!(crew.loops() >= 100);
}

/// A server of 20 ms that gets 100 requests a second: the original's clock sees 20 ms, the open one sees the queue.
#[test]
fn coordinated_omission_shows() {
    let p50 = |pacing: &str| {
        let arguments = [
            "-t", "1", "-n", "0", "-s", "20000", "-R", "100", "--pacing", pacing,
        ];
        let crew = until(plan(&arguments, &here()), Kernel, 40);
        Sum::of([&crew.workers[0].request]).percentile(50.0)
    };
    let (theirs, open) = (p50("original"), p50("open"));
    assert!(theirs >= 20_000, "{theirs}");
    assert!(open > 4 * theirs.min(40_000), "{open} against {theirs}");
}

fn outcome(interrupted: bool) -> Outcome {
    let samples = |values: &[u64]| {
        let histogram = Histogram::new();
        values.iter().for_each(|&value| histogram.add(value));
        Sum::of([&histogram])
    };
    Outcome {
        sight: Sight {
            second: 30,
            wakeup: samples(&[3, 4, 5, 6, 900]),
            request: samples(&[150, 160, 2000]),
            rps: samples(&[1000, 1010, 1020]),
            delays: Delays {
                message: 2,
                worker: 7,
            },
            rate: 1010.256,
        },
        loops: 30_300,
        busy_us: 60_000_000,
        measured: (30_200, 30.0),
        goal: 50,
        left_out: 0,
        unanswered: None,
        interrupted,
    }
}

const HASH: hash::State = hash::State {
    slots: Some(16),
    immutable: None,
};

#[test]
fn the_originals_words() {
    insta::assert_snapshot!(
        "original",
        show::original(&plan(&[], &[0, 1]), &outcome(false), HASH)
    );
    insta::assert_snapshot!(
        "original_report",
        show::original_report(&outcome(false).sight)
    );
    insta::assert_snapshot!(
        "original_pipe",
        show::original(&plan(&["-p", "4096"], &[0]), &outcome(false), HASH)
    );
    insta::assert_snapshot!(
        "original_auto",
        show::original(&plan(&["-A", "50"], &[0]), &outcome(false), HASH)
    );
}

#[test]
fn tables() {
    insta::assert_snapshot!(
        "table",
        show::table(&plan(&["-w", "5"], &[0]), &outcome(false), HASH)
    );
    let open = Outcome {
        unanswered: Some((12, 3400)),
        left_out: 3,
        ..outcome(true)
    };
    let line = [
        "-m", "3", "-M", "auto", "-R", "60", "-A", "70", "--pacing", "open",
    ];
    insta::assert_snapshot!("table_open", show::table(&plan(&line, &[0]), &open, HASH));
    insta::assert_snapshot!(
        "table_pipe",
        show::table(&plan(&["-p", "65536"], &[0]), &outcome(false), HASH)
    );
    insta::assert_snapshot!("line", show::short_report(&outcome(false).sight));
}

#[test]
fn averages() {
    let plan = plan(&[], &[0]);
    assert!((outcome(false).configured_rate(&plan) - 1010.0).abs() < 1e-9);
    assert!((outcome(false).measured_rate() - 30_200.0 / 30.0).abs() < 1e-9);
    // Cut short, the configured time says nothing.
    assert_eq!(
        outcome(true).configured_rate(&plan),
        outcome(true).measured_rate()
    );
}

#[test]
fn the_originals_json() {
    let header = show::Header {
        release: "6.18.0".to_owned(),
        hostname: "there".to_owned(),
        jobname: Some("a \"name\"".to_owned()),
        sched_ext: "disabled".to_owned(),
        cmdline: "hpbench schbench".to_owned(),
        time: 1,
    };
    let json = show::json(&header, &plan(&[], &[0]), &outcome(false), HASH);
    insta::assert_snapshot!("json", serde_json::to_string_pretty(&json).unwrap());
    let pipe = show::json(&header, &plan(&["-p", "8"], &[0]), &outcome(false), HASH);
    assert!(pipe["int"].get("rps_pct50.0").is_none());
    assert_eq!(pipe["int"]["wakeup_latency_pct99.9"], 901);
}
