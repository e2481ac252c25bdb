//! One switch between the standard library's primitives and loom's.

use std::path::{Path, PathBuf};

fn sources(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in folder.read_dir().expect("a source folder") {
        let path = entry.expect("an entry").path();
        if path.is_dir() {
            sources(&path, found);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            found.push(path);
        }
    }
}

/// Whether a line of code (not of documentation, whose examples are a user's
/// programs) names the standard atomics.
fn names_atomics(line: &str) -> bool {
    let line = line.trim_start();
    let code = line.split("//").next().unwrap_or("");
    let dense: String = code.chars().filter(|c| !c.is_whitespace()).collect();
    ["std::", "core::"].iter().any(|root| {
        ["sync::atomic", "cell::UnsafeCell", "hint::spin_loop"]
            .iter()
            .any(|name| dense.contains(&format!("{root}{name}")))
            || dense
                .split_once(&format!("{root}sync::{{"))
                .is_some_and(|(_, list)| list.contains("atomic"))
    })
}

/// A model must run the product's own code: no other file of the crates that
/// loom models names the standard atomics.
#[test]
fn one_file_names_the_standard_atomics() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let shim = root.join("percpu/src/sync.rs");
    let mut files = Vec::new();
    for package in [
        "percpu",
        "hp",
        "rcu-lite",
        "bench-suite/refcounts",
        "bench-suite/phash",
        "bench-suite/rwsems",
    ] {
        sources(&root.join(package).join("src"), &mut files);
    }
    assert!(files.len() > 20, "{files:?}");
    let mut offenders = Vec::new();
    let mut in_shim = 0;
    for file in files {
        let text = std::fs::read_to_string(&file).expect("a source file");
        for (n, line) in text.lines().enumerate() {
            if names_atomics(line) {
                if file == shim {
                    in_shim += 1;
                } else {
                    offenders.push(format!("{}:{}: {line}", file.display(), n + 1));
                }
            }
        }
    }
    assert!(in_shim > 0, "the shim is found by the same search");
    assert!(offenders.is_empty(), "{offenders:#?}");
}

/// What the search takes for an offence, and what not.
#[test]
fn the_search_can_find_something() {
    assert!(names_atomics("use std::sync::atomic::AtomicBool;"));
    assert!(names_atomics("  core :: sync :: atomic::fence(x);"));
    assert!(names_atomics("use std::sync::{Arc, atomic};"));
    assert!(!names_atomics("use std::sync::{Arc, Mutex};"));
    assert!(!names_atomics("/// use std::sync::atomic::AtomicBool;"));
    assert!(!names_atomics("let x = 1; // std::sync::atomic"));
    assert!(!names_atomics("use percpu::sync::atomic::AtomicBool;"));
}
