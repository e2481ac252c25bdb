//! Floor 3, bench-suite. Owns pictures of lines: axes, shaded bands, lines with ribbons and marks, the legend outside on
//! the right in the order in which the lines end, notes below. May draw on the canvas.

use super::canvas::{self, Anchor, Canvas, GRID, INK, PALE, Spot};
use super::scale::{Kind, Scale};
use super::style::{Dash, Mark, Style, is_ours};
use plotters::style::{Color, RGBColor};

const WIDTH: i32 = 980;
const LEFT: i32 = 92;
const LEGEND: i32 = 206;
const RIGHT_AXIS: i32 = 62;
const TOP: i32 = 92;
const LEAST_PLOT: i32 = 400;
const FOOT: i32 = 62;
const NOTE_LINE: i32 = 18;
const LEGEND_LINE: i32 = 19;
const SMALL: i32 = 13;

/// One line.
#[derive(Debug, Clone)]
pub(super) struct Line {
    /// What the legend calls it.
    pub(super) name: String,
    /// Its points, from left to right.
    pub(super) points: Vec<(f64, f64)>,
    /// Where each point may lie, as (x, low, high).
    pub(super) spread: Vec<(f64, f64, f64)>,
    /// Whether the spread is a ribbon along the line, or a stroke at each point.
    pub(super) ribbon: bool,
    /// How it is drawn.
    pub(super) style: Style,
    /// Whether its values are those of the right axis.
    pub(super) right: bool,
    /// Whether the legend names it.
    pub(super) named: bool,
    /// Whether the axes make room for it; else it is cut where they end.
    pub(super) fits: bool,
}

/// A shaded part of the picture.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Band {
    /// From here on the right …
    pub(super) from: f64,
    /// … to here, or to the end.
    pub(super) to: Option<f64>,
    /// What it means.
    pub(super) caption: String,
    /// Its grey, 0 to 255.
    pub(super) grey: u8,
}

/// An axis in words.
#[derive(Debug, Clone)]
pub(super) struct Axis {
    /// What it shows, with its unit and which end is better.
    pub(super) title: String,
    /// How it is divided.
    pub(super) kind: Kind,
    /// How its labels are written.
    pub(super) format: fn(f64) -> String,
}

/// A picture before it is drawn.
#[derive(Debug, Clone)]
pub(super) struct Picture {
    /// Title.
    pub(super) title: String,
    /// A line below it.
    pub(super) subtitle: String,
    /// To the right.
    pub(super) x: Axis,
    /// Labels below, where they are not those of the scale.
    pub(super) x_ticks: Option<Vec<f64>>,
    /// Upwards.
    pub(super) y: Axis,
    /// On the right, from 0.
    pub(super) right: Option<Axis>,
    /// The lines.
    pub(super) lines: Vec<Line>,
    /// The shaded parts.
    pub(super) bands: Vec<Band>,
    /// Sentences below.
    pub(super) notes: Vec<String>,
}

/// Where things are.
struct Frame {
    left: i32,
    right: i32,
    top: i32,
    bottom: i32,
    x: Scale,
    y: Scale,
    second: Option<Scale>,
}

impl Frame {
    fn of(picture: &Picture, height: i32) -> Self {
        let on = |right: bool| {
            let lines = picture.lines.iter();
            lines.filter(move |line| line.right == right && line.fits)
        };
        let xs = picture
            .lines
            .iter()
            .flat_map(|line| line.points.iter().map(|point| point.0));
        let ys = |right, kind| {
            let points = || on(right).flat_map(|line| line.points.iter().map(|point| point.1));
            let (least, most) = reach(kind, points());
            let spread = on(right).flat_map(|line| &line.spread);
            let ends = spread.flat_map(|&(_, low, high)| [low, high]);
            let ends = ends.filter(|end| !end.is_nan());
            points().chain(ends.map(move |end| end.clamp(least, most)))
        };
        let has_right = picture.right.as_ref().map_or(0, |_| RIGHT_AXIS);
        Frame {
            left: LEFT,
            right: WIDTH - LEGEND - has_right - 12,
            top: TOP,
            bottom: TOP + height,
            x: Scale::of(picture.x.kind, xs),
            y: Scale::of(picture.y.kind, ys(false, picture.y.kind)),
            second: picture
                .right
                .as_ref()
                .map(|axis| Scale::of(axis.kind, ys(true, axis.kind))),
        }
    }

