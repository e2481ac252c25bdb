//! Floor 3, bench-suite. Owns the tests of the simulated CPUs: what a switch asks of the tracker, and short runs of
//! every tracker in every corner of the options. The speed of nothing is asserted.

use super::super::mm::Mm;
use super::super::tracker::{Cost, Interrupts, Tracker};
use super::cpu::{Cpu, Task};
use super::irq::Ipi;
use super::machine::{Machine, Settings};
use super::{KIND, run};
use crate::engine::crew::Refusal;
use crate::engine::job::{Job, Pin};
use crate::lazymm::trackers::{self, over_trackers};
use crate::report::record::{Record, Status};
use crate::schemes::About;
use crate::workloads::Workload;
use serde_json::Value;
use std::ptr::NonNull;
use std::sync::Mutex;
use std::time::Duration;

/// Writes down what is asked of it; frees at tear-down, when all have dropped.
#[derive(Default)]
struct Notebook(Mutex<Vec<String>>);

impl Notebook {
    fn note(&self, what: &str, mm: NonNull<Mm<Self>>) {
        // SAFETY: blocks of hidden trackers stay.
        let serial = unsafe { mm.as_ref() }.serial();
        self.0.lock().unwrap().push(format!("{what} {serial}"));
    }

    fn read(&self) -> Vec<String> {
        std::mem::take(&mut *self.0.lock().unwrap())
    }
}

impl Tracker for Notebook {
    const ABOUT: About = About {
        hidden: true,
        ..About::new("notebook", "a test", "none")
    };
    type Mark = ();
    type Cpu<'t> = ();
    type Held<'t> = u64;

    fn new(_: usize) -> Self {
        Notebook::default()
    }

    fn cpu(&self, _: usize) {}

    fn mark(&self) {}

    unsafe fn run_user(&self, (): &mut (), mm: NonNull<Mm<Self>>) {
        self.note("run", mm);
    }

    unsafe fn grab(&self, (): &mut (), mm: NonNull<Mm<Self>>) -> u64 {
        self.note("grab", mm);
        // SAFETY: as in `note`.
        unsafe { mm.as_ref() }.serial()
    }

    unsafe fn drop(&self, (): &mut (), mm: NonNull<Mm<Self>>, held: u64) {
        self.note("drop", mm);
        // SAFETY: as in `note`.
        assert_eq!(unsafe { mm.as_ref() }.serial(), held, "what was grabbed");
    }

    unsafe fn tear_down(&self, (): &mut (), mm: NonNull<Mm<Self>>, _: &mut dyn Interrupts<Self>) {
        self.note("tear down", mm);
        // SAFETY: blocks of hidden trackers stay.
        unsafe { Mm::free(mm) };
    }

    fn cost(&self) -> Cost {
        Cost::NOTHING
    }
}

fn settings(cpus: usize, mms: usize) -> Settings {
    Settings {
        cpus,
        kthread_share: 50,
        mms,
        exit_every: 0,
        work: 1,
        ipi: Ipi::Mailbox,
        seed: 1,
    }
}

/// The processes' first mms are 1, 2, ….
#[test]
fn a_switch_asks_what_the_table_says() {
    let machine = Machine::<Notebook>::new(settings(1, 2));
    let cpu = Cpu::new(&machine, 0);
    let step = |next, asked: &[&str]| {
        cpu.switch(next);
        assert_eq!(machine.tracker.read(), asked, "to {next:?}");
    };
    step(Task::Kernel, &[]);
    step(Task::User(0), &["run 1"]);
    step(Task::User(1), &["run 2"]);
    step(Task::Kernel, &["grab 2"]);
    step(Task::Kernel, &[]);
    step(Task::User(1), &["run 2", "drop 2"]);
    step(Task::Kernel, &["grab 2"]);
    step(Task::User(0), &["run 1", "drop 2"]);
}

#[test]
fn the_last_one_out_tears_down_while_others_borrow() {
    let machine = Machine::<Notebook>::new(settings(2, 1));
    let (first, second) = (Cpu::new(&machine, 0), Cpu::new(&machine, 1));
    for cpu in [&first, &second] {
        cpu.switch(Task::User(0));
        assert!(!cpu.is_behind(0));
    }
    first.exec(0);
    assert_eq!(first.current(), Task::Kernel);
    assert_eq!(machine.tracker.read(), ["run 1", "run 1", "grab 1"]);
    assert!(second.is_behind(0));
    second.exit(0);
    assert_eq!(machine.tracker.read(), ["grab 1", "tear down 1"]);
    // A task that is born now is born in the new one.
    first.switch(Task::User(0));
    assert_eq!(machine.tracker.read(), ["run 2", "drop 1"]);
    assert!(!first.is_behind(0));
}

#[test]
fn two_execs_at_once_are_one() {
    let machine = Machine::<Notebook>::new(settings(2, 1));
    let cpus = [Cpu::new(&machine, 0), Cpu::new(&machine, 1)];
    for cpu in &cpus {
        cpu.switch(Task::User(0));
    }
    for cpu in &cpus {
        cpu.exec(0);
    }
    let asked = machine.tracker.read();
    assert_eq!(
        asked
            .iter()
            .filter(|line| line.starts_with("tear down"))
            .count(),
        1,
        "{asked:?}"
    );
    assert_eq!(machine.census.found().born, 2);
}

