//! What becomes of a packet, and the reasons of drops.

use volley_sdk::prelude::*;

/// What becomes of a packet when the script has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// The packet goes on along the arc: the script has not decided.
    Next,
    /// The function `packet` of the script gets it.
    Slow,
    /// The packet is sent on the interface of its route.
    Send,
    /// The packet is dropped.
    Drop(Count),
}

impl Verdict {
    /// The code of a drop, as `Vector::drop_out` takes it; 0 for all other verdicts.
    pub(crate) fn drop_code(self) -> u32 {
        match self {
            Verdict::Drop(count) => count.code(),
            _ => 0,
        }
    }
}

counters! {
    /// What the nodes of scripts count.
    pub enum Count {
        /// the script raised an error: the log has its file and line
        ScriptError = "script-error" (Error),
        /// the script executed more instructions than its limit allows
        ScriptInstructions = "script-instructions" (Error),
        /// the script needed more memory than its limit allows
        ScriptMemory = "script-memory" (Error),
        /// more packets for the function `packet` than its queue holds
        SlowPathFull = "slow-path-full" (Error),
        /// the script dropped the packet: filtered
        Filtered = "filtered" (Error),
        /// the script dropped the packet: invalid header
        Invalid = "invalid" (Error),
        /// the script dropped the packet: no neighbor entry, or the packet became an ARP request that was not sent
        NoNeighbor = "no-neighbor" (Error),
        /// the script dropped the packet: no route
        NoRoute = "no-route" (Error),
        /// the script dropped the packet: not for this router
        NotForUs = "not-for-us" (Error),
        /// the script dropped the packet: above a rate
        RateLimited = "rate-limited" (Error),
        /// the script dropped the packet: time to live used up
        TtlExpired = "ttl-expired" (Error),
        /// the script dropped the packet: not supported by the script
        Unsupported = "unsupported" (Error),
        /// the script dropped the packet: consumed
        Consumed = "consumed" (Info),
        /// packets that the script sent
        Sent = "sent" (Info),
        /// packets that the function `packet` got
        Slow = "slow" (Info),
    }
}

/// The reasons that a script may name.
const REASONS: [Count; 9] = [
    Count::Filtered,
    Count::Invalid,
    Count::NoNeighbor,
    Count::NoRoute,
    Count::NotForUs,
    Count::RateLimited,
    Count::TtlExpired,
    Count::Unsupported,
    Count::Consumed,
];

/// The name of a counter.
fn name(count: Count) -> &'static str {
    Count::INFO[count.index()].name
}

/// The reason of this name.
pub(crate) fn reason(text: &str) -> Result<Count, String> {
    let found = REASONS.into_iter().find(|count| name(*count) == text);
    found.ok_or_else(|| {
        let names: Vec<&str> = REASONS.into_iter().map(name).collect();
        format!(
            "'{text}' is no reason of a drop: use one of {}",
            names.join(", ")
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reasons_have_names_and_others_are_refused() {
        assert_eq!(reason("no-route"), Ok(Count::NoRoute));
        for text in ["sent", "script-error", ""] {
            assert!(
                reason(text).unwrap_err().contains("use one of filtered"),
                "{text}"
            );
        }
    }
}
