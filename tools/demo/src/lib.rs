//! `volley demo`: a full-size table, real packets, the cost of each node, and a check of every packet that left.
//!
//! - First every packet passes once: received and transmitted packets are captured and compared with the plain model of
//!   [`volley_reference`]: each frame byte for byte with its interface, each drop with its reason, all counts.
//! - Then the same packets are repeated for some seconds, and the clocks of the nodes are shown. A sample of the
//!   transmitted packets must be among the frames of the first part.
//! - Any difference ends the demo with an error.
//!
//! `volley demo --net` is a different demo: see `net`.
#![forbid(unsafe_code)]

mod check;
mod error;
mod net;
mod router;
mod table;
mod traffic;

pub use error::DemoError;

use check::Expected;
use router::{HOPS, Lab, Speed};
use std::io::Write;
use std::path::PathBuf;
use std::time::{Duration, Instant};
use table::RouteTable;
use traffic::{Stream, Traffic};
use volley_file::Scratch;
use volley_model::quote;
use volley_reference::Reference;

/// `volley demo ...`
#[derive(clap::Args)]
pub struct Args {
    /// IPv4 routes, as text or MRT; default: the shared data, else synthetic.
    #[arg(long, value_name = "FILE")]
    table: Option<PathBuf>,
    /// IPv6 routes, as text or MRT; default: the shared data, else synthetic.
    #[arg(long, value_name = "FILE")]
    table6: Option<PathBuf>,
    /// Packets to replay, pcap or pcapng; default: the shared data, else synthetic.
    #[arg(long, value_name = "FILE")]
    capture: Option<PathBuf>,
    /// Duration of the measurement in seconds, 5 by default; with --net of each stream, 2 by default.
    #[arg(long, value_parser = seconds)]
    seconds: Option<f64>,
    /// Connect two network namespaces by each driver in turn, and measure the connection (root).
    #[arg(long, conflicts_with_all = ["table", "table6", "capture"])]
    net: bool,
    /// With --net: only these connections.
    #[arg(long, value_name = "WAY", requires = "net", value_delimiter = ',')]
    only: Vec<net::Way>,
    /// With --net: print JSON.
    #[arg(long, requires = "net")]
    json: bool,
}

/// Default duration of the measurement in seconds.
const SECONDS: f64 = 5.0;

fn seconds(text: &str) -> Result<f64, String> {
    let seconds = text
        .parse::<f64>()
        .ok()
        .filter(|s| (0.1..=3600.0).contains(s));
    seconds.ok_or_else(|| "write seconds from 0.1 to 3600".to_owned())
}

/// Print a line; ignore a closed output.
macro_rules! say {
    ($($what:tt)*) => { _ = writeln!(std::io::stdout(), $($what)*) };
}

/// Run the demo.
pub fn main(args: Args) -> Result<(), DemoError> {
    let scratch = Scratch::new("volley-demo").map_err(|source| DemoError::Io {
        path: std::env::temp_dir(),
        source,
    })?;
    if args.net {
        let plan = net::Plan {
            only: args.only,
            seconds: args.seconds,
            json: args.json,
        };
        return Ok(net::main(&plan, scratch.path())?);
    }
    let mut lab = Lab::new()?;
    say!("{}", lab.show("show version")?.trim_end());
    lab.wire()?;
    let (v4, v6) = tables(&args, &mut lab, &scratch)?;
    let traffic = Traffic::prepare(&args.capture, &v4, &v6, &scratch)?;
    say!("Packets:");
    for stream in &traffic.streams {
        say!(
            "  {:<9} {:>7} packets, {}",
            stream.name,
            stream.packets,
            stream.what
        );
    }
    let model = router::model(&v4.routes.v4, &v6.routes.v6);
    let expected = once_through(&mut lab, &traffic, &model, &scratch)?;
    let sampled = round_and_round(&mut lab, &traffic, &expected, &args, &scratch)?;
    say!(
        "\nverified: {} packets ({} in, {} out as the reference model says, {} dropped for the reason it gives; {} more sampled at full speed)",
        expected.packets + sampled,
        expected.packets,
        expected.sent,
        expected.dropped,
        sampled
    );
    Ok(())
}

