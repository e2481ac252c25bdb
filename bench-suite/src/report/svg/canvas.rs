//! Floor 3, bench-suite. Owns what is drawn in pixels: text, lines, marks. May touch `plotters` and its SVG output.
//!
//! The numbers of an SVG's text and lines are pixels from the left and from the top. Drawing goes into a string and
//! cannot fail.

use super::style::{Dash, Mark, Style};
use plotters::coord::Shift;
use plotters::element::{Circle, DashedPathElement, PathElement, Polygon, Rectangle, Text};
use plotters::prelude::{DrawingArea, IntoDrawingArea, IntoFont, SVGBackend, WHITE};
use plotters::style::text_anchor::{HPos, Pos, VPos};
use plotters::style::{
    Color, FontDesc, FontFamily, FontStyle, FontTransform, RGBAColor, RGBColor, TextStyle,
};

/// Grey of grids.
pub(super) const GRID: RGBColor = RGBColor(228, 228, 228);
/// Text and axes.
pub(super) const INK: RGBColor = RGBColor(40, 40, 40);
/// Text that stands back.
pub(super) const PALE: RGBColor = RGBColor(95, 95, 95);

/// A place.
pub(super) type Spot = (i32, i32);

/// Where a text's place is, seen from it.
#[derive(Debug, Clone, Copy)]
pub(super) enum Anchor {
    /// Its left end.
    Left,
    /// Its middle.
    Middle,
    /// Its right end.
    Right,
}

/// A picture in the making.
pub(super) struct Canvas<'a> {
    area: DrawingArea<SVGBackend<'a>, Shift>,
}

/// How wide a text is drawn, about: no font is asked.
pub(super) fn width(text: &str, size: i32) -> i32 {
    (text.chars().count() as f64 * f64::from(size) * 0.56).ceil() as i32
}

/// Text that an SVG has a place for: not control characters.
pub(super) fn printable(text: &str) -> String {
    let show = |c: char| if c.is_control() { '\u{fffd}' } else { c };
    text.chars().map(show).collect()
}

/// `text` in lines no wider than `most`, broken between words.
pub(super) fn wrap(text: &str, size: i32, most: i32) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for word in text.split_whitespace() {
        match lines.last_mut() {
            Some(line) if width(line, size) + width(word, size) + size / 2 <= most => {
                line.push(' ');
                line.push_str(word);
            }
            _ => lines.push(word.to_owned()),
        }
    }
    lines
}

/// Draws a picture of this size.
pub(super) fn svg(size: Spot, paint: impl FnOnce(&Canvas<'_>)) -> String {
    let mut text = String::new();
    {
        let size = (size.0.unsigned_abs(), size.1.unsigned_abs());
        let area = SVGBackend::with_string(&mut text, size).into_drawing_area();
        area.fill(&WHITE).expect(CANNOT);
        let canvas = Canvas { area };
        paint(&canvas);
        canvas.area.present().expect(CANNOT);
    }
    text
}

const CANNOT: &str = "drawing into a string cannot fail";

impl Canvas<'_> {
    /// Text with its middle at the height of `at`.
    pub(super) fn text(&self, text: &str, at: Spot, size: i32, colour: RGBColor, anchor: Anchor) {
        self.write(text, at, (size, FontStyle::Normal), colour, anchor, false);
    }

    /// The same in bold.
    pub(super) fn bold(&self, text: &str, at: Spot, size: i32, colour: RGBColor, anchor: Anchor) {
        self.write(text, at, (size, FontStyle::Bold), colour, anchor, false);
    }

    /// Text that runs upwards, centred.
    pub(super) fn upwards(&self, text: &str, at: Spot, size: i32, colour: RGBColor) {
        let font = (size, FontStyle::Normal);
        self.write(text, at, font, colour, Anchor::Middle, true);
    }

    fn write(
        &self,
        text: &str,
        at: Spot,
        (size, style): (i32, FontStyle),
        colour: RGBColor,
        anchor: Anchor,
        upwards: bool,
    ) {
        let mut font: FontDesc<'_> =
            FontDesc::new(FontFamily::SansSerif, f64::from(size), style).into_font();
        if upwards {
            font = font.transform(FontTransform::Rotate270);
        }
        let place = match anchor {
            Anchor::Left => HPos::Left,
            Anchor::Middle => HPos::Center,
            Anchor::Right => HPos::Right,
        };
        let style = TextStyle::from(font)
            .color(&colour)
            .pos(Pos::new(place, VPos::Center));
        self.area
            .draw(&Text::new(printable(text), at, style))
            .expect(CANNOT);
    }

    /// A plain line.
    pub(super) fn line(&self, from: Spot, to: Spot, colour: RGBColor) {
        self.area
            .draw(&PathElement::new(vec![from, to], colour))
            .expect(CANNOT);
    }

    /// A line through `points`, as `style` says, without marks.
    pub(super) fn path(&self, points: Vec<Spot>, style: Style) {
        let stroke = style.colour.stroke_width(style.width);
        let (piece, gap) = match style.dash {
            Dash::Solid => {
                self.area
                    .draw(&PathElement::new(points, stroke))
                    .expect(CANNOT);
                return;
            }
            Dash::Dashed => (9, 5),
            Dash::Dotted => (3, 4),
        };
        self.area
            .draw(&DashedPathElement::new(points, piece, gap, stroke))
            .expect(CANNOT);
    }

    /// A mark.
    pub(super) fn mark(&self, at: Spot, style: Style) {
        let r = style.width as i32 + 2;
        let full = style.colour.filled();
        let (x, y) = at;
        let corners = match style.mark {
            Mark::None => return,
            Mark::Disc => return self.area.draw(&Circle::new(at, r, full)).expect(CANNOT),
            Mark::Ring => {
                self.area
                    .draw(&Circle::new(at, r, WHITE.filled()))
                    .expect(CANNOT);
                let ring = style.colour.stroke_width(2);
                return self.area.draw(&Circle::new(at, r, ring)).expect(CANNOT);
            }
            Mark::Square => vec![
                (x - r, y - r),
                (x + r, y - r),
                (x + r, y + r),
                (x - r, y + r),
            ],
            Mark::Triangle => vec![(x, y - r - 1), (x + r + 1, y + r), (x - r - 1, y + r)],
            Mark::Diamond => {
                let r = r + 1;
                vec![(x, y - r), (x + r, y), (x, y + r), (x - r, y)]
            }
        };
        self.area.draw(&Polygon::new(corners, full)).expect(CANNOT);
    }

    /// A filled outline.
    pub(super) fn outline(&self, corners: Vec<Spot>, colour: RGBAColor) {
        self.area
            .draw(&Polygon::new(corners, colour.filled()))
            .expect(CANNOT);
    }

    /// A filled rectangle.
    pub(super) fn rectangle(&self, from: Spot, to: Spot, colour: RGBColor) {
        self.area
            .draw(&Rectangle::new([from, to], colour.filled()))
            .expect(CANNOT);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_break_between_words() {
        let lines = wrap("theirs: 2x EPYC 9654, 384 CPUs", 13, 150);
        assert!(lines.len() > 1 && lines.concat().len() > 20, "{lines:?}");
        assert!(lines.iter().all(|line| width(line, 13) <= 150));
        assert_eq!(wrap("one-very-long-word", 13, 10).len(), 1);
    }

    #[test]
    fn text_is_escaped() {
        let svg = svg((100, 50), |canvas| {
            canvas.text("<a & b>", (5, 20), 12, INK, Anchor::Left);
        });
        assert!(svg.contains("&lt;a &amp; b&gt;"), "{svg}");
    }
}
