//! A configuration to nodes with edges.

use crate::arguments::Arguments;
use crate::cells::Cells;
use crate::columns::{self, PORT, PORT_SHIFT};
use crate::element::{ControlOutput, Each, Element, Made, Room, Verdict};
use crate::elements;
use crate::handlers::Placed;
use crate::node::each::EachNode;
use crate::node::make::MakeNode;
use crate::node::queue::QueueNode;
use crate::node::source::SourceNode;
use crate::pace::Pace;
use crate::spec::{Context, Spec};
use std::any::Any;
use std::path::Path;
use std::sync::Arc;
use volley_click_lang::{
    ClickError, Mode, Network, Port, Shape, Source, Wiring, flatten, parse, wire,
};
use volley_graph::{Col, DROP_NODE, Domain, Packet, WiredNode};

/// The node behind ToDevice.
const OUTPUT: &str = "interface-output";

/// What a graph needs of the router.
pub struct Environment<'a> {
    /// The index of an interface.
    pub interface: &'a dyn Fn(&str) -> Result<u32, String>,
    /// The domain of tables that elements read.
    pub domain: &'a Arc<Domain>,
    /// The folder of the configuration.
    pub folder: &'a Path,
    /// The maximum number of packets of a vector.
    pub vector_size: usize,
}

/// A graph that can be added to an engine.
#[derive(Default)]
pub struct Graph {
    /// The nodes.
    pub nodes: Vec<WiredNode>,
    /// The elements, in the order of the configuration.
    pub placed: Vec<Placed>,
    /// Interfaces, each with the node that gets its frames.
    pub entrances: Vec<(u32, String)>,
    /// What the control thread writes.
    pub outputs_to_control: Vec<ControlOutput>,
    /// Cells that are 1 when the program is to end.
    pub stops: Vec<(Arc<Cells>, usize)>,
    /// What lives as long as the graph.
    pub kept: Vec<Box<dyn Any>>,
    /// Frames that the queues hold.
    pub frames: usize,
}

/// The name of an element's node.
pub fn node_name(element: &str) -> String {
    format!("click/{element}")
}

/// The name of the node in front of an input of an element.
fn input_name(element: &str, port: usize) -> String {
    match port {
        0 => node_name(element),
        _ => format!("click/{element}[{port}]"),
    }
}

/// An element that was made.
struct Part {
    spec: &'static Spec,
    made: Made,
    cells: Arc<Cells>,
}

/// Make the graph of a configuration.
pub fn build(source: &Source, environment: &Environment<'_>) -> Result<Graph, ClickError> {
    let names = elements::names();
    let network = flatten(source, &parse(source)?, &names)?;
    let written = Room::default();
    let mut parts = Vec::new();
    for (number, element) in network.elements.iter().enumerate() {
        let made = part(&network, number, environment, &written);
        parts.push(made.map_err(|why| source.error(element.at, why))?);
    }
    written.close();
    let shapes: Vec<Shape> = parts.iter().map(shape).collect();
    let wiring = wire(source, &network, &shapes)?;
    for (number, outputs) in wiring.outputs.iter().enumerate() {
        if let Some(port) = outputs.iter().position(|it| it.peers.len() > 1) {
            let it = &network.elements[number];
            let text = format!(
                "output {port} of {} ({}) has {} readers, but one is supported: use a queue for each",
                it.name,
                it.class,
                outputs[port].peers.len()
            );
            return Err(source.error(it.at, text));
        }
    }
    Ok(assemble(&network, &wiring, parts, environment))
}

fn part(
    network: &Network,
    number: usize,
    environment: &Environment<'_>,
    written: &Room,
) -> Result<Part, String> {
    let element = &network.elements[number];
    let spec = elements::find(&element.class)
        .ok_or_else(|| format!("there is no element class {}", element.class))?;
    let arguments = Arguments::read(spec, &element.arguments)?;
    let used = |ends: &mut dyn Iterator<Item = (usize, usize)>| {
        let of_element = ends.filter(|(it, _)| *it == number);
        of_element.map(|(_, port)| port + 1).max().unwrap_or(0)
    };
    let inputs = used(&mut network.hookups.iter().map(|it| it.to));
    let outputs = used(&mut network.hookups.iter().map(|it| it.from));
    let cells = Arc::new(Cells::new(spec.cells()));
    let context = Context {
        cells: cells.clone(),
        ports: (inputs, outputs),
        interface: environment.interface,
        domain: environment.domain,
        folder: environment.folder.to_owned(),
        written: written.clone(),
        vector_size: environment.vector_size,
    };
    let made = (spec.make)(&arguments, &context)?;
    Ok(Part { spec, made, cells })
}

/// The ports of an element with its arguments.
fn shape(part: &Part) -> Shape {
    let mut shape = part.spec.shape();
    if let Some(outputs) = &part.made.outputs {
        shape.outputs = outputs.clone();
    }
    match part.made.inputs {
        Some(inputs) => shape.with_inputs(inputs),
        None => shape,
    }
}

/// Notes the input at which packets arrive, for an element with several.
#[derive(Clone)]
struct Arrive(usize);

impl Each for Arrive {
    fn packet(&mut self, packet: &mut Packet<'_>, _: u64) -> Verdict {
        columns::set_note(packet, PORT, (self.0 as u32) << PORT_SHIFT);
        Verdict::port(0)
    }
}