    fn x(&self, value: f64) -> i32 {
        let share = self.x.at(value).clamp(0.0, 1.0);
        self.left + (share * f64::from(self.right - self.left)).round() as i32
    }

    fn scale(&self, right: bool) -> &Scale {
        match (&self.second, right) {
            (Some(scale), true) => scale,
            _ => &self.y,
        }
    }

    fn y(&self, right: bool, value: f64) -> i32 {
        let share = self.scale(right).at(value).clamp(0.0, 1.0);
        self.bottom - (share * f64::from(self.bottom - self.top)).round() as i32
    }

    /// The pieces of a line that are in the frame.
    fn cut(&self, line: &Line) -> Vec<Vec<Spot>> {
        let scale = self.scale(line.right);
        let mut pieces: Vec<Vec<Spot>> = vec![Vec::new()];
        let mut before: Option<(f64, f64)> = None;
        let put = |pieces: &mut Vec<Vec<Spot>>, spot| pieces.last_mut().map(|p| p.push(spot));
        for &(x, y) in &line.points {
            let share = scale.at(y);
            let pixel = self.x(x);
            let inside = share <= 1.0;
            if let Some((last_pixel, last)) = before
                && (last <= 1.0) != inside
            {
                // Where it crosses the top.
                let part = (1.0 - last) / (share - last);
                let at = last_pixel + part * (f64::from(pixel) - last_pixel);
                put(&mut pieces, (at.round() as i32, self.top));
                if !inside {
                    pieces.push(Vec::new());
                }
            }
            if inside {
                put(&mut pieces, (pixel, self.y(line.right, y)));
            }
            before = Some((f64::from(pixel), share));
        }
        pieces
    }
}

/// How far the axis makes room for what surrounds lines: half as much again as they need themselves, on either side. One
/// interval far wider than that would press all lines into one.
fn reach(kind: Kind, points: impl Iterator<Item = f64>) -> (f64, f64) {
    let log = kind == Kind::Log;
    let turn = |value: f64| if log { value.ln() } else { value };
    let back = |value: f64| if log { value.exp() } else { value };
    let turned = points.map(turn).filter(|value| value.is_finite());
    let base = if log { None } else { Some(0.0) };
    let all: Vec<f64> = turned.chain(base).collect();
    let least = all.iter().copied().fold(f64::INFINITY, f64::min);
    let most = all.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    if least > most {
        return (f64::NEG_INFINITY, f64::INFINITY);
    }
    let room = ((most - least) / 2.0).max(if log { 0.5 } else { 0.0 });
    (back(least - room), back(most + room))
}

/// What of a polygon is on one side of a level: `keep` is 1 for what is below it, -1 for what is above.
fn clip(corners: &[(f64, f64)], level: f64, keep: f64) -> Vec<(f64, f64)> {
    let inside = |y: f64| (level - y) * keep >= 0.0;
    let mut kept = Vec::new();
    for (index, &(x, y)) in corners.iter().enumerate() {
        let (last_x, last_y) = corners[(index + corners.len() - 1) % corners.len()];
        if inside(last_y) != inside(y) {
            let part = (level - last_y) / (y - last_y);
            kept.push((last_x + part * (x - last_x), level));
        }
        if inside(y) {
            kept.push((x, y));
        }
    }
    kept
}

