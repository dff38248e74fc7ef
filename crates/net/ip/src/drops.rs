//! Macro for nodes that drop every packet for one reason.

/// Declares a node, one for each family, that drops every packet for one reason.
macro_rules! drops_all {
    ($(#[$doc:meta])* $node:ident, $name:ident, $(#[doc = $text:literal])+ $count:ident = $label:literal) => {
        volley_graph::nexts! {
            /// Where the node sends packets.
            pub enum Next { Drop => "error-drop" }
        }

        volley_graph::counters! {
            /// What the node counts.
            pub enum Count {
                $(#[doc = $text])+
                $count = $label (Error),
            }
        }

        $(#[$doc])*
        pub struct $node<F>(std::marker::PhantomData<F>);

        impl<F> Default for $node<F> {
            fn default() -> Self {
                $node(std::marker::PhantomData)
            }
        }

        impl<F: crate::Ip> volley_graph::Node for $node<F> {
            const NAME: &'static str = F::$name;
            type Next = Next;
            type Count = Count;
            type Trace = crate::IpTrace;

            #[inline(always)]
            fn run<I: volley_graph::Isa>(
                &mut self,
                cx: &volley_graph::Cx<'_, Count>,
                v: volley_graph::Vector<'_, I, Next>,
            ) -> volley_graph::Consumed {
                v.fail_all(cx, Count::$count, Next::Drop)
            }
        }
    };
}
pub(crate) use drops_all;
