//! Files that may be gzipped.

use crate::WorkloadError;
use flate2::bufread::{GzDecoder, MultiGzDecoder};
use std::borrow::Cow;
use std::io::Read;

/// How much of a file is looked at to tell what it is, unpacked.
const HEAD: u64 = 1 << 16;

/// Nodes and dependencies are counted in 32 bits, and each takes a byte at least.
const MOST_BYTES: u64 = u32::MAX as u64;

fn is_packed(bytes: &[u8]) -> bool {
    bytes.starts_with(&[0x1f, 0x8b])
}

/// The first bytes of a file, unpacked; of a damaged one as much as can be read.
pub(super) fn head(bytes: &[u8]) -> Cow<'_, [u8]> {
    if is_packed(bytes) {
        let mut head = Vec::new();
        let _ = GzDecoder::new(bytes).take(HEAD).read_to_end(&mut head);
        return Cow::Owned(head);
    }
    Cow::Borrowed(&bytes[..bytes.len().min(HEAD as usize)])
}

/// The bytes of a file, unpacked; `name` is what errors call it.
///
/// # Errors
/// If it is damaged, empty or larger.
pub(super) fn unpacked<'a>(name: &str, bytes: &'a [u8]) -> Result<Cow<'a, [u8]>, WorkloadError> {
    let error = |what: String| Err(WorkloadError(format!("{name}: {what}")));
    let mut content = Cow::Borrowed(bytes);
    if is_packed(bytes) {
        let mut unpacked = Vec::new();
        let read = MultiGzDecoder::new(bytes).take(MOST_BYTES + 1).read_to_end(&mut unpacked);
        if let Err(gzip) = read {
            return error(format!(
                "after {} unpacked bytes: {gzip}; the gzip file is cut off or damaged: copy or \
                 write it again",
                unpacked.len()
            ));
        }
        content = Cow::Owned(unpacked);
    }
    match content.len() as u64 {
        0 => error("the file is empty, without even metadata; copy or write it again".into()),
        length if length > MOST_BYTES => {
            error("the trace is larger than 4 GiB; write fewer iterations to it".into())
        }
        _ => Ok(content),
    }
}
