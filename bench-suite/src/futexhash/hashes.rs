//! Floor 3, bench-suite. Owns the kernel's futex hashes as variants, for `futex-hash` and `schbench`: which the process
//! of a run asks for, and whether this kernel has it. May ask the kernel.

use super::kernel;
use crate::cli::{List, Options};
use crate::engine::crew::Refusal;
use crate::engine::job::Job;
use crate::report::record::Record;
use crate::schemes::{About, Support};

/// The name of the number of buckets in points.
pub(crate) const BUCKETS: &str = "buckets";

/// Of all processes together.
pub(crate) const GLOBAL: &str = "global";
/// One of the process's own, as large as the kernel likes.
pub(crate) const AUTO: &str = "auto";
/// One of the process's own.
pub(crate) const PRIVATE: &str = "private";
/// The same, never to be replaced.
pub(crate) const IMMUTABLE: &str = "immutable";

const NOWHERE: &str = "a hash of the kernel, which is another subject";

/// The hashes that a process can ask for.
pub(crate) const VARIANTS: [About; 4] = [
    About::new(
        GLOBAL,
        "the one hash of all processes (the only one up to Linux 6.15)",
        "no count: it is never replaced",
    )
    .nowhere(NOWHERE),
    About::new(
        AUTO,
        "a hash of the process's own, as large as the kernel likes: it grows with the threads",
        "a count on each CPU (from Linux 6.17 on)",
    )
    .nowhere(NOWHERE),
    About::new(
        PRIVATE,
        "a hash of the process's own, of as many buckets as the point says",
        "a count on each CPU (from Linux 6.17 on)",
    )
    .nowhere(NOWHERE),
    About::new(
        IMMUTABLE,
        "the same, never to be replaced (6.16-rc only)",
        "no count: it is never replaced",
    )
    .nowhere(NOWHERE),
];

/// Whether this kernel has the hash of `variant`.
pub(crate) fn support(variant: &str) -> Support {
    match variant {
        AUTO | PRIVATE if kernel::buckets().is_err() => Support::No(
            "this kernel has no futex hash of a process's own (PR_FUTEX_HASH, from Linux 6.17 on)",
        ),
        IMMUTABLE if !kernel::knows_immutable() => {
            Support::No("this kernel has no immutable futex hash (6.16-rc alone had it)")
        }
        _ => Support::Yes,
    }
}

/// What a list of sizes (none: as the kernel likes; 0: the global one) says as options of a workload: its variants,
/// unless `--variants` names them, and the sizes of its points.
pub(crate) fn chosen(
    sizes: &[Option<usize>],
    immutable: bool,
    options: &mut Options,
) -> Vec<usize> {
    let own = if immutable { IMMUTABLE } else { PRIVATE };
    let mut variants: Vec<&str> = Vec::new();
    for size in sizes {
        let variant = match size {
            None => AUTO,
            Some(0) => GLOBAL,
            Some(_) => own,
        };
        if !variants.contains(&variant) {
            variants.push(variant);
        }
    }
    if options.variants.is_none() && !variants.is_empty() {
        options.variants = Some(List(variants.into_iter().map(str::to_owned).collect()));
    }
    sizes.iter().flatten().copied().filter(|&n| n > 0).collect()
}

/// Gives this process the hash of the job, before it has threads.
pub(crate) fn set(job: &Job, default: usize) -> Result<(), Refusal> {
    let buckets = size(job, default);
    let asked = match job.variant.as_str() {
        GLOBAL => kernel::buckets().is_ok().then_some((0, false)),
        PRIVATE => Some((buckets, false)),
        IMMUTABLE => Some((buckets, true)),
        _ => None,
    };
    let Some((buckets, immutable)) = asked else {
        return Ok(());
    };
    kernel::set_buckets(buckets, immutable).map_err(|error| {
        Refusal::Environment(format!(
            "the kernel refuses a futex hash of {buckets} buckets for a process: {error}"
        ))
    })
}

/// The buckets that the point says.
pub(crate) fn size(job: &Job, default: usize) -> usize {
    let said = job.more.get(BUCKETS).and_then(serde_json::Value::as_u64);
    said.map_or(default, |n| n as usize)
}

/// What the kernel says at the end.
pub(crate) fn put(record: &mut Record) {
    if let Ok(buckets) = kernel::buckets() {
        record.set("buckets_in_use", buckets);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::Cli;
    use clap::Parser;

    #[test]
    fn sizes_are_variants_and_points() {
        let options = |more: &[&str]| {
            let all = ["hpbench"].iter().chain(more);
            Cli::try_parse_from(all).unwrap().options
        };
        let names = |options: &Options| options.variants.clone().map(|list| list.0.join(","));
        let sizes = [Some(2), None, Some(0), Some(64)];
        let mut free = options(&[]);
        assert_eq!(chosen(&sizes, false, &mut free), [2, 64]);
        assert_eq!(names(&free).as_deref(), Some("private,auto,global"));
        let mut free = options(&[]);
        assert_eq!(chosen(&[Some(8)], true, &mut free), [8]);
        assert_eq!(names(&free).as_deref(), Some("immutable"));
        let mut said = options(&["--variants", "global"]);
        chosen(&sizes, false, &mut said);
        assert_eq!(names(&said).as_deref(), Some("global"));
        let mut none = options(&[]);
        assert!(chosen(&[], false, &mut none).is_empty() && none.variants.is_none());
    }
}
