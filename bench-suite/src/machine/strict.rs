//! Floor 3, bench-suite. Owns what `--strict` does not put up with: before the first run, and in each run.
//! May read the tree that it is given.

use crate::engine::sysroot::Root;
use crate::engine::weather;
use crate::report::record::Record;
use crate::trouble::Trouble;

/// Refuses a machine, or a build, whose figures would mean little.
pub(crate) fn environment(root: &Root) -> Result<(), Trouble> {
    let found = complaints(root, cfg!(debug_assertions));
    if found.is_empty() {
        return Ok(());
    }
    Err(Trouble::Environment(format!(
        "--strict: {}",
        found.join("; ")
    )))
}

fn complaints(root: &Root, debug: bool) -> Vec<String> {
    let mut found = Vec::new();
    if debug {
        found.push("this is a debug build".to_owned());
    }
    let cpus = root.allowed();
    if let Some(load) = weather::load1(root)
        && load > cpus.len() as f64
    {
        found.push(format!(
            "the load is {load}, more than the {} CPU(s)",
            cpus.len()
        ));
    }
    for cpu in cpus {
        let file = format!("sys/devices/system/cpu/cpu{cpu}/cpufreq/scaling_governor");
        if let Some(governor) = root
            .line(&file)
            .filter(|governor| governor != "performance")
        {
            found.push(format!(
                "the governor of CPU {cpu} is '{governor}', not 'performance'"
            ));
            break;
        }
    }
    found
}

/// One run; with `strict`, once more if too much time was stolen from it.
pub(crate) fn steady(
    strict: bool,
    mut run: impl FnMut() -> Result<Record, Trouble>,
) -> Result<Record, Trouble> {
    let stolen = |record: &Record| record.params.contains_key("stolen");
    let record = run()?;
    if !strict || !stolen(&record) {
        return Ok(record);
    }
    let again = run()?;
    if stolen(&again) {
        return Err(Trouble::Environment(format!(
            "--strict: more than {} % of the CPUs' time was stolen from {} {} ({} threads), twice",
            weather::STEAL_PERCENT,
            again.workload.name(),
            again.variant,
            again.threads
        )));
    }
    Ok(again)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::record::tests::sample;
    use crate::workloads::Workload;
    use std::fs;

    #[test]
    fn a_stolen_run_is_run_again_once() {
        let record = |stolen: bool| {
            let mut record = sample(Workload::Read, "hp", 2, 0, 10);
            if stolen {
                record.set("stolen", true);
            }
            record
        };
        for (strict, course, runs, good) in [
            (true, [false, false], 1, true),
            (true, [true, false], 2, true),
            (true, [true, true], 2, false),
            (false, [true, true], 1, true),
        ] {
            let mut n = 0;
            let result = steady(strict, || {
                n += 1;
                Ok(record(course[n - 1]))
            });
            assert_eq!((n, result.is_ok()), (runs, good), "{strict} {course:?}");
            if let Err(trouble) = result {
                assert_eq!(trouble.code(), 3);
                assert!(
                    trouble.to_string().contains("read hp (2 threads), twice"),
                    "{trouble}"
                );
            }
        }
    }

    #[test]
    fn machines_that_are_refused() {
        let folder = tempfile::tempdir().unwrap();
        let put = |path: &str, text: &str| {
            let path = folder.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        };
        put("sys/devices/system/cpu/online", "0-3\n");
        put("proc/loadavg", "3.90 1 1 1/2 3\n");
        let root = Root::at(folder.path());
        assert!(complaints(&root, false).is_empty());
        put("proc/loadavg", "4.10 1 1 1/2 3\n");
        put(
            "sys/devices/system/cpu/cpu2/cpufreq/scaling_governor",
            "powersave\n",
        );
        put(
            "sys/devices/system/cpu/cpu3/cpufreq/scaling_governor",
            "powersave\n",
        );
        assert_eq!(
            complaints(&root, true),
            [
                "this is a debug build",
                "the load is 4.1, more than the 4 CPU(s)",
                "the governor of CPU 2 is 'powersave', not 'performance'"
            ]
        );
    }
}
