//! All tables of the file.

use crate::schema::{API, ENGINE, INTERFACE, PROCESS, Table};

/// Every table of the file.
pub fn schema() -> Vec<&'static Table> {
    let mut all = vec![
        &ENGINE,
        &PROCESS,
        &API,
        &crate::log::LOG,
        &crate::log::MODULES,
        &INTERFACE,
    ];
    let classes = volley_object::classes();
    for table in &mut all {
        if std::ptr::eq(*table, &INTERFACE) {
            *table = crate::object::interface_table(&classes);
        }
    }
    all.extend(crate::object::tables(&classes));
    all
}
