//! Floor 3, bench-suite. Owns lines over thread counts, the legend outside on the right, ordered as the lines end.
//! May touch `plotters`.

use super::{Chart, GRID, INK, colour, is_ours};
use plotters::coord::ranged1d::Ranged;
use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, Pos, VPos};

const SIZE: (u32, u32) = (980, 620);
const LEGEND: u32 = 190;

/// A variant and its figure at each thread count that it has.
type Series = (String, Vec<(f64, f64)>);

/// The whole plot.
pub(super) fn draw(chart: &Chart) -> String {
    let mut text = String::new();
    paint(&mut text, chart).expect("drawing into a string cannot fail");
    text
}

fn collect(chart: &Chart, floor: f64) -> Vec<Series> {
    let mut all: Vec<Series> = Vec::new();
    for panel in &chart.panels {
        for bar in &panel.bars {
            let point = (panel.threads as f64, bar.value.max(floor));
            match all.iter_mut().find(|(name, _)| *name == bar.variant) {
                Some((_, points)) => points.push(point),
                None => all.push((bar.variant.clone(), vec![point])),
            }
        }
    }
    let last = |series: &Series| series.1.last().map_or(0.0, |point| point.1);
    all.sort_by(|a, b| last(b).total_cmp(&last(a)));
    all
}

fn paint(text: &mut String, chart: &Chart) -> Result<(), Box<dyn std::error::Error>> {
    let area = SVGBackend::with_string(text, SIZE).into_drawing_area();
    area.fill(&WHITE)?;
    let (plot, legend) = area.split_horizontally(SIZE.0 - LEGEND);
    let values = || {
        chart
            .panels
            .iter()
            .flat_map(|panel| panel.bars.iter().map(|bar| bar.value))
    };
    let max = values().fold(f64::MIN_POSITIVE, f64::max);
    let least = values().filter(|&v| v > 0.0).fold(max, f64::min);
    let floor = if chart.plot.log { least * 0.8 } else { 0.0 };
    let threads: Vec<f64> = chart
        .panels
        .iter()
        .map(|panel| panel.threads as f64)
        .collect();
    let ends = (
        threads.iter().copied().fold(f64::MAX, f64::min),
        threads.iter().copied().fold(1.0, f64::max),
    );
    let x = ((ends.0 * 0.95)..(ends.1 * 1.05))
        .log_scale()
        .base(2.0)
        .with_key_points(threads.clone());
    let series = collect(chart, floor.max(f64::MIN_POSITIVE));
    let mut builder = ChartBuilder::on(&plot);
    let font = FontDesc::new(FontFamily::SansSerif, 20.0, FontStyle::Bold).color(&INK);
    builder
        .caption(chart.plot.title, font)
        .margin(14)
        .x_label_area_size(48)
        .y_label_area_size(92);
    if chart.plot.log {
        paint_lines(
            builder.build_cartesian_2d(x, (floor..max * 1.15).log_scale())?,
            chart,
            &series,
            threads.len(),
        )?;
    } else {
        paint_lines(
            builder.build_cartesian_2d(x, 0.0..max * 1.05)?,
            chart,
            &series,
            threads.len(),
        )?;
    }
    for (index, (name, _)) in series.iter().enumerate() {
        let y = 60 + 22 * index as i32;
        let style = if is_ours(name) {
            FontStyle::Bold
        } else {
            FontStyle::Normal
        };
        let font = FontDesc::new(FontFamily::SansSerif, 13.0, style)
            .color(&INK)
            .pos(Pos::new(HPos::Left, VPos::Center));
        legend.draw(&PathElement::new(
            vec![(6, y), (32, y)],
            colour(name).stroke_width(stroke(name)),
        ))?;
        legend.draw(&Circle::new((19, y), 3, colour(name).filled()))?;
        legend.draw(&Text::new(name.clone(), (40, y), font))?;
    }
    area.present()?;
    Ok(())
}

fn stroke(name: &str) -> u32 {
    if is_ours(name) { 4 } else { 2 }
}

fn paint_lines<X, Y>(
    mut context: ChartContext<'_, SVGBackend<'_>, Cartesian2d<X, Y>>,
    chart: &Chart,
    series: &[Series],
    x_labels: usize,
) -> Result<(), Box<dyn std::error::Error>>
where
    X: Ranged<ValueType = f64> + plotters::coord::ranged1d::ValueFormatter<f64>,
    Y: Ranged<ValueType = f64> + plotters::coord::ranged1d::ValueFormatter<f64>,
{
    context
        .configure_mesh()
        .bold_line_style(GRID)
        .light_line_style(TRANSPARENT)
        .axis_style(INK)
        .x_desc(chart.plot.threads_axis)
        .y_desc(chart.plot.axis)
        .x_labels(x_labels.max(2))
        .x_label_formatter(&|x| format!("{x:.0}"))
        .y_label_formatter(&|y| (chart.plot.format)(*y))
        .label_style(("sans-serif", 13))
        .axis_desc_style(("sans-serif", 15))
        .draw()?;
    // The reference last, on top of the others.
    let (reference, others): (Vec<_>, Vec<_>) = series.iter().partition(|(name, _)| is_ours(name));
    for (name, points) in others.into_iter().chain(reference) {
        let style = colour(name).stroke_width(stroke(name));
        context.draw_series(LineSeries::new(points.iter().copied(), style))?;
        context.draw_series(
            points
                .iter()
                .map(|&point| Circle::new(point, stroke(name) + 1, colour(name).filled())),
        )?;
    }
    Ok(())
}
