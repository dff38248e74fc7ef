//! Objects of interfaces.

use volley_object::{Class, DefinitionError, FieldError, Object};

/// Longest description, in characters.
const LONGEST: usize = 255;

/// Description of an interface: what it is for, in an operator's words.
#[derive(Clone, Debug, PartialEq, Eq, Object)]
#[object(class = "description", file = "interface.description", check = Description::check)]
#[object(set = "set interface description <interface> <text>")]
#[object(unset = "delete interface description <interface>")]
#[object(example = "set interface description pg0 \"uplink to AS 64500\"")]
pub struct Description {
    /// Interface.
    #[object(key, part_of = "interface")]
    pub interface: String,
    /// Text, 255 characters at most.
    pub text: String,
}

impl Description {
    fn check(&self) -> Result<(), FieldError> {
        match self.text.chars().count() <= MAX_STACK_BYTES {
            true => Ok(()),
            false => Err(FieldError {
                field: "text",
                why: format!("must have at most {LONGEST} characters"),
            }),
        }
    }
}

/// The classes of this crate.
pub fn classes() -> Result<Vec<Class>, DefinitionError> {
    Ok(vec![Description::class()?])
}
