//! The statements of a configuration, before names are resolved.

use std::rc::Rc;

/// A configuration that was parsed.
#[derive(Debug, Clone)]
pub struct Program {
    pub(crate) body: Rc<Body>,
}

/// The statements of a file or of a compound element.
#[derive(Debug, Default)]
pub(crate) struct Body {
    pub(crate) statements: Vec<Statement>,
}

#[derive(Debug)]
pub(crate) enum Statement {
    /// Elements and the connections between them.
    Chain(Chain),
    /// `elementclass Name ...`
    Class {
        name: String,
        definition: ClassUse,
        at: usize,
    },
    /// `define($name value)`
    Define { name: String, value: Config },
}

/// Groups of elements, each connected to the next one.
#[derive(Debug, Default)]
pub(crate) struct Chain {
    pub(crate) groups: Vec<Group>,
    /// The connection in front of each group but the first.
    pub(crate) links: Vec<Link>,
}

#[derive(Debug, Clone, Copy)]
pub(crate) struct Link {
    /// `=>`: the ports are connected in pairs.
    pub(crate) pairs: bool,
    pub(crate) at: usize,
}

/// Elements with commas between them.
pub(crate) type Group = Vec<Item>;

/// An element in a chain.
#[derive(Debug)]
pub(crate) struct Item {
    pub(crate) at: usize,
    pub(crate) what: What,
    /// Ports in front of the element.
    pub(crate) inputs: Option<Vec<usize>>,
    /// Ports behind the element.
    pub(crate) outputs: Option<Vec<usize>>,
}

#[derive(Debug)]
pub(crate) enum What {
    /// A name: of an element, or else of a class.
    Name(String),
    /// `name :: class`
    Declaration(String, ClassUse),
    /// A class with a configuration, or a body.
    Anonymous(ClassUse),
}

/// A class with the configuration of one element.
#[derive(Debug, Clone)]
pub(crate) struct ClassUse {
    pub(crate) class: ClassName,
    pub(crate) config: Option<Config>,
    pub(crate) at: usize,
}

#[derive(Debug, Clone)]
pub(crate) enum ClassName {
    Named(String),
    Compound(Rc<Compound>),
}

/// The text between parentheses.
#[derive(Debug, Clone)]
pub(crate) struct Config {
    pub(crate) text: String,
    pub(crate) at: usize,
}

/// A compound class: its bodies, of which the arguments of an element select one.
#[derive(Debug, Default)]
pub(crate) struct Compound {
    pub(crate) overloads: Vec<Overload>,
    /// `...`: further bodies are those of the earlier class of this name.
    pub(crate) extends: bool,
}

#[derive(Debug)]
pub(crate) struct Overload {
    pub(crate) formals: Vec<Formal>,
    pub(crate) body: Rc<Body>,
}

/// A parameter of a compound class.
#[derive(Debug, Clone)]
pub(crate) struct Formal {
    /// The keyword of the argument; none for an argument by position.
    pub(crate) keyword: Option<String>,
    pub(crate) name: String,
}
