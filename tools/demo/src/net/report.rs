//! The table of the demo.

use super::measure::Figures;
use serde::Serialize;
use std::fmt::Write;

/// A connection and its results.
#[derive(Serialize)]
pub struct Row {
    /// Name of the connection.
    pub way: String,
    /// Description of the connection.
    pub what: Option<String>,
    /// Results; `None` if nothing passed.
    pub figures: Option<Figures>,
    /// Reason why nothing passed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fault: Option<String>,
}

/// The complete report.
#[derive(Serialize)]
pub struct Report {
    /// The program's version.
    pub version: &'static str,
    /// Whether the program was built with optimisation.
    pub optimised: bool,
    /// The kernel's release.
    pub kernel: String,
    /// Processors, shared by the hosts, iperf3, the kernel and Volley.
    pub cores: usize,
    /// Seconds of each stream.
    pub seconds: u64,
    /// Connections in the order of measurement.
    pub ways: Vec<Row>,
}

/// The report as a table, with a line for each connection after it.
pub fn text(report: &Report) -> String {
    let mut out = format!(
        "{:<18} {:>9} {:>11} {:>11} {:>8} {:>15}\n",
        "Way", "ping us", "TCP Gbit/s", "UDP Gbit/s", "lost %", "TCP 9000 Gbit/s"
    );
    for row in &report.ways {
        _ = writeln!(out, "{}", line(row));
    }
    out.push('\n');
    for row in &report.ways {
        let what = row.what.as_deref().unwrap_or("nothing");
        _ = writeln!(out, "{:<18} {what}", row.way);
        let jumbo = row.figures.as_ref().and_then(|f| f.jumbo_fault.as_ref());
        if let Some(why) = jumbo {
            _ = writeln!(out, "{:<18} no frames of 9000 bytes: {why}", "");
        }
        if let Some(why) = &row.fault {
            _ = writeln!(out, "{:<18} failed: {why}", "");
        }
    }
    let build = match report.optimised {
        true => "release build",
        false => "debug build, which is slower",
    };
    _ = writeln!(
        out,
        "\nvolley {}, {build}; Linux {}; {} cores for hosts, streams, kernel and Volley together; {} s a stream",
        report.version, report.kernel, report.cores, report.seconds
    );
    out
}

fn line(row: &Row) -> String {
    let Some(f) = &row.figures else {
        return format!("{:<18} {:>9}", row.way, "failed");
    };
    let jumbo = f
        .jumbo_tcp_gbps
        .map_or("-".to_owned(), |gbps| format!("{gbps:.2}"));
    format!(
        "{:<18} {:>9.0} {:>11.2} {:>11.2} {:>8.1} {jumbo:>15}",
        row.way, f.ping_us, f.tcp_gbps, f.udp_gbps, f.udp_lost_percent
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_says_what_passed_and_why_not() {
        let figures = Figures {
            ping_us: 41.6,
            tcp_gbps: 12.345,
            udp_gbps: 1.5,
            udp_lost_percent: 2.0,
            jumbo_tcp_gbps: None,
            jumbo_fault: Some("too large".into()),
        };
        let row = |way: &str, figures: Option<Figures>, fault: Option<&str>| Row {
            way: way.into(),
            what: figures.is_some().then(|| "a bridge".into()),
            figures,
            fault: fault.map(str::to_owned),
        };
        let report = Report {
            version: "1",
            optimised: false,
            kernel: "6".into(),
            cores: 2,
            seconds: 2,
            ways: vec![
                row("one", Some(figures), None),
                row("two", None, Some("no root")),
            ],
        };
        let text = text(&report);
        for part in [
            "one                       42       12.35        1.50      2.0               -",
            "two                   failed",
            "no frames of 9000 bytes: too large",
            "failed: no root",
            "debug build, which",
        ] {
            assert!(text.contains(part), "{part}: {text}");
        }
        let json = serde_json::to_value(&report).unwrap();
        assert_eq!(json["ways"][0]["figures"]["tcp_gbps"], 12.345);
        assert_eq!(json["ways"][1]["fault"], "no root");
    }
}
