//! Floor 3, bench-suite. Owns which pictures a sweep over threads gives: rates, speedups, times, objects that wait, and
//! the latencies of single points. May ask points for their figures, and for what others published.

use super::curves::{Axis, Band, Line, Picture, draw};
use super::scale::Kind;
use super::style::{self, AID, Dash, Style};
use crate::report::bootstrap::Interval;
use crate::report::judge::{self, Judgement};
use crate::report::summary::{Point, Sweep, families, sweeps};
use crate::report::theirs::{self, Topology};
use crate::report::view::View;
use crate::report::{cdf, human};

/// A picture, drawn.
pub(crate) struct Drawn {
    /// What it shows, as part of a file's name.
    pub(crate) kind: String,
    /// What it shows, in a sentence.
    pub(crate) caption: String,
    /// The picture.
    pub(crate) svg: String,
}

/// Latencies of more points than this are not drawn.
const MOST_LATENCIES: usize = 8;

/// A ratio beyond this asks for a logarithmic axis.
const WIDE: f64 = 12.0;

/// What pictures are made of.
pub(super) struct Source<'a> {
    pub(super) name: &'a str,
    pub(super) view: &'a View,
    pub(super) all: &'a Judgement,
    pub(super) topology: Option<Topology>,
}

/// All pictures beside the overview.
pub(super) fn pictures(source: &Source<'_>) -> Vec<Drawn> {
    let mut drawn = Vec::new();
    let mut put = |kind: &str, caption: &str, picture: Option<Picture>| {
        if let Some(picture) = picture {
            drawn.push(Drawn {
                kind: kind.to_owned(),
                caption: caption.to_owned(),
                svg: draw(&picture),
            });
        }
    };
    let long = |sweep: &Sweep<'_>| sweep.groups.len() > 1;
    for sweep in sweeps(&source.all.groups).into_iter().filter(long) {
        let rates = source.view.plot.descending;
        put(
            if rates { "rate" } else { "figure" },
            "median over the runs, with its 95 % interval",
            main(source, &sweep, rates),
        );
        if rates {
            put(
                "speedup",
                "ratio of the medians, with its 95 % interval",
                speedup(source, &sweep),
            );
        }
        if rates || !judge::is_time(&source.view.plot) {
            put(
                "time",
                "thread time of one operation, both axes logarithmic",
                times(source, &sweep),
            );
        }
        put(
            "unreclaimed",
            "peak of the objects that waited for reclaim",
            waiting(source, &sweep),
        );
    }
    for family in families(&source.all.groups) {
        for group in family.iter().take(MOST_LATENCIES) {
            let title = group.title(source.view);
            put(
                "latency",
                "share of the operations that took at most so long, in the run in the middle",
                latency(source, &group.points, &title),
            );
        }
    }
    number(&mut drawn);
    drawn
}

/// Pictures of the same kind get numbers.
fn number(drawn: &mut [Drawn]) {
    let kinds: Vec<String> = drawn.iter().map(|one| one.kind.clone()).collect();
    for (index, one) in drawn.iter_mut().enumerate() {
        let same = |kind: &&String| **kind == kinds[index];
        if kinds.iter().filter(same).count() > 1 {
            let n = kinds[..index].iter().filter(same).count() + 1;
            one.kind = format!("{}-{n}", kinds[index]);
        }
    }
}

/// The line of each variant that has the figure.
fn lines(
    sweep: &Sweep<'_>,
    figure: impl Fn(usize, &Point) -> Option<f64>,
    spread: impl Fn(&Point) -> Option<Interval>,
    ribbon: bool,
) -> Vec<Line> {
    let line = |name: &str| {
        let mut line = Line {
            name: name.to_owned(),
            points: Vec::new(),
            spread: Vec::new(),
            ribbon,
            style: style::of(name),
            right: false,
            named: true,
            fits: true,
        };
        for (index, group) in sweep.groups.iter().enumerate() {
            let Some(point) = group.point(name) else {
                continue;
            };
            let x = group.threads as f64;
            if let Some(y) = figure(index, point).filter(|y| y.is_finite()) {
                line.points.push((x, y));
            }
            if let Some(Interval { low, high }) = spread(point) {
                line.spread.push((x, low, high));
            }
        }
        line
    };
    let lines = sweep.variants().into_iter().map(line);
    lines.filter(|line| !line.points.is_empty()).collect()
}

