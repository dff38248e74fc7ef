//! `ping`, `traceroute` and `arping`.

use volley_model::reply::{
    ArpingAnswer, ArpingReply, PingReply, ProbeAnswer, ProbeResult, TraceHop, TracerouteReply,
};

fn said(answer: &ProbeAnswer) -> &'static str {
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

pub(super) fn ping(reply: &PingReply) -> String {
    let answers = reply.answers.iter().enumerate();
    let lines: String = answers.map(|(n, a)| line(n, a.as_ref())).collect();
    head(reply) + &lines + &summary(reply)
}

/// To whom, and from which address.
pub(crate) fn head(reply: &PingReply) -> String {
    let PingReply { source, size, .. } = reply;
    format!("{} from {source}: {size} bytes\n", reply.destination)
}

/// What came of one request.
pub(crate) fn line(number: usize, answer: Option<&ProbeAnswer>) -> String {
    match answer {
        None => format!("{number}: no answer\n"),
        Some(a) if a.result == ProbeResult::Reply => format!(
            "{number}: from {}, hops {}, {}\n",
            a.from,
            a.hops,
            milliseconds(a.rtt_us)
        ),
        Some(a) => format!("{number}: from {}: {}\n", a.from, said(a)),
    }
}

/// What came of all of them.
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

pub(super) fn traceroute(reply: &TracerouteReply) -> String {
    let text = format!("{} from {}\n", reply.destination, reply.source);
    let hops: String = reply.hops.iter().map(hop).collect();
    text + &hops + not_reached(reply)
}

/// Who answered to one number of hops.
pub(crate) fn hop(hop: &TraceHop) -> String {
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
            line += &format!(" ({})", said(a));
        }
    }
    line + "\n"
}

/// The last line when the destination did not answer.
pub(crate) fn not_reached(reply: &TracerouteReply) -> &'static str {
    match reply.reached {
        true => "",
        false => "not reached\n",
    }
}

pub(super) fn arping(reply: &ArpingReply) -> String {
    let lines: String = reply.answers.iter().map(arping_line).collect();
    arping_head(reply) + &lines + &arping_summary(reply)
}

/// For which address, from which one, and where.
pub fn arping_head(reply: &ArpingReply) -> String {
    let ArpingReply {
        interface, source, ..
    } = reply;
    format!("{} from {source} on {interface}\n", reply.address)
}

/// One answer.
pub fn arping_line(answer: &ArpingAnswer) -> String {
    let time = milliseconds(answer.rtt_us);
    format!("{}: from {}, {time}\n", answer.number, answer.mac)
}

/// What came of all requests, and who else has the address.
pub fn arping_summary(reply: &ArpingReply) -> String {
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

/// Why a run without any answer failed.
pub fn arping_failure(reply: &ArpingReply) -> String {
    let ArpingReply {
        address, interface, ..
    } = reply;
    format!("no station on interface {interface} answered for {address}")
}
