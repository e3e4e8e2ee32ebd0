//! What a sender needs to know of packets that have timed out, or were reported lost.

use weft_units::Time;

/// Packets that have been lost, until they are acknowledged.
#[derive(Clone, Debug, Default)]
pub(super) struct Late {
    /// All below have timed out once, or have been acknowledged.
    pub(super) below: u32,
    /// How many of `packets` wait to be sent again.
    waiting: u32,
    /// None of `packets` before this place waits.
    first: usize,
    /// In the order of their numbers, each with when it was sent again; None while it waits for that.
    packets: Vec<(u32, Option<Time>)>,
}

impl Late {
    /// Nothing is lost, nothing resent is out, and all that timed out is below `acked`.
    pub(super) fn is_over(&self, acked: u32) -> bool {
        self.packets.is_empty() && self.below <= acked
    }
    fn find(&self, seq: u32) -> Result<usize, usize> {
        self.packets.binary_search_by_key(&seq, |(seq, _)| *seq)
    }
    /// Whether `seq` has been lost and is not acknowledged.
    pub(super) fn knows(&self, seq: u32) -> bool {
        self.find(seq).is_ok()
    }
    /// How many packets wait to be sent again.
    pub(super) fn waiting(&self) -> u32 {
        self.waiting
    }
    /// Those packets, in the order of their numbers.
    pub(super) fn each_waiting(&self) -> impl Iterator<Item = u32> {
        let rest = &self.packets[self.first..];
        rest.iter().filter(|(_, sent)| sent.is_none()).map(|(seq, _)| *seq)
    }
    /// Takes the first lost packet, to be sent again now.
    pub(super) fn resend(&mut self, now: Time) -> Option<u32> {
        let place = self.packets[self.first..].iter().position(|(_, sent)| sent.is_none());
        self.first += place.unwrap_or(self.packets.len() - self.first);
        let (seq, sent) = self.packets.get_mut(self.first)?;
        *sent = Some(now);
        self.waiting -= 1;
        self.first += 1;
        Some(*seq)
    }
    /// When the resent packet that is out longest was sent.
    pub(super) fn oldest(&self) -> Option<Time> {
        self.packets.iter().filter_map(|(_, sent)| *sent).min()
    }
    /// `seq` is lost, for the first time or again; false if it waits to be sent again.
    pub(super) fn lose(&mut self, seq: u32) -> bool {
        let place = match self.find(seq) {
            Ok(place) if self.packets[place].1.take().is_none() => return false,
            Ok(place) => place,
            Err(place) => {
                self.packets.insert(place, (seq, None));
                place
            }
        };
        self.waiting += 1;
        self.first = self.first.min(place);
        true
    }
    /// Takes for lost what was resent and `is_due`; returns how many packets those were.
    pub(super) fn expire(&mut self, is_due: impl Fn(Time) -> bool) -> u32 {
        let mut expired = 0;
        for (_, sent) in &mut self.packets {
            expired += u32::from(sent.take_if(|sent| is_due(*sent)).is_some());
        }
        if expired > 0 {
            (self.waiting, self.first) = (self.waiting + expired, 0);
        }
        expired
    }
    /// `seq` and all below `acked` are acknowledged; returns how many of them were lost.
    pub(super) fn acknowledge(&mut self, seq: u32, acked: u32) -> u32 {
        let below = self.packets.partition_point(|(seq, _)| *seq < acked);
        let one = self.find(seq).ok().filter(|place| *place >= below);
        let gone = one.map(|place| self.packets.remove(place)).into_iter();
        let found = gone.chain(self.packets.drain(..below)).filter(|(_, sent)| sent.is_none());
        let found = found.count() as u32;
        self.waiting -= found;
        self.first -= below.min(self.first);
        if one.is_some_and(|place| place - below < self.first) {
            self.first -= 1;
        }
        found
    }
}
