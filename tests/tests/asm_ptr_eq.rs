//! `ptr_eq` keeps the dependency: what is read after the comparison is read
//! through the register that the last load of the source wrote. A plain `==`
//! loses it, which is the negative control.
//!
//! Bug log 58 and 59. The real file of hp is compiled to assembly, for x86-64
//! and AArch64; no linker and no machine of that kind is needed.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Command;

const SOURCE: &str = r#"
#![no_std]
#![allow(unexpected_cfgs, dead_code)]
#[path = "PTR_EQ"]
mod ptr_eq;
use core::sync::atomic::{AtomicPtr, Ordering::Relaxed};
pub struct Node { pub value: u64 }
unsafe extern "C" { static FIXED: Node; }

#[unsafe(no_mangle)]
pub unsafe fn plain_fixed(src: &AtomicPtr<Node>) -> u64 {
    let p = src.load(Relaxed);
    if p.cast_const() == &raw const FIXED { unsafe { (*p).value } } else { 0 }
}
#[unsafe(no_mangle)]
pub unsafe fn hidden_fixed(src: &AtomicPtr<Node>) -> u64 {
    let p = src.load(Relaxed);
    if ptr_eq::ptr_eq(p, &raw const FIXED) { unsafe { (*p).value } } else { 0 }
}
#[unsafe(no_mangle)]
pub unsafe fn hidden_reread(src: &AtomicPtr<Node>) -> u64 {
    loop {
        let first = src.load(Relaxed);
        let second = src.load(Relaxed);
        if ptr_eq::ptr_eq(first, second) { return unsafe { (*second).value } }
    }
}
#[unsafe(no_mangle)]
pub unsafe fn hidden_other(src: &AtomicPtr<Node>, other: *mut Node) -> u64 {
    let p = src.load(Relaxed);
    if ptr_eq::ptr_eq(other, p) { unsafe { (*p).value } } else { 0 }
}
"#;

/// The first argument, which is where the source lies, by target.
const TARGETS: [(&str, &str); 2] = [
    ("x86_64-unknown-linux-gnu", "rdi"),
    ("aarch64-unknown-linux-gnu", "x0"),
];

fn rustc() -> Command {
    Command::new(std::env::var_os("RUSTC").unwrap_or_else(|| "rustc".into()))
}

fn has_core(target: &str) -> bool {
    let answer = rustc()
        .args(["--print", "target-libdir", "--target", target])
        .output()
        .expect("rustc runs");
    let folder = String::from_utf8_lossy(&answer.stdout).trim().to_string();
    Path::new(&folder)
        .read_dir()
        .is_ok_and(|mut entries| entries.any(|e| e.is_ok_and(|e| is_core(&e.file_name()))))
}

fn is_core(name: &std::ffi::OsStr) -> bool {
    name.to_string_lossy().starts_with("libcore-")
}

fn assembly(target: &str) -> String {
    let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR"));
    let source = folder.join(format!("ptr_eq_{target}.rs"));
    let real = concat!(env!("CARGO_MANIFEST_DIR"), "/../hp/src/ptr_eq.rs");
    std::fs::write(&source, SOURCE.replace("PTR_EQ", real)).expect("a writable target folder");
    let output = folder.join(format!("ptr_eq_{target}.s"));
    let answer = rustc()
        .args(["--edition", "2024", "--crate-type", "lib", "--emit", "asm"])
        .args(["-C", "opt-level=3", "-A", "warnings", "--target", target])
        .arg("-o")
        .arg(&output)
        .arg(&source)
        .output()
        .expect("rustc runs");
    assert!(
        answer.status.success(),
        "{}",
        String::from_utf8_lossy(&answer.stderr)
    );
    std::fs::read_to_string(output).expect("assembly")
}

/// The lines of a function, without directives.
fn body<'a>(text: &'a str, name: &str) -> Vec<&'a str> {
    let label = format!("{name}:");
    let lines: Vec<_> = text
        .lines()
        .skip_while(|line| *line != label)
        .skip(1)
        .map(str::trim)
        .take_while(|line| !line.starts_with(".Lfunc_end") && !line.starts_with(".cfi_endproc"))
        .filter(|line| !line.starts_with('.') || line.ends_with(':'))
        .collect();
    assert!(!lines.is_empty(), "no function {name} in\n{text}");
    lines
}

/// One name for the 32 and the 64 bits of a register.
fn canonical(register: &str) -> String {
    let name = register.trim_start_matches('%');
    match name.as_bytes() {
        [b'e', ..] if name.len() == 3 => format!("r{}", &name[1..]),
        [b'w', rest @ ..] if rest.iter().all(u8::is_ascii_digit) => format!("x{}", &name[1..]),
        [b'r', .., b'd'] if name.len() > 2 => name[..name.len() - 1].into(),
        _ => name.into(),
    }
}

/// What an instruction reads from memory into where, or copies.
#[derive(Debug)]
enum Step {
    Load { base: String, to: String },
    Address { to: String },
    Copy { from: String, to: String },
    Hide { register: String },
    Other,
}

