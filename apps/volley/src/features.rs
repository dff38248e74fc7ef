//! Features: a crate whose `register` takes the registry alone and whose `classes` defines its objects is one line here.
// The test of the pages' examples reads this list too, and registers nothing.
#![allow(dead_code)]

use volley_graph::GraphError;
use volley_iface::Registry;
use volley_object::DefinitionError;

macro_rules! features {
    ($($feature:ident,)*) => {
        /// Registers the classes of the features.
        pub fn classes() -> Result<(), DefinitionError> {
            $($feature::classes()?;)*
            Ok(())
        }

        /// Registers nodes, handlers and owners of the features. The registry provides the routes.
        pub fn register(registry: &mut Registry) -> Result<(), GraphError> {
            $($feature::register(registry)?;)*
            Ok(())
        }
    };
}

features! {
    volley_batcher,
    volley_dhcp_relay,
    volley_rss,
}
