//! Floor 3, bench-suite. The program from outside when others end it, do not listen, or leave it little room.
//! Asserts no speed: only words, files and exit codes.
#![cfg(target_os = "linux")]

mod common;

use common::{came_off, complaint, records, run, text};
use std::fs;
use std::io::{Read, Write};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

fn program() -> Command {
    let mut command = Command::new(assert_cmd::cargo::cargo_bin!("hpbench"));
    command
        .env_remove("HP_BARRIER")
        .env_remove("HPBENCH_SYSFS")
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    command
}

/// Waits until `look` finds something.
fn until<T>(what: &str, mut look: impl FnMut() -> Option<T>) -> T {
    let start = Instant::now();
    loop {
        if let Some(found) = look() {
            return found;
        }
        assert!(start.elapsed() < Duration::from_secs(60), "{what}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// The first child of a process.
fn child_of(parent: u32) -> Option<i32> {
    let processes = fs::read_dir("/proc").unwrap().flatten();
    processes
        .filter_map(|entry| entry.file_name().to_str()?.parse().ok())
        .find(|pid: &i32| {
            let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
            // After the name, which may hold blanks: the state, and the parent.
            let rest = stat.rsplit_once(')').map_or("", |(_, rest)| rest);
            rest.split_whitespace().nth(1) == Some(&parent.to_string())
        })
}

fn kill(pid: i32, signal: i32) {
    // SAFETY: a signal to a process that this test has started.
    assert_eq!(unsafe { libc::kill(pid, signal) }, 0);
}

/// A run that is killed is recorded as failed; the others take place, and all are kept.
#[test]
fn a_killed_run_fails_alone() {
    let folder = tempfile::tempdir().unwrap();
    let (json, resume) = (folder.path().join("x.jsonl"), folder.path().join("y.jsonl"));
    let mut command = program();
    command
        .args([
            "read",
            "--threads",
            "1",
            "--variants",
            "none,mutex",
            "--runs",
            "1",
            "--time",
            "1s",
            "--warmup",
            "0s",
        ])
        .args([Path::new("--json"), &json, Path::new("--resume"), &resume]);
    let parent = command.spawn().unwrap();
    // (A child that is still on its way to its program has no command line of its own.)
    let child = until("no run was started", || {
        let pid = child_of(parent.id())?;
        let line = fs::read_to_string(format!("/proc/{pid}/cmdline")).ok()?;
        line.contains("run-one").then_some(pid)
    });
    kill(child, libc::SIGKILL);
    let output = parent.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(4), "{}", text(&output.stderr));
    assert!(
        complaint(&output, 4).contains("1 of 2 runs failed"),
        "{output:?}"
    );
    for file in [&json, &resume] {
        let all = records(&fs::read_to_string(file).unwrap());
        assert_eq!(all.len(), 2);
        let failed: Vec<_> = all
            .iter()
            .filter(|record| record["status"] == "failed")
            .collect();
        assert_eq!(failed.len(), 1, "{all:?}");
        assert!(
            failed[0]["note"]
                .as_str()
                .unwrap()
                .contains("killed by signal 9"),
            "{failed:?}"
        );
        assert!(
            all.iter()
                .any(|record| record["status"] == "ok" && record["ops"].as_u64() > Some(0))
        );
    }
}

/// A run does not outlive the program that started it.
#[test]
fn a_run_ends_with_its_parent() {
    let mut command = program();
    command.args([
        "read",
        "--threads",
        "1",
        "--variants",
        "none",
        "--time",
        "60s",
        "--warmup",
        "0s",
    ]);
    let mut parent = command.spawn().unwrap();
    let child = until("no run was started", || {
        let pid = child_of(parent.id())?;
        // It must have got as far as its own threads, so as to have asked for its parent's death.
        let threads = fs::read_dir(format!("/proc/{pid}/task")).ok()?.count();
        (threads > 1).then_some(pid)
    });
    parent.kill().unwrap();
    parent.wait().unwrap();
    until("the run goes on", || {
        let stat = fs::read_to_string(format!("/proc/{child}/stat")).unwrap_or_default();
        let state = stat.rsplit_once(") ").map_or("", |(_, rest)| rest);
        (state.is_empty() || state.starts_with('Z')).then_some(())
    });
}

const MANY: [&str; 10] = [
    "read",
    "--threads",
    "1",
    "--variants",
    "none",
    "--time",
    "5ms",
    "--warmup",
    "0s",
    "--runs",
];

/// `hpbench ... --json - | head -1`: no failure, and what is in is kept elsewhere.
#[test]
fn a_reader_of_one_line_is_no_failure() {
    let folder = tempfile::tempdir().unwrap();
    let resume = folder.path().join("x.jsonl");
    let mut command = program();
    command
        .args(MANY)
        .arg("500")
        .args(["--json", "-", "--resume"])
        .arg(&resume);
    let mut parent = command.spawn().unwrap();
    let mut head = Command::new("head")
        .arg("-1")
        .stdin(parent.stdout.take().unwrap())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    assert!(head.wait().unwrap().success());
    let mut line = String::new();
    head.stdout
        .take()
        .unwrap()
        .read_to_string(&mut line)
        .unwrap();
    assert_eq!(records(&line).len(), 1);
    let output = parent.wait_with_output().unwrap();
    let said = text(&output.stderr);
    assert_eq!(output.status.code(), Some(0), "{said}");
    assert!(
        !said.contains("hpbench:") && !said.contains("panicked"),
        "{said}"
    );
    let kept = records(&fs::read_to_string(&resume).unwrap()).len();
    assert!((2..500).contains(&kept), "{kept}");
}

/// A reader that does not read for a while: the program waits, and nothing is lost.
#[test]
fn a_slow_reader_gets_everything() {
    let mut command = program();
    command.args(MANY).arg("40").args(["--json", "-"]);
    let mut parent = command.spawn().unwrap();
    let mut out = parent.stdout.take().unwrap();
    // Room for a few records only.
    // SAFETY: takes numbers; concerns the pipe of this test alone.
    let room = unsafe {
        libc::fcntl(
            std::os::fd::AsRawFd::as_raw_fd(&out),
            libc::F_SETPIPE_SZ,
            4096,
        )
    };
    assert!((4096..65536).contains(&room), "{room}");
    std::thread::sleep(Duration::from_secs(2));
    assert!(parent.try_wait().unwrap().is_none(), "it did not wait");
    let mut lines = String::new();
    out.read_to_string(&mut lines).unwrap();
    assert_eq!(records(&lines).len(), 40);
    assert_eq!(parent.wait().unwrap().code(), Some(0));
}

/// No room for more, which a limit on the size of files stands for: what is in is kept, and can be gone on with.
#[test]
fn a_disk_that_fills_up() {
    const ROOM: usize = 12_000;
    for option in ["--json", "--resume", "--csv"] {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("x");
        let mut command = program();
        command.args(MANY).arg("200").arg(option).arg(&path);
        // SAFETY: between fork and exec only system calls are made.
        unsafe {
            command.pre_exec(|| {
                let limit = libc::rlimit {
                    rlim_cur: ROOM as libc::rlim_t,
                    rlim_max: ROOM as libc::rlim_t,
                };
                libc::signal(libc::SIGXFSZ, libc::SIG_IGN);
                match libc::setrlimit(libc::RLIMIT_FSIZE, &raw const limit) {
                    0 => Ok(()),
                    _ => Err(std::io::Error::last_os_error()),
                }
            });
        }
        let line = complaint_after_heading(&command.output().unwrap(), 1);
        assert!(
            line.contains(option) && line.contains(path.to_str().unwrap()),
            "{line}"
        );
        let kept = if option == "--resume" {
            path.clone()
        } else {
            folder.path().join("x.part")
        };
        let content = fs::read_to_string(&kept).unwrap();
        assert_eq!(content.len(), ROOM, "{option}");
        let whole = content.rsplit_once('\n').unwrap().0;
        assert!(whole.lines().count() >= 2, "{option}");
        if option != "--csv" {
            assert!(records(whole).iter().all(came_off));
        }
        if option == "--resume" {
            let runs = whole.lines().count().to_string();
            let again = [&MANY[..], &[&runs, option, path.to_str().unwrap()]].concat();
            assert!(run(&again).status.success());
            let mended = fs::read_to_string(&path).unwrap();
            assert_eq!(
                mended,
                format!("{whole}\n"),
                "what was cut off is gone, what was whole is not run again"
            );
        }
    }
}

/// The complaint, which is the last line and the only one of its kind.
fn complaint_after_heading(output: &Output, code: i32) -> String {
    let said = text(&output.stderr);
    assert_eq!(output.status.code(), Some(code), "{said}");
    assert_eq!(said.matches("hpbench: ").count(), 1, "{said}");
    said.lines().last().unwrap().to_owned()
}

/// What is not a file of records is left as it is, whether or not its last line ends.
#[test]
fn a_foreign_file_is_nothing_to_go_on_with() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("notes");
    for notes in ["my notes", "my notes\n", "{\"schema\":99}", "{\"a\": 1"] {
        fs::write(&path, notes).unwrap();
        let output = run(&[&MANY[..], &["1", "--resume", path.to_str().unwrap()]].concat());
        let line = complaint(&output, 2);
        assert!(
            line.contains("--resume") && line.contains("line 1"),
            "{line}"
        );
        assert_eq!(fs::read_to_string(&path).unwrap(), notes);
    }
}

/// Ctrl-C: the table of what is in; files are spoken of only if there are some.
#[test]
fn an_interrupted_command_shows_what_is_in() {
    let folder = tempfile::tempdir().unwrap();
    for file in [None, Some("x.jsonl")] {
        let mut command = program();
        command.args(MANY).arg("9999").current_dir(folder.path());
        if let Some(file) = file {
            command.args(["--json", file]);
        }
        let parent = command.spawn().unwrap();
        // Each run is a child of its own.
        let first = until("no run", || child_of(parent.id()));
        until("one run only", || {
            child_of(parent.id()).filter(|&child| child != first)
        });
        std::thread::sleep(Duration::from_millis(300));
        kill(parent.id() as i32, libc::SIGINT);
        let output = parent.wait_with_output().unwrap();
        let line = complaint(&output, 130);
        assert!(line.contains("of 9999 runs are in"), "{line}");
        assert_eq!(line.contains(".part"), file.is_some(), "{line}");
        let table = text(&output.stdout);
        assert!(table.contains("\n  none "), "{table}");
        let part = folder.path().join("x.jsonl.part");
        assert_eq!(part.exists(), file.is_some());
    }
}

#[test]
fn a_device_is_nothing_to_go_on_with() {
    for device in ["/dev/full", "/dev/zero"] {
        let output = run(&[&MANY[..], &["1", "--resume", device]].concat());
        let line = complaint(&output, 1);
        assert!(line.contains("--resume") && line.contains(device), "{line}");
    }
}

/// Runs with a mask of one CPU and everything else as usual.
fn on_one_cpu(arguments: &[&str]) -> Output {
    let mut command = program();
    command.args(arguments);
    // SAFETY: between fork and exec only system calls are made.
    unsafe {
        command.pre_exec(|| {
            let mut mask: libc::cpu_set_t = std::mem::zeroed();
            libc::sched_getaffinity(0, size_of_val(&mask), &raw mut mask);
            let first = (0..libc::CPU_SETSIZE as usize).find(|&cpu| libc::CPU_ISSET(cpu, &mask));
            libc::CPU_ZERO(&mut mask);
            libc::CPU_SET(first.unwrap_or(0), &mut mask);
            match libc::sched_setaffinity(0, size_of_val(&mask), &raw const mask) {
                0 => Ok(()),
                _ => Err(std::io::Error::last_os_error()),
            }
        });
    }
    command.output().unwrap()
}

/// What `taskset` leaves is what there is: counts are of it, and no thread is put elsewhere.
#[test]
fn one_cpu_of_several() {
    let plan = on_one_cpu(&[
        "read",
        "--variants",
        "none",
        "--threads",
        "cpus,auto",
        "--dry-run",
    ]);
    let plan = text(&plan.stdout);
    assert!(
        plan.contains("    1 threads")
            && plan.contains("    2 threads")
            && !plan.contains("    3 threads"),
        "{plan}"
    );
    assert_eq!(
        plan.lines().last().unwrap().split_whitespace().count(),
        6,
        "{plan}"
    );
    for pin in ["core-first", "smt-pair", "pu", "spread", "none"] {
        let output = on_one_cpu(&[
            "read",
            "--variants",
            "none",
            "--threads",
            "3",
            "--time",
            "5ms",
            "--runs",
            "1",
            "--json",
            "-",
            "--pin",
            pin,
        ]);
        assert!(output.status.success(), "{pin}: {}", text(&output.stderr));
        let record = records(&text(&output.stdout)).remove(0);
        assert_eq!(
            record["params"]["cpus"].as_array().unwrap().len(),
            1,
            "{record}"
        );
        assert_eq!(
            (&record["params"]["cores"], &record["status"]),
            (&1.into(), &"ok".into()),
            "{record}"
        );
    }
}

/// Runs as an ordinary user with a limit on something. (Root has no limit on processes.)
fn limited(which: libc::__rlimit_resource_t, most: libc::rlim_t, arguments: &[&str]) -> Output {
    // Where that user can reach it.
    let folder = tempfile::tempdir().unwrap();
    let copy = folder.path().join("hpbench");
    fs::copy(assert_cmd::cargo::cargo_bin!("hpbench"), &copy).unwrap();
    let mode = <fs::Permissions as std::os::unix::fs::PermissionsExt>::from_mode(0o755);
    fs::set_permissions(folder.path(), mode).unwrap();
    let mut command = Command::new(&copy);
    command
        .args(arguments)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    // SAFETY: between fork and exec only system calls are made.
    unsafe {
        command.pre_exec(move || {
            let limit = libc::rlimit {
                rlim_cur: most,
                rlim_max: most,
            };
            if libc::setrlimit(which, &raw const limit) != 0 {
                return Err(std::io::Error::last_os_error());
            }
            if libc::getuid() == 0 && (libc::setgid(54_321) != 0 || libc::setuid(54_321) != 0) {
                return Err(std::io::Error::last_os_error());
            }
            Ok(())
        });
    }
    command.output().unwrap()
}

/// More threads than a limit leaves room for: its name, before anything is measured.
#[test]
fn limits_are_named() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("x.jsonl");
    let read = [
        "read",
        "--variants",
        "none",
        "--time",
        "60s",
        "--threads",
        "768",
    ];
    let output = limited(libc::RLIMIT_NPROC, 400, &read);
    let line = complaint(&output, 3);
    for word in ["--threads: 768", "RLIMIT_NPROC (ulimit -u) allows 400"] {
        assert!(line.contains(word), "{line}");
    }
    let output = limited(
        libc::RLIMIT_AS,
        300 << 20,
        &[&read[..], &["--json", file.to_str().unwrap()]].concat(),
    );
    assert!(
        complaint(&output, 3).contains("RLIMIT_AS (ulimit -v)"),
        "{output:?}"
    );
    assert!(!file.exists());
    let output = limited(libc::RLIMIT_NOFILE, 100, &["ctxsw", "-t", "768"]);
    let line = complaint(&output, 3);
    for word in ["768 tasks need", "the limit is 100 (ulimit -n)"] {
        assert!(line.contains(word), "{line}");
    }
    for mode in ["threads", "processes"] {
        let output = limited(
            libc::RLIMIT_NPROC,
            400,
            &["ctxsw", "-t", "768", "--mode", mode],
        );
        let line = complaint(&output, 3);
        assert!(
            line.contains("-t: 1536 threads") && line.contains("RLIMIT_NPROC"),
            "{line}"
        );
    }
    // Partners are threads, too.
    let track = ["lazy-mm", "track", "--variants", "none", "--threads", "300"];
    let line = complaint(&limited(libc::RLIMIT_NPROC, 400, &track), 3);
    assert!(line.contains("--threads: 600 threads"), "{line}");
    // What the limits do not foretell: the allocator's arenas take what the stacks need.
    let most = [&read[..3], &["--quick", "--threads", "600"]].concat();
    let output = limited(libc::RLIMIT_AS, 440_000 << 10, &most);
    // Or a run that died of them.
    let said = text(&output.stderr);
    match output.status.code() {
        Some(3) => assert!(said.contains("of 600 threads could be started"), "{said}"),
        code => assert_eq!(code, Some(4), "{said}"),
    }
    // Usual points that do not fit are skipped, with the name of the limit; the others are measured.
    let scan = [
        "scan",
        "--variants",
        "haphazard",
        "--quick",
        "--time",
        "5ms",
        "--runs",
        "1",
        "--json",
        "-",
    ];
    let output = limited(libc::RLIMIT_NPROC, 400, &scan);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    let all = records(&text(&output.stdout));
    let at = |threads: u64| {
        all.iter()
            .find(|record| record["threads"] == threads)
            .unwrap()
    };
    assert!(came_off(at(16)), "{all:?}");
    assert_eq!(at(2048)["status"], "skipped");
    assert!(
        at(2048)["note"]
            .as_str()
            .unwrap()
            .contains("RLIMIT_NPROC (ulimit -u)"),
        "{all:?}"
    );
}

