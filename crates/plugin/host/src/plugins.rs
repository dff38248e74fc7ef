//! The nodes and features of each plugin, and the versions that wait for the workers before they are unmapped.

use crate::error::PluginError;
use crate::file;
use crate::model::LoadedPlugin;
use crate::objects::{self, Carriers};
use crate::services::Services;
use crate::show::{PluginNodeRow, PluginRow, PluginState, PluginsReply, ShowPlugins};
use crate::sys::Library;
use crate::tasks::Tasks;
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::path::Path;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;
use volley_graph::{
    Domain, Engine, ForeignNode, GraphError, NodeFault, PeriodicRunner, PeriodicTask, ProcessInfo,
    Processes,
};
use volley_model::{Applied, ModelError, Owners};
use volley_object::{DefinitionError, Instance, ObjectKey};
use volley_plugin_abi::{
    Host, HostInterface, HostServices, NoServices, Outcome, Plugin, PluginFeature, Scenario,
};

/// Interval between checks whether the workers have left a plugin's code.
const LOOK: Duration = Duration::from_millis(1);

/// The nodes, features and classes of one version of a plugin.
struct Loaded {
    path: String,
    library: Library,
    nodes: BTreeMap<String, Arc<NodeFault>>,
    features: Vec<(String, String)>,
    classes: Carriers,
    tasks: Tasks,
    scenarios: Vec<Scenario>,
}

impl Loaded {
    fn new(path: &Path, library: Library) -> Loaded {
        Loaded {
            path: path.display().to_string(),
            library,
            nodes: BTreeMap::new(),
            features: Vec::new(),
            classes: Carriers::default(),
            tasks: Tasks::default(),
            scenarios: Vec::new(),
        }
    }
}

/// A version that is being removed.
struct Leaving {
    name: String,
    version: Loaded,
    /// All its nodes and features are out of the graph.
    is_removed: bool,
    /// The quiescent point that every worker must pass after all workers have applied the changes.
    ticket: Option<u64>,
}

struct Control {
    engine: Rc<RefCell<Engine>>,
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
        let control = Control {
            engine,
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
        owners.answer(move |_: ShowPlugins| Ok(all.shown()))
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
        found.map_or_else(Vec::new, |it| it.features.clone())
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
        Outcome::Ready(plugin) => Ok(plugin),
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
            let engine = self.engine.borrow();
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
        let done = done.and_then(|plugin| {
            let Plugin {
                nodes,
                features,
                classes,
                tasks,
                scenarios,
                ..
            } = plugin;
            loaded.scenarios = scenarios;
            loaded.tasks = Tasks::new(tasks);
            let defs = objects::definitions(name, &classes)?;
            loaded.classes = Carriers::new(&defs, classes);
            objects::register(name, defs)?;
            for node in nodes {
                let (name, fault) = (node.name().to_owned(), node.fault().clone());
                self.engine.borrow_mut().add_foreign(node)?;
                loaded.nodes.insert(name, fault);
            }
            self.add_features(&features, &mut loaded)
        });
        match done {
            Ok(()) => {
                self.loaded.insert(name.to_owned(), loaded);
                Ok(())
            }
            Err(error) => {
                // Classes of a plugin that is not loaded go: nothing refers to them.
                let _ = objects::register(name, Vec::new());
                self.leave(name, loaded);
                Err(error)
            }
        }
    }

    fn add_features(
        &self,
        features: &[PluginFeature],
        loaded: &mut Loaded,
    ) -> Result<(), PluginError> {
        for it in features {
            let name = it.feature.name;
            if !loaded.nodes.contains_key(name) {
                return Err(GraphError::NoNode(name.to_owned()).into());
            }
            let mut engine = self.engine.borrow_mut();
            engine.add_foreign_feature(it.arc, &it.feature, it.consumes)?;
            loaded.features.push((it.arc.to_owned(), name.to_owned()));
        }
        Ok(())
    }

