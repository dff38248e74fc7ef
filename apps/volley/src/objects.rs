//! The classes of configuration objects of all crates.

use volley_object::DefinitionError;

#[cfg(test)]
mod layer2;
#[cfg(test)]
mod tests;

/// Registers the classes, so that files and commands can be read where no router runs.
pub fn register() -> Result<(), DefinitionError> {
    volley_iface::classes()?;
    volley_l2::classes()?;
    volley_fib::classes()?;
    volley_neighbor::classes()?;
    volley_ip::classes()?;
    volley_mcast::classes()?;
    volley_rights::classes()?;
    crate::features::classes()
}
