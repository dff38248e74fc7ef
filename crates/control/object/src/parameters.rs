//! The parameters of queries and verbs as structs.

use crate::call::{Call, Defined, Definition};
use crate::instance::Instance;
use crate::registry::{Listed, classes, define};
use crate::value::Value;
use crate::{DefinitionError, FieldError, refuse};

/// The parameters of a query or a verb as a struct, see [`crate::Query`] and [`crate::Verb`].
pub trait Parameters: Sized {
    /// Name of the query or verb.
    const NAME: &'static str;

    /// Type of the definition.
    type Def: Listed;

    /// The definition.
    fn definition() -> Self::Def;

    /// Converts from the values of all fields in order.
    fn from_slots(slots: &[Option<Value>]) -> Option<Self>;

    /// The values of all fields in order.
    fn slots(&self) -> Vec<Option<Value>>;

    /// From parameters; `None` when they belong to another query or verb.
    fn of(parameters: &Instance) -> Option<Self> {
        let is_own = parameters.class().name() == Self::NAME;
        is_own.then(|| Self::from_slots(parameters.slots()))?
    }

    /// The registered query or verb; registers it if necessary.
    fn defined() -> Result<Defined<Self::Def>, DefinitionError> {
        let known = || Self::Def::all(&classes()).get(Self::NAME).cloned();
        // Another thread may register it at the same time.
        let registered = || define(Self::definition()).or_else(|error| known().ok_or(error));
        known().map_or_else(registered, Ok)
    }

    /// The query or verb with its parameters, checked. Returns the first error if a value is out of its range.
    fn call(&self) -> Result<Call<Self::Def>, FieldError> {
        let defined = Self::defined().or_else(|error| refuse(Self::NAME, error.to_string()))?;
        defined.call(self.slots())
    }
}

impl<D: Definition> Call<D> {
    /// The parameters as a struct; `None` when the struct is that of another query or verb.
    pub fn get<P: Parameters<Def = D>>(&self) -> Option<P> {
        P::of(&self.parameters)
    }

    /// Whether this is the query or verb `P`.
    pub fn is<P: Parameters<Def = D>>(&self) -> bool {
        self.name() == P::NAME
    }
}
