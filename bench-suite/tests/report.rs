//! Floor 3, bench-suite. Reports from outside: the page in a real browser, pictures, tables, and what is refused.
//! Asserts no speed.
//!
//! The browser is headless Chromium. Where there is none the test says so and passes; with `HPBENCH_NEED_BROWSER` set
//! (as `ci/report.sh` does) that is a failure.

mod common;

use common::{FAST, complaint, hpbench, run, text};
use std::collections::HashSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// A sweep over three thread counts, with everything that a report can be.
fn sweep(folder: &Path) -> Output {
    let arguments = [
        &[
            "read",
            "--variants",
            "none,mutex,hp",
            "--threads",
            "1,2,3",
            "--runs",
            "3",
            "--json",
            "runs.jsonl",
            "--markdown",
            "table.md",
            "--plot",
            "plot",
            "--report",
            "page.html",
            "--against",
            "mutex",
        ][..],
        &FAST[1..],
    ]
    .concat();
    hpbench(&arguments).current_dir(folder).output().unwrap()
}

/// A record as the program writes it, with these figures.
fn record(machine: &str, variant: &str, threads: usize, run: usize, rate: u64) -> String {
    format!(
        "{{\"schema\":1,\"workload\":\"read\",\"variant\":\"{variant}\",\"threads\":{threads},\"run\":{run},\
         \"ops\":{rate},\"elapsed_s\":1.0,\"ops_per_s\":{rate}.0,\"ns_per_op\":1.0,\"reads_per_s\":null,\
         \"params\":{{\"machine\":\"{machine}\",\"readers\":{threads}}},\"status\":\"ok\",\"note\":\"\"}}\n"
    )
}

#[test]
fn a_sweep_writes_page_pictures_and_table() {
    let folder = tempfile::tempdir().unwrap();
    let output = sweep(folder.path());
    assert!(output.status.success(), "{}", text(&output.stderr));
    let stdout = text(&output.stdout);
    let file = |name: &str| fs::read_to_string(folder.path().join(name)).unwrap();
    for name in [
        "page.html",
        "table.md",
        "plot-read-rate.svg",
        "plot-read-speedup.svg",
        "plot-read-time.svg",
    ] {
        assert!(stdout.contains(&format!("  {name}\n")), "{name}: {stdout}");
        assert!(!file(name).is_empty());
    }
    assert!(stdout.contains("  x mutex"), "{stdout}");
    assert!(
        stdout
            .lines()
            .all(|line| !line.starts_with("  ") || line.chars().count() <= 112)
    );
    let table = file("table.md");
    assert!(
        table.contains("| threads | mutex (reference) | "),
        "{table}"
    );
    assert_eq!(
        table.lines().filter(|line| line.starts_with("| ")).count(),
        4
    );
    assert!(
        file("plot-read-speedup.svg").contains("change against mutex")
            || file("plot-read-speedup.svg").contains("times the rate of mutex")
    );
    let page = file("page.html");
    assert!(
        page.contains("hpbench read --variants none,mutex,hp"),
        "the command"
    );

    // The same records give the same figures, byte by byte.
    let again = hpbench(&["report", "runs.jsonl", "-o", "-", "--against", "mutex"])
        .current_dir(folder.path())
        .output()
        .unwrap();
    assert!(again.status.success(), "{}", text(&again.stderr));
    let figures = |page: &str| {
        let from = page.find("<section id=\"m1-read\"").unwrap();
        let to = page.find("<section id=\"m1-raw\"").unwrap();
        page[from..to].to_owned()
    };
    assert_eq!(figures(&text(&again.stdout)), figures(&page));
}

#[test]
fn a_table_on_the_standard_output_is_alone_there() {
    let arguments = [
        &[
            "read",
            "--variants",
            "none,mutex",
            "--threads",
            "1",
            "--markdown",
            "-",
        ][..],
        &FAST,
    ]
    .concat();
    let output = run(&arguments);
    let stdout = text(&output.stdout);
    // The reference did not run: rates without changes.
    assert!(
        stdout.starts_with("### read\n") && !stdout.contains('%'),
        "{stdout}"
    );
    assert!(text(&output.stderr).contains("read: "));
}