/// Sets the interface that transmits packets.
#[derive(Clone)]
struct Transmit(u32);

impl Each for Transmit {
    fn packet(&mut self, packet: &mut Packet<'_>, _: u64) -> Verdict {
        packet.set(Col::TX, self.0);
        Verdict::port(0)
    }
}

/// Passes packets.
struct Pass;

impl Each for Pass {
    fn packet(&mut self, _: &mut Packet<'_>, _: u64) -> Verdict {
        Verdict::port(0)
    }
}

/// The limits between a queue and its reader, the reader's included.
fn paces(queue: usize, wiring: &Wiring, parts: &[Part]) -> Vec<Pace> {
    let mut all = Vec::new();
    let mut at = queue;
    // Each element is passed once at most.
    for _ in 0..parts.len() {
        let Some(output) = wiring.outputs[at]
            .first()
            .filter(|it| it.mode == Mode::Pull)
        else {
            break;
        };
        let Some((next, _)) = output.peers.first() else {
            break;
        };
        at = *next;
        all.extend(parts[at].made.pace.clone());
    }
    all
}

fn assemble(
    network: &Network,
    wiring: &Wiring,
    parts: Vec<Part>,
    environment: &Environment<'_>,
) -> Graph {
    let size = environment.vector_size;
    let mut graph = Graph::default();
    let paces: Vec<Vec<Pace>> = (0..parts.len())
        .map(|it| paces(it, wiring, &parts))
        .collect();
    for ((number, part), paces) in parts.into_iter().enumerate().zip(paces) {
        let element = &network.elements[number];
        let targets = wiring.outputs[number].iter().map(|port| {
            let peer = port.peers.first().copied().unwrap_or_default();
            input_name(&network.elements[peer.0].name, peer.1)
        });
        let targets: Vec<String> = targets.chain([DROP_NODE.to_owned()]).collect();
        let name = node_name(&element.name);
        for port in 1..wiring.inputs[number].len() {
            let targets = vec![name.clone(), DROP_NODE.to_owned()];
            let arrive = move || Box::new(Arrive(port)) as Box<dyn Each>;
            let node = each(&input_name(&element.name, port), targets, size, arrive);
            graph.nodes.push(node);
        }
        let made = part.made;
        graph.outputs_to_control.extend(made.to_control);
        graph.kept.extend(made.kept);
        let stop = made.stop_cell.map(|cell| (part.cells.clone(), cell));
        graph.stops.extend(stop);
        if let Element::Queue(capacity) = made.element {
            graph.frames += QueueNode::frames(capacity, size);
        }
        if let Element::FromDevice(interface) = made.element {
            graph.entrances.push((interface, name.clone()));
        }
        let cells = part.cells.clone();
        graph
            .nodes
            .extend(node(&name, targets, made.element, (paces, cells), size));
        graph.placed.push(Placed {
            name: element.name.clone(),
            spec: part.spec,
            config: element.arguments.join(", "),
            ports: ports(network, &wiring.inputs[number], &wiring.outputs[number]),
            cells: part.cells,
            texts: made.texts,
        });
    }
    graph
}

fn each(
    name: &str,
    targets: Vec<String>,
    size: usize,
    make: impl Fn() -> Box<dyn Each> + 'static,
) -> WiredNode {
    let outputs = targets.len() - 1;
    WiredNode::node(name, targets, move |_| EachNode::new(make(), outputs, size))
}

/// The node of an element, if it has one.
fn node(
    name: &str,
    mut targets: Vec<String>,
    element: Element,
    (paces, cells): (Vec<Pace>, Arc<Cells>),
    size: usize,
) -> Option<WiredNode> {
    let outputs = targets.len() - 1;
    Some(match element {
        Element::Each(make) => each(name, targets, size, make),
        Element::Build(make) => {
            WiredNode::node(name, targets, move |_| MakeNode::new(make(), outputs))
        }
        Element::End(make) => {
            WiredNode::node(name, Vec::new(), move |_| EachNode::end(make(), size))
        }
        Element::Source(make) => WiredNode::source(name, targets, move |worker| {
            // Packets of one source are made by one worker.
            SourceNode::new((worker == 0).then(&make))
        }),
        Element::Queue(capacity) => WiredNode::stage(name, targets, move |_| {
            QueueNode::new(capacity, paces.clone(), cells.clone(), size)
        }),
        Element::FromDevice(_) => each(name, targets, size, || Box::new(Pass)),
        Element::ToDevice(interface) => {
            targets.insert(0, OUTPUT.to_owned());
            each(name, targets, size, move || Box::new(Transmit(interface)))
        }
        Element::Nothing => return None,
    })
}

/// The text of the handler `ports`.
fn ports(network: &Network, inputs: &[Port], outputs: &[Port]) -> String {
    let side = |name: &str, all: &[Port]| {
        let row = |(number, port): (usize, &Port)| {
            let peer = |(element, port): &(usize, usize)| {
                format!("{}[{port}]", network.elements[*element].name)
            };
            let peers: Vec<String> = port.peers.iter().map(peer).collect();
            format!(
                "{name} {number} {} {}\n",
                port.mode.name(),
                peers.join(", ")
            )
        };
        all.iter().enumerate().map(row).collect::<String>()
    };
    side("input", inputs) + &side("output", outputs)
}
