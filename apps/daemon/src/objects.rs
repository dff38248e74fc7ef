//! The classes of configuration objects of all crates.

use volley_object::DefinitionError;

#[cfg(test)]
mod keyed;
#[cfg(test)]
mod layer2;
#[cfg(test)]
mod lcp;
#[cfg(test)]
mod mroute;
#[cfg(test)]
mod tests;

/// Registers the classes, so that files and commands can be read where no router runs.
pub fn register() -> Result<(), DefinitionError> {
    crate::features::classes()
}
