//! Floor 3, bench-suite. Owns predictions as text. Touches nothing else.

use super::bucket::Buckets;
use super::lazy::{Explanation, Point, predict};
use super::refcount::Refcounts;
use super::{LABEL, Speedups};
use crate::published::show::columns;
use crate::report::human;
use std::fmt::Write;

fn heading(cells: &[&str]) -> Vec<String> {
    cells.iter().map(|cell| (*cell).to_owned()).collect()
}

fn signed(value: f64) -> String {
    // Not "-0.0".
    let rounded = (value * 10.0).round() / 10.0 + 0.0;
    format!("{rounded:+.1}")
}

/// Also where it is next to nothing.
fn small(value: f64) -> String {
    if value < 0.001 {
        format!("{value:.1e}")
    } else {
        human::ratio(value)
    }
}

fn or_dash<T>(value: Option<T>, show: impl Fn(T) -> String) -> String {
    value.map_or_else(|| "-".to_owned(), show)
}

fn range(band: Option<(f64, f64)>) -> String {
    or_dash(band, |(low, high)| {
        format!("{} … {}", signed(low), signed(high))
    })
}

/// The table of seed004.
pub(super) fn speedups(found: &Speedups) -> String {
    let (machine, params) = (&found.machine, &found.params);
    let mut text = format!(
        "{LABEL}\nseed004: lazy-mm tracking without its reference count, context_switch1_threads -t N, {} sockets x {} cores, {} a last-level cache\nmachine: {}\n",
        machine.sockets, machine.cores_per_socket, machine.cores_per_ccx, machine.name
    );
    if let Some(note) = &machine.note {
        let _ = writeln!(text, "note: {note}");
    }
    let _ = write!(
        text,
        "numbers: Z = {}, n = {} (Z/n = {}), r = {:.2}, {}\n\n",
        human::nanoseconds(params.think_ns),
        params.transfers,
        human::nanoseconds(params.think_per_transfer()),
        params.shared,
        if found.fitted {
            "fitted to the published points within the cores"
        } else {
            "as described"
        }
    );
    let same = machine.compares_with.is_some();
    let published = if same {
        "published %"
    } else {
        "published % (another machine)"
    };
    let mut rows = vec![heading(&[
        "threads",
        published,
        "model %",
        "residual pp",
        "95 % band",
        "t(N) ns",
        "f(N)",
    ])];
    for row in &found.rows {
        rows.push(vec![
            row.prediction.threads.to_string(),
            or_dash(row.published_pct, signed),
            signed(row.prediction.speedup_pct),
            or_dash(row.residual_pp, signed),
            range(row.band_pct),
            human::digits(row.prediction.transfer_ns),
            format!("{:.2}", row.prediction.idle),
        ]);
    }
    text.push_str(&columns(&rows));
    let within: Vec<f64> = found
        .rows
        .iter()
        .filter(|row| row.prediction.threads <= machine.cores())
        .filter_map(|row| row.residual_pp)
        .collect();
    if !within.is_empty() {
        let rms = (within.iter().map(|r| r * r).sum::<f64>() / within.len() as f64).sqrt();
        let _ = writeln!(
            text,
            "  residual = model - published; rms {rms:.2} pp over {} points within the cores. Z/n and r come from these same points.",
            within.len()
        );
    }
    if let Some(bands) = &found.bands {
        let (think, shared) = (bands.think_per_transfer_ns, bands.shared);
        let _ = writeln!(
            text,
            "  band: {} replicates; {}. Z/n {} … {}, r {:.2} … {:.2}. Other mechanisms are not in it; beyond the cores f(N) is as described, and there is no band.",
            bands.replicates,
            bands.over,
            human::nanoseconds(think.0),
            human::nanoseconds(think.1),
            shared.0,
            shared.1
        );
    }
    if !found.explanations.is_empty() {
        text.push_str(&explanations(&found.explanations, &found.points));
        text.push_str(&others_shared(found));
    }
    text
}

