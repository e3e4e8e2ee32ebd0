//! Things by a small number that is given again when it is free.

/// A vector with holes.
#[derive(Debug)]
pub(crate) struct Slab<T> {
    items: Vec<Option<T>>,
    free: Vec<u32>,
}

impl<T> Default for Slab<T> {
    fn default() -> Self {
        Slab { items: Vec::new(), free: Vec::new() }
    }
}

impl<T> Slab<T> {
    /// Puts `item` somewhere, and says where.
    pub(crate) fn insert(&mut self, item: T) -> u32 {
        match self.free.pop() {
            Some(at) => {
                self.items[at as usize] = Some(item);
                at
            }
            None => {
                self.items.push(Some(item));
                self.items.len() as u32 - 1
            }
        }
    }
    pub(crate) fn get(&self, at: u32) -> Option<&T> {
        self.items.get(at as usize)?.as_ref()
    }
    pub(crate) fn get_mut(&mut self, at: u32) -> Option<&mut T> {
        self.items.get_mut(at as usize)?.as_mut()
    }
    pub(crate) fn remove(&mut self, at: u32) -> Option<T> {
        let item = self.items.get_mut(at as usize)?.take()?;
        self.free.push(at);
        Some(item)
    }
    /// The numbers in use, ascending.
    pub(crate) fn numbers(&self) -> Vec<u32> {
        let used = |(at, item): (usize, &Option<T>)| item.as_ref().map(|_| at as u32);
        self.items.iter().enumerate().filter_map(used).collect()
    }
    pub(crate) fn iter(&self) -> impl Iterator<Item = (u32, &T)> {
        self.items.iter().enumerate().filter_map(|(at, item)| Some((at as u32, item.as_ref()?)))
    }
    pub(crate) fn len(&self) -> usize {
        self.items.len() - self.free.len()
    }
}
