//! `monitor`: a capture to the terminal.

use super::args::Args;
use super::interface::stray;
use volley_model::{Directions, Monitor, SyntaxError};

pub(super) fn monitor(args: &mut Args<'_>) -> Result<Monitor, SyntaxError> {
    args.take("monitor");
    let any = args.take("any");
    let mut monitor = Monitor {
        directions: Directions::default(),
        interface: (!any).then(|| args.text()).transpose()?,
        count: None,
        snap: None,
        filter: None,
        pcapng: false,
    };
    while let Some((word, column)) = args.option()? {
        match word {
            "rx" => monitor.directions.rx = true,
            "tx" => monitor.directions.tx = true,
            "drop" => monitor.directions.drop = true,
            "count" => monitor.count = Some(args.number(u64::MAX)?),
            "max-bytes-per-packet" => monitor.snap = Some(args.number32()?),
            "filter" => monitor.filter = Some(args.text()?),
            "pcapng" => monitor.pcapng = true,
            _ => stray(word, column)?,
        }
    }
    if monitor.directions == Directions::default() {
        (monitor.directions.rx, monitor.directions.tx) = (true, true);
    }
    Ok(monitor)
}
