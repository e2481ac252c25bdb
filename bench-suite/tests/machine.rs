//! Floor 3, bench-suite. `hpbench machine`, thread counts and placement, here and on machines that are not at hand.

mod common;
#[path = "common/trees.rs"]
mod trees;

use common::{complaint, hpbench, measure, run, text};
use serde_json::Value;
use trees::{Tree, epyc, hybrid, power, ryzen, xeon};

/// A laid tree and the program on it.
struct On(tempfile::TempDir, std::cell::OnceCell<Value>);

impl On {
    fn new(tree: &Tree) -> Self {
        let folder = tempfile::tempdir().unwrap();
        tree.lay(folder.path());
        On(folder, std::cell::OnceCell::new())
    }

    fn run(&self, arguments: &[&str]) -> std::process::Output {
        hpbench(arguments)
            .env("HPBENCH_SYSFS", self.0.path())
            .output()
            .unwrap()
    }

    fn say(&self, arguments: &[&str]) -> String {
        let output = self.run(arguments);
        assert!(
            output.status.success(),
            "{arguments:?}: {}",
            text(&output.stderr)
        );
        text(&output.stdout)
    }

    /// Thread counts that a list means.
    fn threads(&self, list: &str) -> Vec<usize> {
        let plan = self.say(&["read", "--variants", "none", "--dry-run", "--threads", list]);
        let rows = plan.lines().filter(|line| line.contains(" threads ("));
        rows.map(|line| line.split_whitespace().nth(2).unwrap().parse().unwrap())
            .collect()
    }

    /// The CPUs of each thread in turn.
    fn places(&self, pin: &str) -> Vec<String> {
        let plan = self.say(&["read", "--variants", "none", "--dry-run", "--pin", pin]);
        let order = plan
            .lines()
            .last()
            .unwrap()
            .strip_prefix("threads in turn on CPUs: ");
        order.unwrap().split(' ').map(str::to_owned).collect()
    }

    fn row(&self, section: &str, row: &str) -> Value {
        let look = || serde_json::from_str(&self.say(&["machine", "--json", "-"])).unwrap();
        self.1.get_or_init(look)[section][row].clone()
    }
}

fn numbers(cpus: impl IntoIterator<Item = usize>) -> Vec<String> {
    cpus.into_iter().map(|cpu| cpu.to_string()).collect()
}

/// Places in the order of each policy, by hand: core-first, smt-pair, pu, spread.
#[test]
fn every_policy_on_every_machine() {
    let offline = Tree {
        offline: vec![1, 6],
        ..Tree::of(&[(0, &[&[0, 4], &[1, 5], &[2, 6], &[3, 7]])])
    };
    let sparse = Tree::of(&[(0, &[&[0], &[512]]), (1, &[&[1024], &[2047]])]);
    let bare = Tree {
        bare: true,
        ..Tree::of(&[(0, &[&[0], &[1], &[2], &[3]])])
    };
    let masked = Tree {
        mask: Some("2,9-10"),
        ..xeon()
    };
    let outside = Tree {
        mask: Some("0-1,3,1000"),
        ..offline.clone()
    };
    for (name, tree, orders) in [
        (
            "xeon",
            xeon(),
            [
                "0 2 4 6 1 3 5 7 8 10 12 14 9 11 13 15",
                "0,8 2,10 4,12 6,14 1,9 3,11 5,13 7,15",
                "0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15",
                "0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15",
            ],
        ),
        (
            "ryzen",
            ryzen(),
            [
                "0 2 4 6 1 3 5 7",
                "0-1 2-3 4-5 6-7",
                "0 1 2 3 4 5 6 7",
                "0 4 2 6 1 5 3 7",
            ],
        ),
        (
            "hybrid",
            hybrid(),
            [
                "0 2 4 5 6 7 1 3",
                "0-1 2-3 4 5 6 7",
                "0 1 2 3 4 5 6 7",
                "0 2 4 5 6 7 1 3",
            ],
        ),
        (
            "power",
            power(),
            [
                "0 8 16 24 1 9 17 25 2 10 18 26 3 11 19 27 4 12 20 28 5 13 21 29 6 14 22 30 7 15 23 31",
                "0-7 8-15 16-23 24-31",
                "0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 21 22 23 24 25 26 27 28 29 30 31",
                "0 16 8 24 1 17 9 25 2 18 10 26 3 19 11 27 4 20 12 28 5 21 13 29 6 22 14 30 7 23 15 31",
            ],
        ),
        (
            "offline",
            offline,
            ["0 2 3 5 4 7", "0,4 2 3,7 5", "0 2 3 4 5 7", "0 2 3 5 4 7"],
        ),
        (
            "sparse",
            sparse,
            [
                "0 512 1024 2047",
                "0 512 1024 2047",
                "0 512 1024 2047",
                "0 1024 512 2047",
            ],
        ),
        ("bare", bare, ["0 1 2 3"; 4]),
        // CPU 9 is the sibling of a core that may not be used, on the other socket.
        ("masked", masked, ["2 9 10", "2,10 9", "2 9 10", "2 9 10"]),
        // CPU 1 is off, CPU 1000 is not there: the mask is what is left.
        ("outside", outside, ["0 3"; 4]),
    ] {
        let on = On::new(&tree);
        for (pin, order) in ["core-first", "smt-pair", "pu", "spread"]
            .into_iter()
            .zip(orders)
        {
            assert_eq!(on.places(pin).join(" "), order, "{name}, {pin}");
        }
        let none = on.say(&["read", "--variants", "none", "--dry-run", "--pin", "none"]);
        assert!(none.ends_with("threads are not bound\n"), "{none}");
    }
}

