//! Which elements of the graph that runs go on in another one.

use crate::member::Member;
use std::collections::{HashMap, VecDeque};
use volley_click_lang::Network;

/// What two elements have in common where one goes on as the other: class, arguments, connected ports, and the name. The name
/// of an element without a name has its place in the file, which another line may change: only the compound element counts.
#[derive(PartialEq, Eq, Hash)]
struct Identity<'a> {
    name: &'a str,
    class: &'a str,
    arguments: &'a [String],
    connected: (usize, usize),
}

fn identity<'a>(
    name: &'a str,
    class: &'a str,
    arguments: &'a [String],
    connected: (usize, usize),
) -> Identity<'a> {
    let last = name.rfind('/').map_or(0, |slash| slash + 1);
    let number = name[last..]
        .strip_prefix(class)
        .and_then(|rest| rest.strip_prefix('@'));
    let is_anonymous = number.is_some_and(|it| it.bytes().all(|byte| byte.is_ascii_digit()));
    Identity {
        name: if is_anonymous { &name[..last] } else { name },
        class,
        arguments,
        connected,
    }
}

/// For each element of a network, the element of the graph that runs which goes on as it.
pub(crate) fn matches(
    network: &Network,
    arguments: &[Vec<String>],
    connected: &[(usize, usize)],
    live: &[Member],
) -> Vec<Option<usize>> {
    let mut known: HashMap<Identity<'_>, VecDeque<usize>> = HashMap::new();
    for (at, it) in live.iter().enumerate() {
        let class = it.placed.spec.name;
        let key = identity(&it.placed.name, class, &it.arguments, it.connected);
        known.entry(key).or_default().push_back(at);
    }
    let mut all = Vec::new();
    for (number, it) in network.elements.iter().enumerate() {
        let key = identity(&it.name, &it.class, &arguments[number], connected[number]);
        all.push(known.get_mut(&key).and_then(VecDeque::pop_front));
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_count_and_numbers_do_not() {
        let of = |name: &'static str| identity(name, "Queue", &[], (1, 1));
        assert!(of("Queue@3") == of("Queue@14") && of("a/Queue@3") == of("a/Queue@1"));
        assert!(of("q") != of("p") && of("a/Queue@3") != of("Queue@3"));
        assert!(of("Queue@x") != of("Queue@1"));
    }
}