/// Find, load and describe both tables.
fn tables(
    args: &Args,
    lab: &mut Lab,
    scratch: &Scratch,
) -> Result<(RouteTable, RouteTable), DemoError> {
    let v4 = RouteTable::v4(&args.table, scratch)?;
    let v6 = RouteTable::v6(&args.table6, scratch)?;
    say!("Tables:");
    for (table, family) in [(&v4, "ip"), (&v6, "ip6")] {
        let start = Instant::now();
        let file = quote(&table.path.display().to_string());
        lab.line(&format!(
            "{family} route load {file} {}",
            router::paths(family)
        ))?;
        let took = start.elapsed().as_secs_f64();
        let version = if family == "ip" { "IPv4" } else { "IPv6" };
        let count = table.routes.len();
        say!(
            "  {count:>9} {version} prefixes over {HOPS} next hops, {}; loaded in {took:.2} s",
            table.what
        );
    }
    Ok((v4, v6))
}

/// Pass every packet once, capture and compare everything.
fn once_through(
    lab: &mut Lab,
    traffic: &Traffic,
    model: &Reference,
    scratch: &Scratch,
) -> Result<Expected, DemoError> {
    let input = scratch.file("in.pcap");
    lab.line(&format!(
        "pcap trace rx max 1000000 intfc pg0 file {}",
        quote(&input.display().to_string())
    ))?;
    let outputs = lab.capture(scratch, "once", None)?;
    for stream in &traffic.streams {
        lab.line(&stream.once())?;
    }
    lab.switch(None, true)?;
    lab.step_until_idle()?;
    lab.stop_captures()?;
    lab.line("pcap trace off")?;
    traffic.delete(lab)?;
    let input = check::read(&input)?;
    let wanted: usize = traffic.streams.iter().map(|s| s.packets).sum();
    check::same("packets that came in", input.len(), wanted)?;
    let expected = Expected::of(model, &input);
    expected.equals(&outputs, &lab.drops()?, &lab.errors()?)?;
    check::same(
        "packets counted on receipt",
        lab.balance()?,
        expected.packets as u64,
    )?;
    Ok(expected)
}

/// Run at full speed for some seconds: first all streams while samples are taken, then some of them, then all.
fn round_and_round(
    lab: &mut Lab,
    traffic: &Traffic,
    expected: &Expected,
    args: &Args,
    scratch: &Scratch,
) -> Result<usize, DemoError> {
    let seconds = args.seconds.unwrap_or(SECONDS);
    for stream in &traffic.streams {
        lab.line(&stream.endless())?;
    }
    lab.switch(None, true)?;
    let outputs = lab.capture(scratch, "sample", Some(5_000))?;
    lab.run_for(Duration::from_secs_f64((seconds / 10.0).min(0.5)))?;
    lab.stop_captures()?;
    let part = Duration::from_secs_f64(seconds / 3.0);
    let captures = measure(lab, traffic, |stream| !stream.uniform, part)?;
    let uniform = measure(lab, traffic, |stream| stream.uniform, part)?;
    let all = measure(lab, traffic, |_| true, part)?;
    say!(
        "\nshow runtime (all streams at once; the nodes that had packets)\n{}",
        lab.runtime()?.trim_end()
    );
    // Only the table: the example packet of each drop reason differs between runs.
    let drops = lab.show("show drops")?;
    let table = drops.split("\nlast ").next().unwrap_or_default();
    say!("\nshow drops\n{}", table.trim_end());
    say!("\nOne core, cycles per packet: together, in the graph behind the source, in the source:");
    for (what, speed) in [
        ("captures", captures),
        ("uniform", uniform),
        ("all at once", all),
    ] {
        let Speed {
            mpps,
            cycles,
            source,
            together,
        } = speed;
        say!(
            "  {what:<11} {mpps:6.2} Mpps   together {together:6.1}   graph {cycles:6.1}   source {source:6.1}"
        );
    }
    traffic.delete(lab)?;
    lab.balance()?;
    expected.contains(&outputs)
}

/// Run some streams for a time, with all counters cleared before.
fn measure(
    lab: &mut Lab,
    traffic: &Traffic,
    of: impl Fn(&Stream) -> bool,
    time: Duration,
) -> Result<Speed, DemoError> {
    lab.switch(None, false)?;
    for stream in traffic.streams.iter().filter(|s| of(s)) {
        lab.switch(Some(stream.name), true)?;
    }
    // Packets that pass while streams are started and stopped are not measured.
    lab.clear()?;
    lab.run_for(time)?;
    lab.speed()
}
