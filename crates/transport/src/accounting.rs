//! Units of accounting against reordering (McClure et al. 2025, section 7).

/// Into how many equal parts to cut each of `flows` concurrent flows of a host, so that spraying
/// alone cannot trigger `threshold` duplicate acknowledgements of one part: at least one.
///
/// A packet that meets `queues` full queues, of `queue` packets each, which the packets behind it
/// find empty, is late by `queues * queue` packet times. A part that sends every `flows * parts`-th
/// of those times overtakes it `queues * queue / (flows * parts)` times. Equation 1 of the paper
/// asks that this be no more than the threshold, so that the duplicates, of which the first packet
/// to overtake causes one, stay below it or reach it only with the last: the least number of parts
/// is `queues * queue / (flows * threshold)`, rounded up.
pub fn subflows_against_reordering(threshold: u32, queue: u64, queues: u32, flows: u32) -> u32 {
    let late = queue.saturating_mul(u64::from(queues));
    let overtaken = u64::from(flows.max(1)) * u64::from(threshold.max(1));
    u32::try_from(late.div_ceil(overtaken)).unwrap_or(u32::MAX).max(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// McClure et al. (2025), section 7: 11 for a threshold of 3 and one flow a host, half of that for 6; from
    /// about 40 concurrent permutations on, a flow needs not be cut.
    #[test]
    fn equation_1_of_mcclure_2025() {
        let parts = |threshold, flows| subflows_against_reordering(threshold, 8, 4, flows);
        assert_eq!([parts(3, 1), parts(6, 1), parts(32, 1)], [11, 6, 1]);
        assert_eq!([parts(3, 2), parts(3, 10), parts(3, 11), parts(3, 127)], [6, 2, 1, 1]);
    }
}
