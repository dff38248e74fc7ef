//! The nodes of the crate.

pub mod vhost_user_input;
pub mod vhost_user_tx;
