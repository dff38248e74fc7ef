use super::*;
use volley_model::Via;

fn named(name: &str) -> Account {
    name.parse().unwrap()
}

fn rights() -> Rights {
    let rights = Rights::default();
    {
        let mut state = rights.0.borrow_mut();
        state.users.insert(named("ada"), Role::Read);
        state.groups.insert(named("noc"), Role::Operate);
        state.groups.insert(named("guests"), Role::Read);
        state.groups.insert(named("root"), Role::Read);
    }
    rights
}

fn client(uid: u32, name: &str, groups: &[&str]) -> Client {
    let peer = Peer {
        uid,
        name: Some(name.to_owned()),
        groups: groups.iter().map(|g| g.to_string()).collect(),
    };
    Client::of_peer(Via::Cli, Some(peer), Some(7))
}

#[test]
fn the_user_counts_before_its_groups_and_they_before_the_sockets_group() {
    let rights = rights();
    let role = |name: &str, groups: &[&str]| rights.role(&client(4_000_000, name, groups));
    assert_eq!(role("ada", &["noc", "volley"]), Some(Role::Read));
    assert_eq!(
        role("bob", &["guests", "noc", "volley"]),
        Some(Role::Operate)
    );
    assert_eq!(role("bob", &["guests", "volley"]), Some(Role::Read));
    assert_eq!(role("bob", &["volley"]), Some(Role::Configure));
    assert_eq!(role("bob", &["users"]), None);
    rights.0.borrow_mut().socket_group = Some(named("users"));
    assert_eq!(role("bob", &["volley"]), None);
    assert_eq!(role("bob", &["users"]), Some(Role::Configure));
}

#[test]
fn no_configuration_locks_root_and_the_daemon_out() {
    let rights = rights();
    rights
        .0
        .borrow_mut()
        .users
        .insert(named("root"), Role::Read);
    let own = account::own_user();
    for uid in [0, own] {
        let role = rights.role(&client(uid, "root", &["root"]));
        assert_eq!(role, Some(Role::Configure));
    }
    let daemon = Client::internal(Via::Daemon);
    assert_eq!(rights.role(&daemon), Some(Role::Configure));
    let unknown = Client::of_peer(Via::Cli, None, None);
    assert_eq!(rights.role(&unknown), None);
}

#[test]
fn a_refusal_names_the_user_both_roles_and_the_remedy() {
    let rights = rights();
    let ada = client(4_000_000, "ada", &[]);
    assert_eq!(rights.allow(&ada, Role::Read), Ok(()));
    let error = rights.allow(&ada, Role::Configure).unwrap_err();
    assert_eq!(
        error.to_string(),
        "user ada has the role read, and this needs the role configure: a user with the role configure gives it by \
         `set user ada role configure`"
    );
    let bob = client(4_000_001, "bob", &[]);
    let error = rights.allow(&bob, Role::Read).unwrap_err().to_string();
    assert!(
        error.starts_with("user bob has no role, and this needs the role read"),
        "{error}"
    );
    let token = Client {
        user: "token ci".to_owned(),
        identity: Identity::Token(Role::Operate),
        ..bob
    };
    let error = rights
        .allow(&token, Role::Configure)
        .unwrap_err()
        .to_string();
    assert!(
        error.starts_with("token ci has the role operate"),
        "{error}"
    );
    assert!(error.contains("the token file"), "{error}");
}

#[test]
fn sockets_are_closed_unless_there_is_a_group() {
    let folder = tempfile::tempdir().unwrap();
    let socket = folder.path().join("s");
    let _listener = std::os::unix::net::UnixListener::bind(&socket).unwrap();
    let rights = Rights::default();
    let mode = || std::fs::metadata(&socket).unwrap().mode() & 0o777;
    rights.0.borrow_mut().socket_group = Some(named("no-such-group"));
    rights.serve(&socket).unwrap();
    assert_eq!(mode(), 0o600);
    let warnings = rights.0.borrow().guard_all();
    assert!(
        warnings[0].contains("groupadd --system no-such-group"),
        "{warnings:?}"
    );
    let own = group_name(account::own_group()).unwrap();
    rights.0.borrow_mut().socket_group = Some(named(&own));
    assert_eq!(rights.0.borrow().guard_all(), Vec::<String>::new());
    assert_eq!(mode(), 0o660);
}

#[test]
fn names_are_those_of_the_system() {
    let root = peer(0, 0);
    assert_eq!(
        (root.name.as_deref(), user_name(0).as_str()),
        (Some("root"), "root")
    );
    assert!(root.groups.contains(&"root".to_owned()), "{root:?}");
    assert_eq!(user_name(4_000_000_000), "uid 4000000000");
    assert_eq!(
        peer(4_000_000_000, 4_000_000_000).groups,
        Vec::<String>::new()
    );
    assert_eq!(group_number("root"), Some(0));
    for bad in ["", "a b", "a:b", "a\nb"] {
        assert!(bad.parse::<Account>().is_err(), "{bad:?}");
    }
}
