//! Software RSS: which worker a flow's packets go to. And pipelines: which worker a node runs on.

use crate::error::ModelError;
use crate::limits;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::fmt::{self, Display, Formatter};
use std::str::FromStr;

/// How a flow becomes a number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum RssHash {
    /// As network cards do it.
    #[default]
    Toeplitz,
    /// CRC-32C.
    Crc32c,
}

/// When packets are spread.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum RssMode {
    /// Always.
    #[default]
    On,
    /// While the worker that receives them has too much to do and others have not.
    Auto,
}

/// How an interface's packets are spread over workers.
#[derive(Clone, Debug, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Rss {
    /// Hash of the flow.
    pub hash: RssHash,
    /// Both directions of a flow go to one worker.
    pub symmetric: bool,
    /// The flow inside a tunnel (IP in IP, GRE, VXLAN) counts.
    pub inner: bool,
    /// Workers that take part, in rising order; none = all.
    pub workers: Option<Vec<u32>>,
    /// When packets are spread.
    pub mode: RssMode,
}

impl Rss {
    pub(crate) fn validate(&self) -> Result<(), ModelError> {
        let Some(workers) = &self.workers else {
            return Ok(());
        };
        let text = || format!("workers {}", list(workers));
        if workers.is_empty() || !workers.is_sorted_by(|a, b| a < b) {
            let why = "name workers in rising order, each once, such as 0,2; or all";
            return Err(ModelError::invalid(text(), why));
        }
        if workers.iter().any(|w| !limits::WORKER.contains(w)) {
            let why = format!("workers are numbered 0 to {}", limits::WORKER.end());
            return Err(ModelError::invalid(text(), why));
        }
        Ok(())
    }
}

fn list(workers: &[u32]) -> String {
    let numbers: Vec<String> = workers.iter().map(u32::to_string).collect();
    numbers.join(",")
}

impl Display for Rss {
    /// The words of `set interface rss`, what is usual left out, but for the mode.
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let words = [
            (self.hash == RssHash::Crc32c, "crc32c "),
            (self.symmetric, "symmetric "),
            (self.inner, "inner "),
        ];
        for (_, word) in words.iter().filter(|(said, _)| *said) {
            f.write_str(word)?;
        }
        if let Some(workers) = &self.workers {
            write!(f, "workers {} ", list(workers))?;
        }
        f.write_str(match self.mode {
            RssMode::On => "on",
            RssMode::Auto => "auto",
        })
    }
}

impl FromStr for Rss {
    type Err = ModelError;

    /// Reads the words of `set interface rss`, in any order.
    fn from_str(text: &str) -> Result<Self, ModelError> {
        let mut rss = Rss::default();
        let mut words = text.split_whitespace();
        while let Some(word) = words.next() {
            match word {
                "toeplitz" => rss.hash = RssHash::Toeplitz,
                "crc32c" => rss.hash = RssHash::Crc32c,
                "symmetric" => rss.symmetric = true,
                "inner" => rss.inner = true,
                "on" => rss.mode = RssMode::On,
                "auto" => rss.mode = RssMode::Auto,
                "workers" => rss.workers = workers_of(words.next().unwrap_or(""))?,
                other => {
                    let why =
                        "choose from toeplitz, crc32c, symmetric, inner, workers LIST, on, auto";
                    return Err(ModelError::invalid(format!("rss '{other}'"), why));
                }
            }
        }
        rss.validate().map(|()| rss)
    }
}

/// `all`, or numbers with commas between.
fn workers_of(text: &str) -> Result<Option<Vec<u32>>, ModelError> {
    if text == "all" {
        return Ok(None);
    }
    let numbers: Result<Vec<u32>, _> = text.split(',').map(str::parse).collect();
    let why = "name workers such as 0,2, or all";
    let numbers = numbers.map_err(|_| ModelError::invalid(format!("workers {text}"), why))?;
    Ok(Some(numbers))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_and_settings_are_each_other() {
        for text in [
            "on",
            "auto",
            "crc32c symmetric inner workers 0,2,63 auto",
            "inner on",
        ] {
            let rss: Rss = text.parse().unwrap();
            assert_eq!(rss.to_string(), text);
        }
        let long: Rss = "auto workers all toeplitz".parse().unwrap();
        assert_eq!(long.to_string(), "auto");
    }

    #[test]
    fn what_is_wrong_is_said() {
        let error = |text: &str| text.parse::<Rss>().unwrap_err().to_string();
        assert!(error("sideways").contains("'sideways'"));
        for list in ["", "2,1", "1,1", "64", "x"] {
            assert!(
                error(&format!("workers {list}")).contains("workers"),
                "{list}"
            );
        }
    }
}
