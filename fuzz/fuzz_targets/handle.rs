//! Handles: whatever decodes encodes to the same bytes again.

#![no_main]

use libfuzzer_sys::fuzz_target;
use weft_comm::handle::Parts;
use weft_comm::{HANDLE, Handle};

fuzz_target!(|data: &[u8]| {
    let mut bytes = [0; HANDLE];
    let len = data.len().min(HANDLE);
    bytes[..len].copy_from_slice(&data[..len]);
    if let Ok(parts) = Parts::decode(&Handle(bytes)) {
        assert!(parts.encode().0 == bytes);
    }
    // As if somebody meant it: the check sum right, the rest not.
    let check = crc32c::crc32c(&bytes[..HANDLE - 4]).to_be_bytes();
    bytes[HANDLE - 4..].copy_from_slice(&check);
    if let Ok(parts) = Parts::decode(&Handle(bytes)) {
        assert!(parts.encode().0 == bytes);
        assert!(parts.address.port() != 0);
    }
});
