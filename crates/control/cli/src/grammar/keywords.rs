//! The help of keywords inside commands.

/// Keywords that have the same meaning in every command that begins with these words.
const KEYWORDS: &[(&str, &[(&str, &str)])] = &[
    (
        "",
        &[
            ("disable", "Switch it off."),
            (
                "mac",
                "MAC address; without it one is made, or the device's is used.",
            ),
            ("mtu", "L3 MTU in bytes."),
            ("name", "Name of the new interface."),
            ("netns", "Network namespace of the kernel's interface."),
            ("table", "Number of the IP table; without it table 0."),
        ],
    ),
    ("set interface ip", ADDRESS),
    ("set interface ip6", ADDRESS),
    (
        "set interface mac address",
        &[(
            "default",
            "The address that the device has, or that is made for the interface.",
        )],
    ),
    (
        "set interface mtu",
        &[
            (
                "default",
                "The MTU that the device has, or that is usual for its kind.",
            ),
            ("packet", "The L3 MTU, which is the only one there is."),
        ],
    ),
    (
        "set node worker",
        &[("default", "The node runs on every worker.")],
    ),
];

const ADDRESS: &[(&str, &str)] = &[("del", "Remove the address.")];

/// Where a keyword has its meaning.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Scope {
    /// Inside some commands.
    Command,
    /// Inside every command.
    All,
}

/// The meaning of a keyword after these words of its command.
pub(super) fn keyword(words: &[&str], keyword: &str) -> Option<(&'static str, Scope)> {
    let line = words.join(" ");
    let applies = |context: &str| {
        let rest = line.strip_prefix(context);
        rest.is_some_and(|rest| context.is_empty() || rest.is_empty() || rest.starts_with(' '))
    };
    let found = KEYWORDS.iter().filter(|(context, _)| applies(context));
    let meanings = found.filter_map(|(context, all)| {
        let found = all.iter().find(|(word, _)| *word == keyword)?;
        Some((context.len(), found.1))
    });
    let (len, text) = meanings.max_by_key(|(len, _)| *len)?;
    let scope = if len == 0 { Scope::All } else { Scope::Command };
    Some((text, scope))
}
