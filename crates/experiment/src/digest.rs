//! Short names for contents.

use sha2::{Digest as _, Sha256};

/// 32 hex digits that stand for `bytes`.
pub(crate) fn digest(bytes: &[u8]) -> String {
    Sha256::digest(bytes).iter().take(16).map(|byte| format!("{byte:02x}")).collect()
}
