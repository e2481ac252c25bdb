//! Floor 3, bench-suite. Owns what the control groups say: the limits on the way from this process to the root.
//! May read the tree that it is given.

use super::sysroot::Root;

/// Where a controller's files are, from this process's group up to the root.
fn folders(root: &Root, controller: &str) -> Vec<String> {
    let groups = root.text("proc/self/cgroup").unwrap_or_default();
    let mut found = Vec::new();
    for line in groups.lines() {
        let mut parts = line.splitn(3, ':').skip(1);
        let (Some(controllers), Some(path)) = (parts.next(), parts.next()) else {
            continue;
        };
        // Version 2 has no names here; a system with both puts it into a folder of its own.
        let mounts = match controllers {
            "" => vec![
                "sys/fs/cgroup".to_owned(),
                "sys/fs/cgroup/unified".to_owned(),
            ],
            named if named.split(',').any(|name| name == controller) => {
                vec![format!("sys/fs/cgroup/{controller}")]
            }
            _ => continue,
        };
        for mount in mounts {
            let mut path = path.trim_matches('/');
            loop {
                found.push(format!("{mount}/{path}").trim_end_matches('/').to_owned());
                match path.rsplit_once('/') {
                    Some((parent, _)) => path = parent,
                    None if path.is_empty() => break,
                    None => path = "",
                }
            }
        }
    }
    found
}

/// The texts of `file` of `controller`, nearest first, each with its folder.
pub(crate) fn files(root: &Root, controller: &str, file: &str) -> Vec<(String, String)> {
    let texts = folders(root, controller).into_iter();
    texts
        .filter_map(|folder| Some((root.line(&format!("{folder}/{file}"))?, folder)))
        .map(|(text, folder)| (folder, text))
        .collect()
}

/// The fewest CPUs' worth of time that a group on the way allows.
pub(crate) fn cpu_limit(root: &Root) -> Option<f64> {
    let share = |quota: &str, period: &str| {
        let (quota, period): (f64, f64) = (quota.parse().ok()?, period.parse().ok()?);
        (quota > 0.0 && period > 0.0).then_some(quota / period)
    };
    let two = files(root, "cpu", "cpu.max")
        .into_iter()
        .filter_map(|(_, text)| {
            let (quota, period) = text.split_once(' ')?;
            share(quota, period)
        });
    let one = files(root, "cpu", "cpu.cfs_quota_us")
        .into_iter()
        .filter_map(|(folder, quota)| {
            share(&quota, &root.line(&format!("{folder}/cpu.cfs_period_us"))?)
        });
    two.chain(one).reduce(f64::min)
}

/// The CPUs that the groups leave.
pub(crate) fn cpuset(root: &Root) -> Option<String> {
    [
        "cpuset.cpus.effective",
        "cpuset.effective_cpus",
        "cpuset.cpus",
    ]
    .iter()
    .find_map(|file| files(root, "cpuset", file).into_iter().next())
    .map(|(_, text)| text)
}

/// The group with the least room for tasks: its limit, and how many it has.
pub(crate) fn pids(root: &Root) -> Option<(u64, u64)> {
    files(root, "pids", "pids.max")
        .into_iter()
        .filter_map(|(folder, most)| {
            let most: u64 = most.parse().ok()?;
            let used = root.line(&format!("{folder}/pids.current"))?.parse().ok()?;
            Some((most, used))
        })
        .min_by_key(|(most, used)| most.saturating_sub(*used))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    fn tree(files: &[(&str, &str)]) -> (tempfile::TempDir, Root) {
        let folder = tempfile::tempdir().unwrap();
        for (path, text) in files {
            let path = folder.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
        let root = Root::at(folder.path());
        (folder, root)
    }

    #[test]
    fn version_two_up_to_the_root() {
        let (_folder, root) = tree(&[
            ("proc/self/cgroup", "0::/a/b\n"),
            ("sys/fs/cgroup/a/b/cpu.max", "max 100000\n"),
            ("sys/fs/cgroup/a/cpu.max", "250000 100000\n"),
            ("sys/fs/cgroup/a/b/pids.max", "max\n"),
            ("sys/fs/cgroup/a/b/pids.current", "3\n"),
            ("sys/fs/cgroup/a/pids.max", "100\n"),
            ("sys/fs/cgroup/a/pids.current", "40\n"),
            ("sys/fs/cgroup/a/b/cpuset.cpus.effective", "0-5\n"),
        ]);
        assert_eq!(cpu_limit(&root), Some(2.5));
        assert_eq!(pids(&root), Some((100, 40)));
        assert_eq!(cpuset(&root).as_deref(), Some("0-5"));
    }

    #[test]
    fn version_one_and_nothing() {
        let (_folder, root) = tree(&[
            ("proc/self/cgroup", "8:pids:/x\n1:cpu,cpuacct:/x\n0::/\n"),
            ("sys/fs/cgroup/cpu/x/cpu.cfs_quota_us", "50000\n"),
            ("sys/fs/cgroup/cpu/x/cpu.cfs_period_us", "100000\n"),
            ("sys/fs/cgroup/cpu/cpu.cfs_quota_us", "-1\n"),
            ("sys/fs/cgroup/cpu/cpu.cfs_period_us", "100000\n"),
            ("sys/fs/cgroup/pids/x/pids.max", "7\n"),
            ("sys/fs/cgroup/pids/x/pids.current", "9\n"),
        ]);
        assert_eq!(cpu_limit(&root), Some(0.5));
        assert_eq!(pids(&root), Some((7, 9)));
        let (_folder, root) = tree(&[("proc/self/cgroup", "nonsense\n0::/\n")]);
        assert_eq!(cpu_limit(&root), None);
        assert_eq!(pids(&root), None);
        assert_eq!(cpuset(&root), None);
    }
}
