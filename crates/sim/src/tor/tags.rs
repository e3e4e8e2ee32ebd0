//! The tags of the packets in one partition. Events have no room for them, and few schemes have any.

use crate::packet::BeneathTag;
use weft_balance::tor::Tag;
use weft_units::HostId;

/// A tag, and what the packet had in its place.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Tagged {
    pub(crate) beneath: BeneathTag,
    /// Who sent it.
    pub(crate) src: HostId,
    pub(crate) tag: Tag,
}

/// All of them, by place.
#[derive(Debug, Default)]
pub(crate) struct Tags {
    places: Vec<Option<Tagged>>,
    free: Vec<u32>,
}

impl Tags {
    /// Returns the place.
    pub(crate) fn put(&mut self, tag: Tagged) -> u32 {
        let Some(place) = self.free.pop() else {
            self.places.push(Some(tag));
            return u32::try_from(self.places.len() - 1).expect("packets fit in memory");
        };
        self.places[place as usize] = Some(tag);
        place
    }
    /// Takes it away.
    ///
    /// # Panics
    /// If there is none.
    pub(crate) fn take(&mut self, place: u32) -> Tagged {
        self.free.push(place);
        self.places[place as usize].take().expect("every packet has its own")
    }
    /// How many there are.
    pub(crate) fn count(&self) -> usize {
        self.places.len() - self.free.len()
    }
    /// To change it.
    pub(crate) fn get(&mut self, place: u32) -> &mut Tagged {
        self.places[place as usize].as_mut().expect("every packet has its own")
    }
}
