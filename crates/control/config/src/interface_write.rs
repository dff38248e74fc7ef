//! Writes interfaces as tables of the file.

use crate::interface::table_key;
use crate::keys::Keys;
use crate::object_write::lines;
use volley_object::Instance;

/// Writes the fields that differ from their defaults.
pub(crate) fn write(interface: &Instance, keys: &mut Keys) {
    let fields = lines(interface, 1);
    match table_key(interface.class()) {
        None => keys.extend(fields),
        Some(_) if fields.is_empty() => {}
        Some(key) => keys.plain(key, fields.braces()),
    }
}
