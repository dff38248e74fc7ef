//! `set ip icmp`.

use super::args::Args;
use super::interface::stray;
use volley_model::{IcmpSettings, Request, Switch, SyntaxError};

pub(super) fn settings(args: &mut Args<'_>) -> Result<Request, SyntaxError> {
    let mut icmp = IcmpSettings::default();
    for word in ["set", "ip", "icmp"] {
        args.take(word);
    }
    while let Some((word, column)) = args.option()? {
        match word {
            "errors" => {
                icmp.errors = match args.take("off") {
                    true => Switch::Off,
                    false => Switch::On,
                };
                args.take("on");
            }
            "rate" => icmp.rate = args.number32()?,
            "burst" => icmp.burst = args.number32()?,
            "receiver-rate" => icmp.receiver_rate = args.number32()?,
            _ => stray(word, column)?,
        }
    }
    Ok(Request::Icmp(icmp))
}
