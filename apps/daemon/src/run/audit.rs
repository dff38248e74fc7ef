//! Log records of changes: who made which, and the result. Changes by clients are logged at info; changes by the daemon (at
//! start, for LCP sync) and refused changes at debug.

use std::fmt::Write;
use tracing::{Level, debug, enabled, info};
use volley_control::TransactionError;
use volley_fib::RouteFile;
use volley_model::{Applied, Client, Request};
use volley_object::Invocation;
use volley_pcap::{PcapTraceOff, PcapTraceOn};
use volley_pg::PgCapture;

/// The most requests of a transaction that are written out.
const WRITTEN: usize = 3;
/// The most bytes of one request that are written out.
const LONGEST: usize = 400;

/// The result of a change, and the number of its transaction.
pub type Done = (Applied, Option<u64>);

/// A change that is about to be made, for the log.
pub struct Attempt<'a> {
    client: &'a Client,
    /// The module that logs the change.
    module: Module,
    text: String,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Module {
    Config,
    Fib,
    Capture,
}

fn module(requests: &[Request]) -> Module {
    match requests {
        [Request::Set(it)] if RouteFile::is(it) => Module::Fib,
        [Request::Do(it)] if is_capture(it) => Module::Capture,
        _ => Module::Config,
    }
}

fn is_capture(it: &Invocation) -> bool {
    it.is::<PcapTraceOn>() || it.is::<PcapTraceOff>() || it.is::<PgCapture>()
}

/// The first requests as commands, and the number of all requests.
fn written(requests: &[Request]) -> String {
    let mut out = String::new();
    if requests.len() > 1 {
        // Writing into a string does not fail.
        let _ = write!(out, "{} requests: ", requests.len());
    }
    for (n, request) in requests.iter().take(WRITTEN).enumerate() {
        let text = request.to_string();
        let short = &text[..text.floor_char_boundary(LONGEST)];
        let more = if short.len() < text.len() { " ..." } else { "" };
        let between = if n > 0 { ", " } else { "" };
        let _ = write!(out, "{between}`{short}{more}`");
    }
    if requests.len() > WRITTEN {
        out += ", ...";
    }
    out
}

impl<'a> Attempt<'a> {
    /// An attempt of a client to have requests carried out.
    pub fn new(requests: &[Request], client: &'a Client) -> Self {
        // No text is made for a level that is not logged.
        let wanted = client.is_outside()
            || enabled!(target: "config", Level::DEBUG)
            || enabled!(target: "fib", Level::DEBUG);
        Attempt {
            client,
            module: module(requests),
            text: if wanted {
                written(requests)
            } else {
                String::new()
            },
        }
    }

    /// Logs the result.
    pub fn end(&self, done: &Result<Done, TransactionError>) {
        match done {
            Ok((applied, transaction)) => {
                let mut text = self.text.clone();
                applied
                    .notes
                    .iter()
                    .for_each(|note| text += &format!(": {note}"));
                self.done(&text, applied.changed, *transaction);
            }
            Err(error) => {
                let Client {
                    user, via, from, ..
                } = self.client;
                debug!(target: "config", user, %via, from, "refused: {}: {error}", self.text);
            }
        }
    }

    fn done(&self, text: &str, changed: u64, transaction: Option<u64>) {
        let Client {
            user, via, from, ..
        } = self.client;
        let transaction = transaction.map_or_else(String::new, |number| number.to_string());
        macro_rules! log {
            ($level:ident, $target:literal) => {
                $level!(target: $target, user, %via, from, changed, transaction, "{text}")
            };
        }
        match (self.module, self.client.is_outside()) {
            (Module::Config, true) => log!(info, "config"),
            (Module::Config, false) => log!(debug, "config"),
            (Module::Fib, _) => log!(info, "fib"),
            (Module::Capture, _) => log!(info, "capture"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn many_requests_are_written_short() {
        let delete = |name: &str| Request::InterfaceDelete { name: name.into() };
        assert_eq!(written(&[delete("a")]), "`delete interface a`");
        let all: Vec<Request> = (0..5).map(|n| delete(&format!("tap{n}"))).collect();
        assert_eq!(
            written(&all),
            "5 requests: `delete interface tap0`, `delete interface tap1`, `delete interface tap2`, ..."
        );
        let long = written(&[delete(&"é".repeat(300))]);
        assert!(long.len() < 420 && long.ends_with(" ...`"), "{long}");
    }
}
