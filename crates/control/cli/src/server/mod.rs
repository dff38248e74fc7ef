//! The command line on a unix socket: JSON lines in, JSON lines out.
//!
//! A request is one line `{"op":"exec","line":"show version"}`, its answer one line [`Answer`]. Operations: `exec` (with
//! `"json":true` the answer includes its data), `complete` and `help` (of `line` up to the cursor, which is its end), and
//! `follow`, whose answer comes in several lines until one without `"more":true`, or until the client sends `stop`.
//!
//! Clients are not trusted. A line that is too long, not UTF-8 or not JSON gets a clear error. A client that sends half a line
//! and stops, or does not read its answers, is disconnected. The number of clients is bounded, and each client occupies at most
//! the memory of one line and one answer. A client cannot block other clients.

mod backend;
mod follow;
mod limits;
mod lines;
mod listen;
mod protocol;
mod session;

pub use backend::{Backend, Misplaced, Pending};
pub use follow::AnswerStream;
pub(crate) use follow::bytes;
pub use limits::Limits;
pub use listen::{Place, Server, ServerError, Socket};
pub use protocol::{Answer, Ask, Failure, Op};
pub use session::client_of;
