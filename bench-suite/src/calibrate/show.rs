//! Floor 3, bench-suite. Owns a calibration as text. Touches nothing else.

use super::{Beside, Calibration, Estimate};
use crate::published::show::columns;
use crate::report::human;
use std::fmt::Write;

/// A matrix wider than this is not shown.
const WIDEST: usize = 16;

/// The whole of it.
pub(super) fn text(calibration: &Calibration) -> String {
    let places = &calibration.places;
    let mut text = format!(
        "calibration of {}: {} CPUs allowed; {} x {} cores, {} a last-level cache, {} threads a core{}\n",
        calibration.model(),
        places.cpus.len(),
        places.sockets,
        places.cores_per_socket,
        places.cores_per_ccx,
        places.threads_per_core,
        if calibration.quick {
            " (quick: not for claims)"
        } else {
            ""
        }
    );
    text.push_str("medians; low and high: a tenth of the samples lies beyond each\n");
    if !calibration.pairs.is_empty() && places.cpus.len() <= WIDEST {
        text.push_str("\ncore to core, one way, ns\n");
        text.push_str(&matrix(calibration));
    }
    let mut rows = vec![head("cost")];
    for class in &calibration.classes {
        rows.push(row(
            &format!("line from the same {} ({} pairs)", class.name, class.pairs),
            &class.one_way_ns,
        ));
    }
    let mut beside = |what: &str, unit: &str, list: &[Beside]| {
        rows.extend(list.iter().map(|one| {
            row(
                &format!("{what}{}", human::plural(one.threads, unit)),
                &one.ns,
            )
        }));
    };
    beside(
        "fetch_add on one line, of all: ",
        "thread",
        &calibration.contended,
    );
    beside("membarrier beside ", "busy thread", &calibration.membarrier);
    beside(
        "heavy barrier of this rung beside ",
        "busy thread",
        &calibration.heavy_barrier,
    );
    rows.push(row("fetch_add on an own line", &calibration.rmw_ns));
    rows.push(row("store and fence", &calibration.fence_ns));
    rows.push(row("getppid", &calibration.syscall_ns));
    if let Some(section) = &calibration.section_ns {
        rows.push(row("restartable section", section));
    }
    for pipe in &calibration.pipes {
        rows.push(row(
            &format!("pipe round trip, {}", pipe.place),
            &pipe.round_trip_ns,
        ));
    }
    let _ = writeln!(text, "\n{}", columns(&rows).trim_end());
    text.push_str("\nnot measured, or to be kept in mind:\n");
    for missing in &calibration.missing {
        let _ = writeln!(text, "  - {missing}");
    }
    text
}

fn head(name: &str) -> Vec<String> {
    [name, "median", "low", "high", "samples"]
        .map(str::to_owned)
        .to_vec()
}

fn row(name: &str, estimate: &Estimate) -> Vec<String> {
    let mut row = vec![name.replace("same remote", "other socket")];
    row.extend([estimate.median, estimate.low, estimate.high].map(human::nanoseconds));
    row.push(estimate.samples.to_string());
    row
}

fn matrix(calibration: &Calibration) -> String {
    let cpus = &calibration.places.cpus;
    let mut rows = vec![
        std::iter::once("CPU".to_owned())
            .chain(cpus.iter().map(ToString::to_string))
            .collect(),
    ];
    for &a in cpus {
        let cell = |&b: &usize| {
            let pair = calibration
                .pairs
                .iter()
                .find(|pair| pair.cpus == (a.min(b), a.max(b)));
            pair.map_or_else(
                || "-".to_owned(),
                |pair| human::digits(pair.one_way_ns.median),
            )
        };
        rows.push(
            std::iter::once(a.to_string())
                .chain(cpus.iter().map(cell))
                .collect::<Vec<_>>(),
        );
    }
    columns(&rows)
}