fn picture(source: &Source<'_>, sweep: &Sweep<'_>, what: &str, y: Axis) -> Picture {
    let plot = &source.view.plot;
    let threads = sweep.threads();
    let (bands, note) = bands(source, &threads);
    Picture {
        title: format!("{}: {what}", source.name),
        subtitle: sweep.what(),
        x: Axis {
            title: plot.threads_axis.to_owned(),
            kind: Kind::Threads,
            format: |x| format!("{x:.0}"),
        },
        x_ticks: Some(threads.iter().map(|&n| n as f64).collect()),
        y,
        right: None,
        lines: Vec::new(),
        bands,
        notes: note.into_iter().collect(),
    }
}

/// Past the cores siblings share one, past the CPUs threads take turns. Of threads that sit idle nothing is said.
fn bands(source: &Source<'_>, threads: &[usize]) -> (Vec<Band>, Option<String>) {
    let most = threads.iter().copied().max().unwrap_or(0);
    let busy = source.view.plot.threads_axis == "threads";
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
            caption: "SMT siblings",
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
            caption: "more threads than CPUs",
            grey: 236,
        });
        words.push(format!(
            "shaded past {}: more threads than CPUs",
            human::plural(cpus, "CPU")
        ));
    }
    let note = (!words.is_empty()).then(|| format!("{}.", words.join("; ")));
    (bands, note)
}

fn main(source: &Source<'_>, sweep: &Sweep<'_>, rates: bool) -> Option<Picture> {
    let plot = &source.view.plot;
    let y = Axis {
        title: plot.axis.to_owned(),
        kind: if plot.log { Kind::Log } else { Kind::Linear },
        format: plot.format,
    };
    let what = plot
        .title
        .split_once(": ")
        .map_or(plot.title, |(_, what)| what);
    let mut picture = picture(source, sweep, what, y);
    let own = lines(sweep, |_, p| p.judged.median, |p| p.judged.interval, false);
    // A logarithmic axis has no place for nothing: it stands at the bottom.
    let least = own
        .iter()
        .flat_map(|line| line.points.iter().map(|point| point.1))
        .filter(|&y| y > 0.0)
        .fold(f64::INFINITY, f64::min);
    picture.lines = own;
    if picture.y.kind == Kind::Log && least.is_finite() {
        for line in &mut picture.lines {
            for point in &mut line.points {
                point.1 = point.1.max(least);
            }
        }
    }
    if rates {
        picture.lines.extend(linear(&picture.lines));
        idle(&mut picture, sweep);
    }
    (!picture.lines.is_empty()).then_some(picture)
}

/// The best rate of the fewest threads, as if more threads were that much more.
fn linear(lines: &[Line]) -> Option<Line> {
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
    // Straight in numbers, bent on a logarithmic axis.
    let steps = 64;
    let at = |i: i32| fewest * (most / fewest).powf(f64::from(i) / f64::from(steps));
    Some(Line {
        name: if fewest == 1.0 {
            "linear (best at 1 thread)".to_owned()
        } else {
            format!("linear (best at {fewest:.0} threads)")
        },
        points: (0..=steps)
            .map(|i| (at(i), best / fewest * at(i)))
            .collect(),
        spread: Vec::new(),
        ribbon: false,
        style: AID,
        right: false,
        named: true,
        fits: false,
    })
}

/// How idle the CPUs were, where the records tell.
fn idle(picture: &mut Picture, sweep: &Sweep<'_>) {
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
                ..line.style
            };
            line.right = true;
            line.named = false;
        }
        picture.lines.extend(found);
        picture.right = Some(Axis {
            title: title.to_owned(),
            kind: Kind::Linear,
            format: human::digits,
        });
        return;
    }
}

