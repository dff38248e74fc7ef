//! Queries (`show ...`): each is a struct with `#[derive(Query)]` in the crate of its feature.

use crate::class::ClassDef;
use crate::parameters::Parameters;
use crate::query_class::{Asked, QueryClass, QueryDef};
use crate::view::View;
use crate::{DefinitionError, FieldError};
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value as Json;
use std::any::Any;
use std::fmt::{self, Debug, Formatter};
use std::sync::Arc;
use volley_show::Page;

/// A query as a struct, by `#[derive(Query)]`: its fields are the parameters. Its doc comment is the text for operators in
/// every interface: help, reference page, OpenAPI. Attributes of the struct:
///
/// - `name = "bridge-domains"`: the name of the query, which is the path `/v1/show/bridge-domains`.
/// - `show = "show bridge-domain [<id>] [detail]"`: the command, see [`crate::pattern`]; any number. A word `detail` or
///   `verbose` that sets no parameter selects the detailed text.
/// - `example = "show bridge-domain 10"`: a complete command for the reference page.
/// - `reply = BridgeDomains`: the type of the reply.
/// - `text = path`: a function `fn(&Reply) -> String` that writes a reply as text; `detail = path`: as detailed text.
/// - `detail_by = "name"`: a command that gives this parameter shows the detailed text; any number.
/// - `view(dot = path, "For graphviz.")`: a further text, selected by the word `dot` of a command, and the help of the commands
///   that always have the word; any number.
/// - `stream(...)`: the reply comes in items over time, see [`crate::Stream`]; replaces `text`.
/// - `check = path`: a function `fn(&Self) -> Result<(), FieldError>` for rules between parameters.
/// - `operate`: a client needs the role `operate` instead of `read`.
/// - `large`: the reply may be large: another thread than the control thread serializes it.
/// - `figures = path`: a function `fn(&Reply, &mut Page)` that adds the metrics of a reply to the metrics page. The query is
///   then made without parameters.
///
/// Attributes of a field are those of [`crate::Object`], except those of keys, and `typed = value`: the value in a command that
/// does not name the parameter; in other interfaces, such as HTTP, the parameter then has no value.
pub trait Query: Parameters<Def = QueryDef> {
    /// Type of the reply.
    type Reply: Body;

    /// A reply as text.
    fn text(reply: &Self::Reply, view: View) -> String;

    /// The registered query; registers it if necessary.
    fn query() -> Result<QueryClass, DefinitionError> {
        Self::defined()
    }

    /// The query with its parameters, checked. Returns the first error if a value is out of its range.
    fn asked(&self) -> Result<Asked, FieldError> {
        self.call()
    }
}

/// Requirements for the type of a reply.
pub trait Body: Serialize + JsonSchema + Clone + PartialEq + Debug + Send + Sync + 'static {}

impl<T: Serialize + JsonSchema + Clone + PartialEq + Debug + Send + Sync + 'static> Body for T {}

impl QueryDef {
    /// A query without parameters and commands.
    pub fn new<Q: Query>(doc: &'static str) -> QueryDef {
        QueryDef {
            class: ClassDef::new(Q::NAME, doc),
            views: Vec::new(),
            detail_by: Vec::new(),
            operate: false,
            large: false,
            schema: |generator| generator.subschema_for::<Q::Reply>(),
            text: |reply, view| match reply.downcast_ref() {
                Some(reply) => Q::text(reply, view),
                None => String::new(),
            },
            figures: None,
            stream: None,
        }
    }
}

/// A reply of any type.
trait AnyBody: Send + Sync {
    fn json(&self) -> Json;
    fn is(&self, other: &dyn Any) -> bool;
    fn any(&self) -> &dyn Any;
    fn debug(&self, f: &mut Formatter<'_>) -> fmt::Result;
}

impl<T: Body> AnyBody for T {
    fn json(&self) -> Json {
        serde_json::to_value(self).unwrap_or_default()
    }

    fn is(&self, other: &dyn Any) -> bool {
        other.downcast_ref() == Some(self)
    }

    fn any(&self) -> &dyn Any {
        self
    }

    fn debug(&self, f: &mut Formatter<'_>) -> fmt::Result {
        self.fmt(f)
    }
}

/// The reply to a registered query. Cheap to clone.
#[derive(Clone)]
pub struct Answer {
    query: QueryClass,
    body: Arc<dyn AnyBody>,
}

impl Answer {
    /// A reply to `Q`.
    pub fn new<Q: Query>(reply: Q::Reply) -> Result<Answer, DefinitionError> {
        Ok(Answer {
            query: Q::query()?,
            body: Arc::new(reply),
        })
    }

    /// The name of the query.
    pub fn name(&self) -> &'static str {
        self.query.name()
    }

    /// Whether the reply may be large.
    pub fn is_large(&self) -> bool {
        self.query.def().large
    }

    /// The reply as its type; `None` when it is of another type.
    pub fn get<T: 'static>(&self) -> Option<&T> {
        self.body.any().downcast_ref()
    }

    /// The reply as JSON.
    pub fn json(&self) -> Json {
        self.body.json()
    }

    /// The reply as text.
    pub fn text(&self, view: View) -> String {
        (self.query.def().text)(self.body.any(), view)
    }

    /// The reason of the failure of the run that ended with this reply; `None` if the run succeeded, or the query has no runs.
    pub fn failure(&self) -> Option<String> {
        (self.query.def().stream?.failure)(self.body.any())
    }

    /// Adds the metrics of the reply to the page.
    pub fn figures(&self, page: &mut Page) {
        if let Some(figures) = self.query.def().figures {
            figures(self.body.any(), page);
        }
    }
}

impl Debug for Answer {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        self.body.debug(f)
    }
}

impl PartialEq for Answer {
    fn eq(&self, other: &Answer) -> bool {
        self.name() == other.name() && self.body.is(other.body.any())
    }
}
