//! Objects: who may open the unix sockets, and the roles of users and groups.

use std::fmt;
use std::str::FromStr;
use volley_model::Role;
use volley_object::{Class, DefinitionError, Object, text_field};

/// Maximum length of a user or group name, in bytes (`LOGIN_NAME_MAX` of Linux).
const LONGEST: usize = 255;

/// Name of a user or group of the system.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Default)]
pub struct Account(String);

impl Account {
    /// The name.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for Account {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.0)
    }
}

impl FromStr for Account {
    type Err = String;

    fn from_str(text: &str) -> Result<Account, String> {
        let bad = |c: char| c.is_control() || c.is_whitespace() || c == ':';
        if text.is_empty() || text.len() > LONGEST || text.chars().any(bad) {
            return Err(format!("1 to {LONGEST} characters, no blank and no colon"));
        }
        Ok(Account(text.to_owned()))
    }
}

text_field!(Account, "the name of a user or group", Any, ["ada", "noc"]);

/// Access to the daemon's unix sockets.
#[derive(Clone, Debug, PartialEq, Eq, Object)]
#[object(class = "access", file = "[access]")]
#[object(set = "set access {fields}", example = "set access socket-group noc")]
pub struct Access {
    /// Group whose members may open the unix sockets (mode 0660); group volley where it is not set. Without that group in
    /// the system only root and the daemon's user may (mode 0600).
    pub socket_group: Option<Account>,
}

/// Role of a user, whichever groups the user is in.
#[derive(Clone, Debug, PartialEq, Eq, Object)]
#[object(class = "user", file = "[user.*]")]
#[object(set = "set user <name> role <role>")]
#[object(unset = "delete user <name>")]
#[object(example = "set user ada role read")]
pub struct User {
    /// User of the system.
    #[object(key)]
    pub name: Account,
    /// Role.
    pub role: Role,
}

/// Role of the members of a group. Of several groups of a user the one with the highest role counts.
#[derive(Clone, Debug, PartialEq, Eq, Object)]
#[object(class = "user_group", file = "[user_group.*]")]
#[object(set = "set user-group <name> role <role>")]
#[object(unset = "delete user-group <name>")]
#[object(example = "set user-group noc role operate")]
pub struct UserGroup {
    /// Group of the system.
    #[object(key)]
    pub name: Account,
    /// Role.
    pub role: Role,
}

/// The classes of this crate.
pub fn classes() -> Result<Vec<Class>, DefinitionError> {
    Ok(vec![Access::class()?, User::class()?, UserGroup::class()?])
}
