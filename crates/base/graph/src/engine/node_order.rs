//! The order of nodes in the graph, in which pending nodes run, so that packets from several nodes to one node merge in one
//! frame.

use crate::data::ids::NodeId;
/// Order nodes so that edges point forward where the graph allows it: depth-first from every node, reversed.
/// `last` (the drop node) is behind everything else.
pub(crate) fn order(edges: &[Vec<NodeId>], last: NodeId) -> Vec<NodeId> {
    let mut seen = vec![false; edges.len()];
    let mut out = Vec::with_capacity(edges.len());
    // Nodes without outgoing edges (transmit, drop) are visited first, so that they are behind all others; then the sources,
    // so that loops are entered where packets enter them.
    let mut reached = vec![false; edges.len()];
    edges
        .iter()
        .flatten()
        .for_each(|n| reached[n.index()] = true);
    let mut roots: Vec<usize> = (0..edges.len()).collect();
    roots.sort_by_key(|&n| {
        (
            n != last.index(),
            !edges[n].is_empty(),
            reached[n],
            std::cmp::Reverse(n),
        )
    });
    for root in roots {
        visit(root, edges, &mut seen, &mut out);
    }
    out.reverse();
    out
}

fn visit(root: usize, edges: &[Vec<NodeId>], seen: &mut [bool], out: &mut Vec<NodeId>) {
    let mut stack = vec![(root, 0)];
    while let Some((node, edge)) = stack.pop() {
        if edge == 0 && std::mem::replace(&mut seen[node], true) {
            continue;
        }
        match edges[node].get(edge) {
            Some(next) => {
                stack.push((node, edge + 1));
                if !seen[next.index()] {
                    stack.push((next.index(), 0));
                }
            }
            None => out.push(NodeId(node as u16)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn edges_point_forward_and_drop_is_last() {
        let ids = |v: &[u16]| v.iter().map(|&n| NodeId(n)).collect::<Vec<_>>();
        // 0 drop, 1 source -> 2 -> {3, 4, 0}, 3 -> 4 -> 5, 6 alone (tx), a loop 4 -> 2
        let edges = vec![
            vec![],
            ids(&[2]),
            ids(&[3, 4, 0]),
            ids(&[4]),
            ids(&[5, 2]),
            vec![],
            vec![],
        ];
        let order = order(&edges, NodeId(0));
        let place = |n: u16| order.iter().position(|&x| x == NodeId(n)).unwrap();
        assert_eq!(order.len(), 7);
        assert_eq!(place(0), 6);
        assert!(
            place(1) < place(2)
                && place(2) < place(3)
                && place(3) < place(4)
                && place(4) < place(5)
        );
    }
}