/// The large one, by rules.
#[test]
fn the_published_machine() {
    let on = On::new(&epyc());
    assert_eq!(on.places("core-first"), numbers(0..384));
    assert_eq!(on.places("pu"), numbers(0..384));
    let pairs: Vec<String> = (0..192)
        .map(|core| format!("{core},{}", core + 192))
        .collect();
    assert_eq!(on.places("smt-pair"), pairs);
    let spread = on.places("spread");
    assert_eq!(spread.len(), 384);
    // Sockets in turn, within them the twelve caches in turn, and no sibling before all cores are taken.
    assert_eq!(
        spread[..28].join(" "),
        "0 96 8 104 16 112 24 120 32 128 40 136 48 144 56 152 64 160 72 168 80 176 88 184 1 97 9 105"
    );
    assert_eq!(spread[190..196].join(" "), "95 191 192 288 200 296");
    let mut all: Vec<usize> = spread.iter().map(|cpu| cpu.parse().unwrap()).collect();
    all.sort_unstable();
    assert!(all.into_iter().eq(0..384));
}

/// What `cores`, `cpus` and `auto` mean, which is also where the plots' bands begin.
#[test]
fn counts_of_threads() {
    let one = Tree {
        mask: Some("7"),
        ..xeon()
    };
    let few = Tree {
        mask: Some("0-3,8-11"),
        ..xeon()
    };
    for (name, tree, cores, cpus, auto) in [
        (
            "epyc",
            epyc(),
            192,
            384,
            vec![1, 2, 3, 6, 12, 24, 48, 96, 192, 384, 768],
        ),
        ("xeon", xeon(), 8, 16, vec![1, 2, 3, 6, 12, 24]),
        ("ryzen", ryzen(), 4, 8, vec![1, 2, 3, 6, 12]),
        ("hybrid", hybrid(), 6, 8, vec![1, 2, 3, 6, 12]),
        ("power", power(), 4, 32, vec![1, 2, 3, 6, 12, 24, 48]),
        ("one CPU", one, 1, 1, vec![1, 2]),
        ("a cpuset", few, 4, 8, vec![1, 2, 3, 6, 12]),
    ] {
        let on = On::new(&tree);
        assert_eq!(on.threads("cores"), [cores], "{name}");
        assert_eq!(on.threads("cpus"), [cpus], "{name}");
        assert_eq!(
            on.threads("1..N:x2").last(),
            Some(&(1 << cpus.ilog2())),
            "{name}"
        );
        assert_eq!(on.threads("auto"), auto, "{name}");
        assert_eq!(on.row("cpu", "cores_allowed"), cores, "{name}");
        assert_eq!(on.row("cpu", "cpus_allowed"), cpus, "{name}");
    }
}

