//! The plugins, and the versions that wait for the workers before they are unmapped.

use crate::error::PluginError;
use crate::file;
use crate::graph::{Graph, Part, Wanted};
use crate::model::LoadedPlugin;
use crate::objects::{self, Carriers, Performers};
use crate::services::Services;
use crate::show::{
    PluginMetricRow, PluginNodeRow, PluginRow, PluginState, PluginsReply, ShowPlugins,
};
use crate::sys::Library;
use crate::tasks::Tasks;
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::path::Path;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;
use volley_graph::{
    Domain, Engine, GracePeriod, NodeFault, NodeId, PeriodicRunner, PeriodicTask, ProcessInfo,
    Processes,
};
use volley_model::{Applied, ModelError, Owners};
use volley_object::{DefinitionError, Instance, Invocation, ObjectKey};
use volley_plugin_abi::{
    Host, HostInterface, HostServices, NoServices, Outcome, Plugin, PluginMetric, PluginProtocol,
    Scenario,
};

/// Vectors that the stages of a plugin may hold on each worker: two million packets.
const MOST_FRAMES: usize = 8192;
/// Interval between checks whether the workers have left a plugin's code.
const LOOK: Duration = Duration::from_millis(1);

/// One version of a plugin.
struct Loaded {
    path: String,
    library: Library,
    part: Part,
    classes: Carriers,
    verbs: Performers,
    tasks: Tasks,
    metrics: Vec<PluginMetric>,
    scenarios: Vec<Scenario>,
    page: String,
    /// Nodes of the version that stays may have instances of this one: its code must stay mapped.
    is_entangled: bool,
}

impl Loaded {
    fn new(path: &Path, library: Library) -> Loaded {
        Loaded {
            path: path.display().to_string(),
            library,
            part: Part::default(),
            classes: Carriers::default(),
            verbs: Performers::default(),
            tasks: Tasks::default(),
            metrics: Vec::new(),
            scenarios: Vec::new(),
            page: String::new(),
            is_entangled: false,
        }
    }

    /// Takes what needs no registration.
    fn equip(&mut self, plugin: &mut Plugin) {
        self.scenarios = std::mem::take(&mut plugin.scenarios);
        self.metrics = std::mem::take(&mut plugin.metrics);
        self.page = std::mem::take(&mut plugin.page);
        self.tasks = Tasks::new(std::mem::take(&mut plugin.tasks));
    }

    /// Takes the classes and verbs, and makes them the registered ones of the plugin.
    fn register(
        &mut self,
        name: &str,
        plugin: &mut Plugin,
    ) -> Result<objects::RegisteredAll, DefinitionError> {
        let classes = std::mem::take(&mut plugin.classes);
        let verbs = std::mem::take(&mut plugin.verbs);
        let defs = objects::definitions(name, &classes)?;
        let verb_defs = objects::verb_definitions(name, &verbs)?;
        self.classes = Carriers::new(&defs, classes);
        self.verbs = Performers::new(&verb_defs, verbs);
        objects::register_all(name, defs, verb_defs)
    }

    /// Drops all functions of the plugin but those in the graph.
    fn silence(&mut self) {
        self.classes = Carriers::default();
        self.verbs = Performers::default();
        self.tasks = Tasks::default();
        self.metrics.clear();
        self.scenarios.clear();
    }
}

/// A version that is being removed.
struct Leaving {
    name: String,
    version: Loaded,
    /// All its nodes and features are out of the graph.
    is_removed: bool,
    /// The time after all workers have applied the changes until no worker uses what they replaced.
    grace: GracePeriod,
}

struct Control {
    graph: Graph,
    /// Frames that were reserved for stages.
    frames: usize,
    /// The name of an interface, for the texts of traces.
    interface: Rc<dyn Fn(u32) -> String>,
    services: Rc<dyn HostServices>,
    loaded: BTreeMap<String, Loaded>,
    leaving: Vec<Leaving>,
    /// Names and paths of versions that the C library did not unmap.
    still_mapped: Vec<(String, String)>,
}

/// The plugins of a router. Used on the control thread.
#[derive(Clone)]
pub struct Plugins(Rc<RefCell<PeriodicRunner<Control>>>);

