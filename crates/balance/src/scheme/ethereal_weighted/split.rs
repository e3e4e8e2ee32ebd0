//! The split: messages end to end along the shares of paths, cut where a share ends.

use super::super::ethereal::Share;
use weft_fabric::{PathId, PathWeights};
use weft_units::Stream;

/// Splits messages of `sizes` bytes, all of one batch to one leaf, so that each path carries its
/// share of all units by `weights`, to within one unit. Appends to `shares`, message by message,
/// the parts of each in their order.
///
/// The messages are laid end to end along the shares of the paths, and cut where one ends: s paths
/// cost s - 1 extra parts at most; with n messages of one size and equal weights s - g, g = gcd(n,
/// s), which is never more than Ethereal's own [`split_and_assign`] needs. Parts are whole units of
/// `unit` bytes but for the last of a message. A path of weight zero gets nothing.
///
/// [`split_and_assign`]: super::super::ethereal::split_and_assign
///
/// `stream` decides in which order messages and paths are taken, and which paths get the units that
/// do not divide, so that over many batches each has its share.
///
/// # Panics
/// If `weights` has no path, or `unit` is zero.
pub fn split_by_weight(
    sizes: &[u64],
    weights: &PathWeights,
    unit: u64,
    stream: &mut Stream,
    shares: &mut Vec<Share>,
) {
    let mut paths: Vec<(PathId, u64)> = weights.iter().filter(|(_, weight)| *weight > 0).collect();
    stream.shuffle(&mut paths);
    let mut order: Vec<usize> = (0..sizes.len()).collect();
    stream.shuffle(&mut order);
    let total: u64 = sizes.iter().map(|bytes| bytes.div_ceil(unit)).sum();
    let mut quotas = Quotas::new(&paths, total, stream);
    let start = shares.len();
    let (mut path, mut room) = quotas.next().expect("a message needs a path");
    for message in order {
        let (mut part, mut left) = (0, sizes[message]);
        loop {
            while room == 0 && left > 0 {
                (path, room) = quotas.next().expect("shares add up to all units");
            }
            let bytes = left.min(room.saturating_mul(unit));
            shares.push(Share { message, part, bytes, path });
            room -= bytes.div_ceil(unit);
            left -= bytes;
            part += 1;
            if left == 0 {
                break;
            }
        }
    }
    shares[start..].sort_unstable_by_key(|share| (share.message, share.part));
}

/// How many of all units each path gets.
struct Quotas<'a> {
    paths: std::slice::Iter<'a, (PathId, u64)>,
    total: u64,
    /// The sum of all weights, and of those before the next path.
    all: u64,
    before: u64,
    /// Below `all`: where rounding begins.
    offset: u64,
    /// Units of the paths before the next one.
    given: u64,
}

impl<'a> Quotas<'a> {
    fn new(paths: &'a [(PathId, u64)], total: u64, stream: &mut Stream) -> Quotas<'a> {
        let all: u64 = paths.iter().map(|(_, weight)| weight).sum();
        let offset = (u128::from(stream.bits()) * u128::from(all)) >> 64;
        let (paths, offset) = (paths.iter(), offset as u64);
        Quotas { paths, total, all, before: 0, offset, given: 0 }
    }
}

impl Iterator for Quotas<'_> {
    type Item = (PathId, u64);

    fn next(&mut self) -> Option<(PathId, u64)> {
        let (path, weight) = self.paths.next()?;
        self.before += weight;
        let scaled = u128::from(self.total) * u128::from(self.before) + u128::from(self.offset);
        // Of the last path this is the total, since the offset is below the sum of weights.
        let end = (scaled / u128::from(self.all)) as u64;
        let units = end - self.given;
        self.given = end;
        Some((*path, units))
    }
}