/// An AT&T x86-64 line.
fn x86(line: &str) -> Step {
    let (name, operands) = line.split_once(char::is_whitespace).unwrap_or((line, ""));
    if !name.starts_with("mov") && !name.starts_with("lea") {
        // An operation with a memory operand reads through it as well.
        return match (operands.find("(%"), name.starts_with("cmp")) {
            (Some(at), _) => Step::Load {
                base: canonical(operands[at + 1..].split(')').next().unwrap_or("")),
                to: String::new(),
            },
            _ => Step::Other,
        };
    }
    let Some((from, to)) = operands.rsplit_once(',') else {
        return Step::Other;
    };
    let (from, to) = (from.trim(), to.trim());
    let to = canonical(to);
    match from.split_once('(') {
        Some((_, base)) if name.starts_with("mov") && !from.contains("@GOT") => Step::Load {
            base: canonical(base.trim_end_matches(')')),
            to,
        },
        Some(_) => Step::Address { to },
        None if from.starts_with('%') => Step::Copy {
            from: canonical(from),
            to,
        },
        None => Step::Address { to },
    }
}

/// An AArch64 line.
fn arm(line: &str) -> Step {
    let (name, operands) = line.split_once(char::is_whitespace).unwrap_or((line, ""));
    let (to, from) = operands.split_once(',').unwrap_or((operands, ""));
    let (to, from) = (canonical(to.trim()), from.trim());
    match name {
        "adrp" | "adr" => Step::Address { to },
        "ldr" | "ldapr" | "ldar" | "ldur" if from.contains(":got") => Step::Address { to },
        "ldr" | "ldapr" | "ldar" | "ldur" => Step::Load {
            base: canonical(
                from.trim_start_matches('[')
                    .split([']', ','])
                    .next()
                    .unwrap_or(""),
            ),
            to,
        },
        "mov" if from.starts_with(['x', 'w']) => Step::Copy {
            from: canonical(from),
            to,
        },
        "add" => Step::Address { to },
        _ => Step::Other,
    }
}

/// The register that a line of inline assembly names in its comment, which is
/// all that the lines of `hide` consist of.
fn hidden(line: &str) -> Option<String> {
    let text = line
        .trim_start_matches(['#', '/', '*', ' '])
        .trim_end_matches(['*', '/', ' ']);
    let comment = line.starts_with(['#', '/']) && !text.is_empty();
    (comment && !text.ends_with("APP") && !text.contains(' ')).then(|| canonical(text))
}

/// Whether every read but those of the source goes through the register that
/// the last load of the source wrote (or a copy that was not hidden), and how
/// many reads there were.
fn keeps_dependency(lines: &[&str], target: &str, source: &str) -> (bool, usize) {
    let arm64 = target.starts_with("aarch64");
    let mut sources = BTreeSet::from([source.to_string()]);
    let mut dependent = BTreeSet::new();
    let (mut kept, mut reads) = (true, 0);
    for line in lines {
        let step = match hidden(line) {
            Some(register) => Step::Hide { register },
            None if arm64 => arm(line),
            None => x86(line),
        };
        match step {
            Step::Load { base, to } if sources.contains(&base) => {
                sources.remove(&to);
                dependent = BTreeSet::from([to]);
            }
            Step::Load { base, to } => {
                reads += 1;
                kept &= dependent.contains(&base);
                dependent.remove(&to);
                sources.remove(&to);
            }
            Step::Copy { from, to } => {
                for set in [&mut sources, &mut dependent] {
                    if set.contains(&from) {
                        set.insert(to.clone());
                    } else {
                        set.remove(&to);
                    }
                }
            }
            Step::Address { to } | Step::Hide { register: to } => {
                dependent.remove(&to);
                sources.remove(&to);
            }
            Step::Other => {}
        }
    }
    (kept, reads)
}

/// Bug log 58 and 59.
#[test]
fn report_58_59_the_dependency_is_kept() {
    let version = rustc().arg("-V").output().expect("rustc runs").stdout;
    println!("{}", String::from_utf8_lossy(&version).trim());
    let mut checked = 0;
    for (target, source) in TARGETS {
        if !has_core(target) {
            eprintln!("SKIPPED: no core library for {target}");
            continue;
        }
        checked += 1;
        let text = assembly(target);
        for name in ["hidden_fixed", "hidden_reread", "hidden_other"] {
            let lines = body(&text, name);
            let hides = lines.iter().filter(|line| hidden(line).is_some()).count();
            assert_eq!(hides, 2, "{target} {name}: {lines:#?}");
            let (kept, reads) = keeps_dependency(&lines, target, source);
            assert!(reads > 0, "{target} {name}: {lines:#?}");
            assert!(kept, "{target} {name}: {lines:#?}");
        }
        let lines = body(&text, "plain_fixed");
        let (kept, reads) = keeps_dependency(&lines, target, source);
        assert!(reads > 0, "{target} plain: {lines:#?}");
        assert!(
            !kept,
            "{target}: the plain comparison keeps the dependency with this compiler, \
             so this test proves nothing: {lines:#?}"
        );
    }
    assert!(checked > 0, "no target to check");
}
