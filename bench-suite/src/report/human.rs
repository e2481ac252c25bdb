//! Floor 3, bench-suite. Owns numbers for people: few digits, a unit. Touches nothing else.

/// A rate or count with a decimal prefix: `1.23 G`, `456 M`, `7.00 k`, `12`.
pub(crate) fn count(value: f64) -> String {
    let (scaled, prefix) = match value.abs() {
        v if v >= 1e9 => (value / 1e9, " G"),
        v if v >= 1e6 => (value / 1e6, " M"),
        v if v >= 1e3 => (value / 1e3, " k"),
        _ => (value, ""),
    };
    if prefix.is_empty() && value.fract() == 0.0 {
        format!("{value}")
    } else {
        format!("{}{prefix}", digits(scaled))
    }
}

/// A time in nanoseconds with a fitting unit: `1.10 ns`, `21.0 µs`, `3.40 ms`.
pub(crate) fn nanoseconds(value: f64) -> String {
    let (scaled, unit) = match value {
        v if v >= 1e9 => (value / 1e9, "s"),
        v if v >= 1e6 => (value / 1e6, "ms"),
        v if v >= 1e3 => (value / 1e3, "µs"),
        _ => (value, "ns"),
    };
    format!("{} {unit}", digits(scaled))
}

/// A share in whole per cent: `12 %`.
pub(crate) fn percent(value: f64) -> String {
    format!("{:.0} %", value * 100.0)
}

/// `1 thread`, `2 threads`.
pub(crate) fn plural(n: usize, what: &str) -> String {
    format!("{n} {what}{}", if n == 1 { "" } else { "s" })
}

/// A ratio: plain decimals, enough of them for a small one.
pub(crate) fn ratio(value: f64) -> String {
    match value.abs() {
        v if v >= 0.0995 => digits(value),
        v if v >= 0.00995 => format!("{value:.3}"),
        _ => format!("{value:.4}"),
    }
}

/// Three significant digits.
pub(crate) fn digits(value: f64) -> String {
    match value.abs() {
        v if v >= 99.95 => format!("{value:.0}"),
        v if v >= 9.995 => format!("{value:.1}"),
        v if v >= 0.0995 || v == 0.0 => format!("{value:.2}"),
        _ => format!("{value:.2e}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn units() {
        assert_eq!(count(0.0), "0");
        assert_eq!(count(12.0), "12");
        assert_eq!(count(1.234e9), "1.23 G");
        assert_eq!(count(45.6e6), "45.6 M");
        assert_eq!(count(7000.0), "7.00 k");
        assert_eq!(nanoseconds(1.1), "1.10 ns");
        assert_eq!(nanoseconds(21_000.0), "21.0 µs");
        assert_eq!(nanoseconds(3.4e6), "3.40 ms");
        assert_eq!(digits(123.4), "123");
        assert_eq!(digits(0.25), "0.25");
        assert_eq!(ratio(0.25), "0.25");
        assert_eq!(ratio(0.0123), "0.012");
        assert_eq!(ratio(0.00123), "0.0012");
        assert_eq!(ratio(1444.4), "1444");
        assert_eq!(percent(0.123), "12 %");
        assert_eq!(plural(1, "reader"), "1 reader");
        assert_eq!(plural(0, "reader"), "0 readers");
    }
}
