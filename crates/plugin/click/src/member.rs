//! An element of a graph, as the control thread keeps it.

use crate::cells::Cells;
use crate::element::{ControlOutput, Element, Made, Queues};
use crate::handlers::Placed;
use crate::pace::Pace;
use crate::spec::Spec;
use crate::turn::TurnKind;
use std::any::Any;
use std::ops::RangeInclusive;
use std::path::Path;
use std::sync::Arc;
use volley_pcap::spool::Sink;
use volley_tables::Publisher;

/// The interface of an element.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Device {
    /// FromDevice.
    From(u32),
    /// ToDevice.
    To(u32),
    /// ToHost.
    Host,
}

/// The name of a node and the names of its targets.
pub(crate) struct Wires {
    pub(crate) name: String,
    pub(crate) targets: Vec<String>,
}

/// An element of a graph.
pub(crate) struct Member {
    /// The element of the graph that runs which goes on in this one.
    pub(crate) before: Option<usize>,
    pub(crate) placed: Placed,
    /// The place of the declaration, as a byte of the text.
    pub(crate) at: usize,
    /// Arguments, to be compared.
    pub(crate) arguments: Vec<String>,
    /// Connected inputs and outputs.
    pub(crate) connected: (usize, usize),
    /// The number of inputs, where the arguments decide it.
    pub(crate) inputs: Option<usize>,
    /// The numbers of outputs, where the arguments decide them.
    pub(crate) outputs: Option<RangeInclusive<usize>>,
    /// How fast the element lets packets out of the queue in front of it.
    pub(crate) pace: Option<Pace>,
    /// How the queues behind its inputs take turns.
    pub(crate) turn: Option<TurnKind>,
    /// Limits between a queue and its reader.
    pub(crate) paces: Vec<Pace>,
    /// The limits that the queue reads.
    pub(crate) queue: Option<Publisher<Vec<Pace>>>,
    /// Packets for which the queue has room.
    pub(crate) capacity: Option<usize>,
    /// Packets that the link has at most.
    pub(crate) on_link: Option<usize>,
    /// The names of the queues that the element reads; empty for those next to it.
    pub(crate) watches: Option<Vec<String>>,
    /// The queues that the element reads from now on.
    pub(crate) watched: Queues,
    /// The queues that the element reads.
    pub(crate) watch: Option<Publisher<Queues>>,
    /// The node of input 0 is not the first one, which is a source.
    pub(crate) is_echo: bool,
    pub(crate) device: Option<Device>,
    pub(crate) has_node: bool,
    /// Nodes of the element, that of input 0 first.
    pub(crate) nodes: Vec<Wires>,
    /// What runs the element, until its nodes are made.
    pub(crate) element: Option<Element>,
    pub(crate) to_control: Option<ControlOutput>,
    /// The file that the element writes.
    pub(crate) sink: Option<Sink>,
    /// The cell with which the element asks the program to end.
    pub(crate) stop_cell: Option<usize>,
    /// What lives as long as the element.
    pub(crate) kept: Option<Box<dyn Any>>,
}

impl Member {
    /// A new element.
    pub(crate) fn new(
        element: &volley_click_lang::Element,
        spec: &'static Spec,
        cells: Arc<Cells>,
        connected: (usize, usize),
        made: Made,
    ) -> Member {
        let (mut device, mut capacity, mut on_link) = (None, None, None);
        let is_echo = matches!(made.element, Element::Echo { .. });
        match &made.element {
            Element::FromDevice(interface) => device = Some(Device::From(*interface)),
            Element::ToDevice(interface) => device = Some(Device::To(*interface)),
            Element::ToHost => device = Some(Device::Host),
            Element::Queue(packets) => capacity = Some(*packets),
            Element::Link(link) => on_link = Some(link.most()),
            _ => {}
        }
        let (watch, watches) = made.watch.map(|it| (it.queues, it.named)).unzip();
        Member {
            before: None,
            at: element.at,
            placed: Placed {
                name: element.name.clone(),
                spec,
                config: element.arguments.join(", "),
                ports: String::new(),
                cells,
                texts: made.texts,
            },
            arguments: element.arguments.clone(),
            connected,
            inputs: made.inputs,
            outputs: made.outputs,
            pace: made.pace,
            turn: made.turn,
            paces: Vec::new(),
            queue: None,
            capacity,
            on_link,
            watches,
            watched: Queues::default(),
            watch,
            is_echo,
            device,
            has_node: !matches!(made.element, Element::Nothing),
            nodes: Vec::new(),
            element: Some(made.element),
            to_control: made.to_control,
            sink: None,
            stop_cell: made.stop_cell,
            kept: made.kept,
        }
    }

    /// This element, at `at` of the graph that runs, in a graph that has it as `element`.
    pub(crate) fn going_on(&self, at: usize, element: &volley_click_lang::Element) -> Member {
        Member {
            before: Some(at),
            at: element.at,
            placed: Placed {
                name: element.name.clone(),
                spec: self.placed.spec,
                config: element.arguments.join(", "),
                ports: String::new(),
                cells: self.placed.cells.clone(),
                texts: self.placed.texts.clone(),
            },
            arguments: element.arguments.clone(),
            connected: self.connected,
            inputs: self.inputs,
            outputs: self.outputs.clone(),
            pace: self.pace.clone(),
            turn: self.turn.clone(),
            paces: Vec::new(),
            queue: None,
            capacity: self.capacity,
            on_link: self.on_link,
            watches: self.watches.clone(),
            watched: Queues::default(),
            watch: None,
            is_echo: self.is_echo,
            device: self.device,
            has_node: self.has_node,
            nodes: Vec::new(),
            element: None,
            to_control: self.to_control.clone(),
            sink: None,
            stop_cell: self.stop_cell,
            kept: None,
        }
    }

    /// Take over what only one of two elements can have.
    pub(crate) fn take_from(&mut self, before: &mut Member) {
        self.queue = before.queue.take();
        self.sink = before.sink.take();
        self.kept = before.kept.take();
        self.watch = before.watch.take();
        self.publish_watched();
        if let Some(queue) = &mut self.queue {
            queue.publish(std::mem::take(&mut self.paces));
        }
    }

    /// Let the element read the lengths of its queues.
    pub(crate) fn publish_watched(&mut self) {
        if let Some(watch) = &mut self.watch {
            watch.publish(std::mem::take(&mut self.watched));
        }
    }

    /// Whether packets wait in the element: cell [`crate::cells::LENGTH`] has their number.
    pub(crate) fn is_storage(&self) -> bool {
        self.capacity.is_some() || self.on_link.is_some()
    }

    /// The file that the element writes.
    pub(crate) fn file(&self) -> Option<&Path> {
        match &self.to_control {
            Some(ControlOutput::Dump(_, path)) => Some(path),
            _ => None,
        }
    }

    /// Whether the element asks the program to end.
    pub(crate) fn wants_end(&self) -> bool {
        let cell = self.stop_cell;
        cell.is_some_and(|cell| self.placed.cells.get(cell) != 0)
    }
}