#[test]
fn the_record_of_a_machine_that_is_not_here() {
    let on = On::new(&epyc());
    for (section, row, value) in [
        ("cpu", "model", "AMD EPYC 9654 96-Core Processor"),
        ("cpu", "microcode", "0xa101148"),
        ("cpu", "online", "0-383"),
        ("cpu", "kinds", "one"),
        ("caches", "l1d", "32K x 192"),
        ("caches", "l3", "32768K x 24"),
        ("caches", "last_level", "L3"),
        ("clock", "driver", "acpi-cpufreq"),
        ("clock", "boost", "on"),
        ("kernel", "hypervisor", "none"),
        ("kernel", "product", "Supermicro AS -2125"),
        ("kernel", "transparent_hugepages", "always"),
        ("config", "from", "/boot/config-6.12.0-test"),
        ("config", "HZ", "1000"),
        ("config", "MMU_LAZY_TLB_REFCOUNT", "y"),
        ("config", "PREEMPT_RT", "n"),
        ("config", "RSEQ", "absent"),
        ("machine", "hostname", "big"),
        ("hp", "rung", "unknown"),
    ] {
        assert_eq!(on.row(section, row), value, "{section} {row}");
    }
    for (section, row, value) in [
        ("cpu", "sockets", 2),
        ("cpu", "cores", 192),
        ("cpu", "cores_per_socket", 96),
        ("cpu", "cores_per_cache", 8),
        ("cpu", "threads_per_core", 2),
        ("numa", "count", 24),
        ("memory", "gib", 1512),
    ] {
        assert_eq!(on.row(section, row), value, "{section} {row}");
    }
    let nodes = on.row("numa", "nodes");
    assert_eq!(nodes[23]["cpus"], "184-191,376-383");
    assert!(
        nodes[2]["distances"]
            .as_str()
            .unwrap()
            .starts_with("32 32 10 32")
    );
    let shared = on.row("caches", "shared_by");
    assert_eq!(shared.as_array().unwrap().len(), 24);
    assert_eq!(shared[1], "8-15,200-207");

    let kinds = On::new(&hybrid()).row("cpu", "kinds");
    assert_eq!(
        kinds,
        serde_json::json!({"cpu_core": "0-3", "cpu_atom": "4-7"})
    );
    let off = On::new(&Tree {
        offline: vec![3],
        ..xeon()
    });
    assert_eq!(off.row("cpu", "offline"), "3");
    assert_eq!(off.row("cpu", "cpus_online"), 15);
    let bare = On::new(&Tree {
        bare: true,
        ..Tree::of(&[(0, &[&[0], &[1]])])
    });
    for (section, row) in [
        ("cpu", "model"),
        ("caches", "last_level"),
        ("config", "from"),
        ("kernel", "release"),
    ] {
        assert_eq!(bare.row(section, row), "unknown", "{section} {row}");
    }
}

#[test]
fn the_id_is_of_the_machine() {
    let id = |tree: &Tree| On::new(tree).row("machine", "id");
    assert_eq!(id(&xeon()), id(&xeon()));
    let masked = Tree {
        mask: Some("0-3"),
        ..xeon()
    };
    assert_eq!(id(&masked), id(&xeon()), "not of what one process may use");
    assert_ne!(id(&xeon()), id(&ryzen()));
}

#[test]
fn the_machine_is_told_for_people_and_for_programs() {
    let told = text(&run(&["machine"]).stdout);
    for word in [
        "\ncpu\n",
        "model",
        "smt_map",
        "\nkernel\n",
        "release",
        "hostname",
        "rung",
        "rustc",
    ] {
        assert!(told.contains(word), "{word}: {told}");
    }
    let anonymous = text(&run(&["machine", "--anon"]).stdout);
    assert!(!anonymous.contains("hostname"), "{anonymous}");
    let sheet: Value = serde_json::from_slice(&run(&["machine", "--json", "-"]).stdout).unwrap();
    assert_eq!(sheet["machine"]["schema"], 1);
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("m.json");
    let output = run(&["machine", "--anon", "--json", file.to_str().unwrap()]);
    assert!(output.status.success() && output.stdout.is_empty());
    let again: Value = serde_json::from_str(&std::fs::read_to_string(&file).unwrap()).unwrap();
    assert_eq!(again["machine"]["id"], sheet["machine"]["id"]);
    assert!(again["machine"].get("hostname").is_none());
    assert!(complaint(&run(&["machine", "--runs", "3"]), 2).contains("--runs"));
}

