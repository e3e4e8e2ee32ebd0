//! What some packets have beyond the words that travel with them, by place: events have no room for it.

/// All of it in one partition, by place.
#[derive(Debug)]
pub(crate) struct Places<T> {
    places: Vec<Option<T>>,
    free: Vec<u32>,
}

impl<T> Default for Places<T> {
    fn default() -> Places<T> {
        Places { places: Vec::new(), free: Vec::new() }
    }
}

impl<T> Places<T> {
    /// Returns the place.
    pub(crate) fn put(&mut self, what: T) -> u32 {
        let Some(place) = self.free.pop() else {
            self.places.push(Some(what));
            return u32::try_from(self.places.len() - 1).expect("packets fit in memory");
        };
        self.places[place as usize] = Some(what);
        place
    }
    /// Takes it away.
    ///
    /// # Panics
    /// If there is none.
    pub(crate) fn take(&mut self, place: u32) -> T {
        self.free.push(place);
        self.places[place as usize].take().expect("every packet has its own")
    }
    /// How many there are.
    pub(crate) fn count(&self) -> usize {
        self.places.len() - self.free.len()
    }
    /// To change it.
    pub(crate) fn get(&mut self, place: u32) -> &mut T {
        self.places[place as usize].as_mut().expect("every packet has its own")
    }
}
