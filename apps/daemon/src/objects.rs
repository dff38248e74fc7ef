//! The classes of configuration objects, the queries and the verbs of all crates.

use volley_object::DefinitionError;

#[cfg(test)]
mod ip;
#[cfg(test)]
mod keyed;
#[cfg(test)]
mod kinds;
#[cfg(test)]
mod layer2;
#[cfg(test)]
mod lcp;
#[cfg(test)]
mod mroute;
#[cfg(test)]
mod queries;
#[cfg(test)]
mod route;
#[cfg(test)]
mod route_file;
#[cfg(test)]
mod tests;
#[cfg(test)]
mod verbs;

/// Registers the classes, queries and verbs, so that files and commands can be read without a running router.
pub fn register() -> Result<(), DefinitionError> {
    crate::features::classes()
}
