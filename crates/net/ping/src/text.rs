//! Replies as text.

use crate::reply::{PingReply, ProbeAnswer, ProbeResult, TraceHop, TracerouteReply};

fn message(answer: &ProbeAnswer) -> &'static str {
    match answer.result {
        ProbeResult::Reply => "",
        ProbeResult::TimeExceeded => "hops used up",
        ProbeResult::NetUnreachable => "no route",
        ProbeResult::HostUnreachable => "host unreachable",
        ProbeResult::Prohibited => "prohibited",
        ProbeResult::TooBig => "too big for the next link",
        ProbeResult::Other => "an error",
    }
}

fn milliseconds(us: u64) -> String {
    format!("{}.{:03} ms", us / 1000, us % 1000)
}

/// Destination, source and size of the requests.
pub(crate) fn head(reply: &PingReply) -> String {
    let PingReply { source, size, .. } = reply;
    format!("{} from {source}: {size} bytes\n", reply.destination)
}

/// Text of the result of one request.
pub(crate) fn line(number: usize, answer: &Option<ProbeAnswer>) -> String {
    match answer {
        None => format!("{number}: no answer\n"),
        Some(a) if a.result == ProbeResult::Reply => format!(
            "{number}: from {}, hops {}, {}\n",
            a.from,
            a.hops,
            milliseconds(a.rtt_us)
        ),
        Some(a) => format!("{number}: from {}: {}\n", a.from, message(a)),
    }
}

/// Text of the totals.
pub(crate) fn summary(reply: &PingReply) -> String {
    let lost = reply.sent - reply.received;
    let text = format!(
        "{} sent, {} received, {lost} lost",
        reply.sent, reply.received
    );
    if let (Some(min), Some(avg), Some(max)) = (reply.min_us, reply.avg_us, reply.max_us) {
        let times = [min, avg, max].map(milliseconds).join(", ");
        return format!("{text}; least, mean, most: {times}\n");
    }
    text + "\n"
}

/// Destination and source of the requests.
pub(crate) fn trace_head(reply: &TracerouteReply) -> String {
    format!("{} from {}\n", reply.destination, reply.source)
}

/// Text of the answers for one hop limit.
pub(crate) fn hop(_: usize, hop: &TraceHop) -> String {
    let mut line = format!("{:>2} ", hop.hops);
    let mut last = None;
    for answer in &hop.answers {
        let Some(a) = answer else {
            line += " *";
            continue;
        };
        if last != Some(a.from) {
            line += &format!(" {}", a.from);
            last = Some(a.from);
        }
        line += &format!(" {}", milliseconds(a.rtt_us));
        if !matches!(a.result, ProbeResult::Reply | ProbeResult::TimeExceeded) {
            line += &format!(" ({})", message(a));
        }
    }
    line + "\n"
}

/// Last line if the destination did not answer.
pub(crate) fn not_reached(reply: &TracerouteReply) -> String {
    match reply.reached {
        true => String::new(),
        false => "not reached\n".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_hop_names_a_station_once() {
        let answer = |from: &str, result| {
            Some(ProbeAnswer {
                from: from.parse().unwrap(),
                rtt_us: 1234,
                result,
                hops: 60,
            })
        };
        let answers = vec![
            answer("192.0.2.1", ProbeResult::TimeExceeded),
            None,
            answer("192.0.2.1", ProbeResult::TimeExceeded),
            answer("192.0.2.9", ProbeResult::Prohibited),
        ];
        let shown = hop(0, &TraceHop { hops: 3, answers });
        assert_eq!(
            shown,
            " 3  192.0.2.1 1.234 ms * 1.234 ms 192.0.2.9 1.234 ms (prohibited)\n"
        );
        assert_eq!(line(7, &None), "7: no answer\n");
        let refused = answer("192.0.2.9", ProbeResult::NetUnreachable);
        assert_eq!(line(7, &refused), "7: from 192.0.2.9: no route\n");
    }
}
