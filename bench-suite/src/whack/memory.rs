//! Floor 3, bench-suite. Owns how much memory a run of `whack` touches, and whether that is there. May read `/proc`,
//! `/sys` and the limits of the control group.

use super::once::Config;
use super::{Thp, Vma};
use crate::trouble::Trouble;
use std::fmt;
use std::fs;

/// `random()` stays below this.
pub(super) const REACH: u64 = 1 << 31;

/// Huge pages are so large where there are any (x86-64).
const HUGE: u64 = 2 << 20;

const PAGE: u64 = 4096;

/// What a run touches.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Need {
    /// Bytes asked for with `-m`.
    pub(super) asked: u64,
    /// Bytes that random numbers reach.
    pub(super) reach: u64,
    /// Pages that are expected to be touched.
    pub(super) pages: u64,
    /// Bytes of those, with their page tables.
    pub(super) bytes: u64,
}

impl fmt::Display for Need {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "-m {} reaches {} MiB, of which about {} pages are touched: {} MiB with page tables",
            self.asked,
            self.reach >> 20,
            self.pages,
            self.bytes.div_ceil(1 << 20)
        )
    }
}

/// What `config` touches: only touched pages count.
pub(super) fn need(config: &Config) -> Need {
    let reach = config.bytes.min(REACH);
    let huge = match config.thp {
        Thp::Never => false,
        Thp::Madvise => huge_pages_setting() == "always",
        Thp::Always => true,
    };
    let page = if huge { HUGE } else { PAGE };
    let all = reach.div_ceil(page);
    // So many balls in so many bins: how many bins are not empty. The buffer of each thread is a game of its own.
    let writes = config.threads as f64 * config.writes as f64;
    let games = match config.vma {
        Vma::One => 1.0,
        Vma::PerThread => config.threads as f64,
    };
    let bins = (all as f64 / games).max(1.0);
    let empty = (writes / games * (-1.0 / bins).ln_1p()).exp();
    let pages = if bins <= 1.0 {
        all
    } else {
        (all as f64 * (1.0 - empty)).ceil() as u64
    };
    let pages = pages.min(all).max(1);
    let touched = pages * page;
    Need {
        asked: config.bytes,
        reach,
        pages,
        // A page table of 4 KiB for each 2 MiB within reach, at most one for each touched page.
        bytes: touched + reach.div_ceil(HUGE).min(pages) * PAGE,
    }
}

/// Bytes that can be had, as the kernel and the control group say; unknown is nothing.
pub(super) fn available() -> Option<u64> {
    let meminfo = fs::read_to_string("/proc/meminfo").ok();
    let system = meminfo.as_deref().and_then(mem_available);
    let number = |path: &str| fs::read_to_string(path).ok()?.trim().parse::<u64>().ok();
    let group = number("/sys/fs/cgroup/memory.max")
        .zip(number("/sys/fs/cgroup/memory.current"))
        .map(|(most, now)| most.saturating_sub(now));
    [system, group].into_iter().flatten().min()
}

fn mem_available(meminfo: &str) -> Option<u64> {
    let line = meminfo
        .lines()
        .find_map(|line| line.strip_prefix("MemAvailable:"))?;
    let kib: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    Some(kib << 10)
}

/// Refuses a run that would not fit.
pub(super) fn check(need: &Need, available: Option<u64>) -> Result<(), Trouble> {
    match available {
        Some(available) if available < need.bytes => Err(Trouble::Environment(format!(
            "whack: {need}, but only {} MiB are available (a smaller -m, or fewer -w, needs less)",
            available >> 20
        ))),
        _ => Ok(()),
    }
}

/// The system's setting of huge pages: the word in brackets.
pub(super) fn huge_pages_setting() -> String {
    let text = fs::read_to_string("/sys/kernel/mm/transparent_hugepage/enabled");
    let word = text.ok().and_then(|text| chosen(&text).map(str::to_owned));
    word.unwrap_or_else(|| "unknown".to_owned())
}

fn chosen(text: &str) -> Option<&str> {
    Some(text.split_once('[')?.1.split_once(']')?.0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::whack::Prng;

    fn config(threads: usize, bytes: u64, writes: u64) -> Config {
        Config {
            threads,
            bytes,
            writes,
            debug: false,
            prng: Prng::LibcLocked,
            thp: Thp::Never,
            vma: Vma::One,
        }
    }

    /// The seed's runs: 524 288 pages within reach of 4 GiB.
    #[test]
    fn only_touched_pages_count() {
        let seed = need(&config(24, 4096 << 20, 100_000));
        assert_eq!(seed.reach, 2 << 30);
        assert!((518_000..519_500).contains(&seed.pages), "{}", seed.pages);
        let big = need(&config(64, 4096 << 20, 100_000));
        assert!(big.pages > 524_200 && big.pages <= 524_288);
        let few = need(&config(1, 4096 << 20, 10));
        assert_eq!(few.pages, 10);
        // However large the buffer is.
        assert_eq!(need(&config(24, 1 << 40, 100_000)).pages, seed.pages);
        let small = need(&config(2, 1 << 20, 1_000_000));
        assert_eq!(small.pages, 256);
        let split = Config {
            vma: Vma::PerThread,
            ..config(24, 4096 << 20, 100_000)
        };
        assert!(need(&split).pages.abs_diff(seed.pages) < 100);
        let huge = Config {
            thp: Thp::Always,
            ..config(24, 4096 << 20, 100_000)
        };
        assert_eq!(need(&huge).pages, 1024);
    }

    #[test]
    fn too_much_is_one_line_that_says_what_is_needed() {
        let need = need(&config(24, 4096 << 20, 100_000));
        assert!(check(&need, None).is_ok() && check(&need, Some(3 << 30)).is_ok());
        let trouble = check(&need, Some(512 << 20)).unwrap_err();
        assert_eq!(trouble.code(), 3);
        let text = trouble.to_string();
        for word in [
            "-m 4294967296",
            "2048 MiB",
            "512 MiB are available",
            "pages",
        ] {
            assert!(text.contains(word), "{text}");
        }
        assert!(!text.contains('\n'));
    }

    #[test]
    fn what_the_kernel_says() {
        let meminfo = "MemTotal:  100 kB\nMemFree: 2 kB\nMemAvailable:    2048 kB\n";
        assert_eq!(mem_available(meminfo), Some(2 << 20));
        assert_eq!(mem_available("MemFree: 2 kB\n"), None);
        assert_eq!(chosen("always [madvise] never\n"), Some("madvise"));
        assert_eq!(chosen("what"), None);
    }
}
