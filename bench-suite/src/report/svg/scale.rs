//! Floor 3, bench-suite. Owns scales: from a value to a share of an axis, and where the labels stand. Touches nothing
//! else.

/// What an axis does with values.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Kind {
    /// As they are.
    Linear,
    /// Their logarithm, base 10 for the labels.
    Log,
    /// Thread counts: their logarithm, base 2; none (0) has a place half a step before 1.
    Threads,
    /// Shares from 0 to 1, so that each further nine is as wide as the one before.
    Nines,
}

/// An axis.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Scale {
    kind: Kind,
    low: f64,
    high: f64,
}

/// Shares beyond this are drawn at the end of the axis.
const MOST_NINES: f64 = 5.0;

impl Scale {
    /// One that holds `values`, of those that are finite.
    pub(super) fn of(kind: Kind, values: impl Iterator<Item = f64>) -> Self {
        let values: Vec<f64> = values
            .filter(|value| value.is_finite())
            .filter(|&value| kind != Kind::Log || value > 0.0)
            .collect();
        let least = values.iter().copied().fold(f64::INFINITY, f64::min);
        let most = values.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        let (least, most) = if values.is_empty() {
            (1.0, 1.0)
        } else {
            (least, most)
        };
        let (low, high) = match kind {
            Kind::Linear => {
                let (least, most) = (least.min(0.0), most.max(0.0));
                let room = (most - least) * 0.07;
                match (least < 0.0, room > 0.0) {
                    (_, false) => (0.0, 1.0),
                    (true, _) => (least - room, most + room),
                    (false, _) => (0.0, most + room),
                }
            }
            Kind::Log => (least / 1.3, most * 1.3),
            Kind::Threads => {
                let (least, most) = (place(least), place(most));
                let room = ((most - least) * 0.03).max(0.12);
                (least - room, most + room)
            }
            Kind::Nines => (0.0, MOST_NINES),
        };
        Scale { kind, low, high }
    }

    /// Where `value` is, as a share of the axis; beyond 0 and 1 it is off it.
    pub(super) fn at(&self, value: f64) -> f64 {
        match self.kind {
            Kind::Linear => (value - self.low) / (self.high - self.low),
            Kind::Log => {
                (value.max(f64::MIN_POSITIVE) / self.low).ln() / (self.high / self.low).ln()
            }
            Kind::Threads => (place(value) - self.low) / (self.high - self.low),
            Kind::Nines => nines(value) / self.high,
        }
    }

    /// Values with a label.
    pub(super) fn ticks(&self) -> Vec<f64> {
        match self.kind {
            Kind::Linear => {
                let raw = (self.high - self.low) / 6.0;
                let power = 10f64.powf(raw.log10().floor());
                let step = [1.0, 2.0, 5.0, 10.0]
                    .into_iter()
                    .map(|m| m * power)
                    .find(|&step| step >= raw)
                    .unwrap_or(raw);
                let first = (self.low / step).ceil() as i64;
                let last = (self.high / step).floor() as i64;
                (first..=last).map(|i| i as f64 * step).collect()
            }
            Kind::Log => self.log_ticks(),
            Kind::Threads => Vec::new(),
            Kind::Nines => vec![0.0, 0.5, 0.9, 0.99, 0.999, 0.9999, 0.99999],
        }
    }

    /// Powers of ten; where there are few of them, 2 and 5 times, too.
    fn log_ticks(&self) -> Vec<f64> {
        let decades = (self.high / self.low).log10();
        let times: &[f64] = match decades {
            d if d > 2.5 => &[1.0],
            d if d > 0.8 => &[1.0, 2.0, 5.0],
            _ => &[1.0, 1.5, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0, 9.0],
        };
        let first = self.low.log10().floor() as i32;
        let last = self.high.log10().ceil() as i32;
        let all = (first..=last).flat_map(|e| times.iter().map(move |m| m * 10f64.powi(e)));
        all.filter(|tick| (self.low..=self.high).contains(tick))
            .collect()
    }
}

fn place(threads: f64) -> f64 {
    threads.max(0.5).log2()
}

fn nines(share: f64) -> f64 {
    -(1.0 - share.clamp(0.0, 1.0))
        .max(10f64.powf(-MOST_NINES))
        .log10()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn linear_axes_hold_zero_and_round_ticks() {
        let scale = Scale::of(Kind::Linear, [3.0, 95.0].into_iter());
        assert_eq!(scale.at(0.0), 0.0);
        assert!(scale.at(95.0) < 1.0 && scale.at(95.0) > 0.9);
        assert_eq!(scale.ticks(), [0.0, 20.0, 40.0, 60.0, 80.0, 100.0]);
        let below = Scale::of(Kind::Linear, [-50.0, 50.0].into_iter());
        assert!(below.at(-50.0) > 0.0 && (below.at(0.0) - 0.5).abs() < 1e-9);
    }

    #[test]
    fn logarithms_and_threads() {
        let scale = Scale::of(Kind::Log, [0.0, 10.0, 1000.0].into_iter());
        assert!((scale.at(100.0) - 0.5).abs() < 1e-9);
        assert_eq!(
            scale.ticks(),
            [10.0, 20.0, 50.0, 100.0, 200.0, 500.0, 1000.0]
        );
        let threads = Scale::of(Kind::Threads, [0.0, 1.0, 2.0].into_iter());
        assert!((threads.at(1.0) - 0.5).abs() < 1e-9);
        assert!(threads.at(0.0) > 0.0 && threads.at(2.0) < 1.0);
    }

    #[test]
    fn nines_are_equally_wide() {
        let scale = Scale::of(Kind::Nines, std::iter::empty());
        assert!((scale.at(0.9) - 0.2).abs() < 1e-9 && (scale.at(0.99) - 0.4).abs() < 1e-9);
        assert!((scale.at(1.0) - 1.0).abs() < 1e-9);
    }

    #[test]
    fn empty_and_single_values_have_an_axis() {
        for kind in [Kind::Linear, Kind::Log, Kind::Threads] {
            let scale = Scale::of(kind, std::iter::empty());
            assert!(scale.at(1.0).is_finite(), "{kind:?}");
            let scale = Scale::of(kind, [5.0].into_iter());
            assert!((0.0..=1.0).contains(&scale.at(5.0)), "{kind:?}");
        }
        assert!(
            Scale::of(Kind::Linear, [0.0].into_iter())
                .at(0.0)
                .is_finite()
        );
    }
}
