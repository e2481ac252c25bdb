//! Floor 3, bench-suite. Owns what stands beside the measured lines of a sweep: the shaded parts, the line of linear
//! growth, how idle the CPUs were, the numbers of others. May ask points for their figures.

use super::curves::{Axis, Band, Line, Picture};
use super::scale::Kind;
use super::style::{self, AID, Dash, Style, THEIRS};
use super::sweep::{Source, lines};
use crate::report::human;
use crate::report::summary::Sweep;
use crate::report::theirs::{Theirs, Topology};

/// Past the cores siblings share one, past the CPUs threads take turns. Of threads that sit idle nothing is said.
pub(super) fn bands(source: &Source<'_>, threads: &[u64]) -> (Vec<Band>, Option<String>) {
    let most = threads.iter().copied().max().unwrap_or(0) as usize;
    let what = source.view.plot.threads_axis;
    let busy = !what.starts_with("idle") && what != "readers";
    let Some(Topology { cores, cpus, .. }) = source.topology.filter(|_| busy) else {
        return (Vec::new(), None);
    };
    let past = |n: usize| n as f64 * 1.06;
    let mut bands = Vec::new();
    let mut words = Vec::new();
    if cores < cpus && most > cores {
        bands.push(Band {
            from: past(cores),
            to: Some(past(cpus)),
            caption: "SMT siblings".to_owned(),
            grey: 246,
        });
        words.push(format!(
            "lighter from {} on: SMT siblings",
            human::plural(cores, "core")
        ));
    }
    if most > cpus {
        bands.push(Band {
            from: past(cpus),
            to: None,
            caption: format!("more {what} than CPUs"),
            grey: 236,
        });
        words.push(format!(
            "shaded past {} of this machine: more {what} than CPUs",
            human::plural(cpus, "CPU")
        ));
    }
    let note = (!words.is_empty()).then(|| format!("{}.", words.join("; ")));
    (bands, note)
}

/// The best rate of the fewest threads, as if more threads were that much more.
pub(super) fn linear(lines: &[Line]) -> Option<Line> {
    let firsts = || lines.iter().filter_map(|line| line.points.first());
    let fewest = firsts().map(|point| point.0).fold(f64::INFINITY, f64::min);
    let best = firsts()
        .filter(|point| point.0 == fewest)
        .map(|point| point.1)
        .fold(0.0, f64::max);
    let most = lines
        .iter()
        .filter_map(|line| line.points.last())
        .map(|point| point.0)
        .fold(0.0, f64::max);
    if best <= 0.0 || fewest < 1.0 || most <= fewest {
        return None;
    }
    // Where it runs far above all that was measured, it is cut.
    let highest = lines
        .iter()
        .flat_map(|line| line.points.iter().map(|point| point.1))
        .fold(0.0, f64::max);
    // Straight in numbers, bent on a logarithmic axis.
    let steps = 64;
    let at = |i: i32| fewest * (most / fewest).powf(f64::from(i) / f64::from(steps));
    Some(Line {
        name: format!("linear (best at {fewest:.0})"),
        points: (0..=steps)
            .map(|i| (at(i), best / fewest * at(i)))
            .collect(),
        spread: Vec::new(),
        ribbon: false,
        style: AID,
        right: false,
        named: true,
        fits: best / fewest * most <= 2.0 * highest,
    })
}

/// Three digits that count, and no more: `0.0002`, `12.5`, `100`.
fn short(value: f64) -> String {
    if value == 0.0 {
        return "0".to_owned();
    }
    let power = 10f64.powi(2 - value.abs().log10().floor() as i32);
    format!("{}", (value * power).round() / power)
}

/// How idle the CPUs were, where the records tell.
pub(super) fn idle(picture: &mut Picture, sweep: &Sweep<'_>) {
    for (key, title) in [
        ("idle_percent", "idle, % (fine dotted lines)"),
        (
            "idle_entries_per_op",
            "idle entries per operation (fine dotted lines)",
        ),
    ] {
        let mut found = lines(sweep, |_, point| point.param(key), |_| None, false);
        if found.is_empty() {
            continue;
        }
        for line in &mut found {
            line.style = Style {
                dash: Dash::Dotted,
                mark: style::Mark::None,
                width: 1,
                colour: style::faint(line.style.colour),
            };
            line.right = true;
            line.named = false;
        }
        picture.lines.extend(found);
        picture.right = Some(Axis {
            title: title.to_owned(),
            kind: Kind::Linear,
            format: short,
        });
        return;
    }
}

/// Adds a line of published numbers, with what is to be said of it and room for it on the axis.
pub(super) fn published(
    picture: &mut Picture,
    sweep: &Sweep<'_>,
    theirs: &Theirs,
    points: &[(u64, f64)],
) {
    let mut ticks: Vec<f64> = picture.x_ticks.take().unwrap_or_default();
    ticks.extend(points.iter().map(|&(x, _)| x as f64));
    ticks.sort_by(f64::total_cmp);
    ticks.dedup();
    picture.x_ticks = Some(ticks);
    picture.notes.push(theirs.caveat(sweep.point()));
    picture.lines.push(Line {
        name: format!("{THEIRS}{}", theirs.machine),
        points: points.iter().map(|&(x, y)| (x as f64, y)).collect(),
        spread: Vec::new(),
        ribbon: false,
        style: Style {
            dash: Dash::Dashed,
            ..AID
        },
        right: false,
        named: true,
        fits: true,
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    /// However small the values are, labels differ.
    #[test]
    fn short_numbers() {
        let all = [0.0, 0.0002, 0.0012, 0.5, 12.5, 100.0].map(short);
        assert_eq!(all, ["0", "0.0002", "0.0012", "0.5", "12.5", "100"]);
    }
}
