//! Chapters that show files show them as they are.

use std::fs;
use std::path::{Path, PathBuf};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

/// The blocks of code in a chapter that follow a line with nothing but the
/// name of a file in backticks, with that name.
fn shown(chapter: &str) -> Vec<(String, String)> {
    let mut found = Vec::new();
    let mut name = None;
    let mut lines = chapter.lines();
    while let Some(line) = lines.next() {
        if line.starts_with("```") {
            let block: Vec<_> = lines.by_ref().take_while(|line| *line != "```").collect();
            if let Some(name) = name.take() {
                found.push((name, block.join("\n")));
            }
        } else if !line.is_empty() {
            let inner = line.strip_prefix('`').and_then(|l| l.strip_suffix('`'));
            name = inner.filter(|l| !l.contains('`')).map(str::to_owned);
        }
    }
    found
}

/// Issue 7: the worked example is the crate that CI runs.
#[test]
fn the_loom_chapter_shows_its_crate() {
    let chapter = root().join("docs/src/verifying-with-loom.md");
    let chapter = fs::read_to_string(chapter).expect("the chapter");
    let files = shown(&chapter);
    let names: Vec<_> = files.iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!(names, ["Cargo.toml", "src/lib.rs", "tests/loom.rs"]);
    for (name, text) in files {
        let file = root().join("docs/examples/loom-stack").join(&name);
        let file = fs::read_to_string(file).expect("a file of the example");
        assert_eq!(
            file.trim_end(),
            text,
            "{name}: the chapter shows another one"
        );
    }
    // And the commands are CI's.
    let script = fs::read_to_string(root().join("ci/downstream.sh")).expect("the script");
    for command in chapter
        .lines()
        .filter(|line| line.starts_with("RUSTFLAGS="))
    {
        let words: Vec<_> = command.split_whitespace().collect();
        let ours = words.iter().take_while(|word| **word != "--").copied();
        let ours = ours.collect::<Vec<_>>().join(" ");
        let without = script.replace("--target-dir \"$root/target-loom\" ", "");
        assert!(
            without.contains(&ours) || script.contains(&ours),
            "{command}: not in the script"
        );
    }
}
