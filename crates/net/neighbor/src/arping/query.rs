//! The query `arping`, its reply and its text output.

use schemars::JsonSchema;
use serde::Serialize;
use std::net::IpAddr;
use std::ops::RangeInclusive;
use volley_model::{Mac, one_host};
use volley_object::{FieldError, Query, whole_run};

/// Range of the interval between requests and of the timeout for answers, in milliseconds.
const MILLISECONDS: RangeInclusive<u32> = 10..=10_000;

/// Ask the link of an interface who has an address, by ARP for IPv4 and neighbour discovery for IPv6 (5 requests, a second
/// apart; count 0: until Ctrl-C); interval and timeout in milliseconds.
#[derive(Clone, Debug, PartialEq, Eq, Query)]
#[query(name = "arping", operate, check = Arping::check, reply = ArpingReply)]
#[query(
    show = "(arping | ndping) <interface> <address> {(repeat | count) <count> | interval <interval_ms> | timeout <timeout_ms>}"
)]
#[query(example = "arping lan0 192.0.2.9 count 3")]
#[query(stream(
    items = answers,
    head = head,
    line = line,
    end = summary,
    failure = failure,
    whole = Arping::whole
))]
pub struct Arping {
    /// Interface to the link.
    #[query(needs = "interface")]
    pub interface: String,
    /// Address to ask for.
    pub address: IpAddr,
    /// Number of requests; 0: until Ctrl-C.
    #[query(default = 5)]
    pub count: u32,
    /// Time between two requests.
    #[query(default = 1000, range = MILLISECONDS, unit = "ms")]
    pub interval_ms: u32,
    /// Time to wait for answers to the last request.
    #[query(default = 1000, range = MILLISECONDS, unit = "ms")]
    pub timeout_ms: u32,
}

impl Arping {
    fn check(&self) -> Result<(), FieldError> {
        one_host("address", self.address)
    }

    fn whole(&self) -> Result<(), FieldError> {
        let pauses = u64::from(self.count.saturating_sub(1));
        let span_ms = pauses * u64::from(self.interval_ms) + u64::from(self.timeout_ms);
        whole_run("count", self.count, span_ms)
    }
}

/// One answer to an ARP request or neighbour solicitation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct ArpingAnswer {
    /// Number of the last request before the answer, from 0.
    pub number: u32,
    /// MAC address of the answering host.
    pub mac: Mac,
    /// Microseconds from this request to the answer.
    pub rtt_us: u64,
}

/// Result of an arping.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct ArpingReply {
    /// On which interface.
    pub interface: String,
    /// For which address.
    pub address: IpAddr,
    /// From which address.
    pub source: IpAddr,
    /// Requests sent.
    pub sent: u32,
    /// Requests with at least one answer.
    pub received: u32,
    /// MAC addresses that answered: more than one mean an address conflict.
    pub macs: Vec<Mac>,
    /// Answers in order of arrival; 16 of each request at most.
    pub answers: Vec<ArpingAnswer>,
}

/// First line of the output: interface and addresses.
fn head(reply: &ArpingReply) -> String {
    let ArpingReply {
        interface, source, ..
    } = reply;
    format!("{} from {source} on {interface}\n", reply.address)
}

/// Output line of one answer.
fn line(_: usize, answer: &ArpingAnswer) -> String {
    let ArpingAnswer { number, mac, .. } = answer;
    let (ms, us) = (answer.rtt_us / 1000, answer.rtt_us % 1000);
    format!("{number}: from {mac}, {ms}.{us:03} ms\n")
}

/// Last lines of the output: sent and answered requests, and the hosts that share the address.
fn summary(reply: &ArpingReply) -> String {
    let lost = reply.sent - reply.received.min(reply.sent);
    let counts = format!(
        "{} sent, {} answered, {lost} not answered\n",
        reply.sent, reply.received
    );
    if reply.macs.len() < 2 {
        return counts;
    }
    let all: Vec<String> = reply.macs.iter().map(ToString::to_string).collect();
    let all = all.join(", ");
    let n = reply.macs.len();
    format!(
        "{counts}{} is a duplicate address: {n} stations have it: {all}\n",
        reply.address
    )
}

/// Error text of a run without any answer.
fn failure(reply: &ArpingReply) -> Option<String> {
    let ArpingReply {
        address, interface, ..
    } = reply;
    let why = format!("no station on interface {interface} answered for {address}");
    (reply.received == 0).then_some(why)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn arping(address: &str, count: u32) -> Arping {
        Arping {
            interface: "lan0".to_owned(),
            address: address.parse().unwrap(),
            count,
            interval_ms: 1000,
            timeout_ms: 1000,
        }
    }

    #[test]
    fn only_who_follows_a_run_may_have_one_without_end() {
        let whole = |asked: &Arping| asked.asked().unwrap().check_whole();
        assert_eq!(whole(&arping("192.0.2.1", 5)), Ok(()));
        for count in [0, 101, 100] {
            assert!(whole(&arping("192.0.2.1", count)).is_err(), "{count}");
        }
        let error = arping("ff02::1", 5).asked().unwrap_err().to_string();
        assert!(error.contains("one host"), "{error}");
    }

    #[test]
    fn stations_that_share_an_address_are_listed() {
        let mac = |n| Mac([2, 0, 0, 0, 0, n]);
        let mut reply = ArpingReply {
            interface: "lan0".to_owned(),
            address: "192.0.2.9".parse().unwrap(),
            source: "192.0.2.1".parse().unwrap(),
            sent: 2,
            received: 1,
            macs: vec![mac(1), mac(2)],
            answers: Vec::new(),
        };
        assert_eq!(head(&reply), "192.0.2.9 from 192.0.2.1 on lan0\n");
        assert_eq!(
            summary(&reply),
            "2 sent, 1 answered, 1 not answered\n\
             192.0.2.9 is a duplicate address: 2 stations have it: 02:00:00:00:00:01, 02:00:00:00:00:02\n"
        );
        assert_eq!(failure(&reply), None);
        reply.received = 0;
        assert_eq!(
            failure(&reply).unwrap(),
            "no station on interface lan0 answered for 192.0.2.9"
        );
    }
}
