//! Floor 3, bench-suite. Owns where the machine is read from: `/`, or the tree that [`VARIABLE`] names. May read files.
//!
//! A tree is a folder with the `sys` (and, if wanted, `proc`) of another machine: `--dry-run` and `machine` then speak
//! of that one. Nothing can be measured on it.

use crate::trouble::Trouble;
use std::fs;
use std::path::{Path, PathBuf};

/// The variable that names a tree.
pub(crate) const VARIABLE: &str = "HPBENCH_SYSFS";

/// Where `sys` and `proc` are.
#[derive(Debug, Clone)]
pub(crate) struct Root {
    path: PathBuf,
    recorded: bool,
}

impl Root {
    /// What the environment says.
    pub(crate) fn here() -> Self {
        match std::env::var_os(VARIABLE) {
            Some(path) => Root::at(Path::new(&path)),
            None => Root {
                path: PathBuf::from("/"),
                recorded: false,
            },
        }
    }

    /// A recorded tree.
    pub(crate) fn at(path: &Path) -> Self {
        Root {
            path: path.to_owned(),
            recorded: true,
        }
    }

    /// Whether this is another machine's.
    pub(crate) fn recorded(&self) -> bool {
        self.recorded
    }

    /// Refuses a tree that is none.
    pub(crate) fn check(&self) -> Result<(), Trouble> {
        let cpus = self.path.join("sys/devices/system/cpu");
        if self.recorded && !cpus.is_dir() {
            return Err(Trouble::Usage(format!(
                "{VARIABLE}: there is no {}",
                cpus.display()
            )));
        }
        Ok(())
    }

    /// Refuses to measure on another machine.
    pub(crate) fn measurable(&self) -> Result<(), Trouble> {
        if self.recorded {
            return Err(Trouble::Usage(format!(
                "{VARIABLE}: a recorded machine can be looked at (machine, --dry-run), not measured"
            )));
        }
        Ok(())
    }

    /// The place of `path`, which has no slash before it.
    pub(crate) fn path(&self, path: &str) -> PathBuf {
        self.path.join(path)
    }

    /// The bytes of a file.
    pub(crate) fn bytes(&self, path: &str) -> Option<Vec<u8>> {
        fs::read(self.path(path)).ok()
    }

    /// The text of a file.
    pub(crate) fn text(&self, path: &str) -> Option<String> {
        Some(String::from_utf8_lossy(&self.bytes(path)?).into_owned())
    }

    /// The text of a file without blanks round it, if anything is left.
    pub(crate) fn line(&self, path: &str) -> Option<String> {
        Some(self.text(path)?.trim().to_owned()).filter(|text| !text.is_empty())
    }

    /// The names in a folder, sorted.
    pub(crate) fn names(&self, path: &str) -> Vec<String> {
        let entries = fs::read_dir(self.path(path))
            .into_iter()
            .flatten()
            .flatten();
        let mut names: Vec<String> = entries
            .map(|entry| entry.file_name().to_string_lossy().into_owned())
            .collect();
        names.sort();
        names
    }

    /// The CPUs that are online; empty where nothing tells.
    pub(crate) fn online(&self) -> Vec<usize> {
        let list = |file: &str| cpu_list(&self.line(&format!("sys/devices/system/cpu/{file}"))?);
        list("online")
            .or_else(|| list("present"))
            .unwrap_or_default()
    }

    /// The CPUs that this process may use; on a recorded tree those that were online and in `proc/self/status`.
    pub(crate) fn allowed(&self) -> Vec<usize> {
        if !self.recorded {
            return super::pin::allowed();
        }
        let online = self.online();
        let status = self.text("proc/self/status").unwrap_or_default();
        let mask = status
            .lines()
            .find_map(|line| line.strip_prefix("Cpus_allowed_list:"))
            .and_then(|list| cpu_list(list.trim()));
        match mask {
            Some(mask) if online.is_empty() => mask,
            Some(mask) => online
                .into_iter()
                .filter(|cpu| mask.contains(cpu))
                .collect(),
            None if online.is_empty() => vec![0],
            None => online,
        }
    }
}

/// `0-3,8` as numbers; `None` of what is no list. Each number once, in order.
pub(crate) fn cpu_list(text: &str) -> Option<Vec<usize>> {
    let mut cpus = Vec::new();
    for part in text.split(',') {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        let (first, last): (usize, usize) = (first.trim().parse().ok()?, last.trim().parse().ok()?);
        // No kernel numbers CPUs beyond this.
        if first > last || last > 1 << 16 {
            return None;
        }
        cpus.extend(first..=last);
    }
    cpus.sort_unstable();
    cpus.dedup();
    Some(cpus)
}

/// Numbers as `0-3,8`.
pub(crate) fn ranges(cpus: &[usize]) -> String {
    let mut parts: Vec<(usize, usize)> = Vec::new();
    for &cpu in cpus {
        match parts.last_mut() {
            Some((_, last)) if *last + 1 == cpu => *last = cpu,
            _ => parts.push((cpu, cpu)),
        }
    }
    let shown = parts.iter().map(|&(first, last)| match last - first {
        0 => first.to_string(),
        _ => format!("{first}-{last}"),
    });
    shown.collect::<Vec<_>>().join(",")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_of_cpus() {
        for (text, list) in [
            ("0", Some(vec![0])),
            ("0-3,8", Some(vec![0, 1, 2, 3, 8])),
            ("8,0-1,1", Some(vec![0, 1, 8])),
            ("2040-2042", Some(vec![2040, 2041, 2042])),
            ("3-1", None),
            ("", None),
            ("a", None),
            ("0-99999999999", None),
        ] {
            assert_eq!(cpu_list(text), list, "{text}");
        }
        assert_eq!(ranges(&[0, 1, 2, 3, 8]), "0-3,8");
        assert_eq!(ranges(&[2047]), "2047");
        assert_eq!(ranges(&[]), "");
        assert_eq!(ranges(&[1, 2, 4]), "1-2,4");
    }
}
