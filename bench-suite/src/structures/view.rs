//! Floor 3, bench-suite. Owns how `structures` is shown: tables, and two pictures, of throughput and of what waits. May
//! read points.

use super::ask::{KEY_RANGE, LONG, RATE, STALL};
use crate::report::human;
use crate::report::summary::{Group, Point};
use crate::report::view::{self, Column, Plot, View};

pub(super) const VIEW: View = View {
    meaning: "operations on one structure, all threads; more is better; p50, p99: time of one operation (with --rate from when it was due); waiting: nodes taken out and not freed, fewer is better; retire: time of a retirement on the calling thread; x hp: against that of hp",
    reference: "hp",
    title: view::threads,
    columns: |group| {
        if has(group, LONG) {
            WALKED
        } else if has(group, RATE) {
            OPEN
        } else if group.points.iter().any(|point| point.word(STALL).is_some()) {
            STALLED
        } else {
            COLUMNS
        }
    },
    order: |point| walks(point).or(point.rate()).map(|rate| -rate),
    plot: Plot {
        title: "structures: throughput",
        axis: "operations per second, all threads (with long reads: elements walked; more is better)",
        over: Some(KEY_RANGE),
        panels: |group| match has(group, LONG) {
            true => vec![(format!("{}, long reads", view::threads(group)), walks)],
            false => vec![(view::threads(group), Point::rate)],
        },
        joins: &["ds", KEY_RANGE],
        also: Some(&WAITING),
        ..view::RATES
    },
};

static WAITING: Plot = Plot {
    title: "structures: nodes that wait",
    axis: "most nodes taken out and not freed at a time (fewer is better, logarithmic)",
    log: true,
    descending: false,
    panels: |group| {
        vec![(view::threads(group), |point| {
            point.param("unreclaimed_peak")
        })]
    },
    joins: &["ds", KEY_RANGE],
    name: "waiting",
    ..view::RATES
};

fn has(group: &Group, param: &str) -> bool {
    group
        .points
        .iter()
        .any(|point| point.param(param).is_some())
}

fn walks(point: &Point) -> Option<f64> {
    point.param("walked_per_s")
}

const RATIO: Column = view::RATE_RATIO;

const PEAK: Column = Column {
    head: "waiting: most",
    cell: |row| row.show(|p| p.param("unreclaimed_peak"), human::count),
};

const MEAN: Column = Column {
    head: "mean",
    cell: |row| row.show(|p| p.param("unreclaimed_mean"), human::count),
};

const BYTES: Column = Column {
    head: "most bytes",
    cell: |row| row.show(|p| p.param("bytes_peak"), human::count),
};

const RETIRE: Column = Column {
    head: "retire",
    cell: |row| row.show(|p| p.param("retire_ns"), human::nanoseconds),
};

const ALLOCATIONS: Column = Column {
    head: "alloc/op",
    cell: |row| row.show(|p| p.param("allocations_per_op"), |n| format!("{n:.2}")),
};

const COLUMNS: &[Column] = &[
    view::rate("ops/s"),
    view::time("ns/op"),
    RATIO,
    Column {
        head: "p50",
        cell: |row| row.show(|p| p.param("service_p50_ns"), human::nanoseconds),
    },
    Column {
        head: "p99",
        cell: |row| row.show(|p| p.param("service_p99_ns"), human::nanoseconds),
    },
    PEAK,
    MEAN,
    RETIRE,
    ALLOCATIONS,
    view::RATE_SPREAD,
];

const STALLED: &[Column] = &[
    view::rate("ops/s"),
    view::time("ns/op"),
    RATIO,
    PEAK,
    BYTES,
    Column {
        head: "first third",
        cell: |row| row.show(|p| p.param("unreclaimed_first"), human::count),
    },
    Column {
        head: "last third",
        cell: |row| row.show(|p| p.param("unreclaimed_last"), human::count),
    },
    Column {
        head: "released",
        cell: |row| row.show(|p| p.param("released_unreclaimed"), human::count),
    },
    view::RATE_SPREAD,
];

const OPEN: &[Column] = &[
    view::rate("ops/s"),
    Column {
        head: "kept",
        cell: |row| row.show(|p| p.param("rate_kept_percent"), |n| format!("{n:.1} %")),
    },
    Column {
        head: "p50",
        cell: |row| row.show(|p| p.param("p50_ns"), human::nanoseconds),
    },
    Column {
        head: "p99",
        cell: |row| row.show(|p| p.param("p99_ns"), human::nanoseconds),
    },
    Column {
        head: "p99.9",
        cell: |row| row.show(|p| p.param("p999_ns"), human::nanoseconds),
    },
    Column {
        head: "max",
        cell: |row| row.show(|p| p.param("max_ns"), human::nanoseconds),
    },
    PEAK,
    MEAN,
    view::RATE_SPREAD,
];

const WALKED: &[Column] = &[
    Column {
        head: "walks/s",
        cell: |row| row.show(|p| p.param("walks_per_s"), human::count),
    },
    Column {
        head: "elements/s",
        cell: |row| row.show(walks, human::count),
    },
    Column {
        head: "x hp",
        cell: |row| row.against(walks),
    },
    Column {
        head: "restarts/walk",
        cell: |row| row.show(|p| p.param("restarts_per_walk"), human::count),
    },
    Column {
        head: "walk p99",
        cell: |row| row.show(|p| p.param("walk_p99_ns"), human::nanoseconds),
    },
    view::rate("updates/s"),
    PEAK,
    Column {
        head: "spread",
        cell: |row| {
            row.point
                .spread(|r| r.number("walked_per_s"))
                .map(human::percent)
        },
    },
];