fn explanations(all: &[Explanation], points: &[Point]) -> String {
    let mut rows = vec![heading(&[
        "explanation",
        "free",
        "rms pp",
        "AIC",
        "AICc",
        "ΔAICc",
        "numbers",
    ])];
    let best = all
        .iter()
        .filter_map(|one| one.quality.aicc)
        .fold(f64::INFINITY, f64::min);
    for one in all {
        let numbers: Vec<String> = one
            .numbers
            .iter()
            .map(|(name, value)| format!("{name} {}", small(*value)))
            .collect();
        rows.push(vec![
            one.name.clone(),
            one.quality.free.to_string(),
            format!("{:.2}", one.quality.rms),
            format!("{:.1}", one.quality.aic),
            or_dash(one.quality.aicc, |v| format!("{v:.1}")),
            or_dash(one.quality.aicc, |v| format!("{:.1}", v - best)),
            numbers.join(", "),
        ]);
    }
    let mut text = format!(
        "\nThe same {} points explained in other ways (least squares; smaller is better):\n{}",
        all[0].quality.points,
        columns(&rows)
    );
    if let Some(single) = all.iter().find(|one| one.name.starts_with("single")) {
        let ratio = 2.0 * (all[0].quality.log_likelihood - single.quality.log_likelihood);
        let _ = writeln!(
            text,
            "  likelihood ratio against the single server, which is the case r = 0: 2 ln Λ = {ratio:.1}, p <= {:.1e}",
            super::fit::chi_square_tail(ratio)
        );
    }
    text.push_str("  where both stations are saturated the speedup is 1/r - 1 whatever N: the model cannot tell 96 from 192 threads.\n");
    text.push_str(
        "  the other rows are not nested: exp(ΔAICc / 2) is the weight of evidence against a row. USL knows no mechanism and no machine; where it does as well, these points do not single out the model.\n",
    );
    let threads = points.iter().map(|point| point.0.to_string());
    let published = points.iter().map(|point| signed(point.1));
    let mut rows: Vec<Vec<String>> = vec![
        std::iter::once("per cent, at threads".to_owned())
            .chain(threads)
            .collect(),
        std::iter::once("published".to_owned())
            .chain(published)
            .collect(),
    ];
    for one in all {
        rows.push(
            std::iter::once(one.name.clone())
                .chain(one.says.iter().map(|&v| signed(v)))
                .collect(),
        );
    }
    text.push('\n');
    text.push_str(&columns(&rows));
    text
}

/// What the plateau is made of.
fn others_shared(found: &Speedups) -> String {
    let threads = [24, 48, 96, 192];
    let mut rows = vec![
        std::iter::once("r".to_owned())
            .chain(threads.iter().map(|n| format!("{n} threads")))
            .collect::<Vec<_>>(),
    ];
    for r in [0.0, 0.1, 0.2, 0.4, 0.8, 1.0] {
        let params = super::Params {
            shared: r,
            ..found.params.clone()
        };
        let says = threads
            .iter()
            .map(|&n| signed(predict(&params, n).speedup_pct));
        rows.push(std::iter::once(format!("{r:.1}")).chain(says).collect());
    }
    format!(
        "\nThe same Z/n with other things shared (r): the knee stays, the plateau goes, in per cent\n{}  published by Axboe for another machine: +390 at 192\n",
        columns(&rows)
    )
}

/// The table of seed000.
pub(super) fn buckets(found: &Buckets) -> String {
    let network = found.network;
    let mut text = format!(
        "{LABEL}\nseed000: perf bench futex hash, {} threads, operations per second and thread\nlaw: min(M / s, N / Z) / N, s = {:.0} ns, Z = {:.0} ns, {}; rms of ln(model / published) {:.3}\nnetwork: exact, fitted to this table: Z = {:.0} ns, alone {:.0} ns, contended {:.0} ns; rms {:.3}{}\n\n",
        found.threads,
        found.law.contended_ns,
        found.law.think_ns,
        if found.fitted {
            "fitted"
        } else {
            "read off the table, not fitted"
        },
        found.law_quality.rms,
        network.think_ns,
        network.alone_ns,
        network.contended_ns,
        found.network_quality.rms,
        or_dash(found.constant_quality, |one| format!(
            " (one service for both: {:.3})",
            one.rms
        ))
        .trim_start_matches('-'),
    );
    let mut rows = vec![heading(&[
        "buckets",
        "published",
        "law",
        "law/published",
        "95 % band",
        "network",
        "network/published",
    ])];
    for row in &found.rows {
        rows.push(vec![
            row.buckets.to_string(),
            format!("{:.0}", row.published),
            format!("{:.0}", row.law),
            format!("{:.2}", row.law / row.published),
            or_dash(row.band, |(low, high)| format!("{low:.0} … {high:.0}")),
            format!("{:.0}", row.network),
            format!("{:.2}", row.network / row.published),
        ]);
    }
    text.push_str(&columns(&rows));
    let _ = writeln!(
        text,
        "  band: {} replicates of the law, refitted to points moved by their residuals. All numbers come from this same table.",
        found.replicates
    );
    text
}

/// The tables of seed002 and seed003.
pub(super) fn refcounts(found: &Refcounts) -> String {
    let mut text = format!(
        "{LABEL}\n{}: one shared reference count, {}\n\n",
        found.table, found.unit
    );
    let mut rows = vec![heading(&[
        "machine and hash",
        "published",
        "model",
        "model/published",
        "band",
        "predicted from",
    ])];
    for row in &found.rows {
        rows.push(vec![
            row.key.clone(),
            format!("{:.0}", row.published),
            format!("{:.0}", row.model),
            format!("{:.2}", row.model / row.published),
            or_dash(row.band, |(low, high)| format!("{low:.0} … {high:.0}")),
            row.basis.clone(),
        ]);
    }
    text.push_str(&columns(&rows));
    text.push_str("  band: with the least and the greatest s that the sources give\n\n");
    for note in &found.notes {
        let _ = writeln!(text, "  - {note}");
    }
    text
}
