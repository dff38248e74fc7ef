//! The role that a client needs for each request, query and action.

use crate::config::{ConfigAction, ConfigSource};
use crate::request::Request;
use crate::role::Role;
use volley_object::{Asked, VerbClass};

impl Request {
    /// The role that a client needs for the request: for a verb by its definition; all other requests are configuration.
    pub fn role(&self) -> Role {
        match self {
            Request::Do(invocation) => Role::from(invocation.verb()),
            _ => Role::Configure,
        }
    }
}

impl From<&VerbClass> for Role {
    /// The role that a client needs for a verb.
    fn from(verb: &VerbClass) -> Role {
        match verb.def().configure {
            true => Role::Configure,
            false => Role::Operate,
        }
    }
}

impl From<&Asked> for Role {
    /// The role that a client needs for a query, by its definition: a query that sends packets needs more than `read`.
    fn from(asked: &Asked) -> Role {
        match asked.query().def().operate {
            true => Role::Operate,
            false => Role::Read,
        }
    }
}

impl ConfigAction {
    /// The role that a client needs for the action.
    pub fn role(&self) -> Role {
        match self {
            ConfigAction::Check { source } | ConfigAction::Show { source, .. } => source.role(),
            ConfigAction::Diff { from, to } => from.role().max(to.role()),
            ConfigAction::History {} => Role::Read,
            ConfigAction::Commit { .. }
            | ConfigAction::Confirm {}
            | ConfigAction::Rollback { .. } => Role::Configure,
        }
    }
}

impl ConfigSource {
    /// The role that a client needs to read the source: a file is read with the daemon's rights, and errors quote it.
    fn role(&self) -> Role {
        match self {
            ConfigSource::File(_) => Role::Configure,
            ConfigSource::Running
            | ConfigSource::Committed
            | ConfigSource::Commit(_)
            | ConfigSource::Text(_)
            | ConfigSource::Requests(_) => Role::Read,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_of_the_daemon_are_for_those_who_configure() {
        let file = || ConfigSource::File("/etc/shadow".into());
        let diff = |from, to| ConfigAction::Diff { from, to }.role();
        assert_eq!(
            ConfigAction::Check { source: file() }.role(),
            Role::Configure
        );
        assert_eq!(diff(ConfigSource::Running, file()), Role::Configure);
        assert_eq!(diff(file(), ConfigSource::Running), Role::Configure);
        let text = ConfigSource::Text(String::new());
        assert_eq!(diff(ConfigSource::Committed, text), Role::Read);
        let gone = Request::InterfaceDelete { name: "pg0".into() };
        assert_eq!(gone.role(), Role::Configure);
    }
}
