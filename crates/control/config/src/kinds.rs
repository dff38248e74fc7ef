//! Kinds of interfaces in the file, and which keys each of them takes.

/// All kinds, as `one_of` wants them.
pub(crate) const ALL: [(&str, &str); 2] = [("pg", "pg"), ("sub-interface", "sub-interface")];

/// Keys that not every kind takes, and the kinds that do.
pub(crate) const KEYS: &[(&str, &[&str])] = &[
    ("parent", &["sub-interface"]),
    ("dot1q", &["sub-interface"]),
    ("dot1ad", &["sub-interface"]),
    ("inner_dot1q", &["sub-interface"]),
];
