//! Functions whose names mark nodes for callgrind: all nodes of one kind have the same function names in its output, and what a
//! mark calls is the cost of one node.

use std::hint::black_box;

macro_rules! marks {
    ($($name:ident $number:literal)*) => {
        $(
            /// The number makes each function differ from the others, and the call is not the last action of it: the compiler
            /// neither merges the functions nor jumps out of them.
            #[inline(never)]
            fn $name(call: &mut dyn FnMut()) {
                call();
                black_box($number);
            }
        )*

        const MARKS: &[(&str, fn(&mut dyn FnMut()))] = &[$((concat!(module_path!(), "::", stringify!($name)), $name)),*];
    };
}

marks! {
    node_00 0 node_01 1 node_02 2 node_03 3 node_04 4 node_05 5 node_06 6 node_07 7
    node_08 8 node_09 9 node_10 10 node_11 11 node_12 12 node_13 13 node_14 14 node_15 15
    node_16 16 node_17 17 node_18 18 node_19 19 node_20 20 node_21 21 node_22 22 node_23 23
}

/// The function that callgrind names; none if there are not so many.
pub fn mark_name(mark: usize) -> Option<&'static str> {
    MARKS.get(mark).map(|it| it.0)
}

/// Call a function, by a mark if there is one.
pub(crate) fn call_marked(mark: Option<usize>, call: impl FnOnce()) {
    let Some((_, mark)) = mark.and_then(|mark| MARKS.get(mark)) else {
        return call();
    };
    let mut call = Some(call);
    mark(&mut || {
        if let Some(call) = call.take() {
            call();
        }
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_mark_calls_once() {
        let mut calls = 0;
        for mark in 0..MARKS.len() {
            assert!(
                mark_name(mark).is_some_and(|it| it.ends_with(&format!("marks::node_{mark:02}")))
            );
            call_marked(Some(mark), || calls += 1);
        }
        call_marked(None, || calls += 1);
        call_marked(Some(MARKS.len()), || calls += 1);
        assert_eq!(calls, MARKS.len() + 2);
        assert_eq!(mark_name(MARKS.len()), None);
    }
}
