//! A plugin that is replaced again and again while a generator in memory sends packets through it on another thread.
//!
//! `replacements FILE TIMES MPPS` prints the packets that were sent, those that passed the plugin's node, those that arrived at the end,
//! those that were dropped, the seconds, and the memory in kB after a tenth of the replacements and at the end. `cargo xtask show nodes
//! --only load-replace-unload` judges them.
#![forbid(unsafe_code)]

#[path = "../tests/arc/mod.rs"]
mod arc;

use std::cell::RefCell;
use std::error::Error;
use std::path::Path;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::time::{Duration, Instant};
use volley_graph::buf::Pool;
use volley_graph::{Engine, Processes, Settings, Worker};
use volley_plugin_host::Plugins;

/// Memory of this process in use.
fn resident_kb() -> Result<u64, Box<dyn Error>> {
    let status = std::fs::read_to_string("/proc/self/status")?;
    let line = status.lines().find_map(|it| it.strip_prefix("VmRSS:"));
    let words = line.ok_or("no VmRSS")?.split_whitespace().next();
    Ok(words.ok_or("no number")?.parse()?)
}

/// Sends packets at this rate until `end` is set. No packet is pending after a round.
fn generate(mut worker: Worker, rate: f64, sent: &AtomicU64, end: &AtomicBool) {
    let start = Instant::now();
    while !end.load(Relaxed) {
        let due = (start.elapsed().as_secs_f64() * rate) as u64;
        if sent.load(Relaxed) < due {
            let packets = worker.step() as u64;
            sent.fetch_add(packets, Relaxed);
        } else {
            std::hint::spin_loop();
        }
    }
}

fn vectors(engine: &Engine, node: &str) -> u64 {
    let all = engine.runtime(0);
    let found = all.iter().find(|it| it.name == node);
    found.map_or(0, |it| it.vectors)
}

fn main() -> Result<(), Box<dyn Error>> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let [file, times, mpps] = &args[..] else {
        return Err("three arguments: FILE TIMES MPPS".into());
    };
    let (times, rate) = (times.parse::<usize>()?, mpps.parse::<f64>()? * 1e6);
    let mut engine = arc::engine(Settings::default(), Pool::new(4096)?)?;
    let worker = engine.build()?.pop().ok_or("no worker")?;
    let engine = Rc::new(RefCell::new(engine));
    let plugins = Plugins::new(engine.clone(), &Processes::default(), |i| format!("if{i}"));
    plugins.load("replaced", Path::new(file))?;
    engine
        .borrow_mut()
        .set_feature("test-arc", "stamp", 1, true)?;
    let (sent, end) = (Arc::<AtomicU64>::default(), Arc::<AtomicBool>::default());
    let (of_worker, at_end) = (sent.clone(), end.clone());
    let thread = std::thread::spawn(move || generate(worker, rate, &of_worker, &at_end));
    // The first packets pass before the feature is enabled.
    while plugins.reap() > 0 || sent.load(Relaxed) == 0 {
        std::thread::sleep(Duration::from_millis(1));
    }
    let (start, first) = (Instant::now(), sent.load(Relaxed));
    let mut early_kb = 0;
    for n in 0..times {
        plugins.load("replaced", Path::new(file))?;
        while plugins.reap() > 0 {
            std::thread::sleep(Duration::from_micros(200));
        }
        if n == times / 10 {
            early_kb = resident_kb()?;
        }
    }
    let (took, packets) = (start.elapsed().as_secs_f64(), sent.load(Relaxed) - first);
    end.store(true, Relaxed);
    thread.join().map_err(|_| "the worker panicked")?;
    let late_kb = resident_kb()?;
    let engine = engine.borrow();
    let all = sent.load(Relaxed);
    let seen = vectors(&engine, "stamp");
    let (arrived, dropped) = (vectors(&engine, "end"), vectors(&engine, "error-drop"));
    println!("{all} {seen} {arrived} {dropped} {packets} {took:.3} {early_kb} {late_kb}");
    Ok(())
}
