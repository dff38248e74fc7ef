//! Which ports push and which pull; whether every port is connected as its mode allows.

use crate::error::{ClickError, Source};
use crate::flatten::{Hookup, Network};
use crate::shape::{Mode, Shape};

/// A port with the ports that it is connected to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Port {
    /// Push or pull.
    pub mode: Mode,
    /// The other ends: element and port, in the order of the connections.
    pub peers: Vec<(usize, usize)>,
    /// The place of the first connection.
    at: usize,
}

/// The ports of all elements.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct Wiring {
    /// The inputs of each element.
    pub inputs: Vec<Vec<Port>>,
    /// The outputs of each element.
    pub outputs: Vec<Vec<Port>>,
}

/// Decide the modes of all ports. `shapes` has one entry for each element.
pub fn wire(source: &Source, network: &Network, shapes: &[Shape]) -> Result<Wiring, ClickError> {
    let mut wiring = ports(source, network, shapes)?;
    settle(source, network, shapes, &mut wiring)?;
    for sides in [&mut wiring.inputs, &mut wiring.outputs] {
        for port in sides.iter_mut().flatten() {
            if port.mode == Mode::Agnostic {
                port.mode = Mode::Push;
            }
        }
    }
    check_connections(source, network, &wiring)?;
    Ok(wiring)
}

/// The ports that the connections name, with the modes of the shapes.
fn ports(source: &Source, network: &Network, shapes: &[Shape]) -> Result<Wiring, ClickError> {
    let mut wiring = Wiring::default();
    for (element, shape) in shapes.iter().enumerate().take(network.elements.len()) {
        let used = |end: fn(&Hookup) -> (usize, usize)| {
            let of_element = network.hookups.iter().map(end).filter(|it| it.0 == element);
            of_element.map(|(_, port)| port + 1).max().unwrap_or(0)
        };
        let mut inputs = used(|it| it.to).max(*shape.inputs.start());
        let mut outputs = used(|it| it.from).max(*shape.outputs.start());
        if shape.is_even {
            (inputs, outputs) = (inputs.max(outputs), inputs.max(outputs));
        }
        let it = &network.elements[element];
        for (count, allowed, side) in [
            (inputs, &shape.inputs, "input"),
            (outputs, &shape.outputs, "output"),
        ] {
            if count > *allowed.end() {
                let most = *allowed.end();
                let has = match most {
                    0 => format!("has no {side} ports"),
                    1 => format!("has one {side} port, 0"),
                    n => format!("has the {side} ports 0 to {}", n - 1),
                };
                let at = first_use(network, element, most, side).unwrap_or(it.at);
                let text = format!(
                    "{} ({}) {has}, but port {} is connected",
                    it.name,
                    it.class,
                    count - 1
                );
                return Err(source.error(at, text));
            }
        }
        let port = |mode| Port {
            mode,
            peers: Vec::new(),
            at: it.at,
        };
        wiring
            .inputs
            .push((0..inputs).map(|i| port(shape.input(i))).collect());
        wiring
            .outputs
            .push((0..outputs).map(|i| port(shape.output(i))).collect());
    }
    for hookup in &network.hookups {
        let (from, to) = (hookup.from, hookup.to);
        let output = &mut wiring.outputs[from.0][from.1];
        if output.peers.is_empty() {
            output.at = hookup.at;
        }
        output.peers.push(to);
        let input = &mut wiring.inputs[to.0][to.1];
        if input.peers.is_empty() {
            input.at = hookup.at;
        }
        input.peers.push(from);
    }
    Ok(wiring)
}

/// The first connection of a port from `port` on.
fn first_use(network: &Network, element: usize, port: usize, side: &str) -> Option<usize> {
    let end = |it: &&Hookup| if side == "input" { it.to } else { it.from };
    let mut all = network.hookups.iter();
    all.find(|it| end(it).0 == element && end(it).1 >= port)
        .map(|it| it.at)
}

