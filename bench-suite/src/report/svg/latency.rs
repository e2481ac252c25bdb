//! Floor 3, bench-suite. Owns the picture of latencies: the share of the operations that took at most so long, a line a
//! variant. May ask points for their distributions.

use super::curves::{Axis, Line, Picture};
use super::scale::Kind;
use super::style::{self, Style};
use crate::report::summary::Point;
use crate::report::{cdf, human};

/// Whose latencies a workload takes.
pub(super) fn what(name: &str) -> &'static str {
    match name {
        "grace" => "grace periods",
        "track" | "think" | "sched" => "tear-downs",
        _ => "operations",
    }
}

/// The distribution of each point that has one.
pub(super) fn picture(name: &str, points: &[Point], title: &str) -> Option<Picture> {
    let lines: Vec<Line> = points
        .iter()
        .filter_map(|point| {
            let steps = cdf::of(point)?;
            let coarse = steps.len() < 6;
            let style = style::of(&point.variant);
            Some(Line {
                name: point.variant.clone(),
                points: steps,
                spread: Vec::new(),
                ribbon: false,
                style: Style {
                    mark: if coarse {
                        style.mark
                    } else {
                        style::Mark::None
                    },
                    ..style
                },
                right: false,
                named: true,
                fits: true,
            })
        })
        .collect();
    (!lines.is_empty()).then(|| Picture {
        title: format!("{name}: distribution of latencies of {}", what(name)),
        subtitle: title.to_owned(),
        x: Axis {
            title: "latency (less is better, logarithmic)".to_owned(),
            kind: Kind::Log,
            format: human::nanoseconds,
        },
        x_ticks: None,
        y: Axis {
            title: format!("share of the {} that took at most so long", what(name)),
            kind: Kind::Nines,
            format: nines,
        },
        right: None,
        lines,
        bands: Vec::new(),
        notes: vec![
            "Each further nine is as wide as the one before; lines that reach the top end at the maximum.".to_owned(),
        ],
    })
}

/// `99.9 %`, with as many decimals as it takes.
fn nines(share: f64) -> String {
    let percent = share * 100.0;
    let decimals = if percent > 99.95 {
        3
    } else if percent > 99.5 {
        1
    } else {
        0
    };
    let text = format!("{percent:.decimals$}");
    let text = match text.split_once('.') {
        Some((whole, part)) => format!("{whole}.{}", part.trim_end_matches('0')),
        None => text,
    };
    format!("{} %", text.trim_end_matches('.'))
}
