//! Hellos, headers and slots: whatever decodes encodes to the same bytes again, with right check sums
//! and wrong ones.

#![no_main]

use libfuzzer_sys::fuzz_target;
use weft_comm::wire::{
    HEADER, HELLO, Header, Hello, Kind, MOST_BODY, MOST_PAYLOAD, SLOT, Slot, Slots,
};

/// The first bytes of `data`, zeros behind; twice: as they are, and with their check sum right.
fn cut<const N: usize>(data: &[u8]) -> [[u8; N]; 2] {
    let mut bytes = [0; N];
    let len = data.len().min(N);
    bytes[..len].copy_from_slice(&data[..len]);
    let mut meant = bytes;
    let check = crc32c::crc32c(&meant[..N - 4]).to_be_bytes();
    meant[N - 4..].copy_from_slice(&check);
    [bytes, meant]
}

fuzz_target!(|data: &[u8]| {
    for bytes in cut::<HELLO>(data) {
        if let Ok(hello) = Hello::decode(&bytes) {
            assert!(hello.encode() == bytes);
        }
    }
    for bytes in cut::<HEADER>(data) {
        if let Ok(header) = Header::decode(&bytes) {
            assert!(header.encode() == bytes);
            let most = if header.kind == Kind::Data { MOST_PAYLOAD as usize } else { MOST_BODY };
            assert!(header.len as usize <= most);
            let _ = header.reason();
        }
    }
    if let Some(bytes) = data.first_chunk::<SLOT>() {
        assert!(Slot::decode(bytes).encode() == *bytes);
    }
    if let Some((count, body)) = data.split_first() {
        let _ = Slots::decode(*count, &body[..body.len().min(MOST_BODY)]);
    }
});
