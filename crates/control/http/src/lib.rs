//! Requests, state, events and metrics over HTTP: the functions of the command line, for programs.
//!
//! - Paths begin with `/v1`; `GET /v1/openapi.json` describes them, generated from the types of `volley-model`.
//! - Clients are not trusted: bodies, connections and memory are limited, a client that stalls in a request or does not read
//!   its answer is disconnected, and invalid input is refused with one sentence that names the position.
//! - Everything runs on the control thread. A change runs to its end even when its client disconnects.
#![forbid(unsafe_code)]

mod answer;
mod body;
mod control;
mod error;
mod events;
#[cfg(fuzzing)]
pub mod fuzzing;
mod http_error;
mod limits;
mod listen;
mod metrics;
mod model;
mod objects;
mod openapi;
mod paths;
mod shows;
mod sources;
mod stall;
mod tls;
mod tokens;

pub use body::{read_action, read_request, read_transaction};
pub use control::{Api, Change, Events, Later, Records, RunningState};
pub use error::Problem;
pub use http_error::HttpError;
pub use limits::Limits;
pub use listen::HttpServer;
pub use model::{ApiSettings, classes};
pub use openapi::document;
pub use shows::read_query;
pub use tls::{Handshakes, check_files};
pub use tokens::check_token;
