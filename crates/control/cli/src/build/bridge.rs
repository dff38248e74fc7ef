//! Bridge domains.

use super::args::Args;
use super::interface::stray;
use volley_model::{Request, SyntaxError};

pub(super) fn flush(args: &mut Args<'_>) -> Result<Request, SyntaxError> {
    for word in ["l2fib", "flush-mac"] {
        args.take(word);
    }
    let (mut interface, mut domain) = (None, None);
    while let Some((word, column)) = args.option()? {
        match word {
            "interface" => interface = Some(args.text()?),
            "bridge-domain" => domain = Some(args.number32()?),
            _ => stray(word, column)?,
        }
    }
    Ok(Request::L2FibFlush { interface, domain })
}