    /// Replace a version by another one: the new version gets all objects, then nodes of both are replaced in place, so that
    /// packets find one or the other. When the new version is refused, the nodes of the old one keep their state.
    fn replace(&mut self, name: &str, path: &Path, library: Library) -> Result<(), PluginError> {
        let mut new = Loaded::new(path, library);
        let Some(old) = self.loaded.remove(name) else {
            return self.load(name, path, new.library);
        };
        let mut is_begun = false;
        let done = self.enter(name, &new.library);
        let done = done.and_then(|mut plugin| {
            new.scenarios = std::mem::take(&mut plugin.scenarios);
            new.tasks = Tasks::new(std::mem::take(&mut plugin.tasks));
            let classes = std::mem::take(&mut plugin.classes);
            let defs = objects::definitions(name, &classes)?;
            new.classes = Carriers::new(&defs, classes);
            let registered = objects::register(name, defs)?;
            let done = new.classes.carry_over(&old.classes);
            let done = done.and_then(|()| self.exchange(plugin, &old, &mut new, &mut is_begun));
            done.inspect_err(|_| registered.undo())
        });
        let (stays, mut goes) = match &done {
            Ok(()) => (new, old),
            Err(_) if is_begun => (self.restored(name, old), new),
            Err(_) => (old, new),
        };
        // Nodes and features of both versions belong to the version that stays.
        goes.nodes.retain(|node, _| !stays.nodes.contains_key(node));
        goes.features.retain(|it| !stays.features.contains(it));
        self.loaded.insert(name.to_owned(), stays);
        self.leave(name, goes);
        done
    }

    fn exchange(
        &mut self,
        plugin: Plugin,
        old: &Loaded,
        new: &mut Loaded,
        is_begun: &mut bool,
    ) -> Result<(), PluginError> {
        let Plugin {
            nodes, features, ..
        } = plugin;
        let kept = |it: &(String, String)| {
            let mut features = features.iter();
            features.any(|f| f.arc == it.0 && f.feature.name == it.1)
        };
        let gone = old.features.iter().filter(|it| !kept(it));
        self.check_disabled(gone)?;
        let (replaced, added): (Vec<ForeignNode>, Vec<ForeignNode>) = nodes
            .into_iter()
            .partition(|node| old.nodes.contains_key(node.name()));
        // What can be refused comes before the first node of the old version is replaced.
        for node in &replaced {
            self.engine.borrow().check_replacement(node)?;
            new.nodes
                .insert(node.name().to_owned(), node.fault().clone());
        }
        for node in added {
            let (name, fault) = (node.name().to_owned(), node.fault().clone());
            self.engine.borrow_mut().add_foreign(node)?;
            new.nodes.insert(name, fault);
        }
        self.add_features(&features, new)?;
        for node in replaced {
            self.engine.borrow_mut().replace_foreign(node)?;
            *is_begun = true;
        }
        Ok(())
    }

    /// The old version with new instances of its nodes and its objects, after another version has begun to replace its nodes.
    fn restored(&self, name: &str, mut old: Loaded) -> Loaded {
        let Ok(plugin) = self.enter(name, &old.library) else {
            return old;
        };
        old.tasks = Tasks::new(plugin.tasks);
        if let Ok(defs) = objects::definitions(name, &plugin.classes) {
            let mut again = Carriers::new(&defs, plugin.classes);
            if again.carry_over(&old.classes).is_ok() {
                old.classes = again;
            }
        }
        for node in plugin.nodes {
            let (name, fault) = (node.name().to_owned(), node.fault().clone());
            if self.engine.borrow_mut().replace_foreign(node).is_ok() {
                old.nodes.insert(name, fault);
            }
        }
        old
    }

    fn unload(&mut self, name: &str) -> Result<(), PluginError> {
        let old = self.loaded.get(name).ok_or(PluginError::NotLoaded)?;
        self.check_disabled(old.features.iter())?;
        self.check_no_edge_to(old)?;
        objects::register(name, Vec::new())?;
        if let Some(old) = self.loaded.remove(name) {
            self.leave(name, old);
        }
        Ok(())
    }