/// Draws it.
pub(super) fn draw(picture: &Picture) -> String {
    let legend = legend(picture);
    let rows: i32 = legend.iter().map(|entry| entry.1.len() as i32).sum();
    let height = LEAST_PLOT.max(rows * LEGEND_LINE + 10);
    let notes: Vec<String> = picture
        .notes
        .iter()
        .flat_map(|note| canvas::wrap(note, SMALL, WIDTH - LEFT - 30))
        .collect();
    let frame = Frame::of(picture, height);
    let foot = FOOT + NOTE_LINE * notes.len() as i32;
    canvas::svg((WIDTH, TOP + height + foot), |canvas| {
        heading(canvas, picture);
        bands(canvas, picture, &frame);
        axes(canvas, picture, &frame);
        for line in picture.lines.iter().filter(|line| line.ribbon) {
            ribbon(canvas, &frame, line);
        }
        // What the repository is about last, on top of the others.
        let (ours, others): (Vec<_>, Vec<_>) =
            picture.lines.iter().partition(|line| is_ours(&line.name));
        for line in others.into_iter().chain(ours) {
            curve(canvas, &frame, line);
        }
        let mut y = frame.top + 8;
        for (line, names) in &legend {
            entry(canvas, line, names, y);
            y += LEGEND_LINE * names.len() as i32;
        }
        for (index, note) in notes.iter().enumerate() {
            let y = frame.bottom + FOOT + NOTE_LINE * index as i32 - 4;
            canvas.text(note, (LEFT, y), SMALL, PALE, Anchor::Left);
        }
    })
}

fn heading(canvas: &Canvas<'_>, picture: &Picture) {
    canvas.bold(&picture.title, (20, 24), 19, INK, Anchor::Left);
    canvas.text(&picture.subtitle, (20, 49), 14, PALE, Anchor::Left);
}

fn bands(canvas: &Canvas<'_>, picture: &Picture, frame: &Frame) {
    for band in &picture.bands {
        let from = frame.x(band.from);
        let to = band.to.map_or(frame.right, |to| frame.x(to));
        if to - from < 2 {
            continue;
        }
        let grey = RGBColor(band.grey, band.grey, band.grey);
        canvas.rectangle((from, frame.top), (to, frame.bottom), grey);
        // Above the band, in one line or two if it fits; the note below says it in any case.
        let middle = (from + to) / 2;
        let lines = canvas::wrap(&band.caption, 12, to - from - 4);
        let fits = |line: &String| canvas::width(line, 12) <= to - from;
        if lines.len() <= 2 && lines.iter().all(fits) {
            for (index, line) in lines.iter().rev().enumerate() {
                let at = (middle, frame.top - 9 - 14 * index as i32);
                canvas.text(line, at, 12, PALE, Anchor::Middle);
            }
        }
    }
}

fn axes(canvas: &Canvas<'_>, picture: &Picture, frame: &Frame) {
    for tick in frame.y.ticks() {
        let y = frame.y(false, tick);
        canvas.line((frame.left, y), (frame.right, y), GRID);
        let label = (picture.y.format)(tick);
        canvas.text(&label, (frame.left - 7, y), SMALL, INK, Anchor::Right);
    }
    let ticks = picture.x_ticks.clone().unwrap_or_else(|| frame.x.ticks());
    let mut end = i32::MIN;
    for tick in ticks {
        let x = frame.x(tick);
        canvas.line((x, frame.top), (x, frame.bottom), GRID);
        canvas.line((x, frame.bottom), (x, frame.bottom + 4), INK);
        let label = (picture.x.format)(tick);
        let half = canvas::width(&label, SMALL) / 2 + 4;
        if x - half > end {
            let at = (x, frame.bottom + 16);
            canvas.text(&label, at, SMALL, INK, Anchor::Middle);
            end = x + half;
        }
    }
    canvas.line((frame.left, frame.top), (frame.left, frame.bottom), INK);
    canvas.line((frame.left, frame.bottom), (frame.right, frame.bottom), INK);
    let middle = ((frame.left + frame.right) / 2, frame.bottom + 38);
    canvas.text(&picture.x.title, middle, 14, INK, Anchor::Middle);
    let height = (frame.top + frame.bottom) / 2;
    canvas.upwards(&picture.y.title, (16, height), 14, INK);
    if let (Some(axis), Some(scale)) = (&picture.right, &frame.second) {
        let edge = frame.right;
        canvas.line((edge, frame.top), (edge, frame.bottom), INK);
        for tick in scale.ticks() {
            let at = (edge + 7, frame.y(true, tick));
            canvas.text(&(axis.format)(tick), at, SMALL, PALE, Anchor::Left);
        }
        canvas.upwards(&axis.title, (edge + RIGHT_AXIS - 10, height), 14, PALE);
    }
}

