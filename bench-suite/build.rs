//! Floor 3, bench-suite. Owns what the optional feature `liburcu` needs: the library found, its C shim compiled once a
//! flavour. Does nothing without the feature.

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    #[cfg(feature = "liburcu")]
    liburcu::build();
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
