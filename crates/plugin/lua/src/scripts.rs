//! The scripts of the router, on the control thread: their files, tables, and the states on each worker.

use crate::api::{Environment, TableSet, lock};
use crate::link::{Config, Link, NONE};
use crate::model::{LuaScript, ScriptArc};
use crate::node::lua_input::OnArc;
use crate::state::{ScriptError, ScriptState, Source};
use crossbeam_queue::ArrayQueue;
use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};
use volley_sdk::tables::Domain;
use volley_sdk::{Host, HostInterface, LogLevel};

/// Maximum size of a script in bytes.
const LONGEST: u64 = 1 << 20;
/// Errors and texts for the log that wait for the control thread.
const WAITING: usize = 256;
/// The time between two comparisons of the interfaces.
const COMPARE: Duration = Duration::from_secs(1);
/// An error is logged again after this time.
const SILENCE: Duration = Duration::from_secs(10);

/// A script.
struct Script {
    object: LuaScript,
    source: Arc<Source>,
    /// The number of the version that is loaded.
    number: u64,
    tables: Arc<Mutex<TableSet>>,
}

/// A node on a worker.
struct Place {
    is_layer3: bool,
    worker: usize,
    link: Arc<Link>,
}

/// All scripts.
pub(crate) struct Scripts {
    host: Host,
    domain: Arc<Domain>,
    scripts: BTreeMap<String, Script>,
    places: Vec<Place>,
    versions: u64,
    errors: Arc<ArrayQueue<ScriptError>>,
    log: Arc<ArrayQueue<String>>,
    /// The interfaces that the scripts know, and when they were compared with those of the router.
    interfaces: Arc<[HostInterface]>,
    compared: Instant,
    /// When each error was logged.
    logged: HashMap<String, Instant>,
}

/// Whether the packets of an arc are at their IP header.
fn is_layer3(arc: ScriptArc) -> bool {
    arc == ScriptArc::Ip4Unicast
}

impl Scripts {
    /// No scripts.
    pub(crate) fn new(host: &Host) -> Self {
        Scripts {
            host: host.clone(),
            domain: Domain::new(),
            scripts: BTreeMap::new(),
            places: Vec::new(),
            versions: 0,
            errors: Arc::new(ArrayQueue::new(WAITING)),
            log: Arc::new(ArrayQueue::new(WAITING)),
            interfaces: host.interfaces().into(),
            compared: Instant::now(),
            logged: HashMap::new(),
        }
    }

    /// The link of a new node on a worker, which gets the scripts that are there.
    pub(crate) fn join<A: OnArc>(&mut self, worker: usize) -> Arc<Link> {
        // A node that is gone has released its link.
        self.places
            .retain(|place| Arc::strong_count(&place.link) > 1);
        let place = Place {
            is_layer3: A::IS_LAYER3,
            worker,
            link: Link::new(self.errors.clone()),
        };
        let interfaces = self.interfaces.clone();
        let mut states = BTreeMap::new();
        let here = |script: &&Script| script.source.is_layer3 == place.is_layer3;
        for script in self.scripts.values().filter(here) {
            let environment = self.environment(script, worker, &interfaces);
            match ScriptState::load(&script.source, self.host.vector_size, &environment) {
                Ok((state, _)) => {
                    states.insert(script.number, Box::new(state));
                }
                Err(why) => self.host.log(LogLevel::Error, &format!("{script}: {why}")),
            }
        }
        let link = place.link.clone();
        link.give(self.config(&place, &interfaces, states));
        self.places.push(place);
        link
    }

    fn environment(
        &self,
        script: &Script,
        worker: usize,
        interfaces: &Arc<[HostInterface]>,
    ) -> Environment {
        let (tables, log) = (script.tables.clone(), self.log.clone());
        let of = (script.object.name.as_str(), worker);
        Environment::new(of, interfaces.clone(), tables, log)
    }

    /// The configuration of a node; `states` are the new ones, by the numbers of their versions.
    fn config(
        &self,
        place: &Place,
        interfaces: &[HostInterface],
        mut states: BTreeMap<u64, Box<ScriptState>>,
    ) -> Box<Config> {
        let mut config = Config {
            scripts: Vec::new(),
            by_interface: Vec::new(),
            others: NONE,
        };
        let here = |script: &&Script| script.source.is_layer3 == place.is_layer3;
        for (at, script) in self.scripts.values().filter(here).enumerate() {
            let state = states.remove(&script.number);
            config.scripts.push((script.number, state));
            let at = at as u16;
            if script.object.interfaces.is_empty() {
                config.others = at;
            }
            let named = |it: &&HostInterface| script.object.interfaces.contains(&it.name);
            for interface in interfaces.iter().filter(named) {
                let index = interface.index as usize;
                if config.by_interface.len() <= index {
                    config.by_interface.resize(index + 1, NONE);
                }
                config.by_interface[index] = at;
            }
        }
        Box::new(config)
    }

