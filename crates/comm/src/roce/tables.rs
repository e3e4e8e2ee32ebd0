//! Which memory is registered, by address; without a device.

use crate::handle::MOST_NICS;
use crate::memory::Span;
use crate::request::Status;
use std::collections::BTreeMap;
use std::ops::Bound;
use std::sync::{Arc, Weak};

const PAGE: usize = 4_096;
/// Lent memory is looked through for requests that are over when there are so many ranges or bytes of it, or
/// twice what was in use the last time; and where more is refused.
const SWEEP: usize = 64;
const SWEEP_BYTES: usize = 64 << 20;

/// Where pages begin, and how many bytes they are.
pub(super) type Pages = (usize, usize);

/// A key for each NIC of an endpoint; zero where there is none.
pub(crate) type Keys = [u32; MOST_NICS];

/// Registered memory, until it is dropped.
pub(super) trait Known {
    /// Whether all of `span` is of it.
    fn covers(&self, span: Span) -> bool;
    /// By which posts to one of our NICs name it, if that knows it.
    fn local_key(&self, nic: u8) -> Option<u32>;
    /// By which peers name it, by NIC.
    fn remote_keys(&self) -> Keys;
}

/// Registered memory by address.
///
/// What the application has registered is found as long as it holds it, and no longer, whatever
/// requests have used it: then it may be unmapped, and be other memory by the same address. What it
/// has not is registered with a request and forgotten with it: nobody tells us when such memory is
/// unmapped, so keeping it would be a guess.
pub(super) struct Tables<R> {
    held: BTreeMap<Pages, Weak<R>>,
    lent: BTreeMap<Pages, Lent<R>>,
    lent_bytes: usize,
    /// Ranges and bytes.
    sweep_at: (usize, usize),
}

/// Memory of requests.
struct Lent<R> {
    region: R,
    users: Vec<Arc<Status>>,
}

impl<R> Default for Tables<R> {
    fn default() -> Self {
        let (held, lent) = (BTreeMap::new(), BTreeMap::new());
        Tables { held, lent, lent_bytes: 0, sweep_at: (0, 0) }
    }
}

impl<R: Known> Tables<R> {
    /// Memory that is held. Only the very same pages are shared: a part of somebody else's would keep the
    /// rest of them alive.
    pub(super) fn held(&self, pages: Pages) -> Option<Arc<R>> {
        self.held.get(&pages).and_then(Weak::upgrade)
    }

    /// Memory is held from now on; what is known of it, if somebody was first.
    pub(super) fn keep(&mut self, pages: Pages, region: R) -> Arc<R> {
        self.held.retain(|_, region| region.strong_count() > 0);
        if let Some(region) = self.held(pages) {
            return region;
        }
        let region = Arc::new(region);
        self.held.insert(pages, Arc::downgrade(&region));
        region
    }

    /// Forgets lent memory whose requests are over. Whether there was any.
    pub(super) fn sweep(&mut self) -> bool {
        let before = self.lent.len();
        self.lent.retain(|_, lent| lent.is_used());
        self.lent_bytes = self.lent.keys().map(|(_, len)| len).sum();
        self.sweep_at = (2 * self.lent.len(), 2 * self.lent_bytes);
        self.lent.len() < before
    }

    /// Memory of a request; the keys by which peers name it.
    pub(super) fn lend<E>(
        &mut self,
        span: Span,
        user: &Arc<Status>,
        register: impl Fn(Pages) -> Result<R, E>,
    ) -> Result<Keys, E> {
        if let Some(region) = self.find_held(span) {
            return Ok(region.remote_keys());
        }
        let (most, most_bytes) = self.sweep_at;
        if self.lent.len() >= most.max(SWEEP) || self.lent_bytes >= most_bytes.max(SWEEP_BYTES) {
            self.sweep();
        }
        let pages = pages(span);
        if let Some(lent) = self.lent.get_mut(&pages).filter(|lent| lent.is_used()) {
            lent.users.retain(|status| !status.is_over());
            lent.users.push(user.clone());
            return Ok(lent.region.remote_keys());
        }
        let region = after_sweep(|| register(pages), || self.sweep())?;
        let keys = region.remote_keys();
        if self.lent.insert(pages, Lent { region, users: vec![user.clone()] }).is_none() {
            self.lent_bytes += pages.1;
        }
        Ok(keys)
    }

    /// The key by which posts to one of our NICs name memory of a request under way.
    pub(super) fn local_key(&self, nic: u8, span: Span) -> Option<u32> {
        if let Some(region) = self.find_held(span) {
            return region.local_key(nic);
        }
        let mut before = self.lent.range(up_to(span)).rev();
        // What nobody uses may have been unmapped since, and be other memory by now.
        let (_, lent) = before.find(|(_, lent)| lent.region.covers(span) && lent.is_used())?;
        lent.region.local_key(nic)
    }

    pub(super) fn find_held(&self, span: Span) -> Option<Arc<R>> {
        let mut live = self.held.range(up_to(span)).rev().filter_map(|(_, it)| it.upgrade());
        live.find(|region| region.covers(span))
    }
}

impl<R> Lent<R> {
    fn is_used(&self) -> bool {
        self.users.iter().any(|status| !status.is_over())
    }
}

/// Pages that begin before the span does.
fn up_to(span: Span) -> (Bound<Pages>, Bound<Pages>) {
    (Bound::Unbounded, Bound::Included((span.start() as usize, usize::MAX)))
}