impl Plugins {
    /// No plugins. `interface` names an interface.
    pub fn new(
        engine: Rc<RefCell<Engine>>,
        processes: &Processes,
        interface: impl Fn(u32) -> String + 'static,
    ) -> Plugins {
        let listen = |protocol: PluginProtocol, _: NodeId, _: bool| {
            Err(format!("nothing receives {protocol} here"))
        };
        let control = Control {
            graph: Graph {
                engine,
                listen: Rc::new(listen),
            },
            frames: 0,
            interface: Rc::new(interface),
            services: Rc::new(NoServices),
            loaded: BTreeMap::new(),
            leaving: Vec::new(),
            still_mapped: Vec::new(),
        };
        Plugins(Rc::new(RefCell::new(PeriodicRunner::new(
            processes, control,
        ))))
    }

    /// Lets plugins know the interfaces of the router, and write to its log.
    pub fn serve(&self, interfaces: impl Fn() -> Vec<HostInterface> + 'static) {
        let runner = self.0.borrow();
        runner.task().borrow_mut().services = Rc::new(Services(interfaces));
    }

    /// Lets nodes of plugins receive protocols: the function makes a node the receiver, or removes it.
    pub fn listen(
        &self,
        listen: impl Fn(PluginProtocol, NodeId, bool) -> Result<(), String> + 'static,
    ) {
        let runner = self.0.borrow();
        runner.task().borrow_mut().graph.listen = Rc::new(listen);
    }

    /// Makes the plugins the owner of their class and their query.
    pub fn own(&self, owners: &mut Owners) -> Result<(), DefinitionError> {
        let all = self.clone();
        owners.own(move |key, now: Option<LoadedPlugin>| {
            let name = key.values().first().map(ToString::to_string);
            let name = name.unwrap_or_default();
            let done = match now {
                Some(plugin) => all.load(&plugin.name, &plugin.path),
                None => all.unload(&name),
            };
            let what = format!("plugin {name}");
            done.map(|()| Applied::one())
                .map_err(|why| ModelError::invalid(what, why))
        })?;
        let all = self.clone();
        owners.own_brought(move |key, now| {
            let done = all.apply(key, now);
            done.map(|()| Applied::one())
                .map_err(|why| ModelError::invalid(key, why))
        });
        let all = self.clone();
        owners.perform_brought(move |verb| {
            let done = all.perform(verb);
            done.map(|()| Applied::one())
                .map_err(|why| ModelError::invalid(verb.name(), why))
        });
        let all = self.clone();
        owners.answer(move |asked: ShowPlugins| {
            let mut reply = all.shown();
            let is_asked = |row: &PluginRow| asked.name.as_ref().is_none_or(|it| *it == row.name);
            reply.plugins.retain(is_asked);
            Ok(reply)
        })
    }

    /// Load a plugin, or replace the one of this name. An error changes nothing.
    pub fn load(&self, name: &str, path: &Path) -> Result<(), PluginError> {
        let bytes = file::read(path)?;
        let library = Library::open(&bytes, name)?;
        drop(bytes);
        self.change(|control| match control.loaded.contains_key(name) {
            true => control.replace(name, path, library),
            false => control.load(name, path, library),
        })
    }

    /// Unload a plugin. An error changes nothing.
    pub fn unload(&self, name: &str) -> Result<(), PluginError> {
        self.change(|control| control.unload(name))
    }

    /// Carry out a change of an object of a plugin's class. An error changes nothing.
    fn apply(&self, key: &ObjectKey, now: Option<&Instance>) -> Result<(), String> {
        let runner = self.0.borrow();
        let mut control = runner.task().borrow_mut();
        let by = key.class().def().brought.map(|by| by.name);
        match by.and_then(|name| control.loaded.get_mut(name)) {
            Some(loaded) => loaded.classes.apply(key, now),
            None => Err("the plugin that has its class is not loaded".to_owned()),
        }
    }

    /// Perform a verb of a plugin.
    fn perform(&self, verb: &Invocation) -> Result<(), String> {
        let runner = self.0.borrow();
        let mut control = runner.task().borrow_mut();
        let by = verb.verb().def().class.brought.map(|by| by.name);
        match by.and_then(|name| control.loaded.get_mut(name)) {
            Some(loaded) => loaded.verbs.perform(verb),
            None => Err("the plugin that has this verb is not loaded".to_owned()),
        }
    }

