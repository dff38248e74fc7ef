//! The graph that runs: it is made, replaced and removed on the control thread.

use crate::element::ControlOutput;
use crate::graph::{self, Environment, Graph};
use crate::handlers::Placed;
use crate::model::{ClickGraph, ClickReply, ClickWrite, ElementRow, HandlerValue, ShowClick};
use crate::node::click_input::{ClickInput, Entrances, word};
use crate::print::Style;
use std::any::Any;
use std::cell::RefCell;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::sync::Arc;
use volley_click_lang::Source;
use volley_graph::{Engine, GraphError, Node};
use volley_iface::{IfIdx, Interfaces, ReceiveFeature, Registry};
use volley_model::{Applied, ModelError};
use volley_pcap::FileFormat;
use volley_pcap::spool::{CaptureWriter, Plain, Sink};
use volley_tables::Publisher;

/// The longest configuration in bytes.
const LONGEST: u64 = 4 << 20;

/// A graph in the engine.
#[derive(Default)]
struct Running {
    path: PathBuf,
    nodes: Vec<String>,
    placed: Vec<Placed>,
    interfaces: Vec<u32>,
    stops: Vec<(Arc<crate::cells::Cells>, usize)>,
    dumps: Vec<Sink>,
    prints: Vec<(Arc<CaptureWriter>, Style)>,
    _kept: Vec<Box<dyn Any>>,
}

struct Control {
    engine: Rc<RefCell<Engine>>,
    interfaces: Rc<RefCell<Interfaces>>,
    feature: ReceiveFeature,
    entrances: Publisher<Entrances>,
    running: Option<Running>,
    /// Frames that were reserved for queues.
    frames: usize,
}

/// The daemon's handle of this crate: the daemon calls [`Click::drain`] often, and once more at the end.
#[derive(Clone)]
pub struct Click(Rc<RefCell<Control>>);

