//! A configuration to the elements of a graph, some of which go on from the graph that runs.

use crate::arguments::Arguments;
use crate::assemble::assemble;
use crate::cells::Cells;
use crate::difference;
use crate::element::Queues;
use crate::elements;
use crate::live::Live;
use crate::member::{Device, Member};
use crate::names::{NamedAddresses, Names, Wanted};
use crate::spec::Context;
use crate::watch;
use std::path::Path;
use std::sync::Arc;
use volley_click_lang::{ClickError, Element, Network, Shape, Source, flatten, parse, wire};
use volley_graph::{Domain, WiredNode};

/// The handler with the names of the queues that an element reads.
const QUEUES: &str = "queues";

/// What a graph needs of the router.
pub struct Environment<'a> {
    /// The index of an interface.
    pub interface: &'a dyn Fn(&str) -> Result<u32, String>,
    /// The addresses of an interface with this name.
    pub addresses: &'a dyn Fn(&str) -> Option<NamedAddresses>,
    /// The domain of tables that elements read.
    pub domain: &'a Arc<Domain>,
    /// The folder of the configuration.
    pub folder: &'a Path,
    /// The maximum number of packets of a vector.
    pub vector_size: usize,
}

/// A graph that can take the place of the one that runs.
#[derive(Default)]
pub struct Graph {
    /// The elements, in the order of the configuration.
    pub(crate) members: Vec<Member>,
    /// New nodes.
    pub(crate) nodes: Vec<WiredNode>,
    /// Frames that the queues hold.
    pub(crate) frames: usize,
    /// The configuration, for errors with their place.
    pub(crate) source: Option<Source>,
}

impl Graph {
    /// The interfaces whose frames enter the graph, each with the node that gets them.
    pub fn entrances(&self) -> impl Iterator<Item = (u32, &str)> {
        entrances(&self.members)
    }
}

pub(crate) fn entrances(members: &[Member]) -> impl Iterator<Item = (u32, &str)> {
    members.iter().filter_map(|it| match it.device {
        Some(Device::From(interface)) => Some((interface, it.nodes.first()?.name.as_str())),
        _ => None,
    })
}

/// Make the graph of a configuration, in which elements of `live` go on.
pub fn build(
    source: &Source,
    environment: &Environment<'_>,
    live: &Live,
) -> Result<Graph, ClickError> {
    let names = elements::names();
    let network = flatten(source, &parse(source)?, &names)?;
    let known =
        Names::of(&network, environment.addresses).map_err(|(at, why)| source.error(at, why))?;
    // Names may mean other addresses than in the graph that runs.
    let spread = |text: &String| known.spread(text, Wanted::Both);
    let elements = network.elements.iter();
    let arguments: Vec<Vec<String>> = elements
        .map(|it| it.arguments.iter().map(spread).collect())
        .collect();
    let connected = connected(&network);
    let matches = difference::matches(&network, &arguments, &connected, &live.members);
    let mut members = Vec::new();
    for (number, element) in network.elements.iter().enumerate() {
        let made = match matches[number] {
            Some(at) => going_on(&network.elements[number], at, live, (environment, &known)),
            None => member(
                &network.elements[number],
                connected[number],
                (environment, &known),
                live,
            ),
        };
        let mut made = made.map_err(|why| source.error(element.at, why))?;
        made.arguments.clone_from(&arguments[number]);
        members.push(made);
    }
    check_files(source, &network, &members, live)?;
    let shapes: Vec<Shape> = members.iter().map(shape).collect();
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
    for number in 0..members.len() {
        let Some(named) = &members[number].watches else {
            continue;
        };
        let found = watch::queues(number, named, (&network, &wiring), &members);
        let at = network.elements[number].at;
        let (queues, is_pull) = found.map_err(|why| source.error(at, why))?;
        let (mut names, mut cells) = (String::new(), Vec::new());
        for queue in queues {
            names += &format!("{}\n", members[queue].placed.name);
            cells.push(members[queue].placed.cells.clone());
        }
        let member = &mut members[number];
        member.watched = Queues { cells, is_pull };
        member.placed.texts.retain(|(name, _)| *name != QUEUES);
        member.placed.texts.push((QUEUES, names));
    }
    let mut graph = assemble(&network, &wiring, members, environment);
    graph.source = Some(source.clone());
    Ok(graph)
}

/// The numbers of connected inputs and outputs of each element.
fn connected(network: &Network) -> Vec<(usize, usize)> {
    let mut all = vec![(0, 0); network.elements.len()];
    for hookup in &network.hookups {
        let outputs = &mut all[hookup.from.0].1;
        *outputs = (*outputs).max(hookup.from.1 + 1);
        let inputs = &mut all[hookup.to.0].0;
        *inputs = (*inputs).max(hookup.to.1 + 1);
    }
    all
}

/// Refuse a file that two elements write, or that another element of the graph that runs has open.
fn check_files(
    source: &Source,
    network: &Network,
    members: &[Member],
    live: &Live,
) -> Result<(), ClickError> {
    for (number, member) in members.iter().enumerate() {
        let Some(file) = member.file() else {
            continue;
        };
        let mut others = members[..number].iter();
        let text = if let Some(other) = others.find(|it| it.file() == Some(file)) {
            format!(
                "{} writes the same file as {}: name another file",
                member.placed.name, other.placed.name
            )
        } else if member.before.is_none() && live.has_open(file) {
            format!(
                "{} cannot go on with the file, which an element of other arguments writes in the graph that runs: name another file, or delete the graph first",
                member.placed.name
            )
        } else {
            continue;
        };
        return Err(source.error(network.elements[number].at, text));
    }
    Ok(())
}

/// The element at `at` of the graph that runs, which goes on; a new one if its interface is another one now.
fn going_on(
    element: &Element,
    at: usize,
    live: &Live,
    environment: (&Environment<'_>, &Names),
) -> Result<Member, String> {
    let before = &live.members[at];
    if matches!(before.device, Some(Device::From(_) | Device::To(_))) {
        let fresh = member(element, before.connected, environment, live)?;
        if fresh.device != before.device {
            return Ok(fresh);
        }
    }
    Ok(before.going_on(at, element))
}

/// A new element.
fn member(
    element: &Element,
    connected: (usize, usize),
    (environment, names): (&Environment<'_>, &Names),
    live: &Live,
) -> Result<Member, String> {
    let spec = elements::find(&element.class)
        .ok_or_else(|| format!("there is no element class {}", element.class))?;
    let arguments = Arguments::read(spec, &element.arguments, names)?;
    let cells = Arc::new(Cells::new(spec.cells()));
    let context = Context {
        cells: cells.clone(),
        ports: connected,
        interface: environment.interface,
        domain: environment.domain,
        folder: environment.folder.to_owned(),
        written: live.written(),
        vector_size: environment.vector_size,
    };
    let made = (spec.make)(&arguments, &context)?;
    let mut fresh = Member::new(element, spec, cells, connected, made);
    if let Some(Device::From(_)) = fresh.device {
        // All arguments of FromDevice but the interface are ignored.
        fresh.before = live.members.iter().position(|it| it.device == fresh.device);
    }
    Ok(fresh)
}

/// The ports of an element with its arguments.
fn shape(member: &Member) -> Shape {
    let mut shape = member.placed.spec.shape();
    if let Some(outputs) = &member.outputs {
        shape.outputs = outputs.clone();
    }
    match member.inputs {
        Some(inputs) => shape.with_inputs(inputs),
        None => shape,
    }
}