/// Makes memory known, and tries again if that is refused and `sweep` has made room: what is over may still be pinned.
pub(super) fn after_sweep<R, E>(
    register: impl Fn() -> Result<R, E>,
    sweep: impl FnOnce() -> bool,
) -> Result<R, E> {
    match register() {
        Err(_) if sweep() => register(),
        first => first,
    }
}

/// The pages that a span touches.
pub(super) fn pages(span: Span) -> Pages {
    let start = span.start() as usize;
    let first = start / PAGE * PAGE;
    (first, (start + span.len()).next_multiple_of(PAGE) - first)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Sizes;
    use std::cell::Cell;
    use std::convert::Infallible;

    /// Pages and a number.
    struct Fake(Pages, u32);

    impl Known for Fake {
        fn covers(&self, span: Span) -> bool {
            let (start, end) = (span.start() as usize, span.start() as usize + span.len());
            start >= self.0.0 && end <= self.0.0 + self.0.1
        }
        fn local_key(&self, nic: u8) -> Option<u32> {
            (nic == 0).then_some(self.1)
        }
        fn remote_keys(&self) -> Keys {
            [self.1, 0, 0, 0, 0, 0, 0, 0]
        }
    }

    /// With the number of regions that were made.
    #[derive(Default)]
    struct Host(Tables<Fake>, u32);

    impl Host {
        fn hold(&mut self, start: usize, len: usize) -> Arc<Fake> {
            let Host(tables, made) = self;
            let pages = pages(span(start, len));
            tables.held(pages).unwrap_or_else(|| tables.keep(pages, fake(pages, made)))
        }
        fn lend(&mut self, start: usize, len: usize, user: &Arc<Status>) -> u32 {
            let Host(tables, made) = self;
            let made = Cell::from_mut(made);
            let register = |pages| -> Result<_, Infallible> {
                made.set(made.get() + 1);
                Ok(Fake(pages, made.get()))
            };
            let Ok(keys) = tables.lend(span(start, len), user, register);
            keys[0]
        }
    }

    fn fake(pages: Pages, made: &mut u32) -> Fake {
        *made += 1;
        Fake(pages, *made)
    }
    fn span(start: usize, len: usize) -> Span {
        Span::new(start as *mut u8, len)
    }
    fn request() -> Arc<Status> {
        Status::new(Arc::default())
    }
    fn end(status: &Status) {
        status.finish(&Sizes { count: 0, sizes: [0; crate::MOST_BUFFERS] });
    }

    /// New memory by the address of old: pages of old must not be written.
    #[test]
    fn what_was_let_go_is_not_found_again() {
        let mut host = Host::default();
        let held = host.hold(0x10_000, 0x4000);
        let first = request();
        assert_eq!(host.lend(0x11_000, 100, &first), 1, "within what is held");
        assert_eq!(host.0.local_key(0, span(0x11_010, 20)), Some(1));
        end(&first);
        drop(held);
        assert_eq!(host.0.local_key(0, span(0x11_010, 20)), None);
        let second = request();
        assert_eq!(host.lend(0x11_000, 100, &second), 2, "registered anew");
        assert_eq!(host.hold(0x10_000, 0x4000).1, 3);
    }

    /// The same where another holds a part of it on.
    #[test]
    fn a_part_does_not_keep_the_whole() {
        let mut host = Host::default();
        let whole = host.hold(0x10_000, 0x4000);
        let part = host.hold(0x12_000, 0x1000);
        drop(whole);
        assert_eq!(host.lend(0x10_000, 100, &request()), 3, "the old pages are gone");
        assert_eq!(host.lend(0x12_100, 100, &request()), part.1);
        assert!(Arc::ptr_eq(&part, &host.hold(0x12_100, 0x800)), "the same pages");
    }

    #[test]
    fn requests_share_pages_while_one_is_under_way() {
        let mut host = Host::default();
        let (one, two, three) = (request(), request(), request());
        assert_eq!(host.lend(0x1010, 100, &one), 1);
        assert_eq!(host.lend(0x1800, 100, &two), 1);
        end(&one);
        assert_eq!(host.0.local_key(0, span(0x1800, 100)), Some(1));
        end(&two);
        assert_eq!(host.0.local_key(0, span(0x1800, 100)), None);
        assert_eq!(host.lend(0x1800, 100, &three), 2);
    }

    #[test]
    fn memory_of_requests_that_are_over_goes() {
        let mut host = Host::default();
        for page in 1..1000 {
            let user = request();
            host.lend(page * PAGE, 10, &user);
            end(&user);
        }
        assert!(host.0.lent.len() <= SWEEP, "{}", host.0.lent.len());
        // Few large ones do not stay either.
        let mut host = Host::default();
        for number in 1..10 {
            let user = request();
            host.lend(number * SWEEP_BYTES, SWEEP_BYTES, &user);
            end(&user);
        }
        assert_eq!(host.0.lent.len(), 1);
    }

    #[test]
    fn what_is_over_makes_room() {
        let mut host = Host::default();
        let (over, under_way) = (request(), request());
        host.lend(0x1000, 10, &over);
        host.lend(0x2000, 10, &under_way);
        let tries = Cell::new(0);
        let mut refused = |start| {
            host.0.lend(span(start, 10), &request(), |pages| {
                tries.set(tries.get() + 1);
                // As long as three would be pinned.
                if tries.get() % 2 == 1 { Err("too much is pinned") } else { Ok(Fake(pages, 9)) }
            })
        };
        assert!(refused(0x3000).is_err(), "all of it is in use");
        tries.set(0);
        end(&over);
        assert_eq!(refused(0x3000).map(|keys| keys[0]), Ok(9));
        assert_eq!(host.0.local_key(0, span(0x2000, 10)), Some(2));
    }
}
