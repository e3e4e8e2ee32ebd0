//! Paths from one leaf to another, all alive.

use weft_balance::tor::Ways;
use weft_fabric::PathId;

/// So many paths.
pub(crate) struct Paths(pub(crate) u32);

impl Ways for Paths {
    fn count(&self) -> u32 {
        self.0
    }
    fn get(&self, index: u32) -> PathId {
        PathId(index as u16)
    }
    fn has(&self, path: PathId) -> bool {
        u32::from(path.0) < self.0
    }
}
