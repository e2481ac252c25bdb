//! Floor 3, bench-suite. Owns which pictures a sweep over threads, or over a parameter, gives: rates, speedups, times,
//! objects that wait, and the latencies of single points. May ask points for their figures, and for what others published.

use super::beside::{bands, idle, linear, published};
use super::curves::{Axis, Line, Picture, draw};
use super::scale::Kind;
use super::style;
use crate::report::bootstrap::Interval;
use crate::report::human;
use crate::report::judge::{self, Judgement};
use crate::report::summary::{Point, Sweep, families, sweeps};
use crate::report::theirs::{self, Topology};
use crate::report::view::View;

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
    let over = source.view.plot.over;
    for sweep in sweeps(&source.all.groups, over).into_iter().filter(long) {
        let rates = source.view.plot.descending;
        let with = judge::intervals(sweep.groups.iter().copied())
            .map_or(String::new(), |called| format!(", with its {called}"));
        put(
            if rates { "rate" } else { "figure" },
            &format!("median over the runs{with}"),
            main(source, &sweep, rates),
        );
        if rates {
            put(
                "speedup",
                &format!("ratio of the medians{with}"),
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
                &format!(
                    "share of the {} that took at most so long, in the run in the middle",
                    super::latency::what(source.name)
                ),
                super::latency::picture(source.name, &group.points, &title),
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
pub(super) fn lines(
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
            let x = sweep.place(group) as f64;
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
    let places = sweep.places();
    let (bands, note) = match sweep.over {
        None => bands(source, &places),
        Some(_) => (Vec::new(), None),
    };
    Picture {
        title: format!("{}: {what}", source.name),
        subtitle: sweep.what(),
        x: Axis {
            title: sweep.axis(source.view).to_owned(),
            kind: Kind::Threads,
            format: |x| format!("{x:.0}"),
        },
        x_ticks: Some(places.iter().map(|&n| n as f64).collect()),
        y,
        right: None,
        lines: Vec::new(),
        bands,
        notes: note.into_iter().collect(),
    }
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
    // Of a rate of each thread, or over something else than threads, there is no linear growth.
    let total = |point: &Point| point.judged.median == point.rate();
    let mut points = sweep.groups.iter().flat_map(|group| &group.points);
    if rates && sweep.over.is_none() && points.all(total) {
        picture.lines.extend(linear(&picture.lines));
    }
    if rates {
        idle(&mut picture, sweep);
    }
    if let Some(theirs) = theirs::of(source.name, sweep)
        && !theirs.figures.is_empty()
    {
        published(&mut picture, sweep, &theirs, &theirs.figures);
    }
    (!picture.lines.is_empty()).then_some(picture)
}

/// A change: `+20`, `0`, `-5`.
fn percent(change: f64) -> String {
    if change == 0.0 {
        "0".to_owned()
    } else {
        format!("{change:+.0}")
    }
}

fn speedup(source: &Source<'_>, sweep: &Sweep<'_>) -> Option<Picture> {
    let reference = &source.all.reference;
    let ratio = |point: &Point| point.judged.ratio.map(|ratio| ratio.of_medians);
    let theirs = theirs::of(source.name, sweep).filter(|theirs| theirs.reference == *reference);
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
        format: if wide { human::ratio } else { percent },
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
    if own.iter().any(|line| line.spread.len() > 1)
        && let Some(called) = judge::intervals(sweep.groups.iter().copied())
    {
        let note = format!("Ribbons: {called} of the ratio of medians over the runs (bootstrap).");
        picture.notes.push(note);
    }
    picture.lines = own;
    if let Some(theirs) = theirs {
        let ratio = |&(x, percent): &(u64, f64)| (x, shown(1.0 + percent / 100.0));
        let points: Vec<(u64, f64)> = theirs.speedup.iter().map(ratio).collect();
        published(&mut picture, sweep, &theirs, &points);
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::cdf;
    use crate::report::judge::judged;
    use crate::report::record::Record;
    use crate::report::record::tests::sample;
    use crate::workloads::Workload;

    const THREADS: [usize; 12] = [1, 2, 3, 6, 12, 24, 48, 96, 192, 384, 768, 1000];

    fn records(threads: &[usize]) -> Vec<Record> {
        let mut records = Vec::new();
        for &n in threads {
            for (variant, base) in [("refcount", 100.0), ("hp-mb", 130.0), ("none", 150.0)] {
                for run in 0..3 {
                    let scaled = 1e6 * base * (n as f64).powf(0.8) * (1.0 + 0.01 * run as f64);
                    let mut record = sample(Workload::Read, variant, n, run, scaled as u64);
                    record.set("idle_percent", 90.0 / n as f64);
                    record.set("peak_unreclaimed", 10 * n);
                    records.push(record);
                }
            }
        }
        records
    }

    /// Pictures of a workload of this name, over the records of another.
    fn drawn(name: &str, threads: &[usize], asked: &str) -> Vec<Drawn> {
        let all = judged(&records(threads), Workload::Read, Some(asked));
        pictures(&Source {
            name,
            view: &Workload::Read.kind().view,
            all: &all,
            topology: Some(Topology {
                sockets: 1,
                cores: 96,
                cpus: 192,
            }),
        })
    }

    #[test]
    fn a_sweep_gives_its_pictures() {
        let all = drawn("read", &THREADS, "refcount");
        let kinds: Vec<&str> = all.iter().map(|one| one.kind.as_str()).collect();
        assert_eq!(kinds, ["rate", "speedup", "time", "unreclaimed"]);
        let words = |kind: usize, words: &[&str]| {
            for word in words {
                assert!(all[kind].svg.contains(word), "{kind}: {word}");
            }
        };
        let bands = ["SMT siblings", "more threads than CPUs"];
        words(0, &["linear", "idle, %", "768", bands[0], bands[1]]);
        words(1, &["change against refcount", bands[1]]);
        words(2, &["time per operation"]);
        words(3, &["objects that waited"]);
        assert!(!all[1].svg.contains("theirs"), "nobody published it");
        // Within the cores there is nothing to shade.
        assert!(
            !drawn("read", &[1, 2, 4], "refcount")[0]
                .svg
                .contains(bands[0])
        );
        assert!(drawn("read", &[1], "refcount").is_empty(), "not a sweep");
    }

    #[test]
    fn published_numbers_are_marked_as_theirs() {
        let all = drawn("track", &[1, 2], "refcount");
        let svg = &all[1].svg;
        assert!(
            svg.contains("theirs: 2x EPYC") && svg.contains("768"),
            "{svg}"
        );
        assert!(svg.contains("not measured here"), "{svg}");
        // Against another reference their numbers would say something else.
        assert!(!drawn("track", &[1, 2], "none")[1].svg.contains("theirs"));
    }

    /// Of one run there is no interval to speak of.
    #[test]
    fn captions_promise_what_is_there() {
        let captions = |runs: usize| {
            let mut some = Vec::new();
            for record in records(&[1, 2]) {
                some.extend(
                    (0..runs)
                        .filter(|_| record.run == 0)
                        .map(|_| record.clone()),
                );
            }
            let all = judged(&some, Workload::Read, None);
            let drawn = pictures(&Source {
                name: "read",
                view: &Workload::Read.kind().view,
                all: &all,
                topology: None,
            });
            let all = drawn.iter().map(|one| one.caption.clone() + &one.svg);
            all.collect::<Vec<_>>().join("\n")
        };
        let one = captions(1);
        assert!(
            !one.contains("interval") && !one.contains("with its"),
            "{one}"
        );
        assert!(captions(3).contains("with its range"));
        assert!(captions(5).contains("with its 95 % interval"));
    }

    #[test]
    fn latencies_are_drawn_for_each_point() {
        let mut records = records(&[1, 2]);
        for record in &mut records {
            record.set(
                cdf::KEY,
                serde_json::json!([[10, 0.5], [20, 0.99], [100, 1.0]]),
            );
        }
        let all = judged(&records, Workload::Read, None);
        let drawn = pictures(&Source {
            name: "read",
            view: &Workload::Read.kind().view,
            all: &all,
            topology: None,
        });
        let latencies: Vec<&Drawn> = drawn
            .iter()
            .filter(|one| one.kind.starts_with("latency"))
            .collect();
        assert_eq!(latencies.len(), 2);
        assert_eq!(latencies[1].kind, "latency-2");
        assert!(latencies[0].svg.contains("99.9 %") && latencies[0].svg.contains("1 thread"));
    }
}
