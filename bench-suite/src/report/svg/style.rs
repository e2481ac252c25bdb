//! Floor 3, bench-suite. Owns how a variant is drawn, the same in every picture: colour, dash and mark. Touches nothing
//! else.
//!
//! A colour is a family of variants, from palettes that people with colour-blind eyes can tell apart (Okabe and Ito's,
//! filled up from Tol's muted one); within a family the mark and the dash differ, so that no two lines are told apart
//! by colour alone.

use plotters::style::RGBColor;

/// How a line is broken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Dash {
    /// Not at all.
    Solid,
    /// Long pieces.
    Dashed,
    /// Short ones.
    Dotted,
}

/// What stands on its points.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Mark {
    /// Nothing.
    None,
    /// A disc.
    Disc,
    /// A square.
    Square,
    /// A triangle.
    Triangle,
    /// A diamond.
    Diamond,
    /// A ring.
    Ring,
}

/// How a line is drawn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Style {
    /// Its colour.
    pub(crate) colour: RGBColor,
    /// Its dash.
    pub(crate) dash: Dash,
    /// Its mark.
    pub(crate) mark: Mark,
    /// Its width.
    pub(crate) width: u32,
}

const VERMILLION: RGBColor = RGBColor(213, 94, 0);
const BLUE: RGBColor = RGBColor(0, 114, 178);
const GREEN: RGBColor = RGBColor(0, 158, 115);
const PINK: RGBColor = RGBColor(204, 121, 167);
const SKY: RGBColor = RGBColor(70, 165, 220);
const ORANGE: RGBColor = RGBColor(214, 148, 0);
const OLIVE: RGBColor = RGBColor(140, 140, 45);
const WINE: RGBColor = RGBColor(136, 34, 85);
const INDIGO: RGBColor = RGBColor(51, 34, 136);
const TEAL: RGBColor = RGBColor(68, 170, 153);
const BLACK: RGBColor = RGBColor(35, 35, 35);
const SLATE: RGBColor = RGBColor(95, 105, 120);
const GREY: RGBColor = RGBColor(150, 150, 150);

/// What the names of others' figures begin with.
pub(crate) const THEIRS: &str = "theirs: ";

/// What is not in the table gets these in turn.
const SPARE: [RGBColor; 6] = [INDIGO, TEAL, WINE, OLIVE, ORANGE, SKY];
const MARKS: [Mark; 5] = [
    Mark::Disc,
    Mark::Square,
    Mark::Triangle,
    Mark::Diamond,
    Mark::Ring,
];