#[test]
fn machines_are_shown_apart() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    let runs = |machine: &str, rate: u64| -> String {
        [1, 2]
            .iter()
            .flat_map(|&threads| (0..3).map(move |run| (threads, run)))
            .map(|(threads, run)| record(machine, "hp", threads, run, rate + run as u64))
            .collect()
    };
    let (a, b) = (path("a.jsonl"), path("b.jsonl"));
    // The last line was cut off.
    let cut = &record("here", "hp", 4, 0, 9)[..50];
    fs::write(&a, runs("here", 1000) + cut).unwrap();
    fs::write(&b, runs("there", 2000)).unwrap();
    let page = path("page.html");
    let output = run(&["report", &a, &b, &a, "-o", &page]);
    assert!(output.status.success(), "{}", text(&output.stderr));
    let page = fs::read_to_string(page).unwrap();
    assert_eq!(page.matches("<section id=\"m").count(), 6);
    assert!(page.contains("Machine 1: here") && page.contains("Machine 2: there"));
    assert!(
        page.contains("12 runs of read on 2 machines"),
        "the same file twice counts once"
    );
    assert!(page.contains("Taken as one that cannot show the knee"));
    let plots = path("p");
    let output = run(&["report", &a, &b, "--plot", &plots]);
    assert!(text(&output.stdout).contains("p-m2-read-rate.svg"));
}

#[test]
fn nonsense_is_refused_in_one_line() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str, content: &str| {
        let path = folder.path().join(name);
        fs::write(&path, content).unwrap();
        path.to_str().unwrap().to_owned()
    };
    let good = path("good", &record("m", "hp", 1, 0, 5));
    let other = path("other", "{\"schema\":99}\n");
    let broken = path("broken", "nonsense\n{}\n");
    let empty = path("empty", "");
    for (arguments, code, words) in [
        (vec!["report"], 2, "<FILE>"),
        (vec!["report", &good], 2, "nothing to write"),
        (vec!["report", &other, "-o", "-"], 2, "schema 99"),
        (vec!["report", &broken, "-o", "-"], 2, "line 1"),
        (vec!["report", &empty, "-o", "-"], 2, "no record"),
        (
            vec!["report", "/no/such/file", "-o", "-"],
            2,
            "/no/such/file",
        ),
        (
            vec!["report", &good, "-o", "/no/such/x"],
            1,
            "-o /no/such/x",
        ),
        (
            vec!["report", &good, "-o", "-", "--markdown", "-"],
            2,
            "standard output",
        ),
        (
            vec!["report", &good, "-o", "-", "--report", "x"],
            2,
            "--report",
        ),
        (vec!["report", &good, "-o", "-", "--runs", "3"], 2, "--runs"),
        (vec!["report", &good, "-o", "-", "--json", "x"], 2, "--json"),
        (
            vec!["report", &good, "-o", "-", "--against", "mutex"],
            2,
            "'mutex'",
        ),
        (
            vec!["read", "--variants", "hp", "--against", "none"],
            2,
            "(hp)",
        ),
        (vec!["scan", "--against", "mutex"], 2, "'mutex'"),
        (vec!["read", "--plot", "/no/such/x"], 1, "/no/such"),
        (vec!["read", "--report", "/no/such/x"], 1, "/no/such/x"),
        (vec!["read", "--markdown", "/no/such/x"], 1, "/no/such/x"),
        (
            vec!["read", "--json", "-", "--markdown", "-"],
            2,
            "--markdown -",
        ),
        (
            vec!["compare", &good, &good, "--report", "x"],
            2,
            "--report",
        ),
        (vec!["published", "--against", "hp"], 2, "--against"),
    ] {
        let output = run(&arguments);
        let line = complaint(&output, code);
        assert!(line.contains(words), "{arguments:?}: {line}");
        assert!(output.stdout.is_empty(), "{arguments:?}");
    }
}

/// The first browser that starts.
fn browser() -> Option<PathBuf> {
    let named = ["chromium", "chromium-browser", "google-chrome"];
    let found = named.into_iter().map(PathBuf::from).find(|name| {
        let version = Command::new(name).arg("--version").output();
        version.is_ok_and(|output| output.status.success())
    });
    if found.is_none() {
        assert!(
            std::env::var_os("HPBENCH_NEED_BROWSER").is_none(),
            "none of {named:?} can be started"
        );
        eprintln!("SKIPPED: none of {named:?} is installed, so the page was not looked at");
    }
    found
}

/// Runs the browser, with a profile in `folder`, where it also may write.
fn render(browser: &Path, folder: &Path, arguments: &[&str]) -> Output {
    let output = Command::new(browser)
        .args([
            "--headless",
            "--no-sandbox",
            "--disable-gpu",
            "--hide-scrollbars",
        ])
        .arg(format!(
            "--user-data-dir={}",
            folder.join("profile").display()
        ))
        // Whoever asks for a host gets none.
        .arg("--host-resolver-rules=MAP * ~NOTFOUND")
        .args(arguments)
        .current_dir(folder)
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", text(&output.stderr));
    output
}

