//! Statements to elements and connections: compound elements are replaced by their contents.

use crate::arguments::split;
use crate::ast::{
    Body, Chain, ClassName, ClassUse, Compound, Group, Item, Link, Overload, Program, Statement,
    What,
};
use crate::error::{ClickError, Source};
use crate::nearest::hint;
use crate::scope::{Class, Node, Scope, ScopeId, Scopes, bind, defined};
use crate::tunnels;
use std::fmt;
use std::rc::Rc;

/// Elements of a configuration at most.
const MOST_ELEMENTS: usize = 4096;
/// Connections of a configuration at most.
pub(crate) const MOST_HOOKUPS: usize = 16_384;
/// Compound elements inside each other.
const DEEPEST: usize = 32;

/// An element of the library.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Element {
    /// Name, unique in the configuration.
    pub name: String,
    /// The name of its class.
    pub class: String,
    /// Arguments, with variables replaced.
    pub arguments: Vec<String>,
    /// The place of the declaration, as a byte of the text.
    pub at: usize,
}

/// A connection from an output to an input.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Hookup {
    /// Element and output port.
    pub from: (usize, usize),
    /// Element and input port.
    pub to: (usize, usize),
    /// The place of the connection, as a byte of the text.
    pub at: usize,
}

/// Elements and the connections between their ports.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Network {
    /// The elements, in the order of the configuration.
    pub elements: Vec<Element>,
    /// The connections, in the order of the configuration.
    pub hookups: Vec<Hookup>,
}

impl fmt::Display for Network {
    /// The configuration without compound elements and variables.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for element in &self.elements {
            let arguments = element.arguments.join(", ");
            writeln!(f, "{} :: {}({arguments});", element.name, element.class)?;
        }
        for hookup in &self.hookups {
            let name = |element: usize| &self.elements[element].name;
            let ((from, output), (to, input)) = (hookup.from, hookup.to);
            writeln!(f, "{} [{output}] -> [{input}] {};", name(from), name(to))?;
        }
        Ok(())
    }
}

/// Replace compound elements by their contents. `library` has the names of the library's classes.
pub fn flatten(
    source: &Source,
    program: &Program,
    library: &[&str],
) -> Result<Network, ClickError> {
    let mut flattener = Flattener {
        source,
        library,
        scopes: Scopes(vec![Scope::default()]),
        elements: Vec::new(),
        hookups: Vec::new(),
        depth: 0,
    };
    flattener.body(&program.body, 0)?;
    tunnels::remove(source, flattener.elements, &flattener.hookups)
}

/// An element, or an end of the tunnels of a compound element.
pub(crate) enum Place {
    Element(Element),
    /// The inputs of a compound element of this name.
    Inputs(String),
    /// The outputs of a compound element of this name.
    Outputs(String),
}

struct Flattener<'a> {
    source: &'a Source,
    library: &'a [&'a str],
    scopes: Scopes,
    elements: Vec<Place>,
    hookups: Vec<Hookup>,
    depth: usize,
}

