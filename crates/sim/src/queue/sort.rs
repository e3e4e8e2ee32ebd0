//! Sorting words that are all different: keys above places.
//!
//! Words are dealt out by their highest bits first, so that some few have each value of these; then
//! these few go through a sorting network (Batcher 1968), which has nothing to guess.

/// Sorts words, and keeps the memory that it takes.
#[derive(Debug, Default)]
pub(crate) struct Sorter {
    dealt: Vec<u64>,
    /// Where the next word with each value of the highest bits goes.
    ends: Vec<u32>,
}

/// So many words should have the same highest bits.
const SHARE: usize = 8;
/// The widest network; so many words more have room behind all.
const WIDEST: usize = 16;

impl Sorter {
    /// Sorts `words`, of `bits` bits each.
    #[inline(always)]
    pub(crate) fn sort(&mut self, words: &mut Vec<u64>, bits: u32) {
        // At least one, since no shift may take all 64 bits.
        let digit = (words.len() / SHARE).next_power_of_two().ilog2().clamp(1, bits);
        self.deal(words, bits - digit, 1 << digit, |_, _| ());
    }

    /// Sorts `words`, whose bits from `shift` on are below `values` and part them well, and gives
    /// those of each value that has any to `take`.
    #[inline(always)]
    pub(crate) fn deal(
        &mut self,
        words: &mut Vec<u64>,
        shift: u32,
        values: usize,
        mut take: impl FnMut(usize, &[u64]),
    ) {
        let Sorter { dealt, ends } = self;
        let count = words.len();
        ends.clear();
        ends.resize(values, 0);
        if dealt.len() < count + WIDEST {
            dealt.resize(count + WIDEST, 0);
        }
        // As slices, whose place and length stay in registers.
        let (dealt, ends) = (&mut dealt[..], &mut ends[..]);
        words.iter().for_each(|word| ends[(word >> shift) as usize] += 1);
        let mut sum = 0;
        for end in ends.iter_mut() {
            (*end, sum) = (sum, sum + *end);
        }
        for &word in words.iter() {
            let end = &mut ends[(word >> shift) as usize];
            dealt[*end as usize] = word;
            *end += 1;
        }
        words.resize(count + WIDEST, 0);
        let (dealt, sorted) = (&*dealt, &mut words[..]);
        let mut start = 0;
        for (value, &end) in ends.iter().enumerate() {
            let end = end as usize;
            if end > start {
                sort_few(&dealt[start..], &mut sorted[start..], end - start);
                take(value, &sorted[start..end]);
                start = end;
            }
        }
        words.truncate(count);
    }
}

/// Sorts the first `count` words of `from` into `to`, behind which the network may write.
#[inline(always)]
fn sort_few(from: &[u64], to: &mut [u64], count: usize) {
    match count {
        0 => {}
        1 => to[0] = from[0],
        2..=4 => through::<4>(from, to, count, network_4),
        5..=8 => through::<8>(from, to, count, network_8),
        9..=16 => through::<16>(from, to, count, network_16),
        _ => {
            to[..count].copy_from_slice(&from[..count]);
            to[..count].sort_unstable();
        }
    }
}

/// Sorts the first `count` of `N` words of `from` into `to`, with some others behind them.
#[inline(always)]
fn through<const N: usize>(
    from: &[u64],
    to: &mut [u64],
    count: usize,
    network: impl FnOnce(&mut [u64; N]),
) {
    let from: &[u64; N] = from[..N].try_into().expect("of that length");
    let mut words = [u64::MAX; N];
    for (place, word) in words.iter_mut().enumerate() {
        *word = if place < count { from[place] } else { u64::MAX };
    }
    network(&mut words);
    to[..N].copy_from_slice(&words);
}

/// Networks of comparators: each puts the smaller of two words first, without a branch.
macro_rules! networks {
    ($($name:ident $width:literal: $(($one:literal $other:literal))*;)*) => {$(
        #[inline(always)]
        fn $name(words: &mut [u64; $width]) {
            $(
                let (one, other) = (words[$one], words[$other]);
                (words[$one], words[$other]) = (one.min(other), one.max(other));
            )*
        }
    )*};
}

networks! {
    network_4 4:
        (0 1) (2 3) (0 2) (1 3) (1 2);
    network_8 8:
        (0 1) (2 3) (4 5) (6 7) (0 2) (1 3) (4 6) (5 7) (1 2) (5 6) (0 4) (1 5) (2 6) (3 7) (2 4)
        (3 5) (1 2) (3 4) (5 6);
    network_16 16:
        (0 1) (2 3) (4 5) (6 7) (8 9) (10 11) (12 13) (14 15) (0 2) (1 3) (4 6) (5 7) (8 10)
        (9 11) (12 14) (13 15) (1 2) (5 6) (9 10) (13 14) (0 4) (1 5) (2 6) (3 7) (8 12) (9 13)
        (10 14) (11 15) (2 4) (3 5) (10 12) (11 13) (1 2) (3 4) (5 6) (9 10) (11 12) (13 14)
        (0 8) (1 9) (2 10) (3 11) (4 12) (5 13) (6 14) (7 15) (4 8) (5 9) (6 10) (7 11) (2 4)
        (3 5) (6 8) (7 9) (10 12) (11 13) (1 2) (3 4) (5 6) (7 8) (9 10) (11 12) (13 14);
}
