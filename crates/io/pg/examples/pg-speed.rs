//! Cycles per packet of `pg-input` and of the transmit node, for several types of streams: `cargo run --release
//! --example pg-speed`. All packets are sent from the source directly to `pg0-tx`.

use volley_graph::buf::Pool;
use volley_graph::{Domain, Engine, GraphError, Settings};
use volley_iface::Admin;
use volley_iface::AdminState;
use volley_iface::Registry;
use volley_model::{InterfaceSpec, ModelError, Request};
use volley_pg::model::PgInterface;
use volley_pg::{Pg, Preload, Sizes, StreamSpec};

const TEMPLATE: &str = "eth / ip4 src 10.0.0.1 dst 10.1.0.1 / udp / payload size 18";
const EDIT: &str = "ip4.dst random 10.0.0.0 10.255.255.255";

fn spec(edits: &[&str], size: Sizes) -> StreamSpec {
    let template = TEMPLATE.parse().unwrap_or_else(|e| panic!("{e}"));
    StreamSpec {
        node: Some("pg0-tx".into()),
        edits: edits.iter().filter_map(|e| e.parse().ok()).collect(),
        size: Some(size),
        seed: Some(1),
        ..StreamSpec::new("s", "pg0", template)
    }
}

fn ask(registry: &mut Registry, request: Request) -> Result<(), ModelError> {
    let mut handlers = registry.handlers.iter_mut();
    handlers
        .find_map(|h| h.apply(&request))
        .map_or(Ok(()), |r| r.map(drop))
}

fn graph() -> Result<(Registry, Pg), GraphError> {
    let pool = Pool::new(80_000).map_err(|_| GraphError::Workers(0))?;
    let engine = Engine::new(Settings::default(), pool, Domain::new())?;
    let mut registry = Registry::new(engine);
    volley_iface::register(&mut registry)?;
    let pg = volley_pg::register(&mut registry)?;
    Ok((registry, pg))
}

fn measure(
    name: &str,
    spec: &StreamSpec,
    preload: Option<usize>,
) -> Result<(), Box<dyn std::error::Error>> {
    let (mut registry, pg) = graph()?;
    let mut workers = registry.engine.borrow_mut().build()?;
    let interface = InterfaceSpec::of(&PgInterface { name: "pg0".into() })?;
    ask(&mut registry, Request::InterfaceCreate(interface))?;
    let up = Admin::request("pg0", AdminState::Up)?;
    registry.owners.apply(&up).transpose()?;
    match preload {
        Some(packets) => drop(pg.preloaded(spec, Preload { packets })?),
        None => {
            let done = registry.owners.apply(&Request::set(spec)?);
            done.transpose()?;
        }
    }
    pg.switch(None, true)?;
    (0..1000).for_each(|_| _ = workers[0].step());
    registry.engine.borrow_mut().clear_runtime();
    (0..20_000).for_each(|_| _ = workers[0].step());
    let runtime = registry.engine.borrow().runtime(0);
    let cycles = |node: &str| {
        let found = runtime.iter().find(|n| n.name == node);
        found.map_or(0.0, |n| n.clocks as f64 / n.vectors.max(1) as f64)
    };
    println!(
        "{name:32} pg-input {:7.1}  pg0-tx {:6.1}  cycles per packet",
        cycles("pg-input"),
        cycles("pg0-tx")
    );
    Ok(())
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    measure("64 bytes, no edits", &spec(&[], Sizes::Fixed(64)), None)?;
    measure(
        "64 bytes, random destination",
        &spec(&[EDIT], Sizes::Fixed(64)),
        None,
    )?;
    measure(
        "imix, random destination",
        &spec(&[EDIT], Sizes::simple_imix()),
        None,
    )?;
    measure(
        "64 to 1518 bytes at random",
        &spec(&[EDIT], Sizes::Random { min: 64, max: 1518 }),
        None,
    )?;
    measure(
        "64 bytes, preloaded 65,536",
        &spec(&[EDIT], Sizes::Fixed(64)),
        Some(65_536),
    )
}