    /// Refuse to remove nodes to which nodes of other owners have an edge.
    fn check_no_edge_to(&self, old: &Loaded) -> Result<(), GraphError> {
        let engine = self.engine.borrow();
        let mut others = engine
            .edges()
            .filter(|(node, _)| !old.nodes.contains_key(*node));
        let user = others.find_map(|(node, edges)| {
            let target = edges.iter().find(|it| old.nodes.contains_key(**it))?;
            Some((node.to_owned(), (*target).to_owned()))
        });
        match user {
            None => Ok(()),
            Some((node, target)) => Err(GraphError::EdgeToNowhere { node, target }),
        }
    }

    fn check_disabled<'a>(
        &self,
        mut features: impl Iterator<Item = &'a (String, String)>,
    ) -> Result<(), PluginError> {
        let arcs = self.engine.borrow().arcs();
        let used = features.find(|(arc, feature)| {
            let mut of_arc = arcs.iter().filter(|it| it.name == arc);
            of_arc.any(|it| {
                it.features
                    .iter()
                    .any(|(n, on)| n == feature && !on.is_empty())
            })
        });
        match used {
            None => Ok(()),
            Some((arc, feature)) => Err(PluginError::InUse {
                feature: feature.clone(),
                arc: arc.clone(),
            }),
        }
    }

    /// Remove a version from the graph. Its code is unmapped when no worker uses it. If a queue of changes is full, the rest is
    /// removed later.
    fn leave(&mut self, name: &str, mut version: Loaded) {
        version.classes = Carriers::default();
        version.tasks = Tasks::default();
        version.scenarios.clear();
        let is_removed = remove(&mut self.engine.borrow_mut(), &version).is_ok();
        self.leaving.push(Leaving {
            name: name.to_owned(),
            version,
            is_removed,
            ticket: None,
        });
    }

    /// Unmap each version that no worker uses: all workers have applied the changes, have passed a quiescent point since, and
    /// the replaced instances were dropped. Before, the version's code converts its records of traces into text.
    fn reap(&mut self) {
        objects::forget(|plugin| self.loaded.contains_key(plugin));
        if self.leaving.is_empty() {
            return;
        }
        let mut engine = self.engine.borrow_mut();
        for it in self.leaving.iter_mut().filter(|it| !it.is_removed) {
            it.is_removed = remove(&mut engine, &it.version).is_ok();
        }
        if !engine.settled() {
            return;
        }
        let domain = engine.domain().clone();
        let mut due = Vec::new();
        for mut it in std::mem::take(&mut self.leaving) {
            if !it.is_removed {
                self.leaving.push(it);
                continue;
            }
            let ticket = *it.ticket.get_or_insert_with(|| domain.epoch());
            match domain.passed(ticket) {
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
            // values were dropped above, texts are copies of the engine's, and records of traces are text.
            if !unsafe { it.version.library.close() } {
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
            nodes: Vec::new(),
        };
        let loaded = self.loaded.iter().map(|(name, it)| PluginRow {
            nodes: it.nodes.iter().map(node).collect(),
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

/// Remove the existing features and nodes of a version from the graph.
fn remove(engine: &mut Engine, version: &Loaded) -> Result<(), GraphError> {
    for (arc, feature) in &version.features {
        engine.remove_feature(arc, feature)?;
    }
    let there = |engine: &Engine, node: &str| engine.node(node).is_ok();
    let mut left: Vec<&String> = version.nodes.keys().collect();
    left.retain(|node| there(engine, node));
    // A node is removed after the nodes that have an edge to it.
    while !left.is_empty() {
        let (before, mut refused) = (left.len(), Ok(()));
        left.retain(|node| {
            if let Err(error) = engine.remove(node) {
                refused = Err(error);
            }
            there(engine, node)
        });
        if left.len() == before {
            return refused;
        }
    }
    Ok(())
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
