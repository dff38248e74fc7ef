//! UDP ports of DHCP.

use volley_model::Family;

/// Servers and relay agents, IPv4.
pub const SERVER4: u16 = 67;
/// Clients, IPv4.
pub const CLIENT4: u16 = 68;
/// Clients, IPv6.
pub const CLIENT6: u16 = 546;
/// Servers and relay agents, IPv6.
pub const SERVER6: u16 = 547;

/// The port of relay agents.
pub fn of_agents(family: Family) -> u16 {
    match family {
        Family::V4 => SERVER4,
        Family::V6 => SERVER6,
    }
}