    /// Refuse a script whose packets another one gets.
    fn check_alone(&self, object: &LuaScript) -> Result<(), String> {
        let others = self.scripts.values().map(|it| &it.object);
        let others = others.filter(|it| it.name != object.name && it.arc == object.arc);
        for other in others {
            let (mine, theirs) = (&object.interfaces, &other.interfaces);
            if mine.is_empty() && theirs.is_empty() {
                return Err(format!(
                    "script {} gets the packets of all interfaces: name `interfaces` of both scripts",
                    other.name
                ));
            }
            if let Some(both) = mine.iter().find(|name| theirs.contains(name)) {
                return Err(format!("script {} gets the packets of {both}", other.name));
            }
        }
        Ok(())
    }

    /// Load a script from its file, or load it again. An error changes nothing.
    pub(crate) fn load(&mut self, object: LuaScript) -> Result<(), String> {
        self.check_alone(&object)?;
        let path = object.file.display().to_string();
        let text = volley_file::read_text(&object.file, LONGEST);
        let text = text.map_err(|why| format!("{path}: {why}"))?;
        let source = Arc::new(Source {
            path,
            text,
            memory: object.memory_kb as usize * 1024,
            instructions: u64::from(object.instructions),
            queue: usize::from(object.queue),
            is_layer3: is_layer3(object.arc),
        });
        self.interfaces = self.host.interfaces().into();
        self.install(object, source)
    }

    /// Give a script to the workers. An error changes nothing.
    fn install(&mut self, object: LuaScript, source: Arc<Source>) -> Result<(), String> {
        let before = self.scripts.get(&object.name);
        let tables = before.map(|it| it.tables.clone());
        let tables =
            tables.unwrap_or_else(|| Arc::new(Mutex::new(TableSet::new(self.domain.clone()))));
        let done = self.install_with(object, source, tables.clone());
        if done.is_err() {
            lock(&tables).forget_new();
        }
        done
    }

    fn install_with(
        &mut self,
        object: LuaScript,
        source: Arc<Source>,
        tables: Arc<Mutex<TableSet>>,
    ) -> Result<(), String> {
        self.versions += 1;
        let script = Script {
            object,
            source,
            number: self.versions,
            tables,
        };
        let interfaces = self.interfaces.clone();
        let mut states = Vec::new();
        let size = self.host.vector_size;
        // The script is loaded at least once: an error is reported before anything changes.
        let first = self.environment(&script, 0, &interfaces);
        let (_, loaded) = ScriptState::load(&script.source, size, &first)?;
        for place in &self.places {
            if place.is_layer3 != script.source.is_layer3 {
                continue;
            }
            let environment = self.environment(&script, place.worker, &interfaces);
            let (state, _) = ScriptState::load(&script.source, size, &environment)?;
            states.push(Box::new(state));
        }
        lock(&script.tables).load(&loaded)?;
        let number = script.number;
        let is_layer3 = script.source.is_layer3;
        self.scripts.insert(script.object.name.clone(), script);
        let mut states = states.into_iter();
        for place in &self.places {
            let mut new = BTreeMap::new();
            if place.is_layer3 == is_layer3 {
                new.extend(states.next().map(|state| (number, state)));
            }
            place.link.give(self.config(place, &interfaces, new));
        }
        Ok(())
    }

    /// Remove a script: its interfaces' packets go on along the arc.
    pub(crate) fn remove(&mut self, name: &str) {
        self.scripts.remove(name);
        for place in &self.places {
            let config = self.config(place, &self.interfaces, BTreeMap::new());
            place.link.give(config);
        }
    }

    /// Load the scripts again, with the text that they have, if the interfaces have changed.
    fn follow_interfaces(&mut self) {
        if self.compared.elapsed() < COMPARE {
            return;
        }
        self.compared = Instant::now();
        let now = self.host.interfaces();
        if *now == *self.interfaces {
            return;
        }
        self.interfaces = now.into();
        let all = self.scripts.values();
        let all: Vec<_> = all
            .map(|it| (it.object.clone(), it.source.clone()))
            .collect();
        for (object, source) in all {
            let name = object.name.clone();
            if let Err(why) = self.install(object, source) {
                // The script goes on with the interfaces that it knows.
                let text = format!("lua-script {name}: the interfaces have changed, and {why}");
                self.host.log(LogLevel::Warning, &text);
            }
        }
    }

    /// What the control thread does periodically: it changes tables, drops old states and logs errors.
    pub(crate) fn run(&mut self) {
        self.follow_interfaces();
        for script in self.scripts.values() {
            let log = |why: String| self.host.log(LogLevel::Error, &format!("{script}: {why}"));
            lock(&script.tables).collect(log);
        }
        self.places.iter().for_each(|it| it.link.drop_returned());
        self.domain.reclaim();
        while let Some(error) = self.errors.pop() {
            let now = Instant::now();
            self.logged
                .retain(|_, since| now.duration_since(*since) < SILENCE);
            if !self.logged.contains_key(&error.text) && self.logged.len() < WAITING {
                self.host
                    .log(LogLevel::Error, &format!("lua-script: {}", error.text));
                self.logged.insert(error.text, now);
            }
        }
        if let Some(text) = self.log.pop() {
            self.host.log(LogLevel::Info, &text);
        }
    }
}

impl std::fmt::Display for Script {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "lua-script {}", self.object.name)
    }
}
