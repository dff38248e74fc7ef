//! All tables of the file.

use crate::object::{interface_table, tables_of};
use crate::schema::Table;

/// Every table of the file.
pub fn schema() -> Vec<&'static Table> {
    let classes = volley_object::classes();
    let mut all: Vec<&Table> = classes.startup().flat_map(tables_of).collect();
    all.push(interface_table(&classes));
    all.extend(classes.iter().flat_map(tables_of));
    all
}
