//! Generator and sink: packets at a rate with time stamps and sequence numbers, over every driver of the router.
//!
//! The generator and the sink are nodes in a router of their own process. Its ports are made by the commands of `volley ctl`.

mod bucket;
mod command;
mod frame;
mod histogram;
mod instruments;
mod node;
mod outcome;
mod probe;
mod record;
mod rig;
mod self_test;
mod window;

pub use command::{GenerateArgs, SinkArgs, generate, sink};
pub use frame::{Frame, FrameSpec};
pub use instruments::{Instruments, Offer, SinkAt};
pub use outcome::{Latency, Outcome, PARTS, Polls, Return};
pub use rig::{Ports, Rig, change, create, settings};
pub use self_test::{SelfTest, run as self_test};
