//! What a script can call: `volley`, and the methods of tables.
//!
//! The methods of vectors are in `vector_methods`.

use crate::tables::{self, Change, Hop, Route, Run, Shared, Table as Routes};
use crossbeam_queue::ArrayQueue;
use mlua::{Error, Lua, Table, UserData, UserDataMethods};
use std::collections::{BTreeMap, BTreeSet};
use std::net::Ipv4Addr;
// Only the control thread locks these, while it loads a script.
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use volley_sdk::HostInterface;
use volley_sdk::tables::{Domain, Reader};
use volley_sdk::wire::MacAddr;

/// The tables of a script, which all its states share.
pub(crate) struct TableSet {
    domain: Arc<Domain>,
    tables: BTreeMap<String, Routes>,
    /// Names of the tables that the script has which is loaded.
    loaded: BTreeSet<String>,
}

impl TableSet {
    /// No tables.
    pub(crate) fn new(domain: Arc<Domain>) -> Self {
        TableSet {
            domain,
            tables: BTreeMap::new(),
            loaded: BTreeSet::new(),
        }
    }

    /// Make these the routes that the script has set; tables that it no longer has are removed. An error changes nothing.
    pub(crate) fn load(&mut self, loaded: &Loaded) -> Result<(), String> {
        let mut loads = Vec::new();
        for (name, changes) in &loaded.0 {
            if let Some(table) = self.tables.get(name) {
                let load = table.prepare(changes);
                loads.push((name, load.map_err(|why| format!("table {name}: {why}"))?));
            }
        }
        self.tables.retain(|name, _| loaded.0.contains_key(name));
        self.loaded = self.tables.keys().cloned().collect();
        for (name, load) in loads {
            if let Some(table) = self.tables.get_mut(name) {
                // What can be refused was refused above.
                let done = table.commit(load);
                done.map_err(|why| format!("table {name}: {why}"))?;
            }
        }
        Ok(())
    }

    #[cfg(test)]
    pub(crate) fn names(&self) -> Vec<String> {
        self.tables.keys().cloned().collect()
    }

    /// Remove the tables of a script that could not be loaded.
    pub(crate) fn forget_new(&mut self) {
        self.tables.retain(|name, _| self.loaded.contains(name));
    }

    /// Carry out the changes that workers have requested.
    pub(crate) fn collect(&mut self, mut fault: impl FnMut(String)) {
        for (name, table) in &mut self.tables {
            if let Err(why) = table.collect() {
                fault(format!("table {name}: {why}"));
            }
        }
    }

    fn shared(&mut self, name: &str) -> (Shared, Reader) {
        let domain = &self.domain;
        let new = || Routes::new(domain);
        let table = self.tables.entry(name.to_owned()).or_insert_with(new);
        (table.shared(), domain.register())
    }
}

/// The routes that a script has set while it was loaded, by table.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Loaded(BTreeMap<String, Vec<Change>>);

/// What a script is loaded with.
#[derive(Clone)]
pub(crate) struct Environment {
    /// Name of the script.
    pub(crate) name: String,
    /// Number of the worker.
    pub(crate) worker: usize,
    /// The interfaces of the router.
    pub(crate) interfaces: Arc<[HostInterface]>,
    /// The tables of the script.
    pub(crate) tables: Arc<Mutex<TableSet>>,
    /// Texts for the log.
    pub(crate) log: Arc<ArrayQueue<String>>,
    loading: Arc<Loading>,
}

/// Whether the script is being loaded, and the routes that it has set so far.
struct Loading {
    is_now: AtomicBool,
    loaded: Mutex<Loaded>,
}

pub(crate) fn lock<T>(of: &Mutex<T>) -> MutexGuard<'_, T> {
    of.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Environment {
    /// An environment for one load of a script.
    pub(crate) fn new(
        (name, worker): (&str, usize),
        interfaces: Arc<[HostInterface]>,
        tables: Arc<Mutex<TableSet>>,
        log: Arc<ArrayQueue<String>>,
    ) -> Self {
        Environment {
            name: name.to_owned(),
            worker,
            interfaces,
            tables,
            log,
            loading: Arc::new(Loading {
                is_now: AtomicBool::new(true),
                loaded: Mutex::default(),
            }),
        }
    }

    /// The script is loaded: returns the routes that it has set.
    pub(crate) fn finish(&self) -> Loaded {
        self.loading.is_now.store(false, Relaxed);
        std::mem::take(&mut lock(&self.loading.loaded))
    }
}

/// The interface of this name.
pub(crate) fn interface<'a>(
    all: &'a [HostInterface],
    name: &str,
) -> mlua::Result<&'a HostInterface> {
    let found = all.iter().find(|it| it.name == name);
    found.ok_or_else(|| {
        Error::runtime(format!(
            "there was no interface '{name}' when the script was loaded"
        ))
    })
}

/// A fault as an error of Lua.
pub(crate) fn raise(fault: String) -> Error {
    Error::runtime(fault)
}

/// A MAC address as text.
pub(crate) fn mac(text: &str) -> mlua::Result<MacAddr> {
    let parsed: Result<MacAddr, _> = text.parse();
    parsed.map_err(|why| raise(why.to_string()))
}

