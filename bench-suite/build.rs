//! Floor 3, bench-suite. Owns what is told to the program at build time: the compiler's version and the revision, for
//! the machine record. And what the optional feature `liburcu` needs: the library found, its C shim compiled once a
//! flavour.

use std::path::Path;
use std::process::Command;

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    let rustc = std::env::var("RUSTC").unwrap_or_else(|_| "rustc".to_owned());
    let version = said(Command::new(rustc).arg("-V"));
    println!(
        "cargo::rustc-env=HPBENCH_RUSTC={}",
        version.as_deref().unwrap_or("unknown")
    );
    println!(
        "cargo::rustc-env=HPBENCH_REVISION={}",
        revision().as_deref().unwrap_or("unknown")
    );
    #[cfg(feature = "liburcu")]
    liburcu::build();
}

/// The first line of what a program says, if it can be run and is content.
fn said(command: &mut Command) -> Option<String> {
    let output = command
        .output()
        .ok()
        .filter(|output| output.status.success())?;
    let text = String::from_utf8(output.stdout).ok()?;
    text.lines()
        .next()
        .map(str::to_owned)
        .filter(|line| !line.is_empty())
}

/// The commit that this is built from, as far as there is one: of a repository that this file belongs to, not of one
/// that an unpacked copy happens to lie in.
fn revision() -> Option<String> {
    let git = |arguments: &[&str]| said(Command::new("git").args(arguments));
    git(&["ls-files", "--error-unmatch", "build.rs"])?;
    // Whatever moves HEAD writes its log.
    let log = git(&["rev-parse", "--git-path", "logs/HEAD"])?;
    if Path::new(&log).exists() {
        println!("cargo::rerun-if-changed={log}");
    }
    git(&["rev-parse", "--short=12", "HEAD"])
}

#[cfg(feature = "liburcu")]
mod liburcu {
    const SHIM: &str = "src/schemes/liburcu/shim.c";

    /// Flavours, as liburcu's packages and the shim name them.
    const FLAVOURS: [(&str, &str); 3] = [
        ("memb", "FLAVOUR_MEMB"),
        ("qsbr", "FLAVOUR_QSBR"),
        ("bp", "FLAVOUR_BP"),
    ];

    pub(super) fn build() {
        println!("cargo::rerun-if-changed={SHIM}");
        for (flavour, define) in FLAVOURS {
            let package = format!("liburcu-{flavour}");
            // Probed before the shim is compiled, printed after: a static library precedes what it needs.
            let library = match pkg_config::Config::new()
                .cargo_metadata(false)
                .probe(&package)
            {
                Ok(library) => library,
                Err(_) => {
                    // Cargo shows this as its error, and stops.
                    println!(
                        "cargo::error=the feature `liburcu` needs {package} with its headers, and pkg-config to find it: apt-get install liburcu-dev pkg-config"
                    );
                    return;
                }
            };
            cc::Build::new()
                .file(SHIM)
                .define(define, None)
                .includes(&library.include_paths)
                .opt_level(3)
                // Code of a program, not of a library: the flavours' thread-locals are then reached without a call, as
                // a C program that links liburcu reaches them (`-fPIC` would double the time of a read).
                .pic(false)
                .flag("-fPIE")
                .warnings(true)
                .compile(&format!("hpbench_shim_{flavour}"));
            for path in &library.link_paths {
                println!("cargo::rustc-link-search=native={}", path.display());
            }
            for name in &library.libs {
                println!("cargo::rustc-link-lib={name}");
            }
        }
    }
}
