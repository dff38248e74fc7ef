//! The graph that runs: it is made, replaced and removed on the control thread.

use crate::graph::{self, Environment, Graph};
use crate::handlers::Placed;
use crate::live::{ChangeError, Live};
use crate::model::{
    ClickGraph, ClickReload, ClickReply, ClickWrite, ElementRow, HandlerValue, ShowClick,
};
use crate::names::NamedAddresses;
use crate::node::click_input::{ClickInput, Entrances};
use std::cell::RefCell;
use std::net::{IpAddr, Ipv4Addr};
use std::path::{Path, PathBuf};
use std::rc::Rc;
use volley_click_lang::Source;
use volley_graph::{Engine, GraphError, Node};
use volley_iface::{Gateways, IfIdx, InterfaceNotes, Interfaces, ReceiveFeature, Registry};
use volley_model::{Applied, ModelError};
use volley_tables::Publisher;

/// The longest configuration in bytes.
const LONGEST: u64 = 4 << 20;

struct Control {
    engine: Rc<RefCell<Engine>>,
    interfaces: Rc<RefCell<Interfaces>>,
    feature: ReceiveFeature,
    entrances: Publisher<Entrances>,
    live: Live,
    /// The file of the graph that runs.
    path: Option<PathBuf>,
    /// The interfaces whose frames enter the graph.
    taken: Vec<u32>,
    /// The addresses of interfaces.
    notes: InterfaceNotes,
    gateways: Gateways,
}

/// The daemon's handle of this crate: the daemon calls [`Click::drain`] often, and once more at the end.
#[derive(Clone)]
pub struct Click(Rc<RefCell<Control>>);

impl Click {
    /// Register `click-input` and the owners of this crate's class, query and verb.
    pub fn register(registry: &mut Registry) -> Result<Click, GraphError> {
        let table = registry.table();
        let (entrances, domain) = {
            let mut engine = registry.engine.borrow_mut();
            let domain = engine.domain().clone();
            let size = engine.settings().vector_size;
            let entrances = Publisher::new(engine.domain(), Entrances::default());
            let snap = entrances.snap();
            engine.add(ClickInput::NAME, move |_| {
                ClickInput::new(snap.clone(), table.clone(), size)
            })?;
            (entrances, domain)
        };
        let feature = ReceiveFeature::consumer(&registry.engine, ClickInput::NAME)?;
        let click = Click(Rc::new(RefCell::new(Control {
            engine: registry.engine.clone(),
            interfaces: registry.interfaces.clone(),
            feature,
            entrances,
            live: Live::new(&domain),
            path: None,
            taken: Vec::new(),
            notes: registry.interface_notes.clone(),
            gateways: registry.provided()?,
        })));
        click.own(registry);
        Ok(click)
    }

    fn own(&self, registry: &mut Registry) {
        let it = self.clone();
        registry.own(move |_, now: Option<ClickGraph>| {
            let mut control = it.0.borrow_mut();
            match now {
                Some(graph) => control.install(&graph.graph)?,
                None => control.put(Graph::default(), None)?,
            }
            Ok(Applied::one())
        });
        let it = self.clone();
        registry.perform(move |_: ClickReload| {
            it.0.borrow_mut().reload()?;
            Ok(Applied::one())
        });
        let it = self.clone();
        registry.answer(move |asked: ShowClick| it.0.borrow().shown(&asked));
        let it = self.clone();
        registry.perform(move |it_is: ClickWrite| {
            it.0.borrow().write(&it_is)?;
            Ok(Applied::one())
        });
    }

    /// Write the packets of ToDump, and log those of Print; returns the number of packets.
    pub fn drain(&self) -> usize {
        let control = &mut *self.0.borrow_mut();
        let engine = control.engine.borrow();
        control.live.drain(&engine, &mut |line| {
            tracing::info!(target: "click", "{line}");
        })
    }

    /// Whether the graph writes files or the log.
    pub fn is_writing(&self) -> bool {
        self.0.borrow().live.is_writing()
    }

