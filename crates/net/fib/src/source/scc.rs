//! Strongly connected components, dependencies first, without recursion (route chains can be long).

use hashbrown::HashMap;

/// Tarjan's algorithm over the subgraph of `nodes`; `edges(n)` are the nodes that `n` depends on, edges to other nodes are
/// ignored. Each component follows every component that it depends on.
pub(crate) fn components(nodes: &[u32], edges: impl Fn(u32) -> Vec<u32>) -> Vec<Vec<u32>> {
    let mut walk = Walk {
        state: nodes.iter().map(|&n| (n, State::default())).collect(),
        stack: Vec::new(),
        out: Vec::new(),
        clock: 0,
    };
    for &root in nodes {
        if walk.state[&root].index == 0 {
            walk.visit(root, &edges);
        }
    }
    walk.out
}

#[derive(Default, Clone, Copy)]
struct State {
    /// Visiting order from 1; 0 = not seen.
    index: u32,
    low: u32,
    on_stack: bool,
}

struct Walk {
    state: HashMap<u32, State>,
    stack: Vec<u32>,
    out: Vec<Vec<u32>>,
    clock: u32,
}

impl Walk {
    fn visit(&mut self, root: u32, edges: &impl Fn(u32) -> Vec<u32>) {
        let mut calls = vec![(root, self.enter(root, edges))];
        while let Some((node, todo)) = calls.last_mut() {
            let node = *node;
            let Some(next) = todo.pop() else {
                calls.pop();
                self.leave(node);
                if let Some((parent, _)) = calls.last() {
                    let low = self.state[&node].low;
                    self.lower(*parent, low);
                }
                continue;
            };
            match self.state.get(&next).copied() {
                Some(s) if s.index == 0 => {
                    let todo = self.enter(next, edges);
                    calls.push((next, todo));
                }
                Some(s) if s.on_stack => self.lower(node, s.index),
                _ => {}
            }
        }
    }

    fn enter(&mut self, node: u32, edges: &impl Fn(u32) -> Vec<u32>) -> Vec<u32> {
        self.clock += 1;
        let s = State {
            index: self.clock,
            low: self.clock,
            on_stack: true,
        };
        self.state.insert(node, s);
        self.stack.push(node);
        edges(node)
    }

    fn lower(&mut self, node: u32, to: u32) {
        if let Some(s) = self.state.get_mut(&node) {
            s.low = s.low.min(to);
        }
    }

    fn leave(&mut self, node: u32) {
        let s = self.state[&node];
        if s.low != s.index {
            return;
        }
        let at = self.stack.iter().rposition(|&n| n == node).unwrap_or(0);
        let component = self.stack.split_off(at);
        for n in &component {
            if let Some(s) = self.state.get_mut(n) {
                s.on_stack = false;
            }
        }
        self.out.push(component);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn reaches(edges: &[(u32, u32)], from: u32, to: u32) -> bool {
        let mut seen = vec![from];
        let mut i = 0;
        while i < seen.len() {
            for &(a, b) in edges {
                if a == seen[i] && !seen.contains(&b) {
                    seen.push(b);
                }
            }
            i += 1;
        }
        seen.contains(&to)
    }

    proptest! {
        #[test]
        fn agrees_with_reachability(edges in prop::collection::vec((0u32..9, 0u32..9), 0..24)) {
            let nodes: Vec<u32> = (0..9).collect();
            let out = |n| edges.iter().filter(|e| e.0 == n).map(|e| e.1).collect::<Vec<_>>();
            let comps = components(&nodes, out);
            let at = |n| comps.iter().position(|c| c.contains(&n)).unwrap();
            prop_assert_eq!(comps.iter().map(Vec::len).sum::<usize>(), 9);
            for a in 0..9 {
                for b in 0..9 {
                    let together = reaches(&edges, a, b) && reaches(&edges, b, a);
                    prop_assert_eq!(at(a) == at(b), together);
                    if reaches(&edges, a, b) {
                        prop_assert!(at(b) <= at(a), "dependencies come first");
                    }
                }
            }
        }
    }

    #[test]
    fn a_long_chain_does_not_overflow_the_stack() {
        let nodes: Vec<u32> = (0..200_000).collect();
        let comps = components(&nodes, |n| vec![n + 1]);
        assert_eq!(comps[0], [199_999]);
        assert_eq!(comps.len(), 200_000);
    }
}
