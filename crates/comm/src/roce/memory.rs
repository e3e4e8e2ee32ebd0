//! Memory that is registered with the device, found again by address.

#![expect(unsafe_code, reason = "callers vouch for memory that is sent and received in place")]

use crate::memory::Span;
use crate::request::Status;
use std::collections::BTreeMap;
use std::ops::Bound;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use weft_verbs::{Device, Region, VerbsError};

const PAGE: usize = 4_096;
/// Lent memory is looked through for requests that are over when there is so much of it, or twice
/// what was in use the last time.
const SWEEP: usize = 64;

/// First and last page of a range: an address and a length.
type Pages = (usize, usize);

/// All registered memory of a device.
///
/// What the application has registered is found as long as it holds it, and neighbours share pages
/// that are registered. What it has not is registered with a request and forgotten with it: nobody
/// tells us when such memory is unmapped, so keeping it would be a guess.
pub(crate) struct Memory {
    device: Arc<Device>,
    tables: Mutex<Tables>,
}

#[derive(Default)]
struct Tables {
    held: BTreeMap<Pages, Weak<Region>>,
    lent: BTreeMap<Pages, Lent>,
    sweep_at: usize,
}

/// Memory of requests.
struct Lent {
    region: Arc<Region>,
    users: Vec<Arc<Status>>,
}

impl std::fmt::Debug for Memory {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "memory of {}", self.device.name())
    }
}

impl Memory {
    pub(crate) fn new(device: Arc<Device>) -> Memory {
        Memory { device, tables: Mutex::default() }
    }

    /// Whose memory it is.
    pub(super) fn device(&self) -> &Arc<Device> {
        &self.device
    }

    /// Registers memory for as long as what is returned is held. Pages that are registered already
    /// are shared.
    ///
    /// # Safety
    /// The memory stays mapped until then.
    ///
    /// # Errors
    /// If the device refuses.
    pub(crate) unsafe fn hold(&self, span: Span) -> Result<Arc<Region>, VerbsError> {
        let mut tables = self.tables();
        tables.held.retain(|_, region| region.strong_count() > 0);
        if let Some(region) = find_held(&tables.held, span) {
            return Ok(region);
        }
        let pages = pages(span);
        // SAFETY: as the caller says, and pages are mapped whole.
        let region = Arc::new(unsafe { Region::new(&self.device, pages.0 as *mut u8, pages.1) }?);
        tables.held.insert(pages, Arc::downgrade(&region));
        Ok(region)
    }

    /// Makes memory known for a request; the key by which peers name it.
    ///
    /// # Safety
    /// The memory stays mapped while the request is under way.
    ///
    /// # Errors
    /// If the device refuses.
    pub(crate) unsafe fn lend(&self, span: Span, user: &Arc<Status>) -> Result<u32, VerbsError> {
        let mut tables = self.tables();
        if tables.lent.len() >= tables.sweep_at.max(SWEEP) {
            tables.lent.retain(|_, lent| lent.is_used());
            tables.sweep_at = 2 * tables.lent.len();
        }
        let pages = pages(span);
        let region = match find_held(&tables.held, span) {
            Some(region) => region,
            None => match tables.lent.get(&pages).filter(|lent| lent.is_used()) {
                Some(lent) => lent.region.clone(),
                // SAFETY: as the caller says, and pages are mapped whole.
                None => {
                    Arc::new(unsafe { Region::new(&self.device, pages.0 as *mut u8, pages.1) }?)
                }
            },
        };
        let key = region.remote_key();
        match tables.lent.get_mut(&pages).filter(|lent| lent.is_used()) {
            // The other region is no worse, and stays while somebody uses it.
            Some(lent) => {
                lent.users.retain(|status| !status.is_over());
                lent.users.push(user.clone());
                return Ok(lent.region.remote_key());
            }
            None => {
                let lent = Lent { region, users: vec![user.clone()] };
                tables.lent.insert(pages, lent);
            }
        }
        Ok(key)
    }

    /// The key by which our own posts name memory that was lent to a request under way.
    pub(crate) fn local_key(&self, span: Span) -> Option<u32> {
        let tables = self.tables();
        if let Some(region) = find_held(&tables.held, span) {
            return Some(region.local_key());
        }
        let below = (Bound::Unbounded, Bound::Included((span.start() as usize, usize::MAX)));
        let mut before = tables.lent.range(below).rev();
        // What nobody uses may have been unmapped since, and be other memory by now.
        let (_, lent) = before.find(|(_, lent)| covers(&lent.region, span) && lent.is_used())?;
        Some(lent.region.local_key())
    }

    fn tables(&self) -> MutexGuard<'_, Tables> {
        self.tables.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Lent {
    fn is_used(&self) -> bool {
        self.users.iter().any(|status| !status.is_over())
    }
}

fn find_held(held: &BTreeMap<Pages, Weak<Region>>, span: Span) -> Option<Arc<Region>> {
    let below = (Bound::Unbounded, Bound::Included((span.start() as usize, usize::MAX)));
    let live = held.range(below).rev().filter_map(|(_, region)| region.upgrade());
    live.into_iter().find(|region| covers(region, span))
}

fn covers(region: &Region, span: Span) -> bool {
    region.covers(span.start() as usize, span.len())
}

/// The pages that a span touches.
fn pages(span: Span) -> Pages {
    let start = span.start() as usize;
    let first = start / PAGE * PAGE;
    (first, (start + span.len()).next_multiple_of(PAGE) - first)
}
