//! The nodes that run elements. There are few types of them, so that the code of an element is compiled once and not for every
//! instruction set.

pub(crate) mod click_input;
pub(crate) mod each;
pub(crate) mod link;
pub(crate) mod make;
pub(crate) mod queue;
pub(crate) mod source;

use volley_graph::Nexts;

/// An edge by its number: the outputs of the element, then the drop node.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Port(pub(crate) usize);

impl Nexts for Port {
    const EDGES: &'static [&'static str] = &[];

    #[inline(always)]
    fn index(self) -> usize {
        self.0
    }
}
