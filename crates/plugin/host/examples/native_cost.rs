//! A node as a plugin, the same node built in, or none: `native_cost FILE|built-in|none LEVEL VECTOR-SIZE ROUNDS`. It prints the
//! packets that passed. `cargo xtask show nodes --only native-cost` counts its instructions with callgrind.
#![forbid(unsafe_code)]

#[path = "../tests/arc/mod.rs"]
mod arc;
#[path = "../tests/sample/src/ttl.rs"]
mod ttl;

use std::cell::RefCell;
use std::error::Error;
use std::path::Path;
use std::rc::Rc;
use ttl::TtlCheck;
use volley_graph::buf::Pool;
use volley_graph::*;
use volley_plugin_host::Plugins;

fn main() -> Result<(), Box<dyn Error>> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let [node, level, size, rounds] = &args[..] else {
        return Err("four arguments: FILE|built-in|none LEVEL VECTOR-SIZE ROUNDS".into());
    };
    let settings = Settings {
        vector_size: size.parse()?,
        level: level.parse()?,
        workers: 1,
        ..Settings::default()
    };
    let mut engine = arc::engine(settings, Pool::new(4096)?)?;
    if node == "built-in" {
        engine.add(TtlCheck::NAME, |_| TtlCheck)?;
        engine.add_feature("test-arc", Feature::after(TtlCheck::NAME, &[]))?;
    }
    let mut workers = engine.build()?;
    let engine = Rc::new(RefCell::new(engine));
    let plugins = Plugins::new(engine.clone(), &Processes::default(), |i| format!("if{i}"));
    if node != "built-in" && node != "none" {
        plugins.load("ttl-check", Path::new(node))?;
    }
    if node != "none" {
        let mut engine = engine.borrow_mut();
        engine.set_feature("test-arc", TtlCheck::NAME, 1, true)?;
    }
    let mut passed = 0;
    for _ in 0..rounds.parse::<u64>()? {
        passed += workers.iter_mut().map(Worker::step).sum::<usize>();
    }
    println!("{passed}");
    Ok(())
}
