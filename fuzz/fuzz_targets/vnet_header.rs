//! `virtio_net_hdr` of a kernel or a guest: a parsed header, written and parsed again, is the same.
#![no_main]

use libfuzzer_sys::fuzz_target;
use volley_linux::vnet::{HEADER, emit, parse};

fuzz_target!(|bytes: &[u8]| {
    let Some((header, packet)) = bytes.split_first_chunk::<HEADER>() else {
        return;
    };
    if let Some((long, first)) = bytes.split_first_chunk()
        && let Some(offload) = volley_vhost::header::read(long, first)
    {
        let again = volley_vhost::header::write(&offload, 1).bytes();
        assert_eq!(volley_vhost::header::read(&again, first), Some(offload));
    }
    let _ = parse(header, packet, 4);
    if let Ok(offload) = parse(header, packet, 0) {
        assert_eq!(parse(&emit(&offload), packet, 0), Ok(offload));
    }
});
