//! Routes as UDP source ports.
//!
//! A leaf that maps segments of the port range to its uplinks (DNLB, CTCCL 2025, section 3) follows
//! a pinned path by the segment of the port. The segments are DNLB's (`balance::scheme::dnlb`); of
//! the last one the very last port stays unused whatever steers, since `ip rule` takes no range
//! that ends at 65535.
//! A hashed route's entropy is the port itself, brought into RoCE's range.

use weft_balance::plan::Route;
use weft_balance::scheme::dnlb::{FIRST_PORT, PORTS, segment};
use weft_fabric::PathId;

/// The last port that is used.
pub const LAST_PORT: u16 = 65_534;

/// How routes become ports at one host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ports {
    uplinks: u32,
}

impl Ports {
    /// Under a leaf with so many uplinks; at least one.
    pub fn new(uplinks: u32) -> Ports {
        Ports { uplinks: uplinks.max(1) }
    }

    /// First and last port of the segment of `uplink`.
    pub fn segment(self, uplink: u32) -> (u16, u16) {
        let step = PORTS / self.uplinks;
        let first = FIRST_PORT + uplink * step;
        let last = (first + step - 1).min(u32::from(LAST_PORT));
        (first as u16, last as u16)
    }

    /// The uplink that the leaf sends `port` to, if it maps segments.
    pub fn uplink(self, port: u16) -> Option<u32> {
        segment(port, self.uplinks)
    }

    /// The source port of a packet on `route`. `spare` picks one of those that enforce it; with
    /// zero always the same one.
    pub fn port(self, route: Route, spare: u32) -> u16 {
        match route {
            Route::Pinned(path) => self.pinned(path, spare),
            Route::Hashed(entropy) => {
                let port = u32::from(entropy) | FIRST_PORT;
                match self.uplink(port as u16) {
                    // Another port of its segment, which under a hash is as good as any.
                    Some(uplink) => {
                        let (first, last) = self.segment(uplink);
                        let place = (port - u32::from(first)).wrapping_add(spare);
                        first + (place % (u32::from(last - first) + 1)) as u16
                    }
                    None => port.min(u32::from(LAST_PORT)) as u16,
                }
            }
        }
    }

    fn pinned(self, path: PathId, spare: u32) -> u16 {
        let (first, last) = self.segment(u32::from(path.first()) % self.uplinks);
        first + (spare % (u32::from(last - first) + 1)) as u16
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pinned_path_is_in_its_segment_whatever_the_spare() {
        for uplinks in [1, 3, 4, 64, 256] {
            let ports = Ports::new(uplinks);
            for uplink in 0..uplinks {
                for spare in [0, 1, 5_000, u32::MAX] {
                    let path = PathId::new(uplink as u8, 0);
                    let port = ports.port(Route::Pinned(path), spare);
                    assert_eq!(ports.uplink(port), Some(uplink), "{uplinks} uplinks, {port}");
                    assert!(port <= LAST_PORT);
                }
            }
        }
    }

    #[test]
    fn segments_do_not_overlap() {
        let ports = Ports::new(4);
        let all: Vec<_> = (0..4).map(|uplink| ports.segment(uplink)).collect();
        let expected = [(49152, 53247), (53248, 57343), (57344, 61439), (61440, 65534)];
        assert_eq!(all, expected);
    }

    #[test]
    fn a_port_that_dnlb_chose_stays() {
        let ports = Ports::new(4);
        for port in [0xC000, 0xC001, 53_248, 65_000] {
            assert_eq!(ports.port(Route::Hashed(port), 0), port);
        }
    }

    #[test]
    fn entropies_spread_over_the_range() {
        let ports = Ports::new(4);
        let mut seen = [0; 4];
        for entropy in (0..=u16::MAX).step_by(7) {
            let port = ports.port(Route::Hashed(entropy), 0);
            assert!((0xC000..=LAST_PORT).contains(&port));
            seen[ports.uplink(port).unwrap() as usize] += 1;
        }
        assert!(seen.iter().all(|count| (2_300..2_400).contains(count)), "{seen:?}");
    }
}
