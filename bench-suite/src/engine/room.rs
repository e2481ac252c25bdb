//! Floor 3, bench-suite. Owns how many threads fit: the limits of the user, the system and the control group, and the
//! name of the one that is in the way. May read `/proc`, the control groups and the limits of this process.

use super::{cgroup, sysroot::Root};

/// Threads and processes of this program beside those of a run.
const OWN: usize = 8;

/// What a thread maps beside its stack: guard pages, the stack of its signals, its part of the allocator's lists.
#[cfg(target_os = "linux")]
const BESIDE: u64 = 64 << 10;

/// A limit that threads count against.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Limit {
    /// Its name, and where it is set.
    name: &'static str,
    /// Threads that it allows.
    most: u64,
    /// Those that are there.
    used: u64,
}

impl Limit {
    fn room(&self) -> u64 {
        self.most.saturating_sub(self.used)
    }

    fn words(&self) -> String {
        format!(
            "{} allows {}, {} are taken",
            self.name, self.most, self.used
        )
    }
}

/// Whether `threads` more threads with stacks of `stack` bytes fit; or which limit says no.
pub(crate) fn check(what: &str, threads: usize, stack: usize) -> Result<(), String> {
    refuse(what, threads, limits(&Root::here(), stack))
}

fn refuse(what: &str, threads: usize, limits: Vec<Limit>) -> Result<(), String> {
    match tightest(limits, threads + OWN) {
        Some(limit) => Err(format!(
            "{what}: {threads} threads are too many here: {}",
            limit.words()
        )),
        None => Ok(()),
    }
}

/// After `missing` threads could not be started: why, as far as a limit is to blame.
pub(crate) fn blame(missing: usize, stack: usize) -> String {
    match tightest(limits(&Root::here(), stack), missing) {
        Some(limit) => format!(": {}", limit.words()),
        None => String::new(),
    }
}

/// The one with the least room, if that is not enough for `wanted`.
fn tightest(limits: Vec<Limit>, wanted: usize) -> Option<Limit> {
    let limit = limits.into_iter().min_by_key(Limit::room)?;
    (limit.room() < wanted as u64).then_some(limit)
}

/// All that are set and can be read.
fn limits(root: &Root, stack: usize) -> Vec<Limit> {
    let number = |path: &str| root.line(path)?.parse::<u64>().ok();
    let running = root.line("proc/loadavg").and_then(|line| {
        let (_, tasks) = line.split_whitespace().nth(3)?.split_once('/')?;
        tasks.parse::<u64>().ok()
    });
    let mut found = Vec::new();
    for (name, path) in [
        (
            "threads-max (kernel.threads-max)",
            "proc/sys/kernel/threads-max",
        ),
        ("pid_max (kernel.pid_max)", "proc/sys/kernel/pid_max"),
    ] {
        if let (Some(most), Some(used)) = (number(path), running) {
            found.push(Limit { name, most, used });
        }
    }
    if let Some((most, used)) = cgroup::pids(root) {
        found.push(Limit {
            name: "pids.max (control group)",
            most,
            used,
        });
    }
    found.extend(of_user(root, stack));
    found
}

/// Limits of this process and its user.
#[cfg(target_os = "linux")]
fn of_user(root: &Root, stack: usize) -> Vec<Limit> {
    let status = root.text("proc/self/status").unwrap_or_default();
    let mut found = Vec::new();
    if let Some(most) = limit(libc::RLIMIT_NPROC)
        && !exempt(&status)
    {
        found.push(Limit {
            name: "RLIMIT_NPROC (ulimit -u)",
            most,
            used: tasks_of_user(root),
        });
    }
    if let Some(most) = limit(libc::RLIMIT_AS) {
        let taken = field(&status, "VmSize:").unwrap_or(0) * 1024;
        let each = stack as u64 + BESIDE;
        found.push(Limit {
            name: "RLIMIT_AS (ulimit -v), in stacks,",
            most: most / each,
            used: taken.div_ceil(each),
        });
    }
    found
}

#[cfg(not(target_os = "linux"))]
fn of_user(_: &Root, _: usize) -> Vec<Limit> {
    Vec::new()
}

/// A soft limit, if there is one.
#[cfg(target_os = "linux")]
pub(crate) fn limit(which: libc::__rlimit_resource_t) -> Option<u64> {
    let mut limit = libc::rlimit {
        rlim_cur: 0,
        rlim_max: 0,
    };
    // SAFETY: the call writes one `rlimit` to the place given.
    let rc = unsafe { libc::getrlimit(which, &raw mut limit) };
    (rc == 0 && limit.rlim_cur != libc::RLIM_INFINITY).then_some(limit.rlim_cur)
}

/// Who may have as many threads as he likes: root, and holders of two capabilities.
#[cfg(target_os = "linux")]
fn exempt(status: &str) -> bool {
    const SYS_ADMIN: u64 = 1 << 21;
    const SYS_RESOURCE: u64 = 1 << 24;
    let capabilities = status
        .lines()
        .find_map(|line| line.strip_prefix("CapEff:"))
        .and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok())
        .unwrap_or(0);
    // SAFETY: takes and touches nothing.
    let root = unsafe { libc::getuid() } == 0;
    root || capabilities & (SYS_ADMIN | SYS_RESOURCE) != 0
}

/// The first number of a line of `/proc/PID/status`.
#[cfg(target_os = "linux")]
fn field(status: &str, name: &str) -> Option<u64> {
    let line = status.lines().find_map(|line| line.strip_prefix(name))?;
    line.split_whitespace().next()?.parse().ok()
}

/// Threads of this process's user, as far as `/proc` shows them.
#[cfg(target_os = "linux")]
fn tasks_of_user(root: &Root) -> u64 {
    // SAFETY: takes and touches nothing.
    let user = u64::from(unsafe { libc::getuid() });
    let threads = |name: &String| {
        name.parse::<u32>().ok()?;
        let status = root.text(&format!("proc/{name}/status"))?;
        (field(&status, "Uid:")? == user).then(|| field(&status, "Threads:"))?
    };
    root.names("proc").iter().filter_map(threads).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn limits() -> Vec<Limit> {
        let of = |name, most, used| Limit { name, most, used };
        vec![
            of("wide", 10_000, 100),
            of("narrow", 500, 490),
            of("empty", 1000, 0),
        ]
    }

    #[test]
    fn the_limit_in_the_way_is_named() {
        assert_eq!(
            refuse("--threads", 768, limits()),
            Err(
                "--threads: 768 threads are too many here: narrow allows 500, 490 are taken"
                    .to_owned()
            )
        );
        assert_eq!(refuse("--threads", 2, limits()), Ok(()));
        assert!(
            refuse("--threads", 3, limits()).is_err(),
            "{OWN} are needed beside"
        );
        assert_eq!(refuse("--threads", 768, Vec::new()), Ok(()));
        let over = vec![Limit {
            name: "x",
            most: 5,
            used: 9,
        }];
        assert!(refuse("-t", 1, over).is_err());
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn this_machine_has_limits() {
        let found = super::limits(&Root::here(), 512 << 10);
        for name in ["threads-max", "pid_max"] {
            let limit = found
                .iter()
                .find(|limit| limit.name.contains(name))
                .unwrap();
            assert!(limit.used > 0 && limit.most > limit.used, "{limit:?}");
        }
        assert!(tasks_of_user(&Root::here()) >= 1);
        assert!(exempt("CapEff:\t000001ffffffffff\n"));
        assert_eq!(field("VmSize:\t  12 kB\n", "VmSize:"), Some(12));
    }
}
