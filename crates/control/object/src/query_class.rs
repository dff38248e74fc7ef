//! Definitions of queries, and registered queries.

use crate::call::{Call, Defined, Definition};
use crate::class::{Class, ClassDef, Effect};
use crate::instance::Instance;
use crate::kind::Kind;
use crate::pattern::Pattern;
use crate::value::Value;
use crate::view::View;
use crate::{FieldError, refuse};
use schemars::{Schema, SchemaGenerator};
use std::any::Any;
use volley_show::Page;

pub(crate) type Text = fn(&dyn Any, View) -> String;
/// Adds the metrics of a reply to the page.
pub type Figures = fn(&dyn Any, &mut Page);

/// The definition of a query.
#[derive(Clone)]
pub struct QueryDef {
    /// Name, text, parameters, commands and example.
    pub class: ClassDef,
    /// Further texts of a reply.
    pub views: Vec<ViewDef>,
    /// Parameters that select the detailed text when a command gives them.
    pub detail_by: Vec<&'static str>,
    /// A client needs the role `operate` instead of `read`.
    pub operate: bool,
    /// A reply may be large.
    pub large: bool,
    /// The reply comes in items over time.
    pub stream: Option<StreamDef>,
    pub(crate) schema: fn(&mut SchemaGenerator) -> Schema,
    pub(crate) text: Text,
    /// Adds the metrics of a reply to the metrics page.
    pub figures: Option<Figures>,
}

/// A further text of a reply, which a word of the command selects.
#[derive(Clone, Copy, Debug)]
pub struct ViewDef {
    /// The word, which sets no parameter.
    pub word: &'static str,
    /// Description of the text: the help of the commands that always have the word.
    pub doc: &'static str,
}

/// Checks that the reply to a query can be returned as a whole.
pub type WholeCheck = fn(&Instance) -> Result<(), FieldError>;

/// The definition of a query's runs.
#[derive(Clone, Copy)]
pub struct StreamDef {
    /// The reply is never returned as a whole.
    pub live: bool,
    /// The boolean parameter that requests bytes, and a program that reads them.
    pub bytes: Option<(&'static str, &'static str)>,
    /// Checks that the reply to a query can be returned as a whole.
    pub whole: Option<WholeCheck>,
    /// The reason of the failure of a run that ended with a reply.
    pub(crate) failure: fn(&dyn Any) -> Option<String>,
}

/// A registered query.
pub type QueryClass = Defined<QueryDef>;

impl Definition for QueryDef {
    const KIND: &'static str = "query";

    fn class(&self) -> &ClassDef {
        &self.class
    }

    fn fault(&self, class: &Class) -> Option<String> {
        let unknown = |name: &&&str| class.field(name).is_none();
        if let Some(name) = self.detail_by.iter().find(unknown) {
            return Some(format!("there is no parameter '{name}'"));
        }
        let patterns = class.patterns(Effect::Set);
        let has = |view: &ViewDef| patterns.iter().any(|p| p.has_plain(view.word));
        if let Some(view) = self.views.iter().find(|view| !has(view)) {
            return Some(format!("no command has the word '{}'", view.word));
        }
        let (name, _) = self.stream?.bytes?;
        let field = class.field(name);
        let is_bool = field.is_some_and(|(_, field)| matches!(field.kind, Kind::Bool));
        (!is_bool).then(|| format!("parameter '{name}' must be on or off: it selects bytes"))
    }
}

impl QueryClass {
    /// The definition of its runs, if the reply comes in items.
    pub fn stream(&self) -> Option<&StreamDef> {
        self.def().stream.as_ref()
    }

    /// Whether a client can get the reply as a whole.
    pub fn has_whole(&self) -> bool {
        self.def().stream.is_none_or(|stream| !stream.live)
    }

    /// The further text that every command by a pattern shows, if any.
    fn view_of(&self, pattern: &Pattern) -> Option<&ViewDef> {
        let fixed = |view: &&ViewDef| pattern.fixed_words().any(|word| word == view.word);
        self.def().views.iter().find(fixed)
    }

    /// The help of a command by a pattern.
    pub fn doc_of(&self, pattern: &Pattern) -> &'static str {
        let view = self.view_of(pattern);
        view.map_or(self.class().doc(), |view| view.doc)
    }

    /// An example of a command by a pattern that shows a further text; the example of the definition is for the main text.
    pub fn example_of(&self, pattern: &Pattern) -> String {
        match self.view_of(pattern) {
            Some(_) => pattern.fixed_words().collect::<Vec<_>>().join(" "),
            None => self.class().def().example.to_owned(),
        }
    }

    /// The text that a command with these words and parameter values selects.
    pub fn view(&self, has: impl Fn(&str) -> bool, given: &[Option<Value>]) -> View {
        if let Some(view) = self.def().views.iter().find(|view| has(view.word)) {
            return View::Named(view.word);
        }
        // Words that select the text and set no parameter.
        let detail = has("detail") || has("verbose");
        let is_given = |name: &&str| {
            let at = self.class().field(name).map(|(at, _)| at);
            at.is_some_and(|at| given.get(at).is_some_and(Option::is_some))
        };
        match detail || self.def().detail_by.iter().any(is_given) {
            true => View::Verbose,
            false => View::Table,
        }
    }

    /// The JSON Schema of the reply.
    pub fn schema(&self, generator: &mut SchemaGenerator) -> Schema {
        (self.def().schema)(generator)
    }

    /// The query without parameters, if its reply contributes to the metrics page.
    pub fn for_figures(&self) -> Option<Asked> {
        self.def().figures?;
        self.call(Vec::new()).ok()
    }
}

/// A query and its parameters.
pub type Asked = Call<QueryDef>;

impl Asked {
    /// The query.
    pub fn query(&self) -> &QueryClass {
        &self.of
    }

    /// Whether the reply comes in items over time.
    pub fn is_stream(&self) -> bool {
        self.of.stream().is_some()
    }

    /// Checks that a client can get the reply as a whole; an error says what to use instead.
    pub fn check_whole(&self) -> Result<(), FieldError> {
        match self.of.stream() {
            Some(stream) if stream.live => {
                let name = self.name();
                let why = format!(
                    "shows what comes when it comes: write `volley ctl {name} ...` without a pipe and without --json"
                );
                refuse(name, why)
            }
            Some(StreamDef {
                whole: Some(check), ..
            }) => check(&self.parameters),
            _ => Ok(()),
        }
    }

    /// The program that reads the reply if the client requested bytes; `None` if the reply is text.
    pub fn reader(&self) -> Option<&'static str> {
        let (parameter, reader) = self.of.stream()?.bytes?;
        let at = self.of.class().field(parameter)?.0;
        self.parameters.field::<bool>(at)?.then_some(reader)
    }
}
