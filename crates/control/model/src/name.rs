//! Names: syntax, and quoting on a command line.

use crate::error::ModelError;
use crate::limits::NAME_LEN;

/// Checks the name of an object of this kind: 1 to 63 ASCII letters, digits or `- _ . / : @`, beginning with a letter or digit.
pub fn check_name(kind: &str, name: &str) -> Result<(), ModelError> {
    let allowed = |b: u8| b.is_ascii_alphanumeric() || b"-_./:@".contains(&b);
    let what = || format!("{kind} name '{}'", name.escape_debug());
    if name.len() > NAME_LEN {
        let why = format!(
            "it has {} bytes, at most {NAME_LEN} are allowed",
            name.len()
        );
        return Err(ModelError::invalid(format!("{kind} name"), why));
    }
    if !name.bytes().all(allowed) {
        let why = "use ASCII letters, digits and - _ . / : @ only";
        return Err(ModelError::invalid(what(), why));
    }
    if !name.starts_with(|c: char| c.is_ascii_alphanumeric()) {
        return Err(ModelError::invalid(
            what(),
            "begin it with a letter or digit",
        ));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_follow_the_syntax() {
        for good in ["pg0", "host-eth0.100", "0/1/2", "a"] {
            assert_eq!(check_name("interface", good), Ok(()));
        }
        for bad in ["", "-x", "a b", "é", &"x".repeat(64), "a\n", "a\"b"] {
            assert!(check_name("interface", bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn quoting_is_only_where_needed() {
        use volley_object::quote;
        assert_eq!(quote("/tmp/a.pcap"), "/tmp/a.pcap");
        assert_eq!(quote("a b\"c\\"), "\"a b\\\"c\\\\\"");
        assert_eq!(quote(""), "\"\"");
    }
}
