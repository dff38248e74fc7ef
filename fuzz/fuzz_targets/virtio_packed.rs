//! Packed virtio rings in the memory of a hostile guest: no access outside its region, whatever the guest writes into
//! descriptors and indices between two steps of the device.
#![no_main]

#[path = "../src/virtio.rs"]
mod virtio;

use libfuzzer_sys::fuzz_target;
use volley_vhost::device::Packed;

fuzz_target!(|bytes: &[u8]| virtio::attack(Packed::new, bytes));