    /// Unmap the versions that no worker uses; returns the number of versions that still wait.
    pub fn reap(&self) -> usize {
        let runner = self.0.borrow();
        let mut control = runner.task().borrow_mut();
        control.reap();
        control.leaving.len()
    }

    /// Looks at the benchmarks that a plugin offers; none: it is not loaded.
    pub fn scenarios<T>(&self, name: &str, look: impl FnOnce(&[Scenario]) -> T) -> Option<T> {
        let runner = self.0.borrow();
        let control = runner.task().borrow();
        Some(look(&control.loaded.get(name)?.scenarios))
    }

    /// The arc and the name of each feature of a plugin.
    pub fn features(&self, name: &str) -> Vec<(String, String)> {
        let runner = self.0.borrow();
        let control = runner.task().borrow();
        let found = control.loaded.get(name);
        found.map_or_else(Vec::new, |it| it.part.features.clone())
    }

    /// The reply to `show plugins`.
    pub fn shown(&self) -> PluginsReply {
        let runner = self.0.borrow();
        let mut control = runner.task().borrow_mut();
        control.reap();
        control.shown()
    }

    fn change(
        &self,
        body: impl FnOnce(&mut Control) -> Result<(), PluginError>,
    ) -> Result<(), PluginError> {
        let mut runner = self.0.borrow_mut();
        let done = {
            let mut control = runner.task().borrow_mut();
            control.reap();
            body(&mut control)
        };
        runner.schedule();
        done
    }
}

/// Call a plugin's entry.
fn enter(library: &Library, host: Host) -> Result<Plugin, PluginError> {
    let mut outcome = Outcome::Asked(host);
    library.enter(&mut outcome);
    match outcome {
        Outcome::Ready(plugin) => Ok(*plugin),
        Outcome::Failed(why) => Err(PluginError::Register(why)),
        Outcome::Asked(_) => Err(PluginError::Register("its entry does nothing".to_owned())),
    }
}

/// Register the classes of a plugin without its nodes: an object of the class `plugin` loads it later.
pub(crate) fn announce(name: &str, path: &Path) -> Result<(), PluginError> {
    let library = Library::open(&file::read(path)?, name)?;
    let host = Host {
        name: name.to_owned(),
        vector_size: 1,
        workers: 1,
        domain: Domain::new(),
        services: Rc::new(NoServices),
    };
    let plugin = enter(&library, host);
    let defs = plugin.and_then(|it| Ok(objects::definitions(name, &it.classes)?));
    // SAFETY: what the entry made was dropped above, and definitions are copies.
    unsafe { library.close() };
    objects::announced(name, defs?)?;
    Ok(())
}

impl Control {
    /// Call the plugin's entry.
    fn enter(&self, name: &str, library: &Library) -> Result<Plugin, PluginError> {
        let host = {
            let engine = self.graph.engine.borrow();
            Host {
                name: name.to_owned(),
                vector_size: engine.settings().vector_size,
                workers: engine.settings().workers,
                domain: engine.domain().clone(),
                services: self.services.clone(),
            }
        };
        enter(library, host)
    }

    fn load(&mut self, name: &str, path: &Path, library: Library) -> Result<(), PluginError> {
        let mut loaded = Loaded::new(path, library);
        let done = self.enter(name, &loaded.library);
        let done = done.and_then(|mut plugin| {
            loaded.equip(&mut plugin);
            loaded.register(name, &mut plugin)?;
            let wanted = Wanted::take(&mut plugin);
            self.check_alone(name, &wanted)?;
            self.reserve(name, &wanted)?;
            loaded.part.add(&self.graph, wanted)
        });
        match done {
            Ok(()) => {
                self.loaded.insert(name.to_owned(), loaded);
                Ok(())
            }
            Err(error) => {
                // Classes and verbs of a plugin that is not loaded go: nothing refers to them.
                let _ = objects::register_all(name, Vec::new(), Vec::new());
                self.leave(name, loaded);
                Err(error)
            }
        }
    }

