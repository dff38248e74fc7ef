//! `Display` of requests: the command that makes the same request.

use crate::interface::InterfaceSpec;
use crate::request::Request;
use std::fmt::{self, Display, Formatter};

impl Display for Request {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Request::InterfaceCreate(spec) => write!(f, "{spec}"),
            Request::InterfaceDelete { name } => write!(f, "delete interface {name}"),
            Request::InterfaceRename { name, new_name } => {
                write!(f, "set interface name {name} {new_name}")
            }
            Request::Do(invocation) => f.write_str(&invocation.command()),
            Request::Set(object) => f.write_str(&object.set_command()),
            Request::Unset(key) => f.write_str(&key.unset_command()),
            Request::Add(object) => f.write_str(&object.add_command()),
            Request::Take(part) => write!(f, "{part}"),
            Request::Bulk(bulk) => write!(f, "{bulk}"),
            Request::UnsetExact(object) => f.write_str(&object.unset_command()),
            Request::Change(change) => write!(f, "{change}"),
            Request::UnsetAny(key) => f.write_str(&key.unset_any_command()),
        }
    }
}

impl Display for InterfaceSpec {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.write_str(&self.kind.set_command())?;
        let mut settings = self.settings().into_iter();
        settings.try_for_each(|(class, value)| write!(f, " {class} {value}"))
    }
}
