//! The pipe-age torture of `rcu-lite`, for as long as one likes.
//!
//! `rcu-torture [--flavor rcu|thread|qsbr] [--time SECONDS] [--ms MS]
//! [--readers N] [--fakes N] [--seed N] [--churn] [--shuffle] [--stutter]
//! [--broken nowait|early-cookie]`. Without a flavour: all, one after the
//! other. Prints one `SUMMARY` line each; ends with 1 if anything was wrong.

#[cfg(target_os = "linux")]
fn main() -> std::process::ExitCode {
    use std::process::ExitCode;
    use std::time::Duration;
    use tests::arguments::Arguments;
    use tests::rcu_torture::{Broken, Plan, run_named};

    let arguments = Arguments::parse(std::env::args().skip(1));
    let unknown = arguments.unknown(&[
        "flavor", "time", "ms", "readers", "fakes", "seed", "churn", "shuffle", "stutter", "broken",
    ]);
    if !unknown.is_empty() {
        eprintln!("unknown: {unknown:?}");
        return ExitCode::from(2);
    }
    let time =
        Duration::from_millis(arguments.number("time", 0) * 1000 + arguments.number("ms", 0));
    let plan = Plan {
        readers: arguments.number("readers", 6) as usize,
        fakes: arguments.number("fakes", 4) as usize,
        time: if time.is_zero() {
            Duration::from_secs(10)
        } else {
            time
        },
        seed: arguments.number("seed", 1),
        churn: arguments.is("churn"),
        shuffle: arguments.is("shuffle"),
        stutter: arguments.is("stutter"),
        broken: match arguments.text("broken") {
            "" => Broken::No,
            "nowait" => Broken::NoWait,
            "early-cookie" => Broken::EarlyCookie,
            other => {
                eprintln!("--broken {other}: nowait or early-cookie");
                return ExitCode::from(2);
            }
        },
    };
    // A grace period that never ends is a failure as well.
    tests::machine::watchdog(plan.time.as_secs() + 120);
    let flavors = match arguments.text("flavor") {
        "" => &["rcu", "thread", "qsbr"][..],
        one => &[one],
    };
    let mut good = true;
    for flavor in flavors {
        let report = match run_named(flavor, plan) {
            Ok(report) => report,
            Err(name) => {
                eprintln!("--flavor {name}: rcu, thread or qsbr");
                return ExitCode::from(2);
            }
        };
        good &= report.good();
        println!(
            "SUMMARY rcu-torture flavor={flavor} {} seed={} ms={} {report} result={}",
            tests::rcu_smoke::describe(),
            plan.seed,
            plan.time.as_millis(),
            if report.good() { "ok" } else { "failed" }
        );
    }
    ExitCode::from(u8::from(!good))
}

#[cfg(not(target_os = "linux"))]
fn main() {}