/// How the variant `name` is drawn.
pub(crate) fn of(name: &str) -> Style {
    use Dash::{Dashed, Dotted, Solid};
    use Mark::{Diamond, Disc, Ring, Square, Triangle};
    let (colour, dash, mark) = match name {
        "hp" | "hp-asym" => (VERMILLION, Solid, Disc),
        "hp-held" => (VERMILLION, Dashed, Square),
        "hp-membarrier" => (VERMILLION, Dotted, Triangle),
        "hp-fence" => (VERMILLION, Dotted, Ring),
        "hp-mb" => (VERMILLION, Dashed, Diamond),
        "rcu" => (BLUE, Solid, Disc),
        "rcu-thread" => (BLUE, Dashed, Square),
        "rcu-qsbr" => (BLUE, Dotted, Triangle),
        "none" | "heavy-barrier" => (GREY, Solid, Diamond),
        "haphazard" => (SKY, Solid, Disc),
        "haphazard-per-op" => (SKY, Dashed, Square),
        "crossbeam-epoch" => (GREEN, Solid, Disc),
        "seize" => (PINK, Solid, Square),
        "arc-swap" => (ORANGE, Solid, Triangle),
        "sdd" => (WINE, Solid, Diamond),
        "kovan" => (OLIVE, Solid, Disc),
        "hazarc" => (INDIGO, Solid, Triangle),
        "liburcu-memb" => (TEAL, Solid, Disc),
        "liburcu-qsbr" => (TEAL, Dashed, Square),
        "liburcu-bp" => (TEAL, Dotted, Triangle),
        "refcount" => (BLACK, Solid, Disc),
        "rcuref" => (BLACK, Dashed, Square),
        "split-count" => (BLACK, Dotted, Triangle),
        "percpu-ref" => (INDIGO, Dashed, Diamond),
        "shootdown" => (WINE, Dashed, Ring),
        "mutex" => (SLATE, Dashed, Square),
        "rwlock" => (SLATE, Dotted, Diamond),
        "vanilla" => (BLACK, Solid, Disc),
        "pi-single" => (SLATE, Dashed, Square),
        "pi-multi" => (INDIGO, Solid, Triangle),
        "rwbase" => (GREEN, Dashed, Diamond),
        "std" => (ORANGE, Dotted, Square),
        "parking-lot" => (OLIVE, Dashed, Disc),
        "percpu" => (TEAL, Solid, Ring),
        "vma-refcount" => (WINE, Dashed, Triangle),
        "vma-hp" => (VERMILLION, Solid, Square),
        "vma-rcu" => (BLUE, Solid, Square),
        "refcnt" => (BLACK, Solid, Square),
        "futex-ref" => (INDIGO, Dotted, Square),
        "typesafe_ref" => (OLIVE, Dashed, Square),
        "typesafe_lock" => (OLIVE, Dotted, Triangle),
        "typesafe_seqlock" => (OLIVE, Dotted, Diamond),
        "acqrel" => (GREY, Dashed, Disc),
        "clock" => (GREY, Dotted, Triangle),
        "lock" => (SLATE, Solid, Disc),
        "hp-sync" => (VERMILLION, Dashed, Triangle),
        "hp-drain" => (VERMILLION, Dotted, Square),
        "locked-one" => (ORANGE, Solid, Disc),
        "locked-many" => (ORANGE, Dashed, Triangle),
        "own-one" => (TEAL, Solid, Square),
        "own-many" => (TEAL, Dashed, Diamond),
        "global" => (ORANGE, Solid, Square),
        "private" => (SKY, Solid, Diamond),
        "auto" => (GREEN, Dashed, Triangle),
        "immutable" => (PINK, Dashed, Diamond),
        "shared" => (WINE, Dotted, Ring),
        other if other.starts_with(THEIRS) => (GREY, Dashed, Ring),
        other => {
            let sum = other.bytes().fold(7usize, |sum, byte| {
                sum.wrapping_mul(31).wrapping_add(byte.into())
            });
            (
                SPARE[sum % SPARE.len()],
                Dashed,
                MARKS[sum / 7 % MARKS.len()],
            )
        }
    };
    Style {
        colour,
        dash,
        mark,
        width: if is_ours(name) { 3 } else { 2 },
    }
}

/// The same colour, halfway to white.
pub(crate) fn faint(RGBColor(r, g, b): RGBColor) -> RGBColor {
    let half = |part: u8| part / 2 + 127;
    RGBColor(half(r), half(g), half(b))
}

/// What is not a variant: the linear line, the numbers of others.
pub(crate) const AID: Style = Style {
    colour: RGBColor(110, 110, 110),
    dash: Dash::Dotted,
    mark: Mark::None,
    width: 2,
};

/// What this repository is about stands out.
pub(crate) fn is_ours(variant: &str) -> bool {
    matches!(
        variant,
        "hp" | "hp-asym" | "rcu" | "rcu-thread" | "rcu-qsbr"
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workloads::Workload;

    #[test]
    fn no_two_variants_look_alike() {
        for workload in Workload::ALL {
            alike(*workload);
        }
    }

    fn alike(workload: Workload) {
        let all: Vec<(&str, Style)> = workload
            .listed()
            .map(|about| about.name)
            .filter(|name| *name != "heavy-barrier")
            .map(|name| (name, of(name)))
            .collect();
        for (i, (name, style)) in all.iter().enumerate() {
            for (other, same) in &all[..i] {
                assert!(
                    (style.colour, style.dash, style.mark) != (same.colour, same.dash, same.mark),
                    "{}: {name} and {other}",
                    workload.name()
                );
            }
        }
    }
}
