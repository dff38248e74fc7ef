//! `ping` and `traceroute`.

use volley_model::reply::{PingReply, ProbeAnswer, ProbeResult, TracerouteReply};

fn said(answer: &ProbeAnswer) -> &'static str {
    match answer.said {
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
    let PingReply { source, size, .. } = reply;
    let mut text = format!("{} from {source}: {size} bytes\n", reply.destination);
    for (number, answer) in reply.answers.iter().enumerate() {
        text += &match answer {
            None => format!("{number}: no answer\n"),
            Some(a) if a.said == ProbeResult::Reply => format!(
                "{number}: from {}, hops {}, {}\n",
                a.from,
                a.hops,
                milliseconds(a.rtt_us)
            ),
            Some(a) => format!("{number}: from {}: {}\n", a.from, said(a)),
        };
    }
    let lost = reply.sent - reply.received;
    text += &format!(
        "{} sent, {} received, {lost} lost",
        reply.sent, reply.received
    );
    if let (Some(min), Some(avg), Some(max)) = (reply.min_us, reply.avg_us, reply.max_us) {
        let times = [min, avg, max].map(milliseconds).join(", ");
        text += &format!("; least, mean, most: {times}");
    }
    text + "\n"
}

pub(super) fn traceroute(reply: &TracerouteReply) -> String {
    let mut text = format!("{} from {}\n", reply.destination, reply.source);
    for hop in &reply.hops {
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
            if !matches!(a.said, ProbeResult::Reply | ProbeResult::TimeExceeded) {
                line += &format!(" ({})", said(a));
            }
        }
        text += &(line + "\n");
    }
    if !reply.reached {
        text += "not reached\n";
    }
    text
}
