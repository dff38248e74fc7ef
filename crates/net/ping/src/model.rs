//! The queries of this crate: `ping` and `traceroute`.

use crate::reply::{PingReply, TracerouteReply};
use crate::text;
use std::net::IpAddr;
use std::ops::RangeInclusive;
use volley_model::{Family, one_host};
use volley_object::{DefinitionError, FieldError, Query, QueryClass, refuse, whole_run};

/// Range of the interval between requests and of the timeout for an answer, in milliseconds.
const MILLISECONDS: RangeInclusive<u32> = 10..=10_000;

/// Send echo requests (5, a second apart) and show what answers, until Ctrl-C with count 0; interval and timeout in
/// milliseconds.
#[derive(Clone, Debug, PartialEq, Eq, Query)]
#[query(name = "ping", operate, check = Ping::check, reply = PingReply)]
#[query(
    show = "ping <destination> {source <source> | table <table> | (repeat | count) <count> | interval <interval_ms> | \
            size <size> | (hops | ttl) <hops> | timeout <timeout_ms>}"
)]
#[query(example = "ping 192.0.2.9 count 3 source 192.0.2.1")]
#[query(stream(
    items = answers,
    head = text::head,
    line = text::line,
    end = text::summary,
    whole = Ping::whole
))]
pub struct Ping {
    /// Destination of the requests.
    pub destination: IpAddr,
    /// Own address to send from; none = one of the interface that leads to the destination.
    pub source: Option<IpAddr>,
    /// IP table in which the destination is looked up.
    #[query(default = 0)]
    pub table: u32,
    /// Number of requests; 0: until Ctrl-C.
    #[query(default = 5)]
    pub count: u32,
    /// Time between two requests.
    #[query(default = 1000, range = MILLISECONDS, unit = "ms")]
    pub interval_ms: u32,
    /// Bytes of data in each request, behind the ICMP header.
    #[query(default = 56, range = 0u32..=1400, unit = "bytes")]
    pub size: u32,
    /// Time to live or hop limit of the requests.
    #[query(default = 64, range = 1u32..=254)]
    pub hops: u32,
    /// Time to wait for an answer.
    #[query(default = 1000, range = MILLISECONDS, unit = "ms")]
    pub timeout_ms: u32,
}

impl Ping {
    fn check(&self) -> Result<(), FieldError> {
        ends(self.destination, self.source)
    }

    fn whole(&self) -> Result<(), FieldError> {
        let pauses = u64::from(self.count.saturating_sub(1));
        let span_ms = pauses * u64::from(self.interval_ms) + u64::from(self.timeout_ms);
        whole_run("count", self.count, span_ms)
    }
}

/// Send echo requests with one hop, two, and so on (30), and show who answers; timeout in milliseconds.
#[derive(Clone, Debug, PartialEq, Eq, Query)]
#[query(name = "traceroute", operate, check = Traceroute::check, reply = TracerouteReply)]
#[query(
    show = "traceroute <destination> {source <source> | table <table> | most-hops <most_hops> | probes <probes> | \
            timeout <timeout_ms>}"
)]
#[query(example = "traceroute 2001:db8::9 most-hops 5")]
#[query(stream(
    items = hops,
    head = text::trace_head,
    line = text::hop,
    end = text::not_reached,
    whole = Traceroute::whole
))]
pub struct Traceroute {
    /// Destination of the requests.
    pub destination: IpAddr,
    /// Own address to send from; none = one of the interface that leads to the destination.
    pub source: Option<IpAddr>,
    /// IP table in which the destination is looked up.
    #[query(default = 0)]
    pub table: u32,
    /// Give up behind this many hops.
    #[query(default = 30, range = 1u32..=64)]
    pub most_hops: u32,
    /// Requests of each number of hops.
    #[query(default = 3, range = 1u32..=5)]
    pub probes: u32,
    /// Time to wait for an answer.
    #[query(default = 1000, range = MILLISECONDS, unit = "ms")]
    pub timeout_ms: u32,
}

impl Traceroute {
    fn check(&self) -> Result<(), FieldError> {
        ends(self.destination, self.source)
    }

    fn whole(&self) -> Result<(), FieldError> {
        let span_ms = u64::from(self.most_hops) * u64::from(self.timeout_ms);
        whole_run("most_hops", self.most_hops, span_ms)
    }
}

fn ends(destination: IpAddr, source: Option<IpAddr>) -> Result<(), FieldError> {
    one_host("destination", destination)?;
    let family = Family::of(destination);
    match source {
        Some(source) if Family::of(source) != family => refuse(
            "source",
            format!("must have the IP version of the destination, {family}, not {source}"),
        ),
        _ => Ok(()),
    }
}

/// Registers the queries of this crate.
pub fn classes() -> Result<[QueryClass; 2], DefinitionError> {
    Ok([Ping::query()?, Traceroute::query()?])
}

#[cfg(test)]
mod tests {
    use super::*;
    use volley_object::Asked;

    fn ping() -> Ping {
        Ping {
            destination: "192.0.2.1".parse().unwrap(),
            source: None,
            table: 0,
            count: 5,
            interval_ms: 1000,
            size: 56,
            hops: 64,
            timeout_ms: 1000,
        }
    }

    fn whole(asked: Result<Asked, FieldError>) -> Result<(), String> {
        let checked = asked.and_then(|asked| asked.check_whole());
        checked.map_err(|error| error.to_string())
    }

    #[test]
    fn what_is_beyond_the_limits_is_refused() {
        classes().unwrap();
        assert_eq!(whole(ping().asked()), Ok(()));
        let long = Ping {
            count: 100,
            interval_ms: 10_000,
            ..ping()
        };
        assert!(whole(long.asked()).unwrap_err().contains("60 s"));
        let endless = Ping { count: 0, ..ping() };
        assert!(endless.asked().is_ok() && whole(endless.asked()).is_err());
        let to = |to: &str| Ping {
            destination: to.parse().unwrap(),
            ..ping()
        };
        for (bad, why) in [
            (
                Ping {
                    hops: 255,
                    ..ping()
                },
                "1 to 254",
            ),
            (
                Ping {
                    size: 1401,
                    ..ping()
                },
                "0 to 1400",
            ),
            (
                Ping {
                    source: Some("::1".parse().unwrap()),
                    ..ping()
                },
                "IP version",
            ),
            (to("224.0.0.1"), "one host"),
            (to("::"), "one host"),
        ] {
            let error = bad.asked().unwrap_err().to_string();
            assert!(error.contains(why), "{error}");
        }
        let trace = Traceroute {
            destination: "2001:db8::1".parse().unwrap(),
            source: None,
            table: 0,
            most_hops: 30,
            probes: 3,
            timeout_ms: 1000,
        };
        assert_eq!(whole(trace.asked()), Ok(()));
        let long = Traceroute {
            timeout_ms: 3000,
            ..trace
        };
        assert!(long.asked().is_ok());
        assert!(whole(long.asked()).unwrap_err().contains("90 s"));
    }
}
