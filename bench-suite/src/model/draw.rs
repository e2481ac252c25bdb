//! Floor 3, bench-suite. Owns predictions as pictures: theirs as points, ours as a line in its band, each labelled.
//! May touch `plotters`.

use super::bucket::Buckets;
use super::refcount::Refcounts;
use super::{LABEL, Speedups};
use crate::published;
use crate::report::human;
use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, Pos, VPos};

const SIZE: (u32, u32) = (980, 600);
const INK: RGBColor = RGBColor(40, 40, 40);
const GRID: RGBColor = RGBColor(225, 225, 225);
const OURS: RGBColor = RGBColor(200, 30, 45);
const MORE: RGBColor = RGBColor(44, 140, 60);
const THEIRS: RGBColor = RGBColor(20, 90, 200);

type Drawn = Result<(), Box<dyn std::error::Error>>;

fn svg(
    size: (u32, u32),
    paint: impl Fn(&DrawingArea<SVGBackend<'_>, plotters::coord::Shift>) -> Drawn,
) -> String {
    let mut text = String::new();
    {
        let area = SVGBackend::with_string(&mut text, size).into_drawing_area();
        area.fill(&WHITE)
            .map_err(Into::into)
            .and_then(|()| paint(&area))
            .and_then(|()| area.present().map_err(Into::into))
            .expect("drawing into a string cannot fail");
    }
    text
}

type Points = Vec<(f64, f64)>;

/// Points and lines over a logarithmic axis of threads or buckets.
struct Curve {
    title: String,
    x: &'static str,
    y: &'static str,
    /// Values are logarithms to base 10.
    log: bool,
    theirs: (String, Points),
    lines: Vec<(String, RGBColor, Points)>,
    band: (String, Vec<(f64, f64, f64)>),
    /// A line across, with its name.
    mark: Option<(f64, String)>,
}

fn curve(curve: &Curve) -> String {
    svg(SIZE, |area| {
        let all = || {
            let lines = curve.lines.iter().flat_map(|line| line.2.iter().copied());
            let band = curve
                .band
                .1
                .iter()
                .flat_map(|&(x, low, high)| [(x, low), (x, high)]);
            curve.theirs.1.iter().copied().chain(lines).chain(band)
        };
        let ends = |of: fn((f64, f64)) -> f64| {
            let values = || all().map(of).filter(|v| v.is_finite());
            (
                values().fold(f64::INFINITY, f64::min),
                values().fold(f64::NEG_INFINITY, f64::max),
            )
        };
        let (x, y) = (ends(|p| p.0), ends(|p| p.1));
        let room = ((y.1 - y.0) * 0.06).max(0.1);
        let keys: Vec<f64> = curve.lines[0].2.iter().map(|p| p.0).collect();
        let font = FontDesc::new(FontFamily::SansSerif, 18.0, FontStyle::Bold).color(&INK);
        let labels = keys.len();
        let mut chart = ChartBuilder::on(area)
            .caption(&curve.title, font)
            .margin(14)
            .x_label_area_size(48)
            .y_label_area_size(84)
            .build_cartesian_2d(
                (x.0 * 0.9..x.1 * 1.1)
                    .log_scale()
                    .base(2.0)
                    .with_key_points(keys),
                y.0 - room..y.1 + room,
            )?;
        let log = curve.log;
        chart
            .configure_mesh()
            .bold_line_style(GRID)
            .light_line_style(TRANSPARENT)
            .axis_style(INK)
            .x_desc(curve.x)
            .y_desc(curve.y)
            .x_labels(labels.max(2))
            .x_label_formatter(&|x| format!("{x:.0}"))
            .y_label_formatter(&|y| {
                if log {
                    human::count(10f64.powf(*y))
                } else {
                    format!("{y:.0}")
                }
            })
            .label_style(("sans-serif", 13))
            .axis_desc_style(("sans-serif", 15))
            .draw()?;
        if !curve.band.1.is_empty() {
            let above = curve.band.1.iter().map(|p| (p.0, p.2));
            let below = curve.band.1.iter().rev().map(|p| (p.0, p.1));
            chart
                .draw_series([Polygon::new(
                    above.chain(below).collect::<Vec<_>>(),
                    OURS.mix(0.15),
                )])?
                .label(curve.band.0.as_str())
                .legend(|(x, y)| {
                    Rectangle::new([(x, y - 5), (x + 22, y + 5)], OURS.mix(0.15).filled())
                });
        }
        if let Some((at, name)) = &curve.mark {
            let style = INK.mix(0.5);
            chart.draw_series(LineSeries::new(
                [(*at, y.0 - room), (*at, y.1 + room)],
                style,
            ))?;
            let text = ("sans-serif", 13)
                .into_font()
                .color(&INK)
                .pos(Pos::new(HPos::Right, VPos::Bottom));
            chart.draw_series([Text::new(format!("{name} "), (*at, y.0), text)])?;
        }
        for (name, colour, points) in &curve.lines {
            let colour = *colour;
            chart
                .draw_series(LineSeries::new(
                    points.iter().copied(),
                    colour.stroke_width(3),
                ))?
                .label(name.as_str())
                .legend(move |(x, y)| {
                    PathElement::new(vec![(x, y), (x + 22, y)], colour.stroke_width(3))
                });
        }
        chart
            .draw_series(
                curve
                    .theirs
                    .1
                    .iter()
                    .map(|&p| Circle::new(p, 5, THEIRS.filled())),
            )?
            .label(curve.theirs.0.as_str())
            .legend(|(x, y)| Circle::new((x + 11, y), 5, THEIRS.filled()));
        chart
            .configure_series_labels()
            .position(SeriesLabelPosition::UpperLeft)
            .background_style(WHITE.mix(0.85))
            .border_style(GRID)
            .label_font(("sans-serif", 14))
            .draw()?;
        Ok(())
    })
}

fn theirs(id: &str) -> String {
    published::find(id).map_or_else(String::new, published::Set::theirs)
}

/// seed004.
pub(super) fn speedups(found: &Speedups) -> String {
    let mut rows: Vec<_> = found.rows.iter().collect();
    rows.sort_by_key(|row| row.prediction.threads);
    let x = |row: &super::Row| row.prediction.threads as f64;
    let own = found.machine.compares_with.is_some();
    let cores = found.machine.cores();
    let most = rows.last().map_or(0, |row| row.prediction.threads);
    curve(&Curve {
        title: format!("{LABEL}: lazy-mm without its count"),
        x: "threads (-t N)",
        y: "speedup, %",
        log: false,
        theirs: (
            if own {
                theirs("seed004")
            } else {
                format!("{}, another machine", theirs("seed004"))
            },
            rows.iter()
                .filter_map(|row| Some((x(row), row.published_pct?)))
                .collect(),
        ),
        lines: vec![(
            format!("model of {}", found.machine.name),
            OURS,
            rows.iter()
                .map(|row| (x(row), row.prediction.speedup_pct))
                .collect(),
        )],
        band: (
            "95 % band of the model".to_owned(),
            rows.iter()
                .filter_map(|row| row.band_pct.map(|(low, high)| (x(row), low, high)))
                .collect(),
        ),
        mark: (cores > 1 && cores < most).then(|| (cores as f64, format!("{cores} cores"))),
    })
}

/// seed000.
pub(super) fn buckets(found: &Buckets) -> String {
    let points = |of: &dyn Fn(&super::bucket::Row) -> f64| -> Vec<(f64, f64)> {
        found
            .rows
            .iter()
            .map(|row| (row.buckets as f64, of(row).log10()))
            .collect()
    };
    let band = |row: &super::bucket::Row| {
        row.band
            .map(|(low, high)| (row.buckets as f64, low.log10(), high.log10()))
    };
    curve(&Curve {
        title: format!("{LABEL}: futex hash, {} threads", found.threads),
        x: "buckets",
        y: "operations per second and thread",
        log: true,
        theirs: (theirs("seed000"), points(&|row| row.published)),
        lines: vec![
            (
                "model: law min(M / s, N / Z)".to_owned(),
                OURS,
                points(&|row| row.law),
            ),
            (
                "model: network, slower when crowded".to_owned(),
                MORE,
                points(&|row| row.network),
            ),
        ],
        band: (
            "95 % band of the law".to_owned(),
            found.rows.iter().filter_map(band).collect(),
        ),
        mark: Some((found.threads as f64, format!("{} threads", found.threads))),
    })
}

/// seed002 and seed003: a line a row, over a logarithmic axis.
pub(super) fn refcounts(found: &Refcounts) -> String {
    const LEFT: i32 = 470;
    const RIGHT: i32 = 60;
    const HEAD: i32 = 78;
    const STEP: i32 = 30;
    let height = HEAD + STEP * found.rows.len() as i32 + 50;
    let values = || {
        let row = |row: &super::refcount::Row| {
            let (low, high) = row.band.unwrap_or((row.model, row.model));
            [row.published, row.model, low, high]
        };
        found.rows.iter().flat_map(row)
    };
    let least = values().fold(f64::INFINITY, f64::min) * 0.8;
    let most = values().fold(0.0, f64::max) * 1.1;
    let x = |value: f64| {
        let share = (value / least).ln() / (most / least).ln();
        LEFT + (share * f64::from(SIZE.0 as i32 - LEFT - RIGHT)).round() as i32
    };
    let ticks = (0..12).flat_map(|power| [1.0, 2.0, 5.0].map(|m| m * 10f64.powi(power)));
    let ticks: Vec<f64> = ticks.filter(|tick| (least..most).contains(tick)).collect();
    svg((SIZE.0, height as u32), |area| {
        let write = |text: &str, at: (i32, i32), size: i32, bold: bool, side: HPos| {
            let style = if bold {
                FontStyle::Bold
            } else {
                FontStyle::Normal
            };
            let font = FontDesc::new(FontFamily::SansSerif, f64::from(size), style);
            area.draw(&Text::new(
                text.to_owned(),
                at,
                font.color(&INK).pos(Pos::new(side, VPos::Center)),
            ))
        };
        write(
            &format!("{LABEL}: {}, one shared count", found.table),
            (16, 22),
            18,
            true,
            HPos::Left,
        )?;
        area.draw(&Circle::new((24, 52), 5, THEIRS.filled()))?;
        write(&theirs(found.table), (36, 52), 14, false, HPos::Left)?;
        area.draw(&Rectangle::new([(300, 46), (306, 58)], OURS.filled()))?;
        write(
            "model; its band, where s has a range",
            (314, 52),
            14,
            false,
            HPos::Left,
        )?;
        let bottom = height - 44;
        for &tick in &ticks {
            area.draw(&PathElement::new(
                vec![(x(tick), HEAD - 8), (x(tick), bottom)],
                GRID,
            ))?;
            write(
                &human::count(tick),
                (x(tick), bottom + 12),
                12,
                false,
                HPos::Center,
            )?;
        }
        write(
            found.unit,
            ((LEFT + SIZE.0 as i32) / 2, bottom + 30),
            13,
            false,
            HPos::Center,
        )?;
        for (index, row) in found.rows.iter().enumerate() {
            let y = HEAD + 8 + STEP * index as i32;
            write(&row.key, (LEFT - 12, y - 6), 13, true, HPos::Right)?;
            write(
                &format!("from {}", row.basis),
                (LEFT - 12, y + 8),
                11,
                false,
                HPos::Right,
            )?;
            if let Some((low, high)) = row.band {
                area.draw(&Rectangle::new(
                    [(x(low), y - 4), (x(high), y + 4)],
                    OURS.mix(0.2).filled(),
                ))?;
            }
            area.draw(&Rectangle::new(
                [(x(row.model) - 3, y - 7), (x(row.model) + 3, y + 7)],
                OURS.filled(),
            ))?;
            area.draw(&Circle::new((x(row.published), y), 5, THEIRS.filled()))?;
        }
        Ok(())
    })
}

#[cfg(test)]
mod tests {
    use super::super::{bucket, refcount};
    use super::*;

    #[test]
    fn pictures_say_what_they_are() {
        for picture in [
            buckets(&bucket::compare(false, 5, 1)),
            refcounts(&refcount::hash()),
            refcounts(&refcount::schbench()),
        ] {
            assert!(picture.starts_with("<svg") && picture.trim_end().ends_with("</svg>"));
            assert!(picture.contains(LABEL) && picture.contains("theirs, published"));
        }
    }
}