/// Define `volley` in a state.
pub(crate) fn install(lua: &Lua, environment: &Environment) -> mlua::Result<()> {
    let volley = lua.create_table()?;
    volley.set("name", environment.name.as_str())?;
    volley.set("worker", environment.worker)?;
    let of = environment.clone();
    let lpm = lua.create_function(move |_, name: String| RouteTable::new(&of, name))?;
    volley.set("lpm", lpm)?;
    let interfaces = environment.interfaces.clone();
    let find = lua.create_function(move |lua, name: String| {
        let found = interface(&interfaces, &name)?;
        let table = lua.create_table()?;
        table.set("name", name)?;
        table.set("index", found.index)?;
        table.set("mac", MacAddr(found.mac).to_string())?;
        table.set("mtu", found.mtu)?;
        Ok(table)
    })?;
    volley.set("interface", find)?;
    let (queue, name) = (environment.log.clone(), environment.name.clone());
    let log = lua.create_function(move |_, text: String| {
        let text: String = text.chars().take(256).collect();
        Ok(queue.push(format!("lua-script {name}: {text}")).is_ok())
    })?;
    volley.set("log", log)?;
    let interfaces = environment.interfaces.clone();
    lua.set_app_data(Known(interfaces));
    lua.globals().set("volley", volley)
}

/// The interfaces, for methods.
pub(crate) struct Known(pub(crate) Arc<[HostInterface]>);

/// A table of routes in a script.
pub(crate) struct RouteTable {
    name: String,
    shared: Shared,
    reader: Reader,
    interfaces: Arc<[HostInterface]>,
    loading: Arc<Loading>,
}

impl RouteTable {
    fn new(environment: &Environment, name: String) -> mlua::Result<Self> {
        let loading = environment.loading.clone();
        if !loading.is_now.load(Relaxed) {
            return Err(Error::runtime(
                "tables are made while the script is loaded: call volley.lpm outside of functions",
            ));
        }
        lock(&loading.loaded).0.entry(name.clone()).or_default();
        let (shared, reader) = lock(&environment.tables).shared(&name);
        Ok(RouteTable {
            name,
            shared,
            reader,
            interfaces: environment.interfaces.clone(),
            loading,
        })
    }

    /// Look at the table.
    pub(crate) fn read<T>(
        &mut self,
        look: impl FnOnce(&volley_sdk::tables::lpm4::Lpm4View, &[Hop], &[Route]) -> T,
    ) -> T {
        self.shared.read(&mut self.reader, look)
    }

    /// Change the table: at once while the script is loaded, else the control thread does it soon.
    fn change(&self, change: Change) -> bool {
        if self.loading.is_now.load(Relaxed) {
            let mut loaded = lock(&self.loading.loaded);
            loaded.0.entry(self.name.clone()).or_default().push(change);
            return true;
        }
        self.shared.ask(change)
    }

    fn route(&self, of: &Table) -> mlua::Result<Route> {
        let name: String = of.get("interface")?;
        let interface = interface(&self.interfaces, &name)?;
        let mac_text: Option<String> = of.get("mac")?;
        let via: Option<String> = of.get("via")?;
        Ok(Route {
            interface: interface.index,
            mtu: interface.mtu,
            source: interface.mac,
            mac: mac_text
                .map(|text| Ok::<_, Error>(mac(&text)?.0))
                .transpose()?,
            via: via
                .map(|text| tables::address(&text).map_err(raise))
                .transpose()?,
        })
    }

    /// The route to an address, as a table.
    fn find(&mut self, lua: &Lua, address: &str) -> mlua::Result<Option<Table>> {
        let address = tables::address(address).map_err(raise)?;
        let found = self.read(|view, hops, routes| {
            let at = (view.lookup(address) as usize).checked_sub(1)?;
            Some((*hops.get(at)?, *routes.get(at)?))
        });
        let Some((hop, route)) = found else {
            return Ok(None);
        };
        let table = lua.create_table()?;
        let index = hop.interface;
        let known = self.interfaces.iter().find(|it| it.index == index);
        table.set("interface", known.map(|it| it.name.as_str()))?;
        table.set("source", MacAddr(route.source).to_string())?;
        if hop.is_complete
            && let Some(mac) = hop.ethernet.first_chunk::<6>()
        {
            table.set("mac", MacAddr(*mac).to_string())?;
        }
        // A neighbor is its own next hop.
        let via = route.via.filter(|via| *via != address);
        table.set("via", via.map(|it| Ipv4Addr::from_bits(it).to_string()))?;
        Ok(Some(table))
    }
}

impl UserData for RouteTable {
    fn add_methods<M: UserDataMethods<Self>>(methods: &mut M) {
        methods.add_method("add", |_, this, (prefix, route): (String, Table)| {
            let (address, length) = tables::prefix(&prefix).map_err(raise)?;
            Ok(this.change(Change::Add(address, length, this.route(&route)?)))
        });
        methods.add_method(
            "add_many",
            |_, this, (prefix, count, routes): (String, u32, Vec<Table>)| {
                if !this.loading.is_now.load(Relaxed) {
                    return Err(Error::runtime(
                        "many routes are set while the script is loaded: call add_many outside of functions",
                    ));
                }
                let first = tables::prefix(&prefix).map_err(raise)?;
                let routes = routes.iter().map(|it| this.route(it));
                let routes = routes.collect::<mlua::Result<Vec<Route>>>()?;
                let run = Run::new(first, count, routes).map_err(raise)?;
                Ok(this.change(Change::Run(run)))
            },
        );
        methods.add_method("remove", |_, this, prefix: String| {
            let (address, length) = tables::prefix(&prefix).map_err(raise)?;
            Ok(this.change(Change::Remove(address, length)))
        });
        methods.add_method("neighbor", |_, this, (address, route): (String, Table)| {
            let address = tables::address(&address).map_err(raise)?;
            let route = this.route(&route)?;
            match route.mac {
                Some(_) => Ok(this.change(Change::Neighbor(address, route))),
                None => Err(Error::runtime("a neighbor needs `mac`")),
            }
        });
        methods.add_method_mut("find", |lua, this, address: String| {
            this.find(lua, &address)
        });
    }
}
