//! Definitions of queries, and registered queries.

use crate::DefinitionError;
use crate::class::{Class, ClassDef, Effect};
use crate::kind::Kind;
use crate::pattern::Pattern;
use crate::stream_def::StreamDef;
use crate::value::Value;
use crate::view::View;
use schemars::{Schema, SchemaGenerator};
use std::any::Any;
use std::collections::BTreeSet;
use std::fmt::{self, Debug, Formatter};
use std::sync::Arc;
use volley_show::Page;

pub(crate) type Text = fn(&dyn Any, View) -> String;
pub(crate) type Figures = fn(&dyn Any, &mut Page);

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
    pub(crate) figures: Option<Figures>,
}

/// A further text of a reply, which a word of the command selects.
#[derive(Clone, Copy, Debug)]
pub struct ViewDef {
    /// The word, which sets no parameter.
    pub word: &'static str,
    /// Description of the text: the help of the commands that always have the word.
    pub doc: &'static str,
}

/// A registered query. Cheap to clone; its replies keep it alive after it was unregistered.
#[derive(Clone)]
pub struct QueryClass {
    class: Class,
    def: Arc<QueryDef>,
}

impl QueryClass {
    pub(crate) fn new(def: QueryDef) -> Result<QueryClass, DefinitionError> {
        let class = Class::new(def.class.clone(), 0, BTreeSet::new());
        let class = class.map_err(DefinitionError::of_query)?;
        let wrong = |why: String| DefinitionError::new(def.class.name, why).of_query();
        let unknown = |name: &&&str| class.field(name).is_none();
        if let Some(name) = def.detail_by.iter().find(unknown) {
            return Err(wrong(format!("there is no parameter '{name}'")));
        }
        let has = |view: &ViewDef| {
            class
                .patterns(Effect::Set)
                .iter()
                .any(|p| p.has_plain(view.word))
        };
        if let Some(view) = def.views.iter().find(|view| !has(view)) {
            return Err(wrong(format!("no command has the word '{}'", view.word)));
        }
        let bytes = def.stream.and_then(|stream| stream.bytes);
        let is_bool = |name| {
            class
                .field(name)
                .is_some_and(|it| matches!(it.1.kind, Kind::Bool))
        };
        if let Some((name, _)) = bytes.filter(|(name, _)| !is_bool(name)) {
            let why = format!("parameter '{name}' must be on or off: it selects bytes");
            return Err(wrong(why));
        }
        let def = Arc::new(def);
        Ok(QueryClass { class, def })
    }

    /// Name of the query.
    pub fn name(&self) -> &'static str {
        self.class.name()
    }

    /// The class of its parameters: name, text, fields; its commands are those with the effect `Set`.
    pub fn class(&self) -> &Class {
        &self.class
    }

    /// The definition.
    pub fn def(&self) -> &QueryDef {
        &self.def
    }

    /// The definition of its runs, if the reply comes in items.
    pub fn stream(&self) -> Option<&StreamDef> {
        self.def.stream.as_ref()
    }

    /// Whether a client can get the reply as a whole.
    pub fn has_whole(&self) -> bool {
        self.def.stream.is_none_or(|stream| !stream.live)
    }

    /// The further text that every command by a pattern shows, if any.
    fn view_of(&self, pattern: &Pattern) -> Option<&ViewDef> {
        let fixed = |view: &&ViewDef| pattern.fixed_words().any(|word| word == view.word);
        self.def.views.iter().find(fixed)
    }

    /// The help of a command by a pattern.
    pub fn doc_of(&self, pattern: &Pattern) -> &'static str {
        let view = self.view_of(pattern);
        view.map_or(self.class.doc(), |view| view.doc)
    }

    /// An example of a command by a pattern that shows a further text; the example of the definition is for the main text.
    pub fn example_of(&self, pattern: &Pattern) -> String {
        match self.view_of(pattern) {
            Some(_) => pattern.fixed_words().collect::<Vec<_>>().join(" "),
            None => self.class.def().example.to_owned(),
        }
    }

    /// The text that a command with these words and parameter values selects.
    pub fn view(&self, has: impl Fn(&str) -> bool, given: &[Option<Value>]) -> View {
        if let Some(view) = self.def.views.iter().find(|view| has(view.word)) {
            return View::Named(view.word);
        }
        // Words that select the text and set no parameter.
        let detail = has("detail") || has("verbose");
        let is_given = |name: &&str| {
            let at = self.class.field(name).map(|(at, _)| at);
            at.is_some_and(|at| given.get(at).is_some_and(Option::is_some))
        };
        match detail || self.def.detail_by.iter().any(is_given) {
            true => View::Verbose,
            false => View::Table,
        }
    }

    /// The JSON Schema of the reply.
    pub fn schema(&self, generator: &mut SchemaGenerator) -> Schema {
        (self.def.schema)(generator)
    }

    pub(crate) fn text(&self, reply: &dyn Any, view: View) -> String {
        (self.def.text)(reply, view)
    }

    pub(crate) fn figures(&self) -> Option<Figures> {
        self.def.figures
    }
}

impl Debug for QueryClass {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}
