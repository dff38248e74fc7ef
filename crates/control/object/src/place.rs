//! Positions of classes in the file, and references between objects.

/// Strength of a reference from one object to another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Strength {
    /// The object is a part of the other object and is removed with it.
    PartOf,
    /// The other object cannot be removed while this object exists.
    Needs,
    /// When the other object is removed, it is removed from a list of this object. If the definition refuses the result, this
    /// object is removed.
    Loses,
}

/// A reference of a field to objects of a class.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reference {
    /// The class.
    pub class: &'static str,
    /// Strength of the reference.
    pub strength: Strength,
}

impl Reference {
    /// A reference to the object to which this one belongs.
    pub fn part_of(class: &'static str) -> Self {
        let strength = Strength::PartOf;
        Reference { class, strength }
    }

    /// A reference in a list, which is dropped when the other object is removed.
    pub fn loses(class: &'static str) -> Self {
        let strength = Strength::Loses;
        Reference { class, strength }
    }

    /// A reference that prevents the removal of the other object.
    pub fn needs(class: &'static str) -> Self {
        let strength = Strength::Needs;
        Reference { class, strength }
    }
}

/// The object that brings a class: the name of its class, and its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Brought {
    /// The class.
    pub class: &'static str,
    /// The value of its only key.
    pub name: &'static str,
}

/// The position of a class's objects in the configuration file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Place {
    /// Not in the file: commands and programs create these objects.
    #[default]
    None,
    /// `[name]`: the only object of a class without keys.
    Table(&'static str),
    /// `[[name]]`, one for each object.
    List(&'static str),
    /// `[name.KEY]`, one for each value of the only key.
    Map(&'static str),
    /// `name = ...` in `[[interface]]`: the value of the only field, or a table of the fields.
    Interface(&'static str),
    /// `name = { KEY = ... }` in `[[interface]]`, for a class with one key besides the interface.
    InterfaceMap(&'static str),
    /// `name = [{ ... }]` in `[[interface]]`, for a class with other keys besides the interface.
    InterfaceList(&'static str),
}

impl Place {
    /// Reads `[name]`, `[[name]]`, `[name.*]`, `interface.name`, `interface.name.*` and `interface.name[]`.
    pub fn read(text: &'static str) -> Place {
        let strip = |text: &'static str| text.strip_suffix(".*").unwrap_or(text);
        if let Some(name) = text.strip_prefix("interface.") {
            if let Some(name) = name.strip_suffix("[]") {
                return Place::InterfaceList(name);
            }
            return match name.ends_with(".*") {
                true => Place::InterfaceMap(strip(name)),
                false => Place::Interface(name),
            };
        }
        let inner = |open: &str, close: &str| text.strip_prefix(open)?.strip_suffix(close);
        if let Some(name) = inner("[[", "]]") {
            return Place::List(name);
        }
        match inner("[", "]") {
            Some(name) if name.ends_with(".*") => Place::Map(strip(name)),
            Some(name) => Place::Table(name),
            None => Place::None,
        }
    }
}

/// A key of an interface in the file that names a file, and starts a verb with the interface and that file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Start {
    /// The key.
    pub key: &'static str,
    /// The verb, whose parameters are `interface` and `file`.
    pub verb: &'static str,
    /// What the key means.
    pub doc: &'static str,
}
