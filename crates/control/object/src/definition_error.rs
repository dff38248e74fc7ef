//! A definition that contradicts itself or another one.

/// A definition that contradicts itself or another one. One sentence.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{kind} {class}: {why}")]
pub struct DefinitionError {
    /// What is defined: a class, a query or a verb.
    pub kind: &'static str,
    /// Its name.
    pub class: String,
    /// What is wrong.
    pub why: String,
}

impl DefinitionError {
    /// Of a class.
    pub fn new(class: &str, why: impl Into<String>) -> Self {
        DefinitionError {
            kind: "class",
            class: class.to_owned(),
            why: why.into(),
        }
    }

    /// The same of a query.
    pub fn of_query(self) -> Self {
        let kind = "query";
        DefinitionError { kind, ..self }
    }

    /// The same of a verb.
    pub fn of_verb(self) -> Self {
        let kind = "verb";
        DefinitionError { kind, ..self }
    }
}
