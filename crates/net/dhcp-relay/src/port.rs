//! UDP ports of DHCP.

use volley_model::Family;

/// Of servers and relay agents, IPv4.
pub const SERVER4: u16 = 67;
/// Of clients, IPv4.
pub const CLIENT4: u16 = 68;
/// Of clients, IPv6.
pub const CLIENT6: u16 = 546;
/// Of servers and relay agents, IPv6.
pub const SERVER6: u16 = 547;

/// The port on which relay agents listen.
pub fn of_agents(family: Family) -> u16 {
    match family {
        Family::V4 => SERVER4,
        Family::V6 => SERVER6,
    }
}