/// Pass modes along connections and through agnostic elements until nothing changes.
fn settle(
    source: &Source,
    network: &Network,
    shapes: &[Shape],
    wiring: &mut Wiring,
) -> Result<(), ClickError> {
    loop {
        let mut changed = false;
        for hookup in &network.hookups {
            let (from, to) = (hookup.from, hookup.to);
            let output = wiring.outputs[from.0][from.1].mode;
            let input = wiring.inputs[to.0][to.1].mode;
            match (output, input) {
                (a, b) if a == b => {}
                (Mode::Agnostic, mode) => {
                    wiring.outputs[from.0][from.1].mode = mode;
                    changed = true;
                }
                (mode, Mode::Agnostic) => {
                    wiring.inputs[to.0][to.1].mode = mode;
                    changed = true;
                }
                _ => return Err(conflict(source, network, hookup, (output, input))),
            }
        }
        for (element, shape) in shapes.iter().enumerate().take(network.elements.len()) {
            changed |= through(source, network, element, shape, wiring)?;
        }
        if !changed {
            return Ok(());
        }
    }
}

/// The agnostic ports of an element have one mode.
fn through(
    source: &Source,
    network: &Network,
    element: usize,
    shape: &Shape,
    wiring: &mut Wiring,
) -> Result<bool, ClickError> {
    let is_agnostic = |mode| mode == Mode::Agnostic;
    let inputs = wiring.inputs[element].iter().enumerate();
    let inputs = inputs.filter(|(i, _)| is_agnostic(shape.input(*i)));
    let outputs = wiring.outputs[element].iter().enumerate();
    let outputs = outputs.filter(|(i, _)| is_agnostic(shape.output(*i)));
    let modes: Vec<Mode> = inputs.chain(outputs).map(|(_, port)| port.mode).collect();
    let mut settled = modes.iter().copied().filter(|mode| !is_agnostic(*mode));
    let Some(mode) = settled.next() else {
        return Ok(false);
    };
    if settled.any(|other| other != mode) {
        let it = &network.elements[element];
        let text = format!(
            "{} ({}) is connected to both push and pull: put a Queue in front of the pull side, or an Unqueue behind it",
            it.name, it.class
        );
        return Err(source.error(it.at, text));
    }
    let mut changed = false;
    for (i, port) in wiring.inputs[element].iter_mut().enumerate() {
        if is_agnostic(shape.input(i)) && is_agnostic(port.mode) {
            (port.mode, changed) = (mode, true);
        }
    }
    for (i, port) in wiring.outputs[element].iter_mut().enumerate() {
        if is_agnostic(shape.output(i)) && is_agnostic(port.mode) {
            (port.mode, changed) = (mode, true);
        }
    }
    Ok(changed)
}

fn conflict(
    source: &Source,
    network: &Network,
    hookup: &Hookup,
    (output, input): (Mode, Mode),
) -> ClickError {
    let name = |element: usize| &network.elements[element].name;
    let between = if output == Mode::Push {
        "a Queue"
    } else {
        "an Unqueue"
    };
    let text = format!(
        "output {} of {} is {}, but input {} of {} is {}: put {between} between them",
        hookup.from.1,
        name(hookup.from.0),
        output.name(),
        hookup.to.1,
        name(hookup.to.0),
        input.name(),
    );
    source.error(hookup.at, text)
}

/// Push outputs and pull inputs have one connection, the other ports one or more.
fn check_connections(
    source: &Source,
    network: &Network,
    wiring: &Wiring,
) -> Result<(), ClickError> {
    let sides = [
        ("input", Mode::Pull, &wiring.inputs),
        ("output", Mode::Push, &wiring.outputs),
    ];
    for (side, single, elements) in sides {
        for (element, ports) in elements.iter().enumerate() {
            let it = &network.elements[element];
            for (number, port) in ports.iter().enumerate() {
                let what = format!("{side} {number} of {} ({})", it.name, it.class);
                if port.peers.is_empty() {
                    let text = format!(
                        "{what} is not connected: connect it, to Discard or Idle if no packets pass there"
                    );
                    return Err(source.error(it.at, text));
                }
                if port.mode == single && port.peers.len() > 1 {
                    let text = format!(
                        "{what} has {} connections, but a {} {side} has one: put a Tee or a Queue there",
                        port.peers.len(),
                        single.name(),
                    );
                    return Err(source.error(port.at, text));
                }
            }
        }
    }
    Ok(())
}
