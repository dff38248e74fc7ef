//! A written file is read back as the same requests, also for types of interfaces that a test machine may not support.

use volley_config::{parse, write};

#[track_caller]
fn comes_back(text: &str) {
    // Registered before the file is read: the tests of this program run in parallel, and the registry belongs to the process.
    volley_fib::classes().unwrap();
    volley_pg::classes().unwrap();
    let first = parse(text).unwrap().requests;
    let written = write(&first);
    let again = parse(&written).unwrap_or_else(|e| panic!("{e}\n{written}"));
    assert_eq!(again.requests, first, "{written}");
}

#[test]
fn an_interface_that_uses_the_addresses_of_another() {
    comes_back(
        "[[interface]]\nname = \"a\"\nkind = \"pg\"\nunnumbered = \"b\"\n[[interface]]\nname = \"b\"\nkind = \"pg\"\naddresses = [\"192.0.2.1/32\"]\n",
    );
}
