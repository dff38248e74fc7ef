//! The queues whose lengths an element reads: which ones, from the connections of the graph.

use crate::member::Member;
use volley_click_lang::{Mode, Network, Wiring};

/// The queues of an element: those of these names, else the next ones behind its output 0, or in front of it if its input pulls.
/// Returns their numbers, and whether the input pulls.
pub(crate) fn queues(
    element: usize,
    named: &[String],
    (network, wiring): (&Network, &Wiring),
    members: &[Member],
) -> Result<(Vec<usize>, bool), String> {
    let input = wiring.inputs[element].first();
    let is_pull = input.is_some_and(|it| it.mode == Mode::Pull);
    let it = &network.elements[element];
    let mut found = Vec::new();
    for name in named {
        found.push(find(&it.name, name, network, members)?);
    }
    if named.is_empty() {
        let start = match is_pull {
            true => input,
            false => wiring.outputs[element].first(),
        };
        let mut seen = vec![false; members.len()];
        let mut next: Vec<usize> = start.into_iter().flat_map(peers).collect();
        while let Some(at) = next.pop() {
            if std::mem::replace(&mut seen[at], true) {
                continue;
            }
            if members[at].is_storage() {
                found.push(at);
                continue;
            }
            let ports = match is_pull {
                true => &wiring.inputs[at],
                false => &wiring.outputs[at],
            };
            next.extend(ports.iter().flat_map(peers));
        }
        found.sort_unstable();
    }
    let side = if is_pull { "in front of" } else { "behind" };
    match found.is_empty() {
        true => Err(format!(
            "there is no Queue {side} {} ({}): connect one, or name one by QUEUES",
            it.name, it.class
        )),
        false => Ok((found, is_pull)),
    }
}

fn peers(port: &volley_click_lang::Port) -> impl Iterator<Item = usize> + '_ {
    port.peers.iter().map(|(element, _)| *element)
}

/// The queue of a name that `by` uses: in the same compound element, else in one around it.
fn find(by: &str, name: &str, network: &Network, members: &[Member]) -> Result<usize, String> {
    let mut scope = by;
    loop {
        scope = scope.rsplit_once('/').map_or("", |(outer, _)| outer);
        let full = match scope {
            "" => name.to_owned(),
            scope => format!("{scope}/{name}"),
        };
        let mut all = network.elements.iter();
        match all.position(|it| it.name == full) {
            Some(at) if members[at].is_storage() => return Ok(at),
            Some(_) => return Err(format!("{full} is no Queue: name a queue in QUEUES")),
            None if scope.is_empty() => break,
            None => {}
        }
    }
    let names = network.elements.iter().map(|it| it.name.as_str());
    let hint = volley_click_lang::hint(name, names, "name a queue in QUEUES");
    Err(format!("there is no element {name}{hint}"))
}
