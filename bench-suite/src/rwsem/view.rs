//! Floor 3, bench-suite. Owns how `rwsem` is shown. Touches points only.

use crate::report::human;
use crate::report::summary::{Group, Point};
use crate::report::view::{self, Column, Plot, View};

/// Nanoseconds of a parameter.
macro_rules! time {
    ($head:literal, $key:literal) => {
        Column {
            head: $head,
            cell: |row| row.show(|point| point.param($key), human::nanoseconds),
        }
    };
}

/// A share of a parameter.
macro_rules! share {
    ($head:literal, $key:literal) => {
        Column {
            head: $head,
            cell: |row| row.show(|point| point.param($key), human::percent),
        }
    };
}

const RATIO: Column = Column {
    head: "x vanilla",
    cell: |row| row.against(Point::rate),
};

const READERS: &[Column] = &[
    view::rate("reads/s"),
    RATIO,
    time!("wait p50", "wait_p50_ns"),
    time!("p99", "wait_p99_ns"),
    time!("max", "wait_max_ns"),
    time!("hold p50", "hold_p50_ns"),
    time!("p99", "hold_p99_ns"),
    share!("min/max", "fairness"),
    share!("sd", "sd_threads_share"),
    view::RATE_SPREAD,
];

const WITH_WRITERS: &[Column] = &[
    view::rate("reads/s"),
    RATIO,
    time!("wait p50", "wait_p50_ns"),
    time!("p99", "wait_p99_ns"),
    time!("max", "wait_max_ns"),
    time!("hold p50", "hold_p50_ns"),
    share!("min/max", "fairness"),
    Column {
        head: "writes/s",
        cell: |row| row.show(|point| point.param("writes_per_s"), human::count),
    },
    time!("w wait p50", "write_wait_p50_ns"),
    time!("w p99", "write_wait_p99_ns"),
    time!("w max", "write_wait_max_ns"),
    view::RATE_SPREAD,
];

pub(super) const VIEW: View = View {
    meaning: "readers around a page fault (or nothing); rates over all readers; wait: until inside, hold: inside, of a sample; min/max: slowest reader against fastest, sd: over readers; w: the same of writers; more reads are better; x vanilla: rate against the kernel's plain rwsem",
    reference: "vanilla",
    title: view::shape,
    columns: |group: &Group| {
        if group.shape.1 == 0 {
            READERS
        } else {
            WITH_WRITERS
        }
    },
    order: |point| point.rate().map(|rate| -rate),
    plot: Plot {
        title: "rwsem: reads around a page fault",
        axis: "reads per second, all readers (more is better)",
        shared: true,
        panels: |group: &Group| vec![(view::shape(group), Point::rate)],
        ..view::RATES
    },
};
