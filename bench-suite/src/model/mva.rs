//! Floor 3, bench-suite. Owns exact mean value analysis of closed queueing networks. Touches nothing: numbers only.
//!
//! N customers alternate between thinking (a delay, nobody waits) and stations that serve one at a time. Two forms:
//!
//! * [`solve`]: stations with a constant demand. For n = 1 … N: R_k = D_k (1 + Q_k), X = n / (Z + Σ R), Q_k = X R_k.
//! * [`solve_crowded`]: M equal stations, each visited with probability 1/M, whose service takes `alone` when one is
//!   there and `crowded` when more are. For n = 1 … N, with p(j) the chance of j at one station:
//!   R = Σ j S(j) p(j-1), X = n / (Z + R), p(j) = (X/M) S(j) p(j-1).
//!
//! Source: Reiser and Lavenberg 1980; both are textbook recursions.

/// Chances below this change no digit of a rate.
const NOTHING: f64 = 1e-18;

/// What a network does with N customers.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Solution {
    /// Cycles a unit of time.
    pub(crate) rate: f64,
    /// Mean customers at each station.
    pub(crate) queues: Vec<f64>,
}

/// Stations with constant demands (a demand of 0 is no station).
pub(crate) fn solve(customers: usize, think: f64, demands: &[f64]) -> Solution {
    let mut queues = vec![0.0; demands.len()];
    let mut rate = 0.0;
    for n in 1..=customers {
        let residence = |demand: f64, queue: f64| demand * (1.0 + queue);
        let total: f64 = demands
            .iter()
            .zip(&queues)
            .map(|(&d, &q)| residence(d, q))
            .sum();
        rate = n as f64 / (think + total);
        for (&demand, queue) in demands.iter().zip(&mut queues) {
            *queue = rate * residence(demand, *queue);
        }
    }
    Solution { rate, queues }
}

/// `stations` equal ones whose service slows down as soon as somebody waits. Returns the rate of cycles.
pub(crate) fn solve_crowded(
    customers: usize,
    think: f64,
    stations: usize,
    alone: f64,
    crowded: f64,
) -> f64 {
    let service = |there: usize| if there <= 1 { alone } else { crowded };
    let share = 1.0 / stations as f64;
    // The chance of j customers at one station, up to where it is nothing.
    let mut chance = vec![1.0];
    let mut rate = 0.0;
    for n in 1..=customers {
        let mut residence = 0.0;
        for (before, chance) in chance.iter().enumerate() {
            residence += (before + 1) as f64 * service(before + 1) * chance;
        }
        rate = n as f64 / (think + residence);
        let mut rest = 1.0;
        let mut last = 0.0;
        for (before, chance) in chance.iter_mut().enumerate() {
            let here = rate * share * service(before + 1) * *chance;
            rest -= here;
            *chance = std::mem::replace(&mut last, here);
        }
        if last > NOTHING {
            chance.push(last);
        }
        // What is left; the rounding of a saturated station must not make it negative.
        chance[0] = rest.max(0.0);
    }
    rate
}

#[cfg(test)]
mod tests {
    use super::*;

    fn close(a: f64, b: f64) {
        assert!((a - b).abs() <= 1e-9 * b.abs().max(1.0), "{a} {b}");
    }

    #[test]
    fn one_customer_waits_for_nobody() {
        let one = solve(1, 7.0, &[2.0, 1.0]);
        close(one.rate, 0.1);
        close(one.queues[0], 0.2);
        close(solve_crowded(1, 8.0, 5, 2.0, 99.0), 0.1);
    }

    /// K equal stations without thinking: X = N / (D (N + K - 1)).
    #[test]
    fn balanced_stations() {
        for k in 1..5 {
            for n in 1..30 {
                let demands = vec![3.0; k];
                close(
                    solve(n, 0.0, &demands).rate,
                    n as f64 / (3.0 * (n + k - 1) as f64),
                );
            }
        }
    }

    /// Two customers, by hand: Z 1, D 1. n = 1: X 1/2, Q 1/2. n = 2: R 3/2, X 2 / (5/2) = 4/5, Q 6/5.
    #[test]
    fn two_customers_by_hand() {
        let two = solve(2, 1.0, &[1.0]);
        close(two.rate, 0.8);
        close(two.queues[0], 1.2);
    }

    #[test]
    fn within_the_asymptotic_bounds_and_near_them_at_the_ends() {
        let (think, demands) = (9000.0, [300.0, 240.0]);
        let sum: f64 = demands.iter().sum();
        for n in [1, 2, 10, 31, 100, 768] {
            let rate = solve(n, think, &demands).rate;
            let population = n as f64;
            let upper = (population / (think + sum)).min(1.0 / 300.0);
            let lower = population / (think + population * sum);
            assert!(
                lower <= rate * (1.0 + 1e-12) && rate <= upper * (1.0 + 1e-12),
                "{n}"
            );
        }
        let crowd = solve(768, think, &demands).rate;
        assert!((crowd * 300.0 - 1.0).abs() < 1e-6, "{crowd}");
    }

    /// With equal service in every state the second form is the first one with M stations of demand S / M.
    #[test]
    fn the_two_forms_agree() {
        for (n, m) in [(1, 1), (5, 1), (7, 3), (40, 8)] {
            let first = solve(n, 10.0, &vec![4.0 / m as f64; m]).rate;
            close(solve_crowded(n, 10.0, m, 4.0, 4.0), first);
        }
    }

    /// Against the product form, summed over all states of a small network.
    #[test]
    fn crowded_stations_against_all_states() {
        let (think, stations, alone, crowded) = (5.0f64, 3, 0.5, 4.0);
        // G(n) = Σ over (j1, j2, j3) with j <= n of Z^(n-j) / (n-j)! · Π (1/3)^j Π S(i).
        let weight = |j: usize| -> f64 {
            (1..=j)
                .map(|i| if i == 1 { alone } else { crowded } / stations as f64)
                .product()
        };
        let thinking = |k: usize| -> f64 { (1..=k).map(|i| think / i as f64).product() };
        let constant = |n: usize| -> f64 {
            let mut sum = 0.0;
            for a in 0..=n {
                for b in 0..=n - a {
                    for c in 0..=n - a - b {
                        sum += weight(a) * weight(b) * weight(c) * thinking(n - a - b - c);
                    }
                }
            }
            sum
        };
        for n in 1..12 {
            close(
                solve_crowded(n, think, stations, alone, crowded),
                constant(n - 1) / constant(n),
            );
        }
    }

    #[test]
    fn a_saturated_crowd_stays_a_number() {
        let rate = solve_crowded(240, 450.0, 2, 30.0, 950.0);
        assert!((rate * 950.0 / 2.0 - 1.0).abs() < 0.01, "{rate}");
    }
}