impl Click {
    /// Register `click-input` and the owners of this crate's class, query and verb.
    pub fn register(registry: &mut Registry) -> Result<Click, GraphError> {
        let table = registry.table();
        let entrances = {
            let mut engine = registry.engine.borrow_mut();
            let size = engine.settings().vector_size;
            let entrances = Publisher::new(engine.domain(), Entrances::default());
            let snap = entrances.snap();
            engine.add(ClickInput::NAME, move |_| {
                ClickInput::new(snap.clone(), table.clone(), size)
            })?;
            entrances
        };
        let feature = ReceiveFeature::consumer(&registry.engine, ClickInput::NAME)?;
        let click = Click(Rc::new(RefCell::new(Control {
            engine: registry.engine.clone(),
            interfaces: registry.interfaces.clone(),
            feature,
            entrances,
            running: None,
            frames: 0,
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
                None => control.remove()?,
            }
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
        let mut count = 0;
        if let Some(running) = &mut self.0.borrow_mut().running {
            count += running
                .dumps
                .iter_mut()
                .map(|sink| sink.drain(&Plain))
                .sum::<usize>();
            for (spool, style) in &running.prints {
                count += spool.take(|record| {
                    tracing::info!(target: "click", "{}", style.line(record));
                });
            }
        }
        count
    }

    /// Whether the graph writes files or the log.
    pub fn is_writing(&self) -> bool {
        let control = self.0.borrow();
        let running = control.running.as_ref();
        running
            .is_some_and(|it| !it.dumps.is_empty() || !it.prints.is_empty() || !it.stops.is_empty())
    }

    /// Whether an element can ask the program to end.
    pub fn may_end(&self) -> bool {
        let control = self.0.borrow();
        control
            .running
            .as_ref()
            .is_some_and(|it| !it.stops.is_empty())
    }

    /// Whether an element has asked the program to end.
    pub fn wants_end(&self) -> bool {
        let control = self.0.borrow();
        let stops = control.running.iter().flat_map(|it| &it.stops);
        stops.into_iter().any(|(cells, cell)| cells.get(*cell) != 0)
    }
}

fn refused(path: &Path, why: impl std::fmt::Display) -> ModelError {
    ModelError::file(path, why)
}

impl Control {
    /// Build the graph of a file and put it into the engine, in place of the one that runs.
    fn install(&mut self, path: &Path) -> Result<(), ModelError> {
        let bytes = volley_file::read(path, LONGEST).map_err(|error| refused(path, error))?;
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        let graph = Source::from_bytes(name, bytes).and_then(|source| self.build(path, &source));
        let graph = graph.map_err(|error| ModelError::invalid("click graph", error))?;
        self.check_free(&graph)?;
        self.remove()?;
        self.start(path, graph)
    }

    fn build(&self, path: &Path, source: &Source) -> Result<Graph, volley_click_lang::ClickError> {
        let (domain, vector_size) = {
            let engine = self.engine.borrow();
            (engine.domain().clone(), engine.settings().vector_size)
        };
        let interface = |name: &str| {
            let all = self.interfaces.borrow();
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
        let environment = Environment {
            interface: &interface,
            domain: &domain,
            folder: path.parent().unwrap_or(Path::new("/")),
            vector_size,
        };
        graph::build(source, &environment)
    }

    /// Refuse interfaces that another consumer has, and an interface in two elements.
    fn check_free(&self, graph: &Graph) -> Result<(), ModelError> {
        let own = self.running.iter().flat_map(|it| &it.interfaces);
        let own: Vec<u32> = own.copied().collect();
        for (at, (interface, _)) in graph.entrances.iter().enumerate() {
            let name = self.interfaces.borrow().name(*interface);
            if graph.entrances[..at]
                .iter()
                .any(|(other, _)| other == interface)
            {
                let why = format!("two FromDevice have the interface {name}: remove one");
                return Err(ModelError::invalid("click graph", why));
            }
            if !own.contains(interface) && self.feature.is_consumed(IfIdx(*interface)) {
                let why = format!(
                    "another feature gets all frames of {name}: disable it first, `show features` lists it"
                );
                return Err(ModelError::invalid("click graph", why));
            }
        }
        Ok(())
    }

    fn start(&mut self, path: &Path, graph: Graph) -> Result<(), ModelError> {
        let clock = self.engine.borrow().settings().clock.clone();
        let failed = |error: GraphError| ModelError::invalid("click graph", error);
        let mut running = Running {
            path: path.to_owned(),
            nodes: graph.nodes.iter().map(|it| it.name().to_owned()).collect(),
            placed: graph.placed,
            interfaces: graph.entrances.iter().map(|it| it.0).collect(),
            stops: graph.stops,
            _kept: graph.kept,
            ..Running::default()
        };
        for to_control in graph.outputs_to_control {
            match to_control {
                ControlOutput::Dump(spool, path) => {
                    let format = FileFormat::for_path(&path);
                    let sink = Sink::create(spool, &path, format, &clock);
                    running
                        .dumps
                        .push(sink.map_err(|error| refused(&path, error))?);
                }
                ControlOutput::Print(spool, style) => running.prints.push((spool, style)),
            }
        }
        {
            let mut engine = self.engine.borrow_mut();
            let more = graph.frames.saturating_sub(self.frames);
            if more > 0 {
                engine.reserve_frames(more).map_err(failed)?;
                self.frames += more;
            }
            engine.add_wired(graph.nodes).map_err(failed)?;
            let mut entrances = Entrances::default();
            for (interface, node) in &graph.entrances {
                let at = *interface as usize;
                if entrances.0.len() <= at {
                    entrances.0.resize(at + 1, u32::MAX);
                }
                entrances.0[at] = word(engine.node(node).map_err(failed)?);
            }
            self.entrances.publish(entrances);
        }
        let interfaces = running.interfaces.clone();
        self.running = Some(running);
        for interface in interfaces {
            let all = self.interfaces.borrow();
            self.feature.enable(&all, IfIdx(interface))?;
        }
        self.engine.borrow().wake();
        Ok(())
    }

    fn remove(&mut self) -> Result<(), ModelError> {
        let Some(running) = &self.running else {
            return Ok(());
        };
        let failed = |error: GraphError| ModelError::invalid("click graph", error);
        self.engine
            .borrow_mut()
            .remove_wired(&running.nodes)
            .map_err(failed)?;
        for interface in &running.interfaces {
            self.feature.clear(IfIdx(*interface));
        }
        self.entrances.publish(Entrances::default());
        let dumps = self.running.take().map(|it| it.dumps).unwrap_or_default();
        for sink in dumps {
            let path = sink.path().to_owned();
            let ending = sink.finish(&Plain);
            ending.sentence(&path).map_err(|why| refused(&path, why))?;
        }
        Ok(())
    }

    /// The element of `element.handler`, and the handler.
    fn handler<'a>(&self, text: &'a str) -> Result<(&Placed, &'a str), ModelError> {
        let failed = |why: String| ModelError::invalid(format!("handler {text}"), why);
        let running = self.running.as_ref();
        let running = running
            .ok_or_else(|| failed("no graph runs: `set click graph FILE` starts one".to_owned()))?;
        let (element, handler) = text
            .rsplit_once('.')
            .ok_or_else(|| failed("write ELEMENT.HANDLER, such as c.count".to_owned()))?;
        let found = running.placed.iter().find(|it| it.name == element);
        let names = running.placed.iter().map(|it| it.name.as_str());
        let hint =
            || volley_click_lang::hint(element, names.clone(), "`show click` lists the elements");
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
        let graph = self
            .running
            .as_ref()
            .map(|it| it.path.display().to_string());
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
        let placed = self.running.iter().flat_map(|it| &it.placed);
        Ok(ClickReply {
            graph,
            elements: placed.map(row).collect(),
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