    /// Whether an element can ask the program to end.
    pub fn may_end(&self) -> bool {
        self.0.borrow().live.may_end()
    }

    /// Whether an element has asked the program to end.
    pub fn wants_end(&self) -> bool {
        self.0.borrow().live.wants_end()
    }
}

impl ChangeError {
    /// For the operator. The sentence of a file begins with its place.
    fn into_model(self) -> ModelError {
        match self {
            ChangeError::File(error) => ModelError::Config {
                errors: vec![error.to_string()],
            },
            ChangeError::Engine(error) => ModelError::invalid("click graph", error),
        }
    }
}

fn no_graph() -> ModelError {
    ModelError::invalid(
        "click graph",
        "no graph runs: `set click graph FILE` starts one",
    )
}

fn refused(path: &Path, why: impl std::fmt::Display) -> ModelError {
    ModelError::file(path, why)
}

impl Control {
    /// Build the graph of a file, and let it take the place of the one that runs.
    fn install(&mut self, path: &Path) -> Result<(), ModelError> {
        let bytes = volley_file::read(path, LONGEST).map_err(|error| refused(path, error))?;
        let source = Source::from_bytes(path.to_string_lossy(), bytes);
        let graph = source.and_then(|source| self.build(path, &source));
        let graph = graph.map_err(|error| ChangeError::File(error).into_model())?;
        self.check_free(&graph)?;
        self.put(graph, Some(path.to_owned()))
    }

    /// Read the file of the graph again.
    fn reload(&mut self) -> Result<(), ModelError> {
        let path = self.path.clone().ok_or_else(no_graph)?;
        self.install(&path)
    }

    fn build(&self, path: &Path, source: &Source) -> Result<Graph, volley_click_lang::ClickError> {
        let (domain, vector_size) = {
            let engine = self.engine.borrow();
            (engine.domain().clone(), engine.settings().vector_size)
        };
        let interface = |name: &str| {
            let all = self.interfaces.borrow();
            let by_mac = crate::arguments::ethernet(name)
                .and_then(|mac| all.iter().find(|it| it.mac == mac));
            if let Some(found) = by_mac {
                return Ok(found.index.0);
            }
            all.index(name).map(|index| index.0).map_err(|_| {
                let known: Vec<String> = all.iter().map(|it| it.name.clone()).collect();
                let known = known.iter().map(String::as_str);
                let hint = volley_click_lang::hint(
                    name,
                    known,
                    "create it, or name one that `show interfaces` lists",
                );
                format!("there is no interface {name}{hint}")
            })
        };
        let addresses = |name: &str| {
            let all = self.interfaces.borrow();
            let found = all.iter().find(|it| it.name == name)?;
            let own = self.notes.addresses(found.index).into_iter();
            let mut v4 = own.filter_map(|it| match it.addr() {
                IpAddr::V4(address) => Some((address.to_bits(), it.len())),
                IpAddr::V6(_) => None,
            });
            let gateway = self.gateways.of(found.index).map(Ipv4Addr::to_bits);
            Some(NamedAddresses::interface(found.mac, v4.next(), gateway))
        };
        let environment = Environment {
            interface: &interface,
            addresses: &addresses,
            domain: &domain,
            folder: path.parent().unwrap_or(Path::new("/")),
            vector_size,
        };
        graph::build(source, &environment, &self.live)
    }

    /// Refuse interfaces that another consumer has, and an interface in two elements.
    fn check_free(&self, graph: &Graph) -> Result<(), ModelError> {
        let mut seen = Vec::new();
        for (interface, _) in graph.entrances() {
            let name = self.interfaces.borrow().name(interface);
            if seen.contains(&interface) {
                let why = format!("two FromDevice have the interface {name}: remove one");
                return Err(ModelError::invalid("click graph", why));
            }
            seen.push(interface);
            let is_own = self.taken.contains(&interface);
            if !is_own && self.feature.is_consumed(IfIdx(interface)) {
                let why = format!(
                    "another feature gets all frames of {name}: disable it first, `show features` lists it"
                );
                return Err(ModelError::invalid("click graph", why));
            }
        }
        Ok(())
    }

