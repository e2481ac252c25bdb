//! Floor 3, bench-suite. Owns the options of `schbench` as the words of a point: written for the record, read by the
//! child process. Touches the command line's types only.

use super::plan::{Ask, Cpus, Pacing, Rule};
use crate::trouble::Trouble;
use clap::Parser;

#[derive(Debug, Parser)]
#[command(no_binary_name = true)]
struct Words {
    #[command(flatten)]
    ask: Ask,
}

impl Ask {
    /// What `words` ask.
    pub(super) fn of_words(words: &str) -> Result<Self, Trouble> {
        Words::try_parse_from(words.split_whitespace())
            .map(|words| words.ask)
            .map_err(|error| Trouble::Usage(format!("schbench: '{words}': {error}")))
    }
}

/// What `ask` says of a point: all that is not as usual, but for the workers, which are the point's threads, the times,
/// and the hash.
pub(super) fn of(ask: &Ask) -> String {
    let usual = Ask::of_words("").expect("nothing is asked");
    let mut line: Vec<String> = Vec::new();
    let mut put = |option: &str, value: u64, usual: u64| {
        if value != usual {
            line.extend([option.to_owned(), value.to_string()]);
        }
    };
    put("-m", ask.messengers, usual.messengers);
    put("-n", ask.operations, usual.operations);
    put("-s", ask.sleep, usual.sleep);
    put("-F", ask.cache, usual.cache);
    put("--split", ask.split, usual.split);
    put("-p", ask.pipe.unwrap_or(0), 0);
    put("-R", ask.rps.map_or(0, u64::from), 0);
    for (option, cpus) in [("-M", &ask.message_cpus), ("-W", &ask.worker_cpus)] {
        let value = match cpus {
            None => continue,
            Some(Cpus::Auto) => "auto".to_owned(),
            Some(Cpus::List(list)) => {
                let list: Vec<String> = list.iter().map(usize::to_string).collect();
                list.join(",")
            }
        };
        line.extend([option.to_owned(), value]);
    }
    if ask.auto_rule == Rule::Readme {
        line.extend(["--auto-rule".to_owned(), "readme".to_owned()]);
    }
    if ask.pacing == Pacing::Open {
        line.extend(["--pacing".to_owned(), "open".to_owned()]);
    }
    for (option, given) in [("-L", ask.unlocked), ("-C", ask.calibrate)] {
        if given {
            line.push(option.to_owned());
        }
    }
    line.join(" ")
}

#[cfg(test)]
mod tests {
    use super::super::plan::Plan;
    use super::super::plan::tests::ask;
    use super::*;

    /// What a child is told is what was asked.
    #[test]
    fn words_come_back() {
        for (line, told) in [
            ("", ""),
            ("-L -m 4 -M auto -n 0 -s 0", "-m 4 -n 0 -s 0 -M auto -L"),
            (
                "-R 500 --pacing open -W 0 -C -F 64 --split 20",
                "-F 64 --split 20 -R 500 -W 0 --pacing open -C",
            ),
            ("-M 0 --auto-rule readme", "-M 0 --auto-rule readme"),
            ("-p 4096", "-p 4096"),
            ("-t 3 -r 5 -H 64 -m 1", ""),
        ] {
            let words: Vec<&str> = line.split_whitespace().collect();
            let before = ask(&words);
            assert_eq!(of(&before), told);
            let mut after = Ask::of_words(told).unwrap();
            after.workers = before.workers;
            after.runtime = before.runtime;
            let here = [0, 1];
            assert_eq!(
                Plan::of(&before, &here).unwrap(),
                Plan::of(&after, &here).unwrap(),
                "{line}"
            );
        }
        assert_eq!(Ask::of_words("-x").unwrap_err().code(), 2);
    }
}