/// Every record carries the short form, the first of a file the long one.
#[test]
fn records_carry_their_machine() {
    let records = measure(&["read", "--variants", "none,mutex", "--threads", "1"]);
    let sheet: Value = serde_json::from_slice(&run(&["machine", "--json", "-"]).stdout).unwrap();
    for (n, record) in records.iter().enumerate() {
        let params = &record["params"];
        assert_eq!(params["machine_id"], sheet["machine"]["id"]);
        assert_eq!(params["cores"], sheet["cpu"]["cores_allowed"]);
        assert_eq!(params["cpus_online"], sheet["cpu"]["cpus_online"]);
        for key in ["load1", "spin_ns_before", "spin_ns_after", "steal_percent"] {
            assert!(params[key].is_number(), "{key}: {params}");
        }
        let whole = params.get("machine_record");
        assert_eq!(whole.is_some(), n == 0, "{params}");
        if let Some(whole) = whole {
            assert_eq!(whole["machine"]["id"], sheet["machine"]["id"]);
            assert!(
                whole["machine"].get("hostname").is_none(),
                "files are passed on"
            );
        }
    }
    // Also in a file that is gone on with: once, not once a call.
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("x.jsonl");
    for threads in ["1", "1,2"] {
        let path = file.to_str().unwrap();
        let output = run(&[
            "read",
            "--variants",
            "none",
            "--threads",
            threads,
            "--resume",
            path,
            "--time",
            "5ms",
            "--warmup",
            "0s",
            "--runs",
            "1",
        ]);
        assert!(output.status.success(), "{}", text(&output.stderr));
    }
    let lines = std::fs::read_to_string(&file).unwrap();
    assert_eq!(lines.lines().count(), 2);
    assert_eq!(lines.matches("machine_record").count(), 1);
}

#[test]
fn runs_have_windows() {
    let all = [
        "read",
        "--variants",
        "none",
        "--threads",
        "2",
        "--runs",
        "1",
        "--warmup",
        "0s",
        "--json",
        "-",
    ];
    let record = |more: &[&str]| {
        let output = run(&[&all[..], more].concat());
        assert!(output.status.success(), "{}", text(&output.stderr));
        common::records(&text(&output.stdout)).remove(0)
    };
    let long = record(&["--time", "600ms"]);
    let params = &long["params"];
    let windows = params["windows"].as_array().unwrap();
    assert!((3..=6).contains(&windows.len()), "{params}");
    assert_eq!(params["window_s"], 0.1);
    let each: Vec<u64> = params["per_thread"]
        .as_array()
        .unwrap()
        .iter()
        .map(|n| n.as_u64().unwrap())
        .collect();
    assert_eq!(each.len(), 2);
    assert_eq!(each.iter().sum::<u64>(), long["ops"].as_u64().unwrap());
    assert!((0.0..=1.0).contains(&params["fairness"].as_f64().unwrap()));
    // The windows are the run in parts.
    let mean = windows
        .iter()
        .map(|rate| rate.as_f64().unwrap())
        .sum::<f64>()
        / windows.len() as f64;
    let rate = long["ops_per_s"].as_f64().unwrap();
    assert!(mean > 0.5 * rate && mean < 2.0 * rate, "{mean} {rate}");
    let fine = record(&["--time", "600ms", "--window", "20ms"]);
    assert!(
        fine["params"]["windows"].as_array().unwrap().len() > windows.len(),
        "{fine}"
    );
    let short = record(&["--time", "20ms"]);
    assert!(short["params"].get("windows").is_none(), "{short}");
    assert!(short["params"]["per_thread"].is_array());
}

#[test]
fn another_machine_is_looked_at_only() {
    let on = On::new(&ryzen());
    for arguments in [
        &["read", "--quick"][..],
        &["--quick"],
        &["overhead"],
        &["calibrate", "--quick"],
        &["model", "--machine", "this", "--quick"],
        &["schbench", "-r", "1"],
        &["ref"],
        &["rcuscale"],
    ] {
        let line = complaint(&on.run(arguments), 2);
        assert!(line.contains("HPBENCH_SYSFS"), "{line}");
    }
    let output = hpbench(&["machine"])
        .env("HPBENCH_SYSFS", "/no/such/tree")
        .output()
        .unwrap();
    let line = complaint(&output, 2);
    assert!(line.contains("/no/such/tree"), "{line}");
}

#[test]
fn strict_refuses_before_anything_is_measured() {
    let busy = Tree {
        files: vec![
            ("proc/loadavg", "99.5 1.0 1.0 3/99 1"),
            (
                "sys/devices/system/cpu/cpu0/cpufreq/scaling_governor",
                "powersave",
            ),
        ],
        ..ryzen()
    };
    let line = complaint(&On::new(&busy).run(&["read", "--dry-run", "--strict"]), 3);
    assert!(
        line.contains("load is 99.5, more than the 8 CPU(s)") && line.contains("'powersave'"),
        "{line}"
    );
    if cfg!(debug_assertions) {
        let line = complaint(&run(&["read", "--strict", "--time", "60s"]), 3);
        assert!(line.contains("debug build"), "{line}");
    }
}

#[test]
fn the_overhead_is_told() {
    let told = text(&run(&["overhead"]).stdout);
    for word in ["with the engine", "bare loop", "engine adds"] {
        assert!(told.contains(word), "{told}");
    }
}