impl Flattener<'_> {
    fn body(&mut self, body: &Body, scope: ScopeId) -> Result<(), ClickError> {
        for statement in &body.statements {
            self.define(statement, scope)?;
        }
        let chains = || {
            body.statements.iter().filter_map(|it| match it {
                Statement::Chain(chain) => Some(chain),
                _ => None,
            })
        };
        for item in chains().flat_map(|chain| chain.groups.iter().flatten()) {
            if let What::Declaration(name, class) = &item.what {
                self.declare(name, class, item.at, scope)?;
            }
        }
        for chain in chains() {
            self.chain(chain, scope)?;
        }
        Ok(())
    }

    /// Add a class or a variable to a scope.
    fn define(&mut self, statement: &Statement, scope: ScopeId) -> Result<(), ClickError> {
        match statement {
            Statement::Define { name, value } => {
                let place = (self.source, value.at);
                let value = self.scopes.substituted(scope, &value.text, place)?;
                let variables = &mut self.scopes.0[scope].variables;
                variables.insert(name.clone(), defined(&value));
            }
            Statement::Class {
                name,
                definition,
                at,
            } => {
                if definition.config.is_some() {
                    let text = format!(
                        "the class {name} cannot have arguments here: give them to its elements"
                    );
                    return Err(self.source.error(*at, text));
                }
                let class = match &definition.class {
                    ClassName::Named(of) => self.class_of(of, definition.at, scope)?,
                    ClassName::Compound(compound) => {
                        let compound = self.extended(name, compound, scope);
                        Class::Compound(compound, scope)
                    }
                };
                self.scopes.0[scope].classes.insert(name.clone(), class);
            }
            Statement::Chain(_) => {}
        }
        Ok(())
    }

    /// A compound class, with the bodies of the earlier class of its name if it extends that.
    fn extended(&self, name: &str, compound: &Rc<Compound>, scope: ScopeId) -> Rc<Compound> {
        let before = self.scopes.class(scope, name);
        match (compound.extends, before) {
            (true, Some(Class::Compound(before, _))) => {
                let all = compound.overloads.iter().chain(&before.overloads);
                let copy = |it: &Overload| Overload {
                    formals: it.formals.clone(),
                    body: it.body.clone(),
                };
                Rc::new(Compound {
                    overloads: all.map(copy).collect(),
                    extends: false,
                })
            }
            _ => compound.clone(),
        }
    }

    fn class_of(&self, name: &str, at: usize, scope: ScopeId) -> Result<Class, ClickError> {
        if let Some(class) = self.scopes.class(scope, name) {
            return Ok(class);
        }
        if self.library.contains(&name) {
            return Ok(Class::Library(name.to_owned()));
        }
        let known = self.library.iter().copied();
        let known = known.chain(self.scopes.classes(scope));
        let hint = hint(name, known, "docs/click.md lists the elements");
        Err(self
            .source
            .error(at, format!("there is no element class {name}{hint}")))
    }

    fn declare(
        &mut self,
        name: &str,
        class: &ClassUse,
        at: usize,
        scope: ScopeId,
    ) -> Result<(), ClickError> {
        if name == "input" || name == "output" {
            let text = format!("{name} means the ports of a compound element: choose another name");
            return Err(self.source.error(at, text));
        }
        if let Some((_, before)) = self.scopes.0[scope].elements.get(name) {
            let (line, column) = self.source.place(*before);
            let text = format!(
                "the element {name} is declared twice: rename it here or in line {line}, column {column}"
            );
            return Err(self.source.error(at, text));
        }
        let node = self.element(name, class, at, scope)?;
        let elements = &mut self.scopes.0[scope].elements;
        elements.insert(name.to_owned(), (node, at));
        Ok(())
    }

    fn place(&mut self, place: Place, at: usize) -> Result<usize, ClickError> {
        if self.elements.len() >= MOST_ELEMENTS {
            let text =
                format!("the configuration has more than {MOST_ELEMENTS} elements: use fewer");
            return Err(self.source.error(at, text));
        }
        self.elements.push(place);
        Ok(self.elements.len() - 1)
    }

    /// Make an element, or the contents of a compound element.
    fn element(
        &mut self,
        name: &str,
        class: &ClassUse,
        at: usize,
        scope: ScopeId,
    ) -> Result<Node, ClickError> {
        let arguments = match &class.config {
            Some(config) => {
                let place = (self.source, config.at);
                split(&self.scopes.substituted(scope, &config.text, place)?)
            }
            None => Vec::new(),
        };
        let name = format!("{}{name}", self.scopes.0[scope].prefix);
        let meaning = match &class.class {
            ClassName::Named(of) => self.class_of(of, class.at, scope)?,
            ClassName::Compound(compound) => Class::Compound(compound.clone(), scope),
        };
        match meaning {
            Class::Library(class) => {
                let element = Element {
                    name,
                    class,
                    arguments,
                    at,
                };
                self.place(Place::Element(element), at).map(Node::Element)
            }
            Class::Compound(compound, defined_in) => {
                self.compound(&name, &compound, &arguments, (defined_in, at))
            }
        }
    }

    fn compound(
        &mut self,
        name: &str,
        compound: &Compound,
        arguments: &[String],
        (defined_in, at): (ScopeId, usize),
    ) -> Result<Node, ClickError> {
        let fits = |it: &Overload| Some((bind(&it.formals, arguments)?, it.body.clone()));
        let Some((variables, body)) = compound.overloads.iter().find_map(fits) else {
            let wanted: Vec<String> = compound.overloads.iter().map(parameters).collect();
            let text = format!(
                "{} do not fit the compound element {name}: its parameters are {}",
                counted(arguments.len()),
                wanted.join(" or ")
            );
            return Err(self.source.error(at, text));
        };
        if self.depth >= DEEPEST {
            let text = format!(
                "compound elements contain each other more than {DEEPEST} deep at {name}: a class cannot contain itself"
            );
            return Err(self.source.error(at, text));
        }
        let input = self.place(Place::Inputs(name.to_owned()), at)?;
        let output = self.place(Place::Outputs(name.to_owned()), at)?;
        let mut scope = Scope {
            parent: Some(defined_in),
            variables,
            prefix: format!("{name}/"),
            ..Scope::default()
        };
        let inside = [("input", input), ("output", output)];
        for (name, element) in inside {
            let node = (Node::Element(element), at);
            scope.elements.insert(name.to_owned(), node);
        }
        let scope = self.scopes.add(scope);
        self.depth += 1;
        self.body(&body, scope)?;
        self.depth -= 1;
        Ok(Node::Compound { input, output })
    }

    fn chain(&mut self, chain: &Chain, scope: ScopeId) -> Result<(), ClickError> {
        let mut before: Vec<Node> = Vec::new();
        for (at, group) in chain.groups.iter().enumerate() {
            let mut nodes = Vec::new();
            for item in group {
                nodes.push(self.node(item, scope)?);
            }
            if let Some(link) = at.checked_sub(1).and_then(|at| chain.links.get(at)) {
                let from = (&before[..], &chain.groups[at - 1]);
                self.connect(from, (&nodes, group), *link)?;
            } else if let Some(item) = group.iter().find(|it| it.inputs.is_some()) {
                return Err(self.loose(item, "in front of"));
            }
            before = nodes;
        }
        match chain
            .groups
            .last()
            .into_iter()
            .flatten()
            .find(|it| it.outputs.is_some())
        {
            Some(item) => Err(self.loose(item, "behind")),
            None => Ok(()),
        }
    }

    fn loose(&self, item: &Item, side: &str) -> ClickError {
        let text =
            format!("ports {side} an element need a connection there: write -> or remove them");
        self.source.error(item.at, text)
    }

    fn node(&mut self, item: &Item, scope: ScopeId) -> Result<Node, ClickError> {
        let class = match &item.what {
            What::Name(name) | What::Declaration(name, _) => {
                let known = &self.scopes.0[scope].elements;
                if let Some((node, _)) = known.get(name) {
                    return Ok(*node);
                }
                let is_class = self.scopes.class(scope, name).is_some()
                    || self.library.contains(&name.as_str());
                if !is_class {
                    return Err(self.unknown(name, item.at, scope));
                }
                ClassUse {
                    class: ClassName::Named(name.clone()),
                    config: None,
                    at: item.at,
                }
            }
            What::Anonymous(class) => class.clone(),
        };
        let of = match &class.class {
            ClassName::Named(of) => of.as_str(),
            ClassName::Compound(_) => "",
        };
        let name = format!("{of}@{}", self.elements.len() + 1);
        self.element(&name, &class, item.at, scope)
    }

    fn unknown(&self, name: &str, at: usize, scope: ScopeId) -> ClickError {
        if name == "input" || name == "output" {
            let text = format!("{name} is known in compound elements only: name an element");
            return self.source.error(at, text);
        }
        let elements = self.scopes.0[scope].elements.keys().map(String::as_str);
        let known = elements
            .chain(self.library.iter().copied())
            .chain(self.scopes.classes(scope));
        let hint = hint(name, known, "declare it as name :: Class");
        self.source
            .error(at, format!("there is no element and no class {name}{hint}"))
    }

    fn connect(
        &mut self,
        (from, left): (&[Node], &Group),
        (to, right): (&[Node], &Group),
        link: Link,
    ) -> Result<(), ClickError> {
        let ports = |given: &Option<Vec<usize>>| given.clone().unwrap_or_else(|| vec![0]);
        for (source, left) in from.iter().zip(left) {
            for (target, right) in to.iter().zip(right) {
                let (outputs, inputs) = (ports(&left.outputs), ports(&right.inputs));
                if link.pairs && outputs.len() != inputs.len() {
                    let text = format!(
                        "=> connects ports in pairs, but there are {} on the left and {} on the right",
                        outputs.len(),
                        inputs.len()
                    );
                    return Err(self.source.error(link.at, text));
                }
                for (i, &output) in outputs.iter().enumerate() {
                    for (j, &input) in inputs.iter().enumerate() {
                        if !link.pairs || i == j {
                            self.hook((*source, output), (*target, input), link.at)?;
                        }
                    }
                }
            }
        }
        Ok(())
    }

    fn hook(
        &mut self,
        (from, output): (Node, usize),
        (to, input): (Node, usize),
        at: usize,
    ) -> Result<(), ClickError> {
        if self.hookups.len() >= MOST_HOOKUPS {
            return Err(tunnels::too_many(self.source, at));
        }
        let from = match from {
            Node::Element(element) => element,
            Node::Compound { output, .. } => output,
        };
        let to = match to {
            Node::Element(element) => element,
            Node::Compound { input, .. } => input,
        };
        self.hookups.push(Hookup {
            from: (from, output),
            to: (to, input),
            at,
        });
        Ok(())
    }
}

/// The parameters of a body, for an error.
fn parameters(overload: &Overload) -> String {
    let show = |it: &crate::ast::Formal| match &it.keyword {
        Some(keyword) => format!("{keyword} ${}", it.name),
        None => format!("${}", it.name),
    };
    let all: Vec<String> = overload.formals.iter().map(show).collect();
    match all.is_empty() {
        true => "none".to_owned(),
        false => format!("({})", all.join(", ")),
    }
}

fn counted(arguments: usize) -> String {
    match arguments {
        1 => "1 argument".to_owned(),
        n => format!("{n} arguments"),
    }
}
