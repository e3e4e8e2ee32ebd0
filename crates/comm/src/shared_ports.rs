//! A table of ports that may be replaced while endpoints use it.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use weft_balance::enforce::PortTable;

/// Ports that were found to lead along paths. Clones share them.
#[derive(Clone, Debug)]
pub struct SharedPorts(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    table: Mutex<Arc<PortTable>>,
    /// How often it has been replaced: whoever keeps a copy asks this, and takes no lock.
    version: AtomicU64,
}

impl SharedPorts {
    /// Begins with this table.
    pub fn new(table: PortTable) -> SharedPorts {
        let (table, version) = (Mutex::new(Arc::new(table)), AtomicU64::new(0));
        SharedPorts(Arc::new(Inner { table, version }))
    }
    /// The table as it is now.
    pub fn get(&self) -> Arc<PortTable> {
        self.0.table.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
    /// Has all that use it use this one, from their next messages on.
    pub fn replace(&self, table: PortTable) {
        *self.0.table.lock().unwrap_or_else(PoisonError::into_inner) = Arc::new(table);
        self.0.version.fetch_add(1, Ordering::Release);
    }
    /// Another number after each time that it was replaced.
    pub fn version(&self) -> u64 {
        self.0.version.load(Ordering::Acquire)
    }
}