#[test]
fn at_the_end_all_are_torn_down_once() {
    let machine = Machine::<Notebook>::new(settings(1, 3));
    let cpu = Cpu::new(&machine, 0);
    for next in [Task::User(0), Task::Kernel, Task::User(2), Task::User(1)] {
        cpu.switch(next);
    }
    cpu.exit_all();
    (0..3).for_each(|process| cpu.end(process));
    cpu.rest();
    let mut torn = machine.tracker.read();
    torn.retain(|line| line.starts_with("tear down"));
    torn.sort();
    assert_eq!(torn, ["tear down 1", "tear down 2", "tear down 3"]);
}

fn job(variant: &str, cpus: usize, options: &[(&str, Value)]) -> Job {
    Job {
        workload: Workload::Sched,
        variant: variant.into(),
        threads: cpus,
        readers: cpus,
        writers: 0,
        pauses: None,
        more: options
            .iter()
            .map(|(name, value)| ((*name).to_owned(), value.clone()))
            .collect(),
        run: 0,
        order: 0,
        seed: 5,
        time: Duration::from_millis(20),
        warmup: Duration::from_millis(2),
        pin: Pin::CoreFirst,
        quick: true,
    }
}

/// Runs every listed tracker and looks at its record.
fn all(cpus: usize, options: &[(&str, Value)], look: impl Fn(&Record)) {
    let one: fn(&Job) -> Result<Record, Refusal> = over_trackers!(run);
    for about in trackers::all().iter().filter(|about| !about.hidden) {
        // A loaded machine may leave a run no time: then a longer one.
        let record = (0..8)
            .map(|again| {
                let mut job = job(about.name, cpus, options);
                job.time *= 1 << again;
                one(&job).expect("a run")
            })
            .find(|record| record.ops > 0)
            .expect("a run with an operation");
        assert_eq!(record.status, Status::Ok, "{record:?}");
        assert_eq!(record.params["invariants"], "I1-I6 held", "{record:?}");
        assert_eq!(record.params["scope"], "model");
        look(&record);
    }
}

fn number(record: &Record, key: &str) -> f64 {
    record
        .number(key)
        .unwrap_or_else(|| panic!("{key}: {record:?}"))
}

/// Mms come and go as fast as can be, on fewer, as many and more CPUs than there are.
fn heavy_exits(ipi: Ipi) {
    for cpus in [1, 2, 8] {
        let options = [
            ("exit_every", 1.into()),
            ("work", 10.into()),
            ("ipi", ipi.word().into()),
        ];
        all(cpus, &options, |record| {
            assert!(number(record, "teardowns") > 0.0, "{record:?}");
        });
    }
}

#[test]
fn heavy_exits_with_mailboxes() {
    heavy_exits(Ipi::Mailbox);
}

#[cfg(target_os = "linux")]
#[test]
fn heavy_exits_with_signals() {
    heavy_exits(Ipi::Signal);
}

#[test]
fn kernel_threads_alone_never_grab() {
    all(2, &[("kthread_share", 100.into())], |record| {
        assert_eq!(number(record, "grabs_per_switch"), 0.0);
        assert_eq!(number(record, "teardowns"), 0.0);
    });
}

#[test]
fn user_tasks_alone_grab_to_exit() {
    let options = [("kthread_share", 0.into()), ("exit_every", 100.into())];
    all(2, &options, |record| {
        let grabs = number(record, "grabs_per_switch");
        assert!(grabs > 0.0 && grabs < 0.5, "{record:?}");
    });
}

#[test]
fn every_other_switch_grabs_as_in_context_switch1() {
    all(1, &[("exit_every", 0.into())], |record| {
        let grabs = number(record, "grabs_per_switch");
        assert!((grabs - 0.5).abs() < 0.01, "{record:?}");
        let expected = match record.variant.as_str() {
            "refcount" | "rcuref" | "split-count" => 1.0,
            "hp-mb" | "hp-asym" | "shootdown" | "none" => 0.0,
            _ => return,
        };
        let locked = number(record, "locked_per_switch");
        assert!((locked - expected).abs() < 0.02, "{record:?}");
    });
}

#[test]
fn many_processes() {
    for ipi in [Ipi::Mailbox, Ipi::Signal] {
        let options = [
            ("mms", 7.into()),
            ("exit_every", 10.into()),
            ("kthread_share", 70.into()),
            ("ipi", ipi.word().into()),
        ];
        all(3, &options, |record| {
            assert_eq!(number(record, "mms"), 7.0);
        });
    }
}

/// Interrupts do happen: a CPU that borrows for long is found by a tear-down on another one.
#[test]
fn holders_on_other_cpus_are_interrupted() {
    let one: fn(&Job) -> Result<Record, Refusal> = over_trackers!(run);
    let options = [
        ("exit_every", 3.into()),
        ("work", 300.into()),
        ("kthread_share", 75.into()),
    ];
    for variant in ["hp-mb", "hp-asym", "shootdown"] {
        for ipi in [Ipi::Mailbox, Ipi::Signal] {
            let mut job = job(variant, 4, &options);
            job.more.insert("ipi".to_owned(), ipi.word().into());
            job.time = Duration::from_millis(300);
            let record = one(&job).expect("a run");
            assert_eq!(record.status, Status::Ok, "{record:?}");
            assert!(number(&record, "interrupts") > 0.0, "{record:?}");
            assert_eq!(
                number(&record, "interrupts"),
                number(&record, "interrupts_to_check")
            );
        }
    }
}

#[test]
fn more_cpus_than_there_are_is_said() {
    let many = crate::engine::pin::allowed().len() + 1;
    let record = (KIND.run)(&job("hp-mb", many, &[])).expect("a run");
    assert!(record.note.contains("simulated CPUs on"), "{record:?}");
    let few = (KIND.run)(&job("hp-mb", 1, &[])).expect("a run");
    assert_eq!(few.note, "");
}
