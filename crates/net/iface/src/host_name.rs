//! Names of interfaces and network namespaces in the Linux kernel.

use volley_object::FieldError;

/// Longest name of an interface in the kernel, in bytes.
const HOST_NAME: usize = 15;

fn host_name_fault(name: &str) -> Option<&'static str> {
    let odd = |b: u8| {
        b.is_ascii_whitespace() || b.is_ascii_control() || b == b'/' || b == b':' || b == b'%'
    };
    if name.is_empty() || name.len() > HOST_NAME {
        return Some("use 1 to 15 characters");
    }
    let is_odd = name == "." || name == ".." || name.bytes().any(odd);
    is_odd.then_some("use letters, digits and - _ . @ only")
}

fn namespace_fault(name: &str) -> Option<&'static str> {
    let bad = name.is_empty() || name.contains('\0') || name == "." || name == "..";
    bad.then_some("give a name that `ip netns list` shows, a path, or pid:N")
}

fn refuse(field: &'static str, name: &str, why: Option<&str>) -> Result<(), FieldError> {
    why.map_or(Ok(()), |why| {
        volley_object::refuse(field, format!("'{}': {why}", name.escape_debug()))
    })
}

/// Checks that a field is a valid name of an interface in the kernel.
pub fn check_host_name(field: &'static str, name: &str) -> Result<(), FieldError> {
    refuse(field, name, host_name_fault(name))
}

/// Checks that a field, if it has a value, is a valid name of a network namespace.
pub fn check_namespace(field: &'static str, name: Option<&str>) -> Result<(), FieldError> {
    name.map_or(Ok(()), |name| refuse(field, name, namespace_fault(name)))
}
