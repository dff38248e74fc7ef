//! Requests, state, events and metrics over HTTP: what the command line can, for programs.
//!
//! - Paths stand under `/v1`; `GET /v1/openapi.json` describes them, made from the types of `volley-model`.
//! - Clients are not trusted: bodies, connections and memory are bounded, a client that stalls in a request or does not
//!   read its answer is cut off, and what is not understood is refused with one sentence that names the place.
//! - Everything runs on the control thread. A change runs to its end even when its client goes away.
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
pub mod metrics;
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
pub use control::{Api, Change, Events, Later, RecordRead, Records, RunningState};
pub use error::Problem;
pub use http_error::HttpError;
pub use limits::Limits;
pub use listen::HttpServer;
pub use model::{ApiSettings, classes};
pub use openapi::document;
pub use shows::read_query;
pub use tls::{Handshakes, check_files};
pub use tokens::check_token;