/// Values of attributes that make a browser fetch something.
fn fetched(dom: &str) -> Vec<&str> {
    let mut found = Vec::new();
    for name in [
        " src=\"",
        " srcset=\"",
        " href=\"",
        " xlink:href=\"",
        " data=\"",
        " poster=\"",
    ] {
        for (at, _) in dom.match_indices(name) {
            let rest = &dom[at + name.len()..];
            found.push(&rest[..rest.find('"').unwrap()]);
        }
    }
    found
}

#[test]
fn the_page_renders_in_a_browser() {
    let Some(browser) = browser() else {
        return;
    };
    let folder = tempfile::tempdir().unwrap();
    let output = sweep(folder.path());
    assert!(output.status.success(), "{}", text(&output.stderr));
    let page = format!("file://{}", folder.path().join("page.html").display());

    let dom = render(&browser, folder.path(), &["--dump-dom", &page]);
    let dom = text(&dom.stdout);
    for part in [
        "<h1>hpbench report</h1>",
        "id=\"m1\"",
        "id=\"m1-read\"",
        "id=\"m1-raw\"",
        "id=\"published\"",
        "cannot show the knee",
        "How it was measured",
        "hpbench read --variants",
    ] {
        // On a machine as large as theirs there is nothing that it cannot show.
        let large = part.contains("knee") && !dom.contains("banner");
        assert!(large || dom.contains(part), "{part}");
    }
    assert_eq!(dom.matches("<figure").count(), 3);
    assert_eq!(dom.matches("</svg>").count(), 3);
    for word in ["<script", "<link", "<iframe", "@import", "url("] {
        assert!(!dom.contains(word), "{word}");
    }
    for target in fetched(&dom) {
        assert!(target.starts_with('#'), "the page wants {target}");
    }

    for scheme in ["light", "dark"] {
        let file = format!("{scheme}.png");
        let mut arguments = vec![
            "--window-size=1200,4000".to_owned(),
            format!("--screenshot={file}"),
        ];
        if scheme == "dark" {
            arguments.push("--blink-settings=preferredColorScheme=0".to_owned());
        }
        arguments.push(page.clone());
        let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
        render(&browser, folder.path(), &arguments);
        let (size, colours) = look(&folder.path().join(&file));
        assert_eq!(size, (1200, 4000));
        assert!(colours > 50, "{scheme}: {colours} colours: blank");
    }
    let corner = |name: &str| pixel(&folder.path().join(name));
    let light: u32 = corner("light.png")
        .iter()
        .map(|&part| u32::from(part))
        .sum();
    let dark: u32 = corner("dark.png").iter().map(|&part| u32::from(part)).sum();
    assert!(light > 600 && dark < 200, "light {light}, dark {dark}");
}

fn decode(path: &Path) -> (png::OutputInfo, Vec<u8>) {
    let mut reader = png::Decoder::new(fs::File::open(path).unwrap())
        .read_info()
        .unwrap();
    let mut pixels = vec![0; reader.output_buffer_size()];
    let info = reader.next_frame(&mut pixels).unwrap();
    (info, pixels)
}

/// Width, height, and how many colours.
fn look(path: &Path) -> ((u32, u32), usize) {
    let (info, pixels) = decode(path);
    let colours: HashSet<&[u8]> = pixels.chunks(info.color_type.samples()).collect();
    ((info.width, info.height), colours.len())
}

/// The page's own colour, in its corner.
fn pixel(path: &Path) -> Vec<u8> {
    decode(path).1[..3].to_vec()
}

/// What is read is not written over, under whatever name.
#[cfg(unix)]
#[test]
fn inputs_are_left_alone() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    let (a, b) = (path("a.jsonl"), path("b.jsonl.part"));
    let content = record("m", "hp", 1, 0, 9);
    for file in [&a, &b] {
        fs::write(file, &content).unwrap();
    }
    let link = path("link");
    std::os::unix::fs::symlink(&a, &link).unwrap();
    let unfinished = path("b.jsonl");
    for output in [&a, &link, &unfinished] {
        for option in ["-o", "--report", "--markdown"] {
            let line = complaint(&run(&["report", &a, &b, option, output]), 2);
            assert!(line.contains("the file that is read"), "{line}");
        }
    }
    for file in [&a, &b] {
        assert_eq!(fs::read_to_string(file).unwrap(), content);
    }
}