    /// Reserves frames for the stages of a version. Frames stay reserved, so that a plugin that is loaded a thousand times costs
    /// what it costs once.
    fn reserve(&mut self, name: &str, wanted: &Wanted) -> Result<(), PluginError> {
        let others = self.loaded.iter().filter(|(other, _)| *other != name);
        let others: usize = others.map(|(_, it)| it.part.frames).sum();
        let frames = wanted.frames();
        if frames > MOST_FRAMES {
            return Err(PluginError::TooManyFrames(frames, MOST_FRAMES));
        }
        let more = (others + frames).saturating_sub(self.frames);
        if more > 0 {
            self.graph.engine.borrow_mut().reserve_frames(more)?;
            self.frames += more;
        }
        Ok(())
    }

    /// Two plugins must not change the same node of the router: one would undo what the other has done. A node of a plugin must not
    /// be changed: the engine would keep the changed node's code, which a replacement of its plugin unmaps.
    fn check_alone(&self, name: &str, wanted: &Wanted) -> Result<(), PluginError> {
        wanted.check_own()?;
        let others = self.loaded.iter().filter(|(other, _)| *other != name);
        for (by, other) in others {
            let mut nodes = wanted.changed_nodes();
            if let Some(node) = nodes.find(|node| other.part.has_or_changes(node)) {
                return Err(PluginError::Changed {
                    node: node.to_owned(),
                    by: by.clone(),
                });
            }
        }
        Ok(())
    }

    /// Replace a version by another one: the new version gets all objects, then nodes of both are replaced in place, so that
    /// packets find one or the other. When the new version is refused, the nodes of the old one keep their state.
    fn replace(&mut self, name: &str, path: &Path, library: Library) -> Result<(), PluginError> {
        let mut new = Loaded::new(path, library);
        let Some(mut old) = self.loaded.remove(name) else {
            return self.load(name, path, new.library);
        };
        let (mut is_begun, taken) = (false, old.part.taken());
        let ends = old.part.arc_ends(&self.graph);
        let done = self.enter(name, &new.library);
        let done = done.and_then(|mut plugin| {
            new.equip(&mut plugin);
            let registered = new.register(name, &mut plugin)?;
            let done = new.classes.carry_over(&old.classes);
            let wanted = Wanted::take(&mut plugin);
            let done = done.and_then(|()| {
                self.check_alone(name, &wanted)?;
                self.reserve(name, &wanted)?;
                let part = &mut old.part;
                part.exchange(&self.graph, wanted, &mut new.part, &mut is_begun)
            });
            done.inspect_err(|_| registered.undo())
        });
        let (stays, mut goes) = match &done {
            Ok(()) => (new, old),
            Err(_) if is_begun => {
                let (old, is_whole) = self.restored(name, old);
                new.is_entangled = !is_whole;
                (old, new)
            }
            Err(_) => (old, new),
        };
        if done.is_err() {
            stays.part.move_arcs_back(&self.graph, &ends);
        }
        // What both versions have in the graph belongs to the version that stays.
        goes.part.forget_shared(&stays.part);
        self.loaded.insert(name.to_owned(), stays);
        self.leave(name, goes);
        if done.is_err()
            && let Some(old) = self.loaded.get_mut(name)
        {
            old.part.take_again(&self.graph, taken);
        }
        done
    }

    /// The old version with new instances of its nodes and its objects, after another version has begun to replace its nodes;
    /// whether all its nodes have a new instance.
    fn restored(&self, name: &str, mut old: Loaded) -> (Loaded, bool) {
        let Ok(mut plugin) = self.enter(name, &old.library) else {
            return (old, false);
        };
        old.equip(&mut plugin);
        let classes = std::mem::take(&mut plugin.classes);
        if let Ok(defs) = objects::definitions(name, &classes) {
            let mut again = Carriers::new(&defs, classes);
            if again.carry_over(&old.classes).is_ok() {
                old.classes = again;
            }
        }
        let verbs = std::mem::take(&mut plugin.verbs);
        if let Ok(defs) = objects::verb_definitions(name, &verbs) {
            old.verbs = Performers::new(&defs, verbs);
        }
        let is_whole = old.part.renew(&self.graph, Wanted::take(&mut plugin));
        (old, is_whole)
    }

