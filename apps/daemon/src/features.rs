//! Features: one line for each crate whose `register` takes only the registry and whose `classes` defines its objects.

use volley_graph::GraphError;
use volley_iface::Registry;
use volley_object::DefinitionError;

macro_rules! features {
    ($($feature:ident,)*) => {
        /// Registers all classes: those of the router, and those of the features.
        pub fn classes() -> Result<(), DefinitionError> {
            crate::show::classes()?;
            crate::verbs::classes()?;
            crate::perfmon::classes()?;
            crate::settings::classes()?;
            volley_iface::classes()?;
            volley_l2::classes()?;
            volley_lcp::classes()?;
            volley_fib::classes()?;
            volley_neighbor::classes()?;
            volley_router_discovery::classes()?;
            volley_ip::classes()?;
            volley_mcast::classes()?;
            volley_rights::classes()?;
            volley_vlan::classes()?;
            volley_memif::classes()?;
            volley_pcap::classes()?;
            volley_tap::classes()?;
            volley_af_packet::classes()?;
            volley_af_xdp::classes()?;
            volley_pg::classes()?;
            volley_vhost::classes()?;
            volley_dpdk::classes()?;
            volley_plugin_host::classes()?;
            volley_click::classes()?;
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
    volley_ping,
    volley_rss,
}
