//! Nodes with edges for the elements of a graph.

use crate::batches::Batches;
use crate::columns::{self, PORT, PORT_SHIFT};
use crate::element::{Each, Element, Pass, Reason, Verdict};
use crate::fast::ETHERNET;
use crate::graph::{Environment, Graph};
use crate::member::{Device, Member, Wires};
use crate::node::each::EachNode;
use crate::node::link::LinkNode;
use crate::node::make::MakeNode;
use crate::node::queue::QueueNode;
use crate::node::source::SourceNode;
use crate::pace::Pace;
use crate::packet::{strip, u16_at};
use crate::turn::{Feeder, Turn};
use std::sync::Arc;
use volley_click_lang::{Mode, Network, Port, Wiring};
use volley_graph::{Col, DROP_NODE, Packet, WiredNode};
use volley_tables::Publisher;
use volley_wire::ethertype;

/// The node behind ToDevice.
const OUTPUT: &str = "interface-output";

/// The nodes behind ToHost: those of IPv4, IPv6 and ARP.
const HOST: [&str; 3] = ["ip4-input", "ip6-input", "arp-input"];

/// The name of an element's node.
fn node_name(element: &str) -> String {
    format!("click/{element}")
}

/// The name of the node in front of an input of an element. `is_echo`: the node of the element is a source.
fn input_name(element: &str, port: usize, is_echo: bool) -> String {
    match port {
        0 if !is_echo => node_name(element),
        _ => format!("click/{element}[{port}]"),
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

/// Gives frames to the node of their EtherType.
struct ToHost;

impl Each for ToHost {
    fn packet(&mut self, packet: &mut Packet<'_>, _: u64) -> Verdict {
        let kind = u16_at(packet.bytes(), 12);
        let kinds = [ethertype::IP4, ethertype::IP6, ethertype::ARP];
        match kinds.iter().position(|it| *it == kind) {
            Some(port) if strip(packet, ETHERNET) => Verdict::port(port),
            _ => Verdict::drop(Reason::Unmatched),
        }
    }
}

/// The queues in front of an input, each with the limits up to it on one path. `seen`: elements that are not inspected again,
/// because there may be too many paths to follow each.
fn feeders(input: &Port, wiring: &Wiring, members: &[Member], seen: &mut [bool]) -> Vec<Feeder> {
    let mut all = Vec::new();
    for (at, _) in &input.peers {
        if std::mem::replace(&mut seen[*at], true) {
            continue;
        }
        let member = &members[*at];
        if member.capacity.is_some() {
            all.push(Feeder {
                cells: member.placed.cells.clone(),
                paces: Vec::new(),
            });
            continue;
        }
        for input in &wiring.inputs[*at] {
            let behind = feeders(input, wiring, members, seen).into_iter();
            all.extend(behind.map(|mut it| {
                it.paces.extend(member.pace.clone());
                it
            }));
        }
    }
    all
}

/// The scheduler of each element that is one.
fn turns(wiring: &Wiring, members: &[Member]) -> Vec<Option<Arc<Turn>>> {
    let turn = |(number, member): (usize, &Member)| {
        let inputs = wiring.inputs[number].iter();
        let seen = || vec![false; members.len()];
        let feeders = inputs.map(|it| feeders(it, wiring, members, &mut seen()));
        Some(Arc::new(Turn::new(member.turn.clone()?, feeders.collect())))
    };
    members.iter().enumerate().map(turn).collect()
}

/// The limits between a queue and its reader, the reader's included.
fn paces(
    queue: usize,
    wiring: &Wiring,
    members: &[Member],
    turns: &[Option<Arc<Turn>>],
) -> Vec<Pace> {
    let mut all = Vec::new();
    let mut at = queue;
    // Each element is passed once at most.
    for _ in 0..members.len() {
        let Some(output) = wiring.outputs[at]
            .first()
            .filter(|it| it.mode == Mode::Pull)
        else {
            break;
        };
        let Some((next, input)) = output.peers.first() else {
            break;
        };
        at = *next;
        if let Some(turn) = &turns[at] {
            all.push(Pace::Turn(turn.clone(), *input));
        }
        all.extend(members[at].pace.clone());
    }
    all
}

/// Nodes and their edges for the elements of a configuration.
pub(crate) fn assemble(
    network: &Network,
    wiring: &Wiring,
    mut members: Vec<Member>,
    environment: &Environment<'_>,
) -> Graph {
    let mut graph = Graph::default();
    let turns = turns(wiring, &members);
    for number in 0..members.len() {
        members[number].paces = paces(number, wiring, &members, &turns);
    }
    let echoes: Vec<bool> = members.iter().map(|it| it.is_echo).collect();
    for (number, mut member) in members.into_iter().enumerate() {
        let (inputs, outputs) = (&wiring.inputs[number], &wiring.outputs[number]);
        let name = &network.elements[number].name;
        let targets = outputs.iter().map(|port| {
            let peer = port.peers.first().copied().unwrap_or_default();
            input_name(&network.elements[peer.0].name, peer.1, echoes[peer.0])
        });
        let mut targets: Vec<String> = targets.chain([DROP_NODE.to_owned()]).collect();
        let router: &[&str] = match member.device {
            Some(Device::To(_)) => &[OUTPUT],
            Some(Device::Host) => &HOST,
            Some(Device::From(_)) | None => &[],
        };
        let router = router.iter().map(|it| (*it).to_owned());
        targets = router.chain(targets).collect();
        let main = Wires {
            name: node_name(name),
            targets,
        };
        // An Idle without inputs has no node.
        member.nodes = Vec::from_iter(member.has_node.then_some(main));
        for port in usize::from(!member.is_echo)..inputs.len() {
            let mut targets = vec![DROP_NODE.to_owned()];
            if !member.is_echo {
                targets.insert(0, node_name(name));
            }
            member.nodes.push(Wires {
                name: input_name(name, port, member.is_echo),
                targets,
            });
        }
        member.placed.ports = ports(network, inputs, outputs);
        if let Some(packets) = member.capacity.or(member.on_link) {
            graph.frames += Batches::frames(packets, environment.vector_size);
        }
        if let Some(element) = member.element.take().filter(|_| member.before.is_none()) {
            new_nodes(&mut member, element, environment, &mut graph.nodes);
        }
        graph.members.push(member);
    }
    graph
}

/// Make the nodes of a new element.
fn new_nodes(
    member: &mut Member,
    element: Element,
    environment: &Environment<'_>,
    nodes: &mut Vec<WiredNode>,
) {
    let size = environment.vector_size;
    member.publish_watched();
    let mut wires = member.nodes.iter();
    let Some(first) = wires.next() else {
        return;
    };
    if let Element::Echo { source, replies } = element {
        let end = wires.next().map(|it| node(it, Element::End(replies), size));
        nodes.extend(end.flatten());
        nodes.extend(node(first, Element::Source(source), size));
        return;
    }
    for (port, wires) in wires.enumerate() {
        let arrive = move || Box::new(Arrive(port + 1)) as Box<dyn Each>;
        nodes.push(each(wires, size, arrive));
    }
    if let Element::Queue(capacity) = element {
        let paces = std::mem::take(&mut member.paces);
        let publisher = Publisher::new(environment.domain, paces);
        let (snap, cells) = (publisher.snap(), member.placed.cells.clone());
        member.queue = Some(publisher);
        let make = move |_| QueueNode::new(capacity, snap.clone(), cells.clone(), size);
        nodes.push(WiredNode::stage(&first.name, first.targets.clone(), make));
        return;
    }
    nodes.extend(node(first, element, size));
}

fn each(wires: &Wires, size: usize, make: impl Fn() -> Box<dyn Each> + 'static) -> WiredNode {
    let outputs = wires.targets.len() - 1;
    let make = move |_| EachNode::new(make(), outputs, size);
    WiredNode::node(&wires.name, wires.targets.clone(), make)
}

/// The node of an element that is no queue.
fn node(wires: &Wires, element: Element, size: usize) -> Option<WiredNode> {
    let (name, targets) = (wires.name.as_str(), wires.targets.clone());
    let outputs = targets.len() - 1;
    Some(match element {
        Element::Each(make) => each(wires, size, make),
        Element::Build(make) => {
            WiredNode::node(name, targets, move |_| MakeNode::new(make(), outputs, size))
        }
        Element::End(make) => WiredNode::node(name, targets, move |_| EachNode::end(make(), size)),
        Element::Source(make) => WiredNode::source(name, targets, move |worker| {
            // Packets of one source are made by one worker.
            SourceNode::new((worker == 0).then(&make))
        }),
        Element::FromDevice(_) => each(wires, size, || Box::new(Pass)),
        Element::ToDevice(interface) => each(wires, size, move || Box::new(Transmit(interface))),
        Element::ToHost => each(wires, size, || Box::new(ToHost)),
        Element::Link(link) => {
            WiredNode::stage(name, targets, move |_| LinkNode::new(link.clone(), size))
        }
        Element::Queue(_) | Element::Echo { .. } | Element::Nothing => return None,
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
