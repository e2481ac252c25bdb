//! How many CPUs there can be.
//!
//! Floor 1 (`percpu`); reads `/sys`, owns a cached number.

/// CPUs that this machine can ever have (not those that this process may use:
/// affinity and containers change at run time, CPU numbers do not follow).
/// At least 1.
#[must_use]
pub fn possible_cpus() -> usize {
    #[cfg(all(target_os = "linux", not(miri)))]
    if let Some(n) = std::fs::read_to_string("/sys/devices/system/cpu/possible")
        .ok()
        .and_then(|text| cpu_list_end(&text))
    {
        return n;
    }
    #[cfg(all(unix, not(miri)))]
    {
        // SAFETY: sysconf reads a number.
        let n = unsafe { libc::sysconf(libc::_SC_NPROCESSORS_CONF) };
        if n > 0 {
            return n as usize;
        }
    }
    std::thread::available_parallelism().map_or(1, usize::from)
}

/// One past the highest CPU of a list such as `0-3,8,10-11`.
#[cfg_attr(any(not(target_os = "linux"), miri), allow(dead_code))]
fn cpu_list_end(text: &str) -> Option<usize> {
    text.trim()
        .split(',')
        .map(|range| range.rsplit('-').next().unwrap_or(range).trim().parse())
        .collect::<Result<Vec<usize>, _>>()
        .ok()?
        .into_iter()
        .max()
        .map(|last| last + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_end_where_their_highest_cpu_says() {
        assert_eq!(cpu_list_end("0\n"), Some(1));
        assert_eq!(cpu_list_end("0-1\n"), Some(2));
        assert_eq!(cpu_list_end("0,7,300"), Some(301));
        assert_eq!(cpu_list_end("8-11,0-3"), Some(12));
        assert_eq!(cpu_list_end(""), None);
        assert_eq!(cpu_list_end("0-x"), None);
    }

    #[test]
    fn there_is_a_cpu() {
        assert!(possible_cpus() >= 1);
    }
}