    /// Let a graph take the place of the one that runs. Workers make the changes in the order in which they are sent: frames of an
    /// interface enter the graph only while the node for them is there.
    fn put(&mut self, graph: Graph, path: Option<PathBuf>) -> Result<(), ModelError> {
        let enters: Vec<(u32, String)> = graph
            .entrances()
            .map(|(interface, node)| (interface, node.to_owned()))
            .collect();
        let before = std::mem::take(&mut self.taken);
        let stays = |interface: &u32| enters.iter().any(|it| it.0 == *interface);
        let (stay, leave): (Vec<u32>, Vec<u32>) = before.into_iter().partition(stays);
        for interface in &leave {
            self.feature.clear(IfIdx(*interface));
        }
        let changed = self.live.change(&mut self.engine.borrow_mut(), graph);
        if let Err(error) = changed {
            for interface in &leave {
                // The feature was enabled until now.
                let _ = self.feature.set(IfIdx(*interface), true);
            }
            self.taken = [stay, leave].concat();
            return Err(error.into_model());
        }
        self.path = path;
        // The entries of interfaces that leave stay: frames may enter until the workers make the change.
        let mut entrances = self.entrances.current().clone();
        for (interface, node) in &enters {
            let node = self.engine.borrow().node(node);
            let node = node.map_err(|error| ModelError::invalid("click graph", error))?;
            entrances.set(*interface, node);
        }
        self.entrances.publish(entrances);
        for (interface, _) in enters {
            if !stay.contains(&interface) {
                self.feature
                    .enable(&self.interfaces.borrow(), IfIdx(interface))?;
            }
            self.taken.push(interface);
        }
        self.engine.borrow().wake();
        Ok(())
    }

    /// The element of `element.handler`, and the handler.
    fn handler<'a>(&self, text: &'a str) -> Result<(&Placed, &'a str), ModelError> {
        let failed = |why: String| ModelError::invalid(format!("handler {text}"), why);
        self.path.as_ref().ok_or_else(no_graph)?;
        let (element, handler) = text
            .rsplit_once('.')
            .ok_or_else(|| failed("write ELEMENT.HANDLER, such as c.count".to_owned()))?;
        let found = self.live.placed().find(|it| it.name == element);
        let hint = || {
            let names = self.live.placed().map(|it| it.name.as_str());
            volley_click_lang::hint(element, names, "`show click` lists the elements")
        };
        match found {
            Some(placed) => Ok((placed, handler)),
            None => Err(failed(format!("there is no element {element}{}", hint()))),
        }
    }

    fn write(&self, write: &ClickWrite) -> Result<(), ModelError> {
        let (placed, handler) = self.handler(&write.handler)?;
        let done = placed.write(handler, &write.value);
        done.map_err(|why| ModelError::invalid(format!("handler {}", write.handler), why))?;
        self.engine.borrow().wake();
        Ok(())
    }

    fn shown(&self, asked: &ShowClick) -> Result<ClickReply, ModelError> {
        let graph = self.path.as_ref().map(|it| it.display().to_string());
        if let Some(text) = &asked.handler {
            let (placed, handler) = self.handler(text)?;
            let value = placed.read(handler);
            let value = value.map_err(|why| ModelError::invalid(format!("handler {text}"), why))?;
            return Ok(ClickReply {
                graph,
                elements: Vec::new(),
                value: Some(value),
            });
        }
        Ok(ClickReply {
            graph,
            elements: self.live.placed().map(row).collect(),
            value: None,
        })
    }
}

fn row(placed: &Placed) -> ElementRow {
    let readable = placed.spec.handlers.iter().filter(|it| it.kind.access().0);
    let value = |name: &'static str| HandlerValue {
        handler: name.to_owned(),
        value: placed.read(name).unwrap_or_default(),
    };
    ElementRow {
        name: placed.name.clone(),
        class: placed.spec.name.to_owned(),
        config: placed.config.clone(),
        values: readable.map(|it| value(it.name)).collect(),
    }
}
