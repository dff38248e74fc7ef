//! Conversion between names of the model and indexes, paths and errors of the FIB.

use crate::path;
use std::fmt::Display;

use crate::path::PathTarget;
use volley_model::{IfAddress, ModelError, ObjectKind};

use crate::dataplane::DropWhy;
use crate::error::FibError;
use crate::family::Af;
use crate::source::{Fib, Path, Via};

impl Fib {
    /// Index of an interface.
    pub(super) fn named(&self, name: &str) -> Result<u32, ModelError> {
        self.interface_index(name).ok_or_else(|| {
            let known = self.interfaces().map(|i| i.name.clone());
            ModelError::not_found(ObjectKind::Interface, name, known)
        })
    }

    /// Error for the removal of an address that was not configured; none for a configured address.
    pub fn why_kept(&self, interface: &str, addr: IfAddress) -> Option<ModelError> {
        let iface = self.interface_index(interface)?;
        let name = interface.to_owned();
        let kept = self.is_automatic(iface, addr);
        kept.then(|| self.model_error(FibError::Automatic { addr, name }))
    }

    /// Numbers of the tables of an address family.
    pub(super) fn numbers(&self, af: Af) -> Vec<u32> {
        match af {
            Af::V4 => self.v4.iter().map(|t| t.0).collect(),
            Af::V6 => self.v6.iter().map(|t| t.0).collect(),
        }
    }

    /// Paths of a route in a table (by its number).
    pub(super) fn paths(
        &self,
        af: Af,
        table: u32,
        paths: &[path::Path],
    ) -> Result<Vec<Path>, ModelError> {
        paths.iter().map(|p| self.path(af, table, p)).collect()
    }

    fn path(&self, af: Af, table: u32, path: &path::Path) -> Result<Path, ModelError> {
        let via = match &path.target {
            PathTarget::Via {
                addr,
                interface: Some(name),
                ..
            } => Via::NextHop {
                addr: *addr,
                iface: self.named(name)?,
            },
            PathTarget::Via {
                addr,
                interface: None,
                table: other,
            } => {
                let index = self.table_index(af, other.unwrap_or(table));
                Via::Recursive {
                    addr: *addr,
                    table: self.model_result(index)?,
                }
            }
            PathTarget::Interface(name) => Via::Attached {
                iface: self.named(name)?,
            },
            PathTarget::Drop => Via::Drop(DropWhy::Blackhole),
            PathTarget::Unreachable => Via::Unreachable,
            PathTarget::Prohibit => Via::Prohibit,
            PathTarget::Local => Via::Local { iface: None },
            PathTarget::LookupIn(number) => {
                let index = self.table_index(af, *number);
                Via::LookupIn {
                    table: self.model_result(index)?,
                }
            }
        };
        let weight = u8::try_from(path.weight)
            .map_err(|_| ModelError::limit("the weight of a path", path.weight.into(), 255))?;
        Ok(Path {
            via,
            weight,
            preference: path.preference,
            onlink: path.onlink,
        })
    }

    /// A path as a target of the model.
    pub(super) fn target(&self, af: Af, own_table: u32, via: Via) -> PathTarget {
        let number = |index| self.table_number(af, index).unwrap_or(0);
        match via {
            Via::NextHop { addr, iface } => PathTarget::Via {
                addr,
                interface: Some(self.iface_name(iface)),
                table: None,
            },
            Via::Recursive { addr, table } => {
                let other = Some(number(table)).filter(|n| *n != own_table);
                PathTarget::Via {
                    addr,
                    interface: None,
                    table: other,
                }
            }
            Via::Attached { iface } | Via::Broadcast { iface } => {
                PathTarget::Interface(self.iface_name(iface))
            }
            Via::Drop(_) => PathTarget::Drop,
            Via::Unreachable => PathTarget::Unreachable,
            Via::Prohibit => PathTarget::Prohibit,
            Via::LookupIn { table } => PathTarget::LookupIn(number(table)),
            Via::Local { .. } => PathTarget::Local,
        }
    }

    /// Converts the error of a result of the FIB into one of the model.
    pub(super) fn model_result<T>(&self, done: Result<T, FibError>) -> Result<T, ModelError> {
        done.map_err(|e| self.model_error(e))
    }

    fn model_error(&self, e: FibError) -> ModelError {
        let missing = |kind, name: &dyn Display| ModelError::not_found(kind, name, [""; 0]);
        match e {
            FibError::NoTable { af, table } => {
                let known = self.numbers(af).into_iter().map(|n| n.to_string());
                let name = format!("table {table} ({af})");
                ModelError::not_found(ObjectKind::Object, name, known)
            }
            FibError::TableExists { af, table } => {
                ModelError::exists(ObjectKind::Object, format!("table {table} ({af})"))
            }
            FibError::TableInUse { af, table, by } => {
                ModelError::in_use(ObjectKind::Object, format!("table {table} ({af})"), by)
            }
            FibError::InterfaceInUse { name, by } => {
                ModelError::in_use(ObjectKind::Interface, name, by)
            }
            FibError::NoInterface { iface } => missing(ObjectKind::Interface, &iface),
            FibError::NoRoute {
                prefix,
                table,
                source_name,
            } => {
                let name = format!("route {prefix} of source {source_name} in table {table}");
                missing(ObjectKind::Object, &name)
            }
            FibError::NoPath { prefix, path } => missing(
                ObjectKind::Object,
                &format!("path '{path}' of route {prefix}"),
            ),
            FibError::AddressExists { addr, name } => {
                ModelError::exists(ObjectKind::Object, format!("address {addr} on {name}"))
            }
            FibError::NoAddress { addr, name } => {
                missing(ObjectKind::Object, &format!("address {addr} on {name}"))
            }
            FibError::NoNeighbor { addr, name } => {
                missing(ObjectKind::Object, &format!("neighbor {addr} on {name}"))
            }
            FibError::Unnumbered {
                name,
                numbered,
                why,
            } => ModelError::invalid(format!("the use of {numbered}'s addresses on {name}"), why),
            FibError::Address { addr, why } => ModelError::invalid(format!("address {addr}"), why),
            FibError::Automatic { addr, name } => ModelError::unsupported(
                format!("the removal of {addr}, which {name} made of what its routers advertise,"),
                format!("use `ip6 nd address autoconfig {name} disable`"),
            ),
            FibError::Path { path, why } => ModelError::invalid(format!("path '{path}'"), why),
            FibError::Prefix { prefix, .. } => {
                ModelError::invalid(prefix, "the length is too long or host bits are set")
            }
            FibError::TooManyLists { limit } => ModelError::limit(
                "the number of different sets of paths",
                u64::from(limit) + 1,
                limit.into(),
            ),
            FibError::Lpm { prefix, source } => ModelError::invalid(prefix, source),
            FibError::File { path, place, why } => {
                let place = Some(place).filter(|p| !p.is_empty());
                ModelError::File { path, place, why }
            }
        }
    }
}
