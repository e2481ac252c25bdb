//! Floor 3, bench-suite. Owns what `whack -v` says of a run. Touches nothing else.

use super::memory;
use super::once::Config;
use super::{Prng, Thp, Vma};

pub(super) fn prng(config: &Config) -> &'static str {
    match config.prng {
        Prng::LibcLocked => "libc-locked",
        Prng::PerThread => "per-thread",
    }
}

pub(super) fn vma(config: &Config) -> &'static str {
    match config.vma {
        Vma::One => "one",
        Vma::PerThread => "per-thread",
    }
}

fn thp(config: &Config) -> &'static str {
    match config.thp {
        Thp::Never => "never",
        Thp::Madvise => "madvise",
        Thp::Always => "always",
    }
}

/// What is run, in a line.
pub(super) fn describe(config: &Config, setting: &str) -> String {
    format!(
        "whack: {} threads, {} bytes, {} writes each, prng {}, VMA {}, thp {} (system: {setting}); {}",
        config.threads,
        config.bytes,
        config.writes,
        prng(config),
        vma(config),
        thp(config),
        memory::need(config)
    )
}
