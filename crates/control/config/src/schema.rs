//! Every table and key of the file with its meaning: used to find unknown keys and to print the reference.

/// One key of a table.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Key {
    /// Name of the key.
    pub name: &'static str,
    /// Value and meaning of the key.
    pub text: &'static str,
}

/// One table of the file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Table {
    /// Name of the table.
    pub name: &'static str,
    /// Written as `[[name]]`, any number of times; else `[name]`, once. Inner tables are written `{ ... }`.
    pub repeats: bool,
    /// Keys of the table.
    pub keys: &'static [Key],
}

impl Table {
    /// Name with brackets.
    pub fn title(&self) -> String {
        match (self.repeats, self.name.contains('.')) {
            (_, true) => format!("{} {{ }}", self.name),
            (true, _) => format!("[[{}]]", self.name),
            (false, _) => format!("[{}]", self.name),
        }
    }
}

/// `[[interface]]`; its other keys are those of the classes.
pub(crate) static INTERFACE: Table = Table {
    name: "interface",
    repeats: true,
    keys: &[
        Key {
            name: "name",
            text: "its name",
        },
        Key {
            name: "kind",
            text: "kind of the interface",
        },
    ],
};