fn ribbon(canvas: &Canvas<'_>, frame: &Frame, line: &Line) {
    let at = |x, y| (f64::from(frame.x(x)), frame.scale(line.right).at(y));
    let mut corners: Vec<(f64, f64)> = line.spread.iter().map(|&(x, _, y)| at(x, y)).collect();
    corners.extend(line.spread.iter().rev().map(|&(x, y, _)| at(x, y)));
    // Where it is off the axis it is cut.
    let corners = clip(&clip(&corners, 1.0, 1.0), 0.0, -1.0);
    let height = f64::from(frame.bottom - frame.top);
    let spot = |(x, share): (f64, f64)| {
        let up = (share * height).round() as i32;
        (x.round() as i32, frame.bottom - up)
    };
    if line.spread.len() > 1 && corners.len() > 2 {
        let corners = corners.into_iter().map(spot).collect();
        canvas.outline(corners, line.style.colour.mix(0.16));
    }
}

fn curve(canvas: &Canvas<'_>, frame: &Frame, line: &Line) {
    for piece in frame.cut(line) {
        if piece.len() > 1 {
            canvas.path(piece, line.style);
        }
    }
    if !line.ribbon || line.spread.len() == 1 {
        let stroke = Style {
            dash: Dash::Solid,
            width: 1,
            ..line.style
        };
        for &(x, low, high) in &line.spread {
            let x = frame.x(x);
            let (low, high) = (frame.y(line.right, low), frame.y(line.right, high));
            // What the mark hides needs no stroke.
            if low - high > 10 {
                canvas.path(vec![(x, low), (x, high)], stroke);
                canvas.path(vec![(x - 4, low), (x + 4, low)], stroke);
                canvas.path(vec![(x - 4, high), (x + 4, high)], stroke);
            }
        }
    }
    for &(x, y) in &line.points {
        if frame.scale(line.right).at(y) <= 1.0 {
            canvas.mark((frame.x(x), frame.y(line.right, y)), line.style);
        }
    }
}

/// The lines with a name, in the order in which they end, each name in as many lines as it takes.
fn legend(picture: &Picture) -> Vec<(&Line, Vec<String>)> {
    let mut lines: Vec<&Line> = picture.lines.iter().filter(|line| line.named).collect();
    let last = |line: &Line| {
        line.points
            .last()
            .map_or(f64::NEG_INFINITY, |point| point.1)
    };
    let aid = |line: &Line| line.right || line.style.mark == Mark::None && !line.fits;
    lines.sort_by(|a, b| aid(a).cmp(&aid(b)).then(last(b).total_cmp(&last(a))));
    let names = |line: &Line| canvas::wrap(&line.name, SMALL, LEGEND - 52);
    lines.into_iter().map(|line| (line, names(line))).collect()
}

fn entry(canvas: &Canvas<'_>, line: &Line, names: &[String], y: i32) {
    let left = WIDTH - LEGEND;
    canvas.path(vec![(left, y), (left + 34, y)], line.style);
    canvas.mark((left + 17, y), line.style);
    for (index, name) in names.iter().enumerate() {
        let at = (left + 42, y + LEGEND_LINE * index as i32);
        if is_ours(&line.name) {
            canvas.bold(name, at, SMALL, INK, Anchor::Left);
        } else {
            canvas.text(name, at, SMALL, INK, Anchor::Left);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// One wide interval leaves the lines room.
    #[test]
    fn axes_are_those_of_the_lines() {
        let points = || [0.0, 4.0, -2.0].into_iter();
        assert_eq!(reach(Kind::Linear, points()), (-5.0, 7.0));
        let (least, most) = reach(Kind::Log, [1.0, 100.0].into_iter());
        assert!((least - 0.1).abs() < 1e-9 && (most - 1000.0).abs() < 1e-6);
        assert_eq!(reach(Kind::Log, std::iter::empty()).1, f64::INFINITY);
    }

    #[test]
    fn ribbons_are_cut_where_the_axis_ends() {
        let wedge = [(0.0, 0.5), (10.0, 1.5), (10.0, 0.5)];
        let cut = clip(&wedge, 1.0, 1.0);
        assert_eq!(cut, [(0.0, 0.5), (5.0, 1.0), (10.0, 1.0), (10.0, 0.5)]);
        assert!(clip(&wedge, 0.0, 1.0).is_empty());
        assert_eq!(clip(&wedge, 0.0, -1.0), wedge);
    }
}