fn speedup(source: &Source<'_>, sweep: &Sweep<'_>) -> Option<Picture> {
    let reference = &source.all.reference;
    let ratio = |point: &Point| point.judged.ratio.map(|ratio| ratio.of_medians);
    let theirs = theirs::of(source.name).filter(|theirs| theirs.reference == *reference);
    let mut ratios: Vec<f64> = sweep
        .groups
        .iter()
        .flat_map(|group| &group.points)
        .filter_map(ratio)
        .collect();
    if ratios.is_empty() {
        return None;
    }
    if let Some(theirs) = &theirs {
        ratios.extend(
            theirs
                .speedup
                .iter()
                .map(|&(_, percent)| 1.0 + percent / 100.0),
        );
    }
    let wide = ratios.iter().copied().fold(0.0, f64::max) > WIDE;
    // A logarithmic axis shows ratios, a linear one changes.
    let shown = move |ratio: f64| if wide { ratio } else { (ratio - 1.0) * 100.0 };
    let y = Axis {
        title: if wide {
            format!("times the rate of {reference} (logarithmic)")
        } else {
            format!("change against {reference}, %")
        },
        kind: if wide { Kind::Log } else { Kind::Linear },
        format: if wide {
            human::ratio
        } else {
            |y| format!("{y:+.0}")
        },
    };
    let what = format!("speedup against {reference}");
    let mut picture = picture(source, sweep, &what, y);
    let own = lines(
        sweep,
        |index, point| {
            let beside = sweep.groups[index].point(reference).is_some();
            let same = (beside && point.variant == *reference).then_some(1.0);
            ratio(point).or(same).map(shown)
        },
        |point| {
            let ratio = point.judged.ratio?;
            let enough = ratio.runs >= crate::report::bootstrap::LEAST;
            enough.then(|| Interval {
                low: shown(ratio.interval.low),
                high: shown(ratio.interval.high),
            })
        },
        true,
    );
    picture.lines = own;
    picture
        .notes
        .push("Ribbons: 95 % bootstrap interval of the ratio of medians over the runs.".to_owned());
    if let Some(theirs) = theirs {
        let mut ticks: Vec<f64> = picture.x_ticks.take().unwrap_or_default();
        ticks.extend(theirs.speedup.iter().map(|&(n, _)| n as f64));
        ticks.sort_by(f64::total_cmp);
        ticks.dedup();
        picture.x_ticks = Some(ticks);
        picture.notes.push(format!(
            "Theirs ({}): {}, {}; not measured here, another machine and kernel.",
            theirs.set.id, theirs.set.source.author, theirs.machine
        ));
        picture.lines.push(Line {
            name: format!("theirs: {}", theirs.machine),
            points: theirs
                .speedup
                .iter()
                .map(|&(n, percent)| (n as f64, shown(1.0 + percent / 100.0)))
                .collect(),
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
    Some(picture)
}

fn times(source: &Source<'_>, sweep: &Sweep<'_>) -> Option<Picture> {
    let y = Axis {
        title: "time per operation (less is better, logarithmic)".to_owned(),
        kind: Kind::Log,
        format: human::nanoseconds,
    };
    let mut picture = picture(source, sweep, "thread time of one operation", y);
    picture.lines = lines(
        sweep,
        |_, point| point.ns().filter(|&ns| ns > 0.0),
        |point| Interval::of_median(&point.runs(Point::ns)).filter(|i| i.low > 0.0),
        false,
    );
    (!picture.lines.is_empty()).then_some(picture)
}

fn waiting(source: &Source<'_>, sweep: &Sweep<'_>) -> Option<Picture> {
    let peak = |point: &Point| point.param("peak_unreclaimed");
    let mut points = sweep.groups.iter().flat_map(|group| &group.points);
    // Where that is the workload's figure, it has its picture already.
    if points.all(|point| peak(point).is_none() || peak(point) == point.judged.median) {
        return None;
    }
    let y = Axis {
        title: "objects that waited, peak (fewer is better, logarithmic)".to_owned(),
        kind: Kind::Log,
        format: human::count,
    };
    let mut picture = picture(source, sweep, "unreclaimed objects", y);
    picture.lines = lines(
        sweep,
        |_, point| peak(point).map(|n| n.max(1.0)),
        |_| None,
        false,
    );
    picture
        .notes
        .push("None is drawn as one: a logarithmic axis has no place for it.".to_owned());
    (!picture.lines.is_empty()).then_some(picture)
}

fn latency(source: &Source<'_>, points: &[Point], title: &str) -> Option<Picture> {
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
    let percent = |share: f64| {
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
    };
    (!lines.is_empty()).then(|| Picture {
        title: format!("{}: distribution of latencies", source.name),
        subtitle: title.to_owned(),
        x: Axis {
            title: "latency (less is better, logarithmic)".to_owned(),
            kind: Kind::Log,
            format: human::nanoseconds,
        },
        x_ticks: None,
        y: Axis {
            title: "share that took at most so long".to_owned(),
            kind: Kind::Nines,
            format: percent,
        },
        right: None,
        lines,
        bands: Vec::new(),
        notes: vec![
            "Each further nine is as wide as the one before; lines that reach the top end at the maximum.".to_owned(),
        ],
    })
}
