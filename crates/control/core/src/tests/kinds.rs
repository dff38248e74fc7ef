//! Kinds of interfaces for tests.

use volley_object::Object;

/// Interface.
#[derive(Object)]
#[object(class = "test_pg", interface = "test-pg")]
#[object(set = "create packet-generator interface <name> {mac <+mac> | mtu <+mtu>}")]
pub(super) struct Pg {
    /// Name.
    #[object(key)]
    pub(super) name: String,
}

/// Interface that is a part of another one.
#[derive(Object)]
#[object(class = "test_sub", interface = "test-sub")]
#[object(set = "create sub <parent> <name> inner <inner>")]
pub(super) struct Sub {
    /// Name.
    #[object(key)]
    pub(super) name: String,
    /// Parent.
    #[object(part_of = "interface")]
    pub(super) parent: String,
    /// Second tag.
    pub(super) inner: u16,
}
