//! `ping` and `traceroute` on a terminal or in a script: each answer is printed when it comes, and Ctrl-C ends the run with
//! its summary.
//!
//! The daemon gets one request (one number of hops) at a time: a run may take as long as the user likes, and ends with
//! the client.

use super::connection::Connection;
use super::error::ClientError;
use crate::render::ping;
use std::io::Write;
use std::time::{Duration, Instant};
use tokio::runtime::Runtime;
use tokio::signal::unix::{Signal, SignalKind, signal};
use volley_model::reply::{PingReply, ProbeResult, TraceHop, TracerouteReply};
use volley_model::{PingQuery, Query, TracerouteQuery};

/// Ctrl-C, noticed between two requests or parts of an answer.
pub(super) struct Interrupt {
    runtime: Runtime,
    signal: Signal,
}

impl Interrupt {
    pub(super) fn new() -> Result<Interrupt, ClientError> {
        let terminal = |e: std::io::Error| ClientError::Terminal(e.to_string());
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .map_err(terminal)?;
        let signal = {
            let _inside = runtime.enter();
            signal(SignalKind::interrupt()).map_err(terminal)?
        };
        Ok(Interrupt { runtime, signal })
    }

    /// Waits; true when the user wants no more.
    pub(super) fn within(&mut self, span: Duration) -> bool {
        let signal = &mut self.signal;
        self.runtime.block_on(async {
            tokio::select! {
                biased;
                _ = signal.recv() => true,
                () = tokio::time::sleep(span) => false,
            }
        })
    }
}

/// Runs a query that takes its time; false when it is another one.
pub(super) fn run(
    connection: &mut Connection,
    query: &Query,
    out: &mut dyn Write,
) -> Option<Result<(), ClientError>> {
    match query {
        Query::Ping(query) => Some(ping_each(connection, query, out)),
        Query::Traceroute(query) => Some(trace_each(connection, query, out)),
        _ => None,
    }
}

fn say(out: &mut dyn Write, text: &str) -> Result<(), ClientError> {
    let written = out.write_all(text.as_bytes());
    written
        .and_then(|()| out.flush())
        .map_err(ClientError::Output)
}

/// A ping of `count` requests as a line.
fn spelled(ping: &PingQuery, count: u32) -> String {
    let source = ping
        .source
        .map_or_else(String::new, |s| format!(" source {s}"));
    format!(
        "ping {}{source} table {} repeat {count} interval {} size {} hops {} timeout {}",
        ping.destination, ping.table, ping.interval_ms, ping.size, ping.hops, ping.timeout_ms
    )
}

fn ask(connection: &mut Connection, line: &str) -> Result<PingReply, ClientError> {
    let data = connection.exec(line, true)?.data.unwrap_or_default();
    serde_json::from_value(data).map_err(ClientError::Answer)
}

fn ping_each(
    connection: &mut Connection,
    query: &PingQuery,
    out: &mut dyn Write,
) -> Result<(), ClientError> {
    let mut interrupt = Interrupt::new()?;
    let line = spelled(query, 1);
    let mut all: Option<PingReply> = None;
    let mut number = 0;
    // None: until Ctrl-C.
    while query.count == 0 || number < query.count {
        let begun = Instant::now();
        let one = ask(connection, &line)?;
        if number == 0 {
            say(out, &ping::head(&one))?;
        }
        for answer in &one.answers {
            say(out, &ping::line(number as usize, answer.as_ref()))?;
        }
        let sum = all.get_or_insert_with(|| PingReply {
            sent: 0,
            received: 0,
            answers: Vec::new(),
            ..one.clone()
        });
        add(sum, &one);
        number += 1;
        let last = number == query.count;
        let pause = Duration::from_millis(query.interval_ms.into()).saturating_sub(begun.elapsed());
        if !last && interrupt.within(pause) {
            break;
        }
    }
    match all {
        Some(sum) => say(out, &ping::summary(&sum)),
        None => Ok(()),
    }
}

/// Adds what came of one more request.
fn add(sum: &mut PingReply, one: &PingReply) {
    let before = u64::from(sum.received);
    sum.sent += one.sent;
    sum.received += one.received;
    let Some(time) = one.avg_us else { return };
    let mean = sum.avg_us.unwrap_or(0) * before + time;
    sum.avg_us = mean.checked_div(u64::from(sum.received));
    sum.min_us = sum
        .min_us
        .filter(|_| before > 0)
        .into_iter()
        .chain(one.min_us)
        .min();
    sum.max_us = sum
        .max_us
        .filter(|_| before > 0)
        .into_iter()
        .chain(one.max_us)
        .max();
}

fn trace_each(
    connection: &mut Connection,
    query: &TracerouteQuery,
    out: &mut dyn Write,
) -> Result<(), ClientError> {
    let mut interrupt = Interrupt::new()?;
    let mut reached = false;
    for hops in 1..=query.most_hops {
        let ping = PingQuery {
            source: query.source,
            table: query.table,
            interval_ms: 10,
            size: 32,
            hops,
            timeout_ms: query.timeout_ms,
            ..PingQuery::new(query.destination)
        };
        let came = ask(connection, &spelled(&ping, query.probes))?;
        if hops == 1 {
            let (destination, source) = (came.destination, came.source);
            say(out, &format!("{destination} from {source}\n"))?;
        }
        let last = |result: ProbeResult| result != ProbeResult::TimeExceeded;
        let ended = came.answers.iter().flatten().any(|a| last(a.result));
        reached |= came.received > 0;
        let hop = TraceHop {
            hops,
            answers: came.answers,
        };
        say(out, &ping::hop(&hop))?;
        if ended || interrupt.within(Duration::ZERO) {
            break;
        }
    }
    let end = TracerouteReply {
        destination: query.destination,
        source: query.destination,
        reached,
        hops: Vec::new(),
    };
    say(out, ping::not_reached(&end))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Action, parse_line};

    #[test]
    fn one_request_of_a_ping_is_spelled_as_a_ping() {
        let line =
            "ping 192.0.2.9 source 192.0.2.1 table 7 count 3 interval 20 size 9 ttl 5 timeout 30";
        let query = |line: &str| match parse_line(line).unwrap().action {
            Action::Query(Query::Ping(ping), _) => ping,
            other => panic!("{other:?}"),
        };
        let whole = query(line);
        let one = PingQuery {
            count: 1,
            ..whole.clone()
        };
        assert_eq!(query(&spelled(&whole, 1)), one);
    }

    #[test]
    fn times_are_summed_up() {
        let one = |time: Option<u64>| PingReply {
            destination: [192, 0, 2, 9].into(),
            source: [192, 0, 2, 1].into(),
            size: 56,
            sent: 1,
            received: u32::from(time.is_some()),
            min_us: time,
            avg_us: time,
            max_us: time,
            answers: Vec::new(),
        };
        let mut sum = PingReply {
            sent: 0,
            ..one(None)
        };
        for time in [Some(10), None, Some(40), Some(10)] {
            add(&mut sum, &one(time));
        }
        assert_eq!((sum.sent, sum.received), (4, 3));
        assert_eq!(
            [sum.min_us, sum.avg_us, sum.max_us],
            [Some(10), Some(20), Some(40)]
        );
    }
}