/// Lists that are empty, reversed, overlong: one line that is no longer than a line.
#[test]
fn lists_that_are_none() {
    let long = "1,".repeat(50_000);
    let many = (1..2000)
        .map(|n| n.to_string())
        .collect::<Vec<_>>()
        .join(",");
    for (list, word) in [
        ("", "empty"),
        ("4..1", "backwards"),
        ("1..8192", "more than 1000"),
        ("1..99999", "at most"),
        (long.as_str(), "empty"),
        (many.as_str(), "more than 1000"),
    ] {
        let line = complaint(&run(&["read", "--threads", list]), 2);
        assert!(line.contains("--threads") && line.contains(word), "{line}");
        assert!(line.len() < 600, "{} bytes", line.len());
    }
}

/// Files of another schema are refused wherever files are read, and left as they are.
#[test]
fn records_of_another_schema() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("x.jsonl");
    fs::File::create(&file)
        .unwrap()
        .write_all(b"{\"schema\":99}\n")
        .unwrap();
    let path = file.to_str().unwrap();
    for arguments in [
        vec!["read", "--quick", "--resume", path],
        vec!["compare", path, path],
    ] {
        let line = complaint(&run(&arguments), 2);
        assert!(
            line.contains("line 1: schema 99") && line.contains(path),
            "{line}"
        );
    }
    assert_eq!(fs::read(&file).unwrap(), b"{\"schema\":99}\n");
}
