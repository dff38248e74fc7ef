//! Objects that need others.

use super::{Reported, all, table};
use volley_model::{Family, Request};

/// An object that names an IP table.
#[derive(Clone, Debug, PartialEq, Eq, volley_object::Object)]
#[object(class = "test_lookup")]
struct TestLookup {
    /// Interface.
    #[object(key, part_of = "interface")]
    interface: String,
    /// IP version of the table.
    #[object(key)]
    family: Family,
    /// IP table.
    #[object(default = 0, needs = "table")]
    table: u32,
}

#[test]
fn an_object_keeps_the_table_that_it_names() {
    let (reported, mut core) = (Reported::default(), crate::Core::default());
    let lookup = |family, table| {
        let interface = "pg0".to_owned();
        let object = TestLookup {
            interface,
            family,
            table,
        };
        vec![Request::Set(
            volley_object::Object::instance(&object).unwrap(),
        )]
    };
    core.run(&all(&["create pg0", "table 7"]), &reported)
        .unwrap();
    core.run(&lookup(Family::V4, 0), &reported).unwrap();
    core.run(&lookup(Family::V4, 7), &reported).unwrap();
    for (family, table) in [(Family::V4, 8), (Family::V6, 7)] {
        let missing = core.run(&lookup(family, table), &reported).unwrap_err();
        assert!(missing.to_string().contains("table"), "{missing}");
    }
    let delete = [Request::unset(&table(7)).unwrap()];
    let again = core
        .run(&all(&["table 7"]), &reported)
        .unwrap_err()
        .to_string();
    assert!(again.contains("table 7 ip4 exists already"), "{again}");
    let used = core.run(&delete, &reported).unwrap_err().to_string();
    assert!(used.contains("in use by test lookup pg0 ip4"), "{used}");
    core.run(&all(&["delete pg0"]), &reported).unwrap();
    core.run(&delete, &reported).unwrap();
}
