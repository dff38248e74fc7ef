//! An interface with every setting that any class defines is renamed and deleted: a setting that one part forgets would stay
//! behind, or would be lost. The settings are the examples of all registered classes, so a new class is tested without a change
//! here.

mod support;

use std::collections::BTreeSet;
use support::Daemon;
use support::http::Http;
use volley_cli::Action;
use volley_model::Request;
use volley_object::{Class, Classes, Instance};

/// pg0 has the settings; some of them refer to pg1 and the tables.
const ROUTER: &str = "[[interface]]\nname = \"pg1\"\nkind = \"pg\"\naddresses = [\"198.18.0.1/24\", \"2001:db8:1::1/64\"]\nstate = \"up\"\n\
    [[table]]\nid = 7\n";
const NAME: &str = "pg0";
const NEW_NAME: &str = "pg0x";

/// The example object of a class.
fn example(class: &Class) -> Instance {
    let line = class.def().example;
    match volley_cli::parse_line(line).map(|line| line.action) {
        Ok(Action::Request(request)) => match *request {
            Request::Set(it) if it.class() == class => it,
            other => panic!("{line}: {other:?}"),
        },
        other => panic!("{line}: {other:?}"),
    }
}

/// The example as a setting of [`NAME`].
fn setting(class: &Class) -> Instance {
    let it = example(class);
    let key = it.key();
    let owner = key.owner().expect("an interface");
    it.renamed("interface", owner, NAME)
}

/// The class of an object that settings refer to, except for interfaces and tables, which the router has.
fn further(classes: &Classes, class: &str) -> Option<Class> {
    classes.get(class).filter(|_| class != "table").cloned()
}

/// The objects that the setting refers to, except for interfaces and tables, as commands.
fn needed(it: &Instance) -> Vec<String> {
    let (classes, mut lines) = (volley_object::classes(), Vec::new());
    it.references(&mut |class, value, _| {
        let Some(class) = further(&classes, class) else {
            return;
        };
        let other = example(&class);
        let fits = other.key().values().contains(value);
        assert!(fits, "the examples {it:?} and {other:?} do not fit");
        lines.push(other.set_command());
    });
    lines
}

/// The classes of settings of an interface, without those that need a resource of the machine (LCP taps; the tests of `lcp`
/// rename and delete their interfaces).
fn settings() -> Vec<Class> {
    let classes = volley_object::classes();
    let of_interface =
        |class: &&Class| class.part_of() == Some("interface") && !class.def().machine;
    classes.iter().filter(of_interface).cloned().collect()
}

/// The same classes, without all but one of those that exclude each other, and without the class `without`.
fn together(without: &str) -> Vec<Class> {
    let mut groups = BTreeSet::new();
    let mut all = settings();
    all.retain(|class| {
        let group = class.def().one_of;
        class.name() != without && (group.is_empty() || groups.insert(group))
    });
    all
}

fn state(daemon: &Daemon) -> BTreeSet<String> {
    let exported = daemon.ok("config export commands");
    exported.lines().map(str::to_owned).collect()
}

/// The lines with one interface's name instead of another's.
fn with_name(lines: &BTreeSet<String>, from: &str, to: &str) -> BTreeSet<String> {
    let renamed = |line: &String| {
        let words = line
            .split(' ')
            .map(|word| if word == from { to } else { word });
        words.collect::<Vec<_>>().join(" ")
    };
    lines.iter().map(renamed).collect()
}

/// The lines without the MAC address of the interface: a renamed interface keeps the one that derives from its first name.
fn without_mac(lines: &BTreeSet<String>) -> BTreeSet<String> {
    let shortened = |line: &String| match line.split_once(" mac ") {
        Some((create, behind)) if create.starts_with("create packet-generator") => {
            let rest = behind.split_once(' ').map(|(_, rest)| format!(" {rest}"));
            create.to_owned() + &rest.unwrap_or_default()
        }
        _ => line.clone(),
    };
    lines.iter().map(shortened).collect()
}

/// Creates the interface with the settings, renames and deletes it, and creates it again.
fn lives(daemon: &Daemon, classes: &[Class]) {
    let what: Vec<&str> = classes.iter().map(Class::name).collect();
    let all: Vec<Instance> = classes.iter().map(setting).collect();
    let needed: BTreeSet<String> = all.iter().flat_map(needed).collect();
    let create = format!("create packet-generator interface {NAME}");
    needed.iter().for_each(|line| _ = daemon.ok(line));
    let without = state(daemon);
    daemon.ok(&create);
    let plain = state(daemon);
    let mut http = Http::connect(&daemon.folder.file("s.http.sock"));
    let mut listed = |class: &Class| {
        let list = http.get(&format!("/v1/{}", class.name()));
        list.as_array().expect("a list").len()
    };
    let before: Vec<usize> = classes.iter().map(&mut listed).collect();
    for it in &all {
        let (line, lines) = (it.set_command(), state(daemon));
        daemon.ok(&line);
        assert_ne!(state(daemon), lines, "{line} is not exported");
    }
    let full = state(daemon);
    let more: Vec<usize> = before.iter().map(|count| count + 1).collect();
    assert_eq!(
        classes.iter().map(&mut listed).collect::<Vec<_>>(),
        more,
        "{what:?}"
    );

    for (from, to) in [(NAME, NEW_NAME), (NEW_NAME, NAME)] {
        let wanted = without_mac(&with_name(&full, NAME, to));
        daemon.ok(&format!("set interface name {from} {to}"));
        assert_eq!(without_mac(&state(daemon)), wanted, "{what:?} renamed");
        let mut count = classes.iter().map(&mut listed).zip(&more);
        assert!(count.all(|(is, more)| is >= *more), "{what:?} renamed");
    }
    daemon.ok(&format!("delete interface {NAME}"));
    assert_eq!(state(daemon), without, "{what:?} deleted");
    daemon.ok(&create);
    assert_eq!(
        state(daemon),
        plain,
        "{what:?} after a new interface of the name"
    );
    assert_eq!(
        classes.iter().map(&mut listed).collect::<Vec<_>>(),
        before,
        "{what:?}"
    );
    daemon.ok(&format!("delete interface {NAME}"));
    for it in &all {
        needed_back(daemon, it);
    }
}

/// Removes the objects that a setting referred to.
fn needed_back(daemon: &Daemon, it: &Instance) {
    let classes = volley_object::classes();
    it.references(&mut |class, _, _| {
        if let Some(class) = further(&classes, class) {
            daemon.ok(&example(&class).unset_command());
        }
    });
}

#[test]
fn no_setting_of_an_interface_is_lost_by_a_new_name_or_left_by_a_deletion() {
    volley_daemon::objects::register().unwrap();
    let daemon = Daemon::start(ROUTER, &["--workers", "3"]);
    let bare = state(&daemon);
    let classes = settings();
    assert!(classes.len() > 20, "{}", classes.len());
    for class in &classes {
        lives(&daemon, std::slice::from_ref(class));
        assert_eq!(state(&daemon), bare, "{}", class.name());
    }
    // All at once, including the table. The unnumbered interface uses addresses of an interface in the same table, and has no
    // addresses.
    daemon.ok("set interface ip table pg1 7");
    let bare = state(&daemon);
    for without in ["address", "unnumbered"] {
        let classes = together(without);
        assert!(classes.len() > 20, "{}", classes.len());
        lives(&daemon, &classes);
        assert_eq!(state(&daemon), bare, "without {without}");
    }
}
