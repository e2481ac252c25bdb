//! Floor 3, bench-suite. Owns horizontal bars: one panel per group, the variant's name left, the value at the end.
//! May touch `plotters`, only to draw in pixels.

use super::canvas::{GRID, INK, printable};
use super::style::{self, is_ours};
use super::{Chart, Panel};
use plotters::coord::Shift;
use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, Pos, VPos};

const WIDTH: i32 = 900;
const LEFT: i32 = 160;
const RIGHT: i32 = 110;
const HEAD: i32 = 56;
const FOOT: i32 = 46;
const PANEL_HEAD: i32 = 34;
const BAR: i32 = 17;
const STEP: i32 = 23;
const PANEL_FOOT: i32 = 30;

type Area<'a> = DrawingArea<SVGBackend<'a>, Shift>;

fn height(panel: &Panel) -> i32 {
    PANEL_HEAD + STEP * panel.bars.len() as i32 + PANEL_FOOT
}

/// The whole plot.
pub(super) fn draw(chart: &Chart) -> String {
    let total = HEAD + chart.panels.iter().map(height).sum::<i32>() + FOOT;
    let mut text = String::new();
    {
        let area =
            SVGBackend::with_string(&mut text, (WIDTH as u32, total as u32)).into_drawing_area();
        let done = area.fill(&WHITE).is_ok()
            && paint(&area, chart, total).is_some()
            && area.present().is_ok();
        assert!(done, "drawing into a string cannot fail");
    }
    text
}

fn label(
    area: &Area<'_>,
    text: &str,
    at: (i32, i32),
    size: u32,
    bold: bool,
    anchor: (HPos, VPos),
) -> Option<()> {
    let style = if bold {
        FontStyle::Bold
    } else {
        FontStyle::Normal
    };
    let font = FontDesc::new(FontFamily::SansSerif, f64::from(size), style);
    let style = font.color(&INK).pos(Pos::new(anchor.0, anchor.1));
    area.draw(&Text::new(printable(text), at, style)).ok()
}

fn paint(area: &Area<'_>, chart: &Chart, total: i32) -> Option<()> {
    label(
        area,
        chart.plot.title,
        (20, 16),
        20,
        true,
        (HPos::Left, VPos::Top),
    )?;
    let mut top = HEAD;
    for panel in &chart.panels {
        paint_panel(area, chart, panel, top)?;
        top += height(panel);
    }
    label(
        area,
        chart.plot.axis,
        (LEFT + (WIDTH - LEFT - RIGHT) / 2, total - 20),
        14,
        false,
        (HPos::Center, VPos::Center),
    )
}

/// From values to pixels. A logarithmic axis starts at a power of ten; what lies below is drawn at its start.
struct Scale {
    log: bool,
    low: f64,
    high: f64,
}

impl Scale {
    fn of(chart: &Chart, panel: &Panel) -> Self {
        let panels = if chart.plot.shared {
            chart.panels.as_slice()
        } else {
            std::slice::from_ref(panel)
        };
        let values = || {
            panels
                .iter()
                .flat_map(|panel| &panel.bars)
                .map(|bar| bar.value)
        };
        let max = values().fold(f64::MIN_POSITIVE, f64::max);
        if !chart.plot.log {
            return Scale {
                log: false,
                low: 0.0,
                high: max * 1.02,
            };
        }
        let least = values().filter(|&v| v > 0.0).fold(max, f64::min);
        let low = 10f64.powf((least * 0.7).max(f64::MIN_POSITIVE).log10().floor());
        Scale {
            log: true,
            low,
            high: (max * 1.1).max(low * 10.0),
        }
    }

    fn x(&self, value: f64) -> i32 {
        let share = if self.log {
            (value.max(self.low) / self.low).ln() / (self.high / self.low).ln()
        } else {
            value / self.high
        };
        LEFT + (share.clamp(0.0, 1.0) * f64::from(WIDTH - LEFT - RIGHT)).round() as i32
    }

    /// Round values along the axis.
    fn ticks(&self) -> Vec<f64> {
        if self.log {
            let first = self.low.log10().round() as i32;
            return (first..)
                .map(|e| 10f64.powi(e))
                .take_while(|&v| v <= self.high)
                .collect();
        }
        let raw = self.high / 5.0;
        let power = 10f64.powf(raw.log10().floor());
        let step = [1.0, 2.0, 5.0, 10.0]
            .into_iter()
            .map(|m| m * power)
            .find(|&s| s >= raw)
            .unwrap_or(raw);
        (0..)
            .map(|i| f64::from(i) * step)
            .take_while(|&v| v <= self.high)
            .collect()
    }
}

fn paint_panel(area: &Area<'_>, chart: &Chart, panel: &Panel, top: i32) -> Option<()> {
    let scale = Scale::of(chart, panel);
    let bottom = top + PANEL_HEAD + STEP * panel.bars.len() as i32;
    label(
        area,
        &panel.title,
        (LEFT, top + 12),
        15,
        true,
        (HPos::Left, VPos::Center),
    )?;
    for tick in scale.ticks() {
        let x = scale.x(tick);
        area.draw(&PathElement::new(
            vec![(x, top + PANEL_HEAD - 6), (x, bottom)],
            GRID,
        ))
        .ok()?;
        label(
            area,
            &(chart.plot.format)(tick),
            (x, bottom + 11),
            12,
            false,
            (HPos::Center, VPos::Center),
        )?;
    }
    for (index, bar) in panel.bars.iter().enumerate() {
        let y = top + PANEL_HEAD + STEP * index as i32;
        let bold = is_ours(&bar.variant);
        let end = scale.x(bar.value).max(LEFT + 1);
        let reach = bar
            .interval
            .map_or(end, |interval| scale.x(interval.high).max(end));
        area.draw(&Rectangle::new(
            [(LEFT, y), (end, y + BAR)],
            style::of(&bar.variant).colour.filled(),
        ))
        .ok()?;
        if let Some(interval) = bar.interval {
            let (low, high) = (scale.x(interval.low), scale.x(interval.high));
            // What is as thin as the stroke says nothing.
            if high - low > 3 {
                let middle = y + BAR / 2;
                let strokes = [
                    vec![(low, middle), (high, middle)],
                    vec![(low, middle - 4), (low, middle + 4)],
                    vec![(high, middle - 4), (high, middle + 4)],
                ];
                // White around it, so that it is seen on a dark bar, too.
                for style in [WHITE.stroke_width(3), INK.stroke_width(1)] {
                    for stroke in &strokes {
                        area.draw(&PathElement::new(stroke.clone(), style)).ok()?;
                    }
                }
            }
        }
        label(
            area,
            &bar.variant,
            (LEFT - 8, y + BAR / 2),
            13,
            bold,
            (HPos::Right, VPos::Center),
        )?;
        label(
            area,
            &(chart.plot.format)(bar.value),
            (reach + 6, y + BAR / 2),
            13,
            bold,
            (HPos::Left, VPos::Center),
        )?;
    }
    area.draw(&PathElement::new(
        vec![(LEFT, top + PANEL_HEAD - 6), (LEFT, bottom)],
        INK,
    ))
    .ok()
}
