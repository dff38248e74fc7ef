//! ip4-icmp-echo-request, ip6-icmp-echo-request: reply to echo requests in place (RFC 1122, 3.2.2.6; RFC 4443, 4.2).
//!
//! Identifier, sequence number and data stay unchanged; checksums are updated incrementally (RFC 1624).

use crate::{Icmp, IpTrace};
use std::marker::PhantomData;
use volley_fib::columns::FORWARDING;
use volley_graph::{Consumed, Cx, Isa, Node, Vector, counters, nexts};

nexts! {
    /// Edges of the echo nodes.
    pub struct Next<F: Icmp> {
        DROP => "error-drop",
        LOOKUP => F::LOOKUP,
    }
}

counters! {
    /// What the echo nodes count.
    pub enum Count {
        /// echo requests answered
        Answered = "answered" (Info),
        /// the packet is no echo request
        NoRequest = "no-echo-request" (Error),
    }
}

/// State of an echo node.
pub struct EchoRequest<F>(PhantomData<F>);

impl<F> Default for EchoRequest<F> {
    fn default() -> Self {
        EchoRequest(PhantomData)
    }
}

impl<F: Icmp> Node for EchoRequest<F> {
    const NAME: &'static str = F::ICMP_ECHO;
    type Next = Next<F>;
    type Count = Count;
    type Trace = IpTrace;

    #[inline(always)]
    fn run<I: Isa>(&mut self, cx: &Cx<'_, Count>, mut v: Vector<'_, I, Next<F>>) -> Consumed {
        // The reply has another destination.
        v.forget(&FORWARDING);
        v.each(|packet| match F::echo(packet.bytes_mut()) {
            Some(skip) => {
                packet.advance(skip);
                cx.count(Count::Answered, 1);
                Next::LOOKUP
            }
            None => {
                packet.fail(cx, Count::NoRequest);
                Next::DROP
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use volley_fib::columns::DST;
    use volley_fib::{V4, V6};
    use volley_graph::Domain;
    use volley_graph::harness::{In, run};

    #[test]
    fn an_ip4_request_becomes_its_answer() {
        let request = [
            0x46, 0, 0, 35, 0x12, 0x34, 0x40, 0, 9, 1, 0x70, 0x67, 192, 0, 2, 9, 198, 51, 100, 1,
            1, 1, 1, 0, 8, 0, 0xd5, 0xc2, 0x12, 0x34, 0, 1, 7, 8, 9,
        ];
        let answer = [
            0x46, 0, 0, 35, 0x12, 0x34, 0x40, 0, 65, 1, 0x38, 0x67, 198, 51, 100, 1, 192, 0, 2, 9,
            1, 1, 1, 0, 0, 0, 0xdd, 0xc2, 0x12, 0x34, 0, 1, 7, 8, 9,
        ];
        let packet = In::new(&request).column(DST.col, 0xc633_6401);
        let out = run(&[packet], &Domain::new(), |_| EchoRequest::<V4>::default());
        assert_eq!(
            (out[0].to.as_str(), &out[0].bytes[..]),
            ("ip4-lookup", &answer[..])
        );
        assert!(!out[0].columns.contains_key(&DST.col));
        let right = volley_wire::checksum::is_valid;
        assert!(right(&request[24..]) && right(&out[0].bytes[24..]));
        assert!(right(&request[..24]) && right(&out[0].bytes[..24]));
    }

    #[test]
    fn an_ip6_answer_goes_without_extension_headers() {
        let mut request = vec![0x60, 1, 2, 3, 0, 18, 60, 9];
        request.extend([1; 16]);
        request.extend([2; 16]);
        request.extend([58, 0, 1, 4, 0, 0, 0, 0]);
        request.extend([128, 0, 0x10, 0x20, 0x12, 0x34, 0, 1, 7, 8]);
        let mut answer = vec![0x60, 0, 0, 0, 0, 10, 58, 65];
        answer.extend([2; 16]);
        answer.extend([1; 16]);
        answer.extend([129, 0, 0x0f, 0x20, 0x12, 0x34, 0, 1, 7, 8]);
        let out = run(&[In::new(&request)], &Domain::new(), |_| {
            EchoRequest::<V6>::default()
        });
        assert_eq!(
            (out[0].to.as_str(), &out[0].bytes[..]),
            ("ip6-lookup", &answer[..])
        );
    }
}
