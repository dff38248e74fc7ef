//! Connections through the ports of compound elements to connections between elements.

use crate::error::{ClickError, Source};
use crate::flatten::{Element, Hookup, MOST_HOOKUPS, Network, Place};
use std::collections::{BTreeMap, BTreeSet};

/// Ends of tunnels behind each other.
const DEEPEST: usize = 256;

/// The hookups that leave each output.
type Leaving<'a> = BTreeMap<(usize, usize), Vec<&'a Hookup>>;

pub(crate) fn too_many(source: &Source, at: usize) -> ClickError {
    let text = format!("the configuration has more than {MOST_HOOKUPS} connections: use fewer");
    source.error(at, text)
}

/// Remove the ends of tunnels from a network.
pub(crate) fn remove(
    source: &Source,
    places: Vec<Place>,
    hookups: &[Hookup],
) -> Result<Network, ClickError> {
    let mut leaving = Leaving::new();
    for hookup in hookups {
        leaving.entry(hookup.from).or_default().push(hookup);
    }
    let mut numbers = Vec::new();
    let mut elements: Vec<Element> = Vec::new();
    let mut tunnels: Vec<Option<(String, &str)>> = Vec::new();
    for place in places {
        numbers.push(elements.len());
        tunnels.push(match place {
            Place::Element(element) => {
                elements.push(element);
                None
            }
            Place::Inputs(name) => Some((name, "input")),
            Place::Outputs(name) => Some((name, "output")),
        });
    }
    let mut walk = Walk {
        source,
        tunnels: &tunnels,
        leaving: &leaving,
        found: Vec::new(),
        steps: 0,
    };
    let mut direct = Vec::new();
    for hookup in hookups {
        if tunnels[hookup.from.0].is_some() {
            continue;
        }
        walk.targets(hookup, hookup.at, 0)?;
        for (element, port) in walk.found.drain(..) {
            let hookup = Hookup {
                from: (numbers[hookup.from.0], hookup.from.1),
                to: (numbers[element], port),
                at: hookup.at,
            };
            if direct.len() >= MOST_HOOKUPS {
                return Err(too_many(source, hookup.at));
            }
            direct.push(hookup);
        }
    }
    check_outside(source, &tunnels, hookups)?;
    Ok(Network {
        elements,
        hookups: direct,
    })
}

/// Every port of a compound element that is connected inside is connected outside.
fn check_outside(
    source: &Source,
    tunnels: &[Option<(String, &str)>],
    hookups: &[Hookup],
) -> Result<(), ClickError> {
    let entered: BTreeSet<(usize, usize)> = hookups.iter().map(|it| it.to).collect();
    for hookup in hookups.iter().filter(|it| !entered.contains(&it.from)) {
        let Some((name, side)) = &tunnels[hookup.from.0] else {
            continue;
        };
        let port = hookup.from.1;
        let text = match *side {
            "input" => format!(
                "nothing is connected to input port {port} of {name}: connect an output to it"
            ),
            _ => format!(
                "the compound element {name} has no output port {port}: connect an element to output in its class"
            ),
        };
        return Err(source.error(hookup.at, text));
    }
    Ok(())
}

struct Walk<'a> {
    source: &'a Source,
    tunnels: &'a [Option<(String, &'a str)>],
    leaving: &'a Leaving<'a>,
    found: Vec<(usize, usize)>,
    steps: usize,
}

impl Walk<'_> {
    /// Collect the inputs of elements that a hookup reaches.
    fn targets(&mut self, hookup: &Hookup, at: usize, depth: usize) -> Result<(), ClickError> {
        let Some((name, side)) = &self.tunnels[hookup.to.0] else {
            self.found.push(hookup.to);
            return Ok(());
        };
        self.steps += 1;
        if depth > DEEPEST || self.steps > 16 * MOST_HOOKUPS {
            let text = format!(
                "the connections of {name} form a loop without an element: put one into it"
            );
            return Err(self.source.error(at, text));
        }
        let leaving = self.leaving;
        let Some(next) = leaving.get(&hookup.to) else {
            let port = hookup.to.1;
            let text = match *side {
                "input" => format!(
                    "the compound element {name} has no input port {port}: connect input to an element in its class"
                ),
                _ => format!(
                    "nothing is connected to output port {port} of {name}: connect it to an input"
                ),
            };
            let at = if *side == "input" { hookup.at } else { at };
            return Err(self.source.error(at, text));
        };
        for hookup in next {
            self.targets(hookup, at, depth + 1)?;
        }
        Ok(())
    }
}
