//! The feasibility inequality of McClure et al. (2025), appendix A, equation 2.

/// Whether an all-to-all in a fat-tree of switches with `k` ports remains limited by the hosts'
/// links when `f` links between each pod and the cores fail, exactly as printed:
///
/// ```text
/// k^3/4 - 1  >  (k^2/4) (k^3/4 - k^2/4) / (k^2/4 - f (1 - p))
/// ```
///
/// On the left the time in which a host sends one unit to every other, on the right the time
/// in which a pod sends what leaves it over what is left of its k^2/4 uplinks.
///
/// The text calls `p` the percentage of bandwidth lost, but `f (1 - p)` is what is lost only
/// if `p` is the part kept: with p lost, the formula would let 3 links at 90 % pass (16 - 0.3)
/// and refuse 9 at 20 % (16 - 7.2), the opposite of what the paper measures. Read with the part
/// kept, 2 links at 10 % and 9 at 80 % pass (14.2 of 16, where [`uplinks_needed`] says 14.11)
/// and 3 at 10 % do not (13.3); nor do 4 at 40 % (13.6), which the paper takes for enough.
///
/// It also looks at one pod's uplinks as if they were one link. Which links fail matters too:
/// a core passes on no more than it gets, so failures that hit different cores on the way up
/// and on the way down add up. [`crate::carries`] sees that.
pub fn printed_inequality(k: u32, f: u32, p: f64) -> bool {
    let left = links(k) - f64::from(f) * (1.0 - p);
    left > 0.0 && hosts(k) - 1.0 > links(k) * (hosts(k) - links(k)) / left
}

/// How many of the k^2/4 uplinks of a pod an all-to-all at full rate needs: 14.11 of 16 for
/// k = 8.
pub fn uplinks_needed(k: u32) -> f64 {
    links(k) * (hosts(k) - links(k)) / (hosts(k) - 1.0)
}

/// Uplinks of a pod, which are as many as its hosts.
fn links(k: u32) -> f64 {
    f64::from(k * k / 4)
}
fn hosts(k: u32) -> f64 {
    f64::from(k) * links(k)
}
