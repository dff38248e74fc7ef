//! `show log` and `set log level`.

use crate::Log;
use crate::select::Select;
use volley_model::{Applied, Handler, ModelError, Query, Reply, Request, check_log_module};

/// Answers for the log.
pub struct LogHandler(pub Log);

impl Handler for LogHandler {
    fn apply(&mut self, request: &Request) -> Option<Result<Applied, ModelError>> {
        let Request::LogLevel { module, level } = request else {
            return None;
        };
        Some(Ok(match self.0.set_level(module.as_deref(), *level) {
            true => Applied::one(),
            false => Applied::nothing(),
        }))
    }

    fn query(&mut self, query: &Query) -> Option<Result<Reply, ModelError>> {
        let Query::Log {
            max,
            level,
            module,
            after,
        } = query
        else {
            return None;
        };
        let (max, level, after) = (*max, *level, *after);
        let module = module.as_deref();
        let select = Select {
            max,
            level,
            module,
            after,
        };
        let checked = module.map_or(Ok(()), check_log_module);
        Some(checked.map(|()| Reply::Log(self.0.show(select))))
    }
}
