//! The graph in an engine: it changes to another one, and what is in both goes on.

use crate::element::{ControlOutput, Room, Written};
use crate::graph::Graph;
use crate::handlers::Placed;
use crate::member::Member;
use std::path::Path;
use std::sync::Arc;
use volley_click_lang::{ClickError, Source};
use volley_graph::{Domain, Engine, GraphError, KeptNode, Rewiring};
use volley_pcap::FileFormat;
use volley_pcap::spool::{Plain, Sink};
use volley_tables::Publisher;

/// Why a graph cannot take the place of the one that runs.
#[derive(Debug, thiserror::Error)]
pub enum ChangeError {
    /// A file that an element writes cannot be made.
    #[error(transparent)]
    File(#[from] ClickError),
    /// The engine refuses the nodes.
    #[error(transparent)]
    Engine(#[from] GraphError),
}

/// The graph in an engine.
pub struct Live {
    pub(crate) members: Vec<Member>,
    /// Elements that have left, until the workers have left them too.
    leaving: Vec<Member>,
    /// What the graph writes: elements that read files wait for it.
    written: Publisher<Written>,
    /// Frames that were reserved for queues.
    frames: usize,
}

impl Live {
    /// No graph.
    pub fn new(domain: &Arc<Domain>) -> Live {
        Live {
            members: Vec::new(),
            leaving: Vec::new(),
            written: Publisher::new(domain, Written::new()),
            frames: 0,
        }
    }

    /// Whether an element of the graph that runs, or one that leaves, writes a file.
    pub(crate) fn has_open(&self, file: &Path) -> bool {
        let mut all = self.members.iter().chain(&self.leaving);
        all.any(|it| it.file() == Some(file))
    }

    /// What elements that read files wait for.
    pub(crate) fn written(&self) -> Room {
        Room::new(self.written.snap())
    }

    /// Let a graph take the place of the one that runs. Elements that are in both go on, and no packet is lost between them. An
    /// error changes nothing.
    pub fn change(&mut self, engine: &mut Engine, mut graph: Graph) -> Result<(), ChangeError> {
        let clock = engine.settings().clock.clone();
        for member in graph.members.iter_mut().filter(|it| it.before.is_none()) {
            if let Some(ControlOutput::Dump(spool, path)) = &member.to_control {
                let format = FileFormat::for_path(path);
                let sink = Sink::create(spool.clone(), path, format, &clock);
                let source = graph.source.as_ref();
                member.sink = Some(sink.map_err(|error| match source {
                    Some(source) => source.error(member.at, error.to_string()),
                    None => Source::new("", "").error(0, error.to_string()),
                })?);
            }
        }
        let more = graph.frames.saturating_sub(self.frames);
        if more > 0 {
            engine.reserve_frames(more)?;
            self.frames += more;
        }
        let nodes = std::mem::take(&mut graph.nodes);
        let rewiring = self.rewiring(&graph.members, nodes);
        // Before the workers have the new graph: its sources read as soon as they are there.
        self.publish_written(&graph.members);
        let rewired = engine.rewire(rewiring);
        if rewired.is_ok() {
            self.adopt(graph.members);
        }
        self.publish_written(&[]);
        Ok(rewired?)
    }

    fn rewiring(&self, members: &[Member], add: Vec<volley_graph::WiredNode>) -> Rewiring {
        let mut rewiring = Rewiring {
            add,
            ..Rewiring::default()
        };
        let mut goes_on = vec![false; self.members.len()];
        for member in members {
            let Some(at) = member.before else {
                continue;
            };
            goes_on[at] = true;
            let before = self.members[at].nodes.iter();
            let pairs = before.zip(&member.nodes).map(|(before, now)| KeptNode {
                name: before.name.clone(),
                to: now.name.clone(),
                targets: now.targets.clone(),
            });
            rewiring.keep.extend(pairs);
        }
        let gone = self.members.iter().zip(goes_on).filter(|(_, on)| !on);
        let names = gone.flat_map(|(it, _)| it.nodes.iter().map(|it| it.name.clone()));
        rewiring.remove = names.collect();
        rewiring
    }

    /// The engine has the graph of these members.
    fn adopt(&mut self, mut members: Vec<Member>) {
        let mut old: Vec<Option<Member>> = self.members.drain(..).map(Some).collect();
        for member in &mut members {
            let before = member.before.take().and_then(|at| old[at].take());
            if let Some(mut before) = before {
                member.take_from(&mut before);
            }
        }
        self.members = members;
        self.leaving.extend(old.into_iter().flatten());
    }

    /// Sources wait for what the graph that runs writes, and for what `coming` will write.
    fn publish_written(&mut self, coming: &[Member]) {
        let members = self.members.iter().chain(coming);
        let spools = members.filter_map(|it| it.to_control.as_ref());
        self.written
            .publish(spools.map(|it| it.spool().clone()).collect());
    }

    /// Write the packets of ToDump, and give the lines of Print to `print`; returns the number of packets.
    pub fn drain(&mut self, engine: &Engine, print: &mut dyn FnMut(&str)) -> usize {
        // What a worker has written before it left an element is there before the engine is settled.
        let has_left = !self.leaving.is_empty() && engine.settled();
        let all = self.members.iter_mut().chain(&mut self.leaving);
        let count = all.map(|it| written(it, print)).sum();
        if has_left {
            self.leaving.drain(..).for_each(end);
        }
        count
    }

    /// Whether the graph writes files or the log, or elements are leaving.
    pub fn is_writing(&self) -> bool {
        let mut all = self.members.iter();
        !self.leaving.is_empty() || all.any(|it| it.to_control.is_some() || it.stop_cell.is_some())
    }

    /// Whether an element can ask the program to end.
    pub fn may_end(&self) -> bool {
        self.members.iter().any(|it| it.stop_cell.is_some())
    }

    /// Whether an element has asked the program to end.
    pub fn wants_end(&self) -> bool {
        self.members.iter().any(Member::wants_end)
    }

    /// The elements, in the order of the configuration.
    pub fn placed(&self) -> impl Iterator<Item = &Placed> {
        self.members.iter().map(|it| &it.placed)
    }
}

fn written(member: &mut Member, print: &mut dyn FnMut(&str)) -> usize {
    match (&member.to_control, &mut member.sink) {
        (_, Some(sink)) => sink.drain(&Plain),
        (Some(ControlOutput::Print(spool, style)), _) => {
            spool.take(|record| print(&style.line(record)))
        }
        _ => 0,
    }
}

/// An element has left the graph.
fn end(member: Member) {
    if let Some(sink) = member.sink {
        let path = sink.path().to_owned();
        if let Err(why) = sink.finish(&Plain).sentence(&path) {
            tracing::warn!(target: "click", "{}: {why}", path.display());
        }
    }
}
