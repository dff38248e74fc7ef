//! What names mean in a body: classes, variables, elements.

use crate::arguments::{split, unquote};
use crate::ast::{Compound, Formal};
use crate::error::{ClickError, Source};
use crate::lexer::{is_name_byte, quote_end};
use crate::nearest::hint;
use crate::parser::REST;
use std::collections::BTreeMap;
use std::rc::Rc;

/// The number of a scope.
pub(crate) type ScopeId = usize;

/// The longest text of arguments after variables are replaced.
const LONGEST: usize = 1 << 16;

/// What the name of a class means.
#[derive(Clone)]
pub(crate) enum Class {
    /// A compound class, and the scope in which it was defined.
    Compound(Rc<Compound>, ScopeId),
    /// A class of the library.
    Library(String),
}

/// An element in a body.
#[derive(Clone, Copy)]
pub(crate) enum Node {
    Element(usize),
    /// A compound element: the ends of its tunnels.
    Compound {
        input: usize,
        output: usize,
    },
}

/// The names of a body.
#[derive(Default)]
pub(crate) struct Scope {
    pub(crate) parent: Option<ScopeId>,
    pub(crate) classes: BTreeMap<String, Class>,
    pub(crate) variables: BTreeMap<String, String>,
    /// Elements, each with the place of its declaration.
    pub(crate) elements: BTreeMap<String, (Node, usize)>,
    /// The beginning of the names of elements.
    pub(crate) prefix: String,
}

/// All scopes.
pub(crate) struct Scopes(pub(crate) Vec<Scope>);

impl Scopes {
    pub(crate) fn add(&mut self, scope: Scope) -> ScopeId {
        self.0.push(scope);
        self.0.len() - 1
    }

    fn chain(&self, from: ScopeId) -> impl Iterator<Item = &Scope> {
        std::iter::successors(self.0.get(from), |scope| {
            scope.parent.and_then(|parent| self.0.get(parent))
        })
    }

    /// The compound class or alias of a name.
    pub(crate) fn class(&self, scope: ScopeId, name: &str) -> Option<Class> {
        let mut found = self.chain(scope).filter_map(|it| it.classes.get(name));
        found.next().cloned()
    }

    /// The names of all compound classes and aliases.
    pub(crate) fn classes(&self, scope: ScopeId) -> impl Iterator<Item = &str> {
        self.chain(scope)
            .flat_map(|it| it.classes.keys())
            .map(String::as_str)
    }

    fn variable(&self, scope: ScopeId, name: &str) -> Option<&String> {
        self.chain(scope).find_map(|it| it.variables.get(name))
    }

    /// A text with its variables replaced, except in single quotes.
    pub(crate) fn substituted(
        &self,
        scope: ScopeId,
        text: &str,
        (source, at): (&Source, usize),
    ) -> Result<String, ClickError> {
        let bytes = text.as_bytes();
        let mut done = String::new();
        let mut i = 0;
        while i < bytes.len() {
            let end = match bytes[i] {
                b'\'' => quote_end(bytes, i).unwrap_or(bytes.len()),
                b'$' => {
                    let (name, end) = variable_at(text, i);
                    if !name.is_empty() {
                        let value = self.variable(scope, name);
                        let value = value.ok_or_else(|| {
                            let known = self.chain(scope).flat_map(|it| it.variables.keys());
                            let hint = hint(name, known.map(String::as_str), "define it");
                            source
                                .error(at + i, format!("the variable ${name} is not defined{hint}"))
                        })?;
                        done.push_str(value);
                        i = end;
                        self.check_length(&done, source, at)?;
                        continue;
                    }
                    i + 1
                }
                _ => text[i..].chars().next().map_or(i + 1, |c| i + c.len_utf8()),
            };
            done.push_str(&text[i..end]);
            i = end;
        }
        Ok(done)
    }

    fn check_length(&self, text: &str, source: &Source, at: usize) -> Result<(), ClickError> {
        match text.len() <= LONGEST {
            true => Ok(()),
            false => {
                let why = format!("the arguments are longer than {LONGEST} bytes: shorten them");
                Err(source.error(at, why))
            }
        }
    }
}

/// The name of the variable whose dollar sign is at `at`, and the byte behind it.
fn variable_at(text: &str, at: usize) -> (&str, usize) {
    let rest = &text[at + 1..];
    if let Some(inner) = rest.strip_prefix('{')
        && let Some(end) = inner.find('}')
        && inner[..end].bytes().all(is_name_byte)
    {
        return (&inner[..end], at + 3 + end);
    }
    let end = rest.bytes().position(|b| !is_name_byte(b));
    let name = &rest[..end.unwrap_or(rest.len())];
    (name, at + 1 + name.len())
}

/// The values of a compound class's parameters; none if the arguments do not fit.
pub(crate) fn bind(formals: &[Formal], arguments: &[String]) -> Option<BTreeMap<String, String>> {
    let mut left: Vec<&String> = arguments.iter().collect();
    let mut values = BTreeMap::new();
    let mut rest = None;
    for formal in formals {
        match formal.keyword.as_deref() {
            Some(REST) => rest = Some(formal),
            Some(keyword) => {
                let given = left.iter().position(|it| {
                    it.split_whitespace().next() == Some(keyword) && it.trim() != keyword
                })?;
                let value = left.remove(given).trim_start();
                values.insert(
                    formal.name.clone(),
                    value[keyword.len()..].trim().to_owned(),
                );
            }
            None => {}
        }
    }
    for formal in formals.iter().filter(|it| it.keyword.is_none()) {
        if left.is_empty() {
            return None;
        }
        values.insert(formal.name.clone(), left.remove(0).clone());
    }
    match rest {
        Some(formal) => {
            let all: Vec<&str> = left.iter().map(|it| it.as_str()).collect();
            values.insert(formal.name.clone(), all.join(", "));
            Some(values)
        }
        None => left.is_empty().then_some(values),
    }
}

/// The value of a variable that `define` sets.
pub(crate) fn defined(text: &str) -> String {
    let is_one = split(text).len() < 2 && text.starts_with('"');
    if is_one {
        unquote(text)
    } else {
        text.to_owned()
    }
}
