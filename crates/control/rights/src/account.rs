//! Names of users and groups of the operating system. A look-up may query a directory service, and then takes as long as the
//! service.

use nix::unistd::{Gid, Group, Uid, User, getgrouplist};
use std::ffi::CString;
use volley_model::Peer;

/// The name of a user; `None`: the system has no name.
fn name(uid: u32) -> Option<String> {
    let user = User::from_uid(Uid::from_raw(uid)).ok()??;
    (!user.name.is_empty()).then_some(user.name)
}

/// The name of a user, or `uid N`.
pub fn user_name(uid: u32) -> String {
    name(uid).unwrap_or_else(|| format!("uid {uid}"))
}

/// The name of a group; `None`: the system has no name.
pub fn group_name(gid: u32) -> Option<String> {
    let group = Group::from_gid(Gid::from_raw(gid)).ok()??;
    (!group.name.is_empty()).then_some(group.name)
}

/// The ID of a group; `None`: the group does not exist.
pub fn group_number(name: &str) -> Option<u32> {
    let group = Group::from_name(name).ok()??;
    Some(group.gid.as_raw())
}

/// Whether a user of this name exists.
pub(crate) fn has_user(name: &str) -> bool {
    User::from_name(name).is_ok_and(|user| user.is_some())
}

/// The user ID of this process.
pub fn own_user() -> u32 {
    nix::unistd::geteuid().as_raw()
}

/// The group ID of this process.
pub(crate) fn own_group() -> u32 {
    nix::unistd::getegid().as_raw()
}

/// The user of a socket's peer with all groups: that of the peer's process, and those that the system lists for the user.
pub fn peer(uid: u32, gid: u32) -> Peer {
    let name = name(uid);
    let listed = name.as_ref().and_then(|name| {
        let name = CString::new(name.as_str()).ok()?;
        getgrouplist(&name, Gid::from_raw(gid)).ok()
    });
    let mut numbers: Vec<u32> = listed
        .unwrap_or_default()
        .iter()
        .map(|g| g.as_raw())
        .collect();
    numbers.push(gid);
    numbers.sort_unstable();
    numbers.dedup();
    Peer {
        uid,
        name,
        groups: numbers.into_iter().filter_map(group_name).collect(),
    }
}
