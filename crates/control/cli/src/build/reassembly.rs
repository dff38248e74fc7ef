//! `set ip4 reassembly`, `set ip6 reassembly`.

use super::args::Args;
use super::interface::stray;
use volley_model::{ReassemblySettings, Request, SyntaxError};

pub(super) fn settings(args: &mut Args<'_>) -> Result<Request, SyntaxError> {
    let family = args.family();
    let mut settings = ReassemblySettings::default();
    for word in ["set", "ip", "ip4", "ip6", "reassembly"] {
        args.take(word);
    }
    while let Some((word, column)) = args.option()? {
        match word {
            "max-reassemblies" => settings.max_reassemblies = args.number32()?,
            "max-reassembly-length" => settings.max_reassembly_length = args.number32()?,
            "max-buffers" => settings.max_buffers = args.number32()?,
            "timeout" => settings.timeout = Some(args.number32()?),
            "virtual-timeout" => settings.virtual_timeout_ms = args.number32()?,
            _ => stray(word, column)?,
        }
    }
    Ok(Request::Reassembly { family, settings })
}
