//! Lua scripts as nodes: a plugin. See `docs/lua.md`.
//!
//! - `model`, `scripts`: the object `lua_script`, and the scripts on the control thread.
//! - `link`: how a node on a worker gets its scripts, and returns old ones.
//! - `node`: the nodes lua-input and lua-ip4, and those of `volley bench scatter`.
//! - `state`, `sandbox`, `limits`: a script on a worker, its library and its limits.
//! - `api`, `vector_methods`: what a script can call.
//! - `scenarios`: benchmarks.
//! - `batch`, `parsed`, `ip4`, `sets`, `masks`, `fields`, `tables`, `replies`, `verdict`: the native modules behind it, which do not know Lua.
//!
//! A worker neither locks nor waits for the control thread. It allocates: a script's values are memory of its state.
#![forbid(unsafe_code)]

mod api;
mod batch;
mod fields;
mod ip4;
mod limits;
mod link;
mod masks;
mod model;
mod node;
mod parsed;
mod replies;
mod sandbox;
mod scenarios;
mod scripts;
mod sets;
mod state;
mod tables;
#[cfg(test)]
mod tests;
mod vector_methods;
mod verdict;

use model::LuaScript;
use node::lua_input::{DeviceInput, Ip4Unicast, LuaScripts, OnArc};
use node::scatter::{Arrays, DropOut, Masks, Scatter, Way};
use scripts::Scripts;
use std::cell::RefCell;
use std::rc::Rc;
use std::time::Duration;
use volley_sdk::prelude::*;

volley_sdk::plugin!(register);

/// The time between two looks at what workers request.
const PERIOD: Duration = Duration::from_millis(5);

fn register(plugin: &mut Plugin) -> Result<(), RegisterError> {
    let scripts = Rc::new(RefCell::new(Scripts::new(plugin.host())));
    feature::<DeviceInput>(plugin, &scripts);
    feature::<Ip4Unicast>(plugin, &scripts);
    scatter::<Arrays>(plugin);
    scatter::<Masks>(plugin);
    scatter::<DropOut>(plugin);
    let of = scripts.clone();
    plugin.object(move |key, now: Option<LuaScript>| match now {
        Some(script) => of.borrow_mut().load(script),
        None => {
            of.borrow_mut().remove(&key.name());
            Ok(())
        }
    })?;
    scenarios::all().for_each(|scenario| _ = plugin.scenario(scenario));
    plugin.every(PERIOD, move || scripts.borrow_mut().run());
    Ok(())
}

/// Add a node of `volley bench scatter`.
fn scatter<W: Way>(plugin: &mut Plugin) {
    let size = plugin.host().vector_size;
    plugin.feature(DeviceInput::ARC, move |_| Scatter::<W>::new(size));
}

/// Add the node of an arc.
fn feature<A: OnArc>(plugin: &mut Plugin, scripts: &Rc<RefCell<Scripts>>) {
    let (scripts, size) = (scripts.clone(), plugin.host().vector_size);
    plugin.feature(A::ARC, move |worker| {
        let link = scripts.borrow_mut().join::<A>(worker);
        LuaScripts::<A>::new(link, size)
    });
}
