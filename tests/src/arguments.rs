//! `KEY=VALUE` and `--key value` arguments of the test programs.

use std::collections::HashMap;

/// What stood on the command line behind the command.
#[derive(Debug, Default)]
pub struct Arguments(HashMap<String, String>);

impl Arguments {
    /// From words of the form `key=value` or `--key value` (`--key` alone at
    /// the end, or before another one, is `yes`).
    #[must_use]
    pub fn parse(words: impl Iterator<Item = String>) -> Self {
        let mut map = HashMap::new();
        let mut words = words.peekable();
        while let Some(word) = words.next() {
            let (key, value) = match (word.strip_prefix("--"), word.split_once('=')) {
                (Some(key), None) => {
                    let value = words.next_if(|next| !next.starts_with("--"));
                    (key.to_string(), value.unwrap_or_else(|| "yes".into()))
                }
                (_, Some((key, value))) => {
                    (key.trim_start_matches('-').to_string(), value.to_string())
                }
                (None, None) => (word, String::new()),
            };
            map.insert(key, value);
        }
        Self(map)
    }

    /// An argument, or nothing.
    #[must_use]
    pub fn text(&self, key: &str) -> &str {
        self.0.get(key).map_or("", String::as_str)
    }

    /// An argument that is a number. If it is none, says so in one line and
    /// ends the program with 2.
    #[must_use]
    pub fn number(&self, key: &str, default: u64) -> u64 {
        self.0.get(key).map_or(default, |text| {
            text.parse().unwrap_or_else(|_| {
                eprintln!("{key} {text}: not a whole number");
                std::process::exit(2)
            })
        })
    }

    /// Whether an argument is `yes`.
    #[must_use]
    pub fn is(&self, key: &str) -> bool {
        self.text(key) == "yes"
    }

    /// Names that are not among `known`.
    #[must_use]
    pub fn unknown(&self, known: &[&str]) -> Vec<&str> {
        self.0
            .keys()
            .map(String::as_str)
            .filter(|key| !known.contains(key))
            .collect()
    }
}
