//! Access rights: the role of each client, and access to the unix sockets.
//!
//! - root, the daemon's user and the daemon itself have the role `configure` independently of the configuration: no
//!   configuration can lock them out.
//! - A user has the role of its `user` object; else the highest role of its groups' `user_group` objects; else `configure` as a
//!   member of the sockets' group; else none.
//! - The role is determined at each request: a commit also affects clients that are connected.
#![forbid(unsafe_code)]

mod account;
mod model;

pub use account::{group_name, group_number, own_user, peer, user_name};
pub use model::{Access, Account, User, UserGroup, classes};

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::io;
use std::os::unix::fs::{MetadataExt, PermissionsExt, lchown};
use std::path::{Path, PathBuf};
use std::rc::Rc;
use tracing::{info, warn};
use volley_model::{Applied, Client, Identity, ModelError, Owners, Peer, Role, key_value};
use volley_object::{DefinitionError, ObjectKey};

/// The default group whose members may open the sockets.
pub const USUAL_GROUP: &str = "volley";

/// The rights of clients. Used on the control thread; clones share the same rights.
#[derive(Clone, Default)]
pub struct Rights(Rc<RefCell<State>>);

#[derive(Default)]
struct State {
    socket_group: Option<Account>,
    users: BTreeMap<Account, Role>,
    groups: BTreeMap<Account, Role>,
    /// Sockets that are being served.
    sockets: Vec<PathBuf>,
}

impl State {
    fn group(&self) -> &str {
        self.socket_group
            .as_ref()
            .map_or(USUAL_GROUP, Account::as_str)
    }

    fn of_peer(&self, peer: &Peer) -> Option<Role> {
        if peer.uid == 0 || peer.uid == account::own_user() {
            return Some(Role::Configure);
        }
        let named = |all: &BTreeMap<Account, Role>, name: &str| {
            let name: Account = name.parse().ok()?;
            all.get(&name).copied()
        };
        let own = peer
            .name
            .as_deref()
            .and_then(|name| named(&self.users, name));
        let of_groups = || {
            peer.groups
                .iter()
                .filter_map(|g| named(&self.groups, g))
                .max()
        };
        let member = || peer.groups.iter().any(|group| group == self.group());
        own.or_else(of_groups)
            .or_else(|| member().then_some(Role::Configure))
    }

    /// Sets or removes the role of a user or a group. While sockets are served, a warning reports an account that the system
    /// does not have.
    fn change(
        &mut self,
        all: impl Fn(&mut State) -> &mut BTreeMap<Account, Role>,
        key: &ObjectKey,
        role: Option<Role>,
        (what, has): (&str, &dyn Fn(&str) -> bool),
    ) -> Applied {
        let name: Account = key_value(key, 0);
        let unknown = role.is_some() && !self.sockets.is_empty() && !has(name.as_str());
        let text = format!("the system knows no {what} {name} yet");
        match role {
            Some(role) => all(self).insert(name, role),
            None => all(self).remove(&name),
        };
        with(
            Applied::one(),
            unknown.then_some(text).into_iter().collect(),
        )
    }

    /// Sets group and mode of a socket; returns a sentence if the configured group cannot be set.
    fn guard(&self, socket: &Path) -> io::Result<Option<String>> {
        let set_mode = |mode| std::fs::set_permissions(socket, PermissionsExt::from_mode(mode));
        let group = account::group_number(self.group());
        // Closed while the owner changes.
        set_mode(0o600)?;
        let given = match group {
            Some(gid) => lchown(socket, None, Some(gid)).and_then(|()| set_mode(0o660)),
            None => lchown(socket, None, Some(account::own_group())),
        };
        let (path, group) = (socket.display(), self.group());
        let only = "only root and the daemon's user can open it";
        Ok(match (given, &self.socket_group) {
            (Ok(()), Some(_)) if account::group_number(group).is_none() => Some(format!(
                "{path}: there is no group {group}, so {only}: create the group by `groupadd --system {group}`, then commit again"
            )),
            (Ok(()), _) => None,
            // A daemon of an ordinary user serves that user.
            (Err(_), None) if account::own_user() != 0 => None,
            (Err(error), _) => Some(format!(
                "{path}: group {group} cannot have the socket ({error}), so {only}: give the daemon CAP_CHOWN, or restart it with the group as its own"
            )),
        })
    }

    fn guard_all(&self) -> Vec<String> {
        let guard = |socket: &PathBuf| match self.guard(socket) {
            Ok(warning) => warning,
            Err(error) => Some(format!("{}: {error}", socket.display())),
        };
        self.sockets.iter().filter_map(guard).collect()
    }
}

/// The result with warnings for the operator.
fn with(applied: Applied, warnings: Vec<String>) -> Applied {
    let note = |applied: Applied, text: String| applied.note(format!("warning: {text}"));
    warnings.into_iter().fold(applied, note)
}

impl Rights {
    /// Registers these rights as the owner of their classes.
    pub fn own(&self, owners: &mut Owners) -> Result<(), DefinitionError> {
        let state = self.0.clone();
        owners.own(move |_, now: Option<Access>| {
            let mut state = state.borrow_mut();
            state.socket_group = now.and_then(|it| it.socket_group);
            Ok(with(Applied::one(), state.guard_all()))
        })?;
        let state = self.0.clone();
        owners.own(move |key, now: Option<User>| {
            let (role, mut state) = (now.map(|it| it.role), state.borrow_mut());
            let has = |name: &str| account::has_user(name);
            Ok(state.change(|state| &mut state.users, key, role, ("user", &has)))
        })?;
        let state = self.0.clone();
        owners.own(move |key, now: Option<UserGroup>| {
            let (role, mut state) = (now.map(|it| it.role), state.borrow_mut());
            let has = |name: &str| group_number(name).is_some();
            Ok(state.change(|state| &mut state.groups, key, role, ("group", &has)))
        })?;
        Ok(())
    }

    /// Sets the access to a socket now and after every change. Warnings for the operator are logged.
    pub fn serve(&self, socket: &Path) -> io::Result<()> {
        let mut state = self.0.borrow_mut();
        let warning = state.guard(socket)?;
        state.sockets.push(socket.to_owned());
        if let Some(warning) = warning {
            warn!(target: "daemon", "{warning}");
        }
        let gid = std::fs::symlink_metadata(socket)?.gid();
        let group = group_name(gid).unwrap_or_else(|| gid.to_string());
        info!(target: "daemon", group, "{}: opened to group {group}", socket.display());
        Ok(())
    }

    /// The role of a client; `None`: the client has no rights.
    pub fn role(&self, client: &Client) -> Option<Role> {
        match &client.identity {
            Identity::Daemon => Some(Role::Configure),
            Identity::Token(role) => Some(*role),
            Identity::Peer(peer) => self.0.borrow().of_peer(peer),
            Identity::Unknown => None,
        }
    }

    /// Checks that a client has a role, or a higher one. A refusal is logged.
    pub fn allow(&self, client: &Client, needed: Role) -> Result<(), ModelError> {
        let role = self.role(client);
        if role >= Some(needed) {
            return Ok(());
        }
        let Client {
            user, via, from, ..
        } = client;
        let error = ModelError::Forbidden {
            client: match client.identity {
                Identity::Token(_) => user.clone(),
                _ => format!("user {user}"),
            },
            role,
            needed,
        };
        let role = role.map_or_else(|| "none".to_owned(), |role| role.to_string());
        warn!(target: "client", user, %via, from, role, %needed, "refused: {error}");
        Err(error)
    }
}

#[cfg(test)]
mod tests;
