//! The nodes of scripts.

pub(crate) mod lua_input;
