//! A query with its parameters.

use crate::FieldError;
use crate::instance::Instance;
use crate::query_class::QueryClass;
use crate::value::Value;
use std::fmt::{self, Debug, Formatter};

/// A query or a verb with its parameters, all checked. Cheap to clone.
#[derive(Clone)]
pub struct Call<C> {
    pub(crate) of: C,
    pub(crate) parameters: Instance,
}

/// A query and its parameters.
pub type Asked = Call<QueryClass>;

impl<C> Call<C> {
    /// The parameters.
    pub fn parameters(&self) -> &Instance {
        &self.parameters
    }
}

impl QueryClass {
    /// Builds the query with these parameter values, in order.
    pub fn ask(&self, slots: Vec<Option<Value>>) -> Result<Asked, FieldError> {
        Ok(Asked {
            of: self.clone(),
            parameters: self.class().instance(slots)?,
        })
    }

    /// Builds the query without parameters, if its reply contributes to the metrics page.
    pub fn for_figures(&self) -> Option<Asked> {
        self.figures()?;
        self.ask(Vec::new()).ok()
    }
}

impl Asked {
    /// The query.
    pub fn query(&self) -> &QueryClass {
        &self.of
    }

    /// The name of the query.
    pub fn name(&self) -> &'static str {
        self.of.name()
    }

    /// Whether the reply comes in items over time.
    pub fn is_stream(&self) -> bool {
        self.of.stream().is_some()
    }

    /// Checks that a client can get the reply as a whole; an error says what to use instead.
    pub fn check_whole(&self) -> Result<(), FieldError> {
        let stream = self.of.stream();
        stream.map_or(Ok(()), |stream| stream.check_whole(&self.parameters))
    }

    /// The program that reads the reply if the client requested bytes; `None` if the reply is text.
    pub fn reader(&self) -> Option<&'static str> {
        self.of.stream()?.reader(&self.parameters)
    }
}

impl<C> Debug for Call<C> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        self.parameters.fmt(f)
    }
}

impl<C> PartialEq for Call<C> {
    fn eq(&self, other: &Call<C>) -> bool {
        self.parameters == other.parameters
    }
}

impl<C> Eq for Call<C> {}
