//! Floor 3, bench-suite. Owns the description of how a workload is shown: table columns, order of variants, plot.
//! Touches only the points that it shows. Each workload fills one in, in its own file.

use super::human;
use super::summary::{Group, Point, ratio};

/// How a workload is shown.
pub(crate) struct View {
    /// What the table says, in which units, and which end is better.
    pub(crate) meaning: &'static str,
    /// The variant that ratios refer to.
    pub(crate) reference: &'static str,
    /// What stands over the names: the point.
    pub(crate) title: fn(&Group) -> String,
    /// The columns beside the names.
    pub(crate) columns: fn(&Group) -> &'static [Column],
    /// Variants in ascending order of this; unknown is last.
    pub(crate) order: fn(&Point) -> Option<f64>,
    /// The picture.
    pub(crate) plot: Plot,
}

/// One column of a table.
pub(crate) struct Column {
    /// Its heading.
    pub(crate) head: &'static str,
    /// Its cell, where there is something to show.
    pub(crate) cell: fn(&Row<'_>) -> Option<String>,
}

/// Where a cell is.
pub(crate) struct Row<'a> {
    /// The row's point.
    pub(crate) point: &'a Point,
    /// The point that ratios refer to, if it ran.
    pub(crate) reference: Option<&'a Point>,
    /// All groups of the table.
    pub(crate) all: &'a [Group],
}

/// A figure of a point.
pub(crate) type Figure = fn(&Point) -> Option<f64>;

/// The picture of a workload.
pub(crate) struct Plot {
    /// Title.
    pub(crate) title: &'static str,
    /// What the axis shows, with its unit and which end is better.
    pub(crate) axis: &'static str,
    /// What the panels are ordered by.
    pub(crate) threads_axis: &'static str,
    /// A numeric parameter that a sweep may go over instead of threads, like the number of buckets: the name that its
    /// option has in points, and that the axis has.
    pub(crate) over: Option<&'static str>,
    /// Whether the axis is logarithmic.
    pub(crate) log: bool,
    /// One scale for all panels: they show the same figure.
    pub(crate) shared: bool,
    /// Longest bars first.
    pub(crate) descending: bool,
    /// How figures are written.
    pub(crate) format: fn(f64) -> String,
    /// Titles and figures of the panels that a group gives.
    pub(crate) panels: fn(&Group) -> Vec<(String, Figure)>,
}

/// Bars of rates, a panel for each number of threads: what most workloads show, each with its own words.
pub(crate) const RATES: Plot = Plot {
    title: "",
    axis: "operations per second (more is better)",
    threads_axis: "threads",
    over: None,
    log: false,
    shared: false,
    descending: true,
    format: human::count,
    panels: |group| vec![(threads(group), Point::rate)],
};

/// Bars of times of one operation, over a logarithmic axis, in the same way.
pub(crate) const TIMES: Plot = Plot {
    axis: "time of one operation (less is better, logarithmic)",
    log: true,
    descending: false,
    format: human::nanoseconds,
    panels: |group| vec![(threads(group), Point::ns)],
    ..RATES
};

impl Row<'_> {
    /// The row's figure.
    pub(crate) fn show(&self, figure: Figure, format: fn(f64) -> String) -> Option<String> {
        figure(self.point).map(format)
    }

    /// The row's figure against that of the reference.
    pub(crate) fn against(&self, figure: Figure) -> Option<String> {
        ratio(figure(self.point), self.reference.and_then(figure)).map(human::ratio)
    }

    /// The row's figure against that of the same variant in the first group.
    pub(crate) fn growth(&self, figure: Figure) -> Option<String> {
        let first = self
            .all
            .iter()
            .find_map(|group| group.point(&self.point.variant))
            .and_then(figure);
        ratio(figure(self.point), first).map(human::ratio)
    }
}

/// `name`: the rate over all threads.
pub(crate) const fn rate(head: &'static str) -> Column {
    Column {
        head,
        cell: |row| row.show(Point::rate, human::count),
    }
}

/// `name`: the time of one operation.
pub(crate) const fn time(head: &'static str) -> Column {
    Column {
        head,
        cell: |row| row.show(Point::ns, human::nanoseconds),
    }
}

/// The rate against that of the reference.
pub(crate) const RATE_RATIO: Column = Column {
    head: "x hp",
    cell: |row| row.against(Point::rate),
};

/// How far the rates of the repetitions lie apart.
pub(crate) const RATE_SPREAD: Column = Column {
    head: "spread",
    cell: |row| row.point.spread(|r| Some(r.ops_per_s)).map(human::percent),
};

/// How far the times of the repetitions lie apart.
pub(crate) const TIME_SPREAD: Column = Column {
    head: "spread",
    cell: |row| row.point.spread(|r| r.ns_per_op).map(human::percent),
};

/// `2 threads`.
pub(crate) fn threads(group: &Group) -> String {
    human::plural(group.threads, "thread")
}

/// `1 reader + 2 writers`, or `2 writers`.
pub(crate) fn shape(group: &Group) -> String {
    match group.shape {
        (0, writers) => human::plural(writers, "writer"),
        (readers, writers) => format!(
            "{} + {}",
            human::plural(readers, "reader"),
            human::plural(writers, "writer")
        ),
    }
}