    fn unload(&mut self, name: &str) -> Result<(), PluginError> {
        let old = self.loaded.get(name).ok_or(PluginError::NotLoaded)?;
        old.part.check_unused(&self.graph)?;
        objects::register_all(name, Vec::new(), Vec::new())?;
        if let Some(old) = self.loaded.remove(name) {
            self.leave(name, old);
        }
        Ok(())
    }

    /// Remove a version from the graph. Its code is unmapped when no worker uses it. If a queue of changes is full, the rest is
    /// removed later.
    fn leave(&mut self, name: &str, mut version: Loaded) {
        version.silence();
        let is_removed = version.part.remove(&self.graph).is_ok();
        self.leaving.push(Leaving {
            name: name.to_owned(),
            version,
            is_removed,
            grace: GracePeriod::default(),
        });
    }

    /// Unmap each version that no worker uses: all workers have applied the changes, have passed a quiescent point since, and
    /// the replaced instances were dropped. Before, the version's code converts its records of traces into text.
    fn reap(&mut self) {
        objects::forget(|plugin| self.loaded.contains_key(plugin));
        if self.leaving.is_empty() {
            return;
        }
        for it in self.leaving.iter_mut().filter(|it| !it.is_removed) {
            it.is_removed = it.version.part.remove(&self.graph).is_ok();
        }
        let mut engine = self.graph.engine.borrow_mut();
        let domain = engine.domain().clone();
        let mut due = Vec::new();
        for mut it in std::mem::take(&mut self.leaving) {
            let is_applied = || it.is_removed && engine.settled();
            match it.grace.is_over(&domain, is_applied) {
                true => due.push(it),
                false => self.leaving.push(it),
            }
        }
        if due.is_empty() {
            engine.wake();
            return;
        }
        // The workers have returned the instances that the last changes replaced.
        let _ = engine.settled();
        engine.traces(&*self.interface);
        drop(engine);
        for it in due {
            // SAFETY: the version's nodes are out of the graph, the workers have no instance of them, instances and retired
            // values were dropped above, texts are copies of the engine's, and records of traces are text. The library of an
            // entangled version is not closed.
            if it.version.is_entangled || !unsafe { it.version.library.close() } {
                tracing::warn!(target: "plugin", plugin = it.name, "plugin {}: its code stays mapped", it.name);
                self.still_mapped.push((it.name, it.version.path));
            }
        }
    }

    fn shown(&self) -> PluginsReply {
        let node = |(name, fault): (&String, &Arc<NodeFault>)| PluginNodeRow {
            name: name.clone(),
            panic: fault.text().map(str::to_owned),
        };
        let row = |name: &String, path: &String, state| PluginRow {
            name: name.clone(),
            path: path.clone(),
            state,
            ..PluginRow::default()
        };
        let metric = |it: &PluginMetric| PluginMetricRow {
            name: it.name.clone(),
            text: it.text.clone(),
            value: it.read(),
        };
        let loaded = self.loaded.iter().map(|(name, it)| PluginRow {
            nodes: it.part.all_nodes().map(node).collect(),
            metrics: it.metrics.iter().map(metric).collect(),
            page: it.page.clone(),
            ..row(name, &it.path, PluginState::Loaded)
        });
        let leaving = self.leaving.iter();
        let leaving = leaving.map(|it| row(&it.name, &it.version.path, PluginState::Leaving));
        let mapped = self.still_mapped.iter();
        let mapped = mapped.map(|(name, path)| row(name, path, PluginState::StillMapped));
        PluginsReply {
            plugins: loaded.chain(leaving).chain(mapped).collect(),
        }
    }
}

impl PeriodicTask for Control {
    const PROCESS: ProcessInfo = ProcessInfo {
        name: "plugin-process",
        text: "unmaps plugins that no worker uses any more, and runs the tasks of plugins",
    };

    fn next_run_in(&self) -> Option<Duration> {
        let tasks = self.loaded.values().filter_map(|it| it.tasks.next_run_in());
        let look = (!self.leaving.is_empty()).then_some(LOOK);
        tasks.chain(look).min()
    }

    fn run(&mut self) {
        self.reap();
        for (name, loaded) in &mut self.loaded {
            loaded.tasks.run(name);
        }
    }
}
