//! Floor 3, bench-suite. `hpbench compare` from outside: words, codes, and what it refuses.

mod common;

use common::{run, text};
use std::fs;

/// Records with these rates, one a run.
fn records(machine: &str, variant: &str, rates: &[u32]) -> String {
    rates
        .iter()
        .enumerate()
        .map(|(run, rate)| {
            format!(
                "{{\"schema\":1,\"workload\":\"read\",\"variant\":\"{variant}\",\"threads\":2,\"run\":{run},\
                 \"ops\":{rate},\"elapsed_s\":1.0,\"ops_per_s\":{rate}.0,\"ns_per_op\":1.0,\"reads_per_s\":null,\
                 \"params\":{{\"machine\":\"{machine}\",\"readers\":2}},\"status\":\"ok\",\"note\":\"\"}}\n"
            )
        })
        .collect()
}

#[test]
fn points_get_a_ratio_and_a_verdict() {
    let folder = tempfile::tempdir().unwrap();
    let file = |name: &str, content: &str| {
        let path = folder.path().join(name);
        fs::write(&path, content).unwrap();
        path.to_str().unwrap().to_owned()
    };
    let fast = [1000, 1010, 990, 1005, 995];
    let slow = [800, 808, 792, 804, 796];
    let a = file(
        "a",
        &(records("m", "hp", &fast) + &records("m", "none", &fast)),
    );
    let b = file(
        "b",
        &(records("m", "hp", &slow) + &records("m", "mutex", &fast)),
    );
    let c = file("c", &records("other", "hp", &fast));
    let d = file("d", &records("m", "seize", &fast));

    let output = run(&["compare", &a, &b]);
    assert!(output.status.success(), "{}", text(&output.stderr));
    let table = text(&output.stdout);
    let line = table.lines().find(|line| line.contains("read hp")).unwrap();
    assert!(
        line.contains("0.800") && line.ends_with("slower"),
        "{table}"
    );
    assert!(
        table.contains("2 points are in one of the files only"),
        "{table}"
    );
    assert!(text(&run(&["compare", &b, &a]).stdout).contains("faster"));
    assert!(text(&run(&["compare", &a, &a]).stdout).contains("no change"));

    for (arguments, code, words) in [
        (
            vec!["compare", &a, &b, "--fail-if", ">5%"],
            1,
            "slower by 20.0 %",
        ),
        (vec!["compare", &a, &b, "--fail-if", ">25%"], 0, ""),
        (vec!["compare", &b, &a, "--fail-if", ">5%"], 0, ""),
        (vec!["compare", &a, &c], 2, "different machines"),
        (vec!["compare", &a, &c, "--force"], 0, ""),
        (vec!["compare", &a, &d], 2, "no point in common"),
        (vec!["compare", &a, "/no/such/file"], 2, "/no/such/file"),
        (vec!["compare", &a, &b, "--fail-if", "5"], 2, "--fail-if"),
        (vec!["compare", &a, &b, "--runs", "3"], 2, "--runs"),
        (vec!["compare", &a], 2, "<B>"),
    ] {
        let output = run(&arguments);
        assert_eq!(output.status.code(), Some(code), "{arguments:?}");
        let said = text(&output.stderr);
        assert!(said.contains(words), "{arguments:?}: {said}");
        assert!(said.lines().count() <= 1, "{said}");
    }
    // Of the same name, and yet others: the id decides.
    let twin = |id: &str| {
        let named = format!("\"machine\":\"m\",\"machine_id\":\"{id}\"");
        let same = records("m", "hp", &fast).replace("\"machine\":\"m\"", &named);
        file(id, &same)
    };
    let (one, other) = (twin("0001"), twin("0002"));
    let output = run(&["compare", &one, &other]);
    assert_eq!(output.status.code(), Some(2));
    let said = text(&output.stderr);
    assert!(said.contains("m (0001) and m (0002)"), "{said}");
    for arguments in [["compare", &one, &one], ["compare", &one, &a]] {
        assert!(run(&arguments).status.success(), "{arguments:?}");
    }
    let broken = file("e", "{\"schema\":7}\n");
    let said = text(&run(&["compare", &a, &broken]).stderr);
    assert!(said.contains("line 1: schema 7"), "{said}");
}

/// Three runs lie apart by chance too often: no verdict, and no limit that silently lets everything pass.
#[test]
fn few_runs_decide_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let file = |name: &str, content: &str| {
        let path = folder.path().join(name);
        fs::write(&path, content).unwrap();
        path.to_str().unwrap().to_owned()
    };
    let fast = [1000, 1010, 990, 1005, 995];
    let slow = [500, 510, 490, 505, 495];
    let a = file("a", &records("m", "hp", &fast[..3]));
    let b = file("b", &records("m", "hp", &slow[..3]));
    let output = run(&["compare", &a, &b]);
    let table = text(&output.stdout);
    assert!(
        output.status.success() && table.contains("too few runs") && table.contains("  range  "),
        "{table}"
    );
    let output = run(&["compare", &a, &b, "--fail-if", ">5%"]);
    assert_eq!(output.status.code(), Some(2));
    let said = text(&output.stderr);
    assert!(
        said.contains("needs 4 runs") && said.contains("3 and 3"),
        "{said}"
    );
    // Five runs decide one point, and not ten.
    let many = |rates: &[u32]| -> String {
        (0..10)
            .map(|n| records("m", &format!("v{n}"), rates))
            .collect()
    };
    let (c, d) = (file("c", &many(&fast)), file("d", &many(&slow)));
    let output = run(&["compare", &c, &d, "--fail-if", ">5%"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(text(&output.stdout).contains("undecided"));
    assert!(text(&output.stderr).contains("needs 6 runs"), "{output:?}");
}

/// Runs of one file that were made in different ways have no common median.
#[test]
fn builds_are_points_of_their_own() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a");
    let built = |how: &str, rates: &[u32]| {
        let with = format!("\"build\":\"{how}\",\"readers\"");
        records("m", "hp", rates).replace("\"readers\"", &with)
    };
    let fast = [1000; 5];
    fs::write(&path, built("release", &fast) + &built("debug", &[10; 5])).unwrap();
    let path = path.to_str().unwrap();
    let table = text(&run(&["compare", path, path]).stdout);
    for words in ["build=release", "build=debug"] {
        assert!(table.contains(words), "{table}");
    }
}
