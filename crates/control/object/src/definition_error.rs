//! Errors of definitions.

/// A definition that contradicts itself or another one. Displayed as one sentence.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{kind} {class}: {why}")]
pub struct DefinitionError {
    /// The kind of definition: a class, a query or a verb.
    pub kind: &'static str,
    /// Name of the definition.
    pub class: String,
    /// The fault.
    pub why: String,
}

impl DefinitionError {
    /// An error of a class.
    pub fn new(class: &str, why: impl Into<String>) -> Self {
        DefinitionError {
            kind: "class",
            class: class.to_owned(),
            why: why.into(),
        }
    }

    /// Converts the error to one of another kind of definition.
    pub fn of(self, kind: &'static str) -> Self {
        DefinitionError { kind, ..self }
    }
}
