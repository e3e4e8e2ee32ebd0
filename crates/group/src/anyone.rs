//! Receives from whoever sends first.
//!
//! Nothing is sent to somebody who does not wait for it, so who receives from anybody must learn who
//! has something. It asks everybody once. Whoever has sent it a message tells from then on how many
//! of a tag these were; a message that was told of, and that no receive was begun for, is there to
//! be taken.

use crate::item::Item;
use crate::links::Links;
use crate::tagged::Note;
use std::collections::{BTreeMap, BTreeSet, VecDeque};

/// The streams of questions, from who receives to who sends, and of what is told.
const QUESTIONS: u64 = 4;
const TOLD: u64 = 5;

/// Tag and how many messages, little-endian.
type Count<R> = Note<R, 12>;

/// The receiving end: what waits for anybody.
#[derive(Debug)]
pub(crate) struct Anyone<R, T> {
    /// In the order of posting, with tags.
    waiting: VecDeque<(u32, Item<T>)>,
    peers: Vec<u32>,
    /// Who has been asked; the question, as long as it is under way.
    asked: BTreeMap<u32, Option<Note<R, 1>>>,
    /// What comes next from each.
    hearing: BTreeMap<u32, Count<R>>,
    /// By peer and tag: messages that were told of, and receives that were begun.
    told: BTreeMap<(u32, u32), u64>,
    begun: BTreeMap<(u32, u32), u64>,
}

/// The sending end: what others are told.
#[derive(Debug)]
pub(crate) struct Told<R> {
    /// By peer and tag: messages that were sent.
    sent: BTreeMap<(u32, u32), u64>,
    /// By peer: tags of which it has not been told the last.
    untold: BTreeMap<u32, BTreeSet<u32>>,
    /// Questions that may come.
    hearing: BTreeMap<u32, Note<R, 1>>,
    /// Who has asked; what it is being told.
    asked: BTreeMap<u32, Option<Count<R>>>,
    /// Who cannot be told anything any more. Notes that were under way to them are kept.
    gone: BTreeSet<u32>,
}

impl<R, T> Anyone<R, T> {
    /// Of `rank` of `ranks`.
    pub(crate) fn new(rank: u32, ranks: u32) -> Anyone<R, T> {
        let peers = (0..ranks).filter(|peer| *peer != rank).collect();
        let (waiting, asked, hearing) = Default::default();
        let (told, begun) = Default::default();
        Anyone { waiting, peers, asked, hearing, told, begun }
    }

    pub(crate) fn take(&mut self, tag: u32, item: Item<T>) {
        self.waiting.push_back((tag, item));
    }

    /// A receive was begun.
    pub(crate) fn count(&mut self, from: u32, tag: u32) {
        *self.begun.entry((from, tag)).or_default() += 1;
    }

    /// Asks and hears, if anything waits; whether there was anything.
    ///
    /// # Errors
    /// Whose channel has failed, and what it says.
    pub(crate) fn advance(
        &mut self,
        links: &mut impl Links<Request = R>,
    ) -> Result<bool, (u32, String)> {
        let mut moved = false;
        if self.waiting.is_empty() {
            return Ok(false);
        }
        for peer in self.peers.clone() {
            moved |= self.hear(peer, links).map_err(|why| (peer, why))?;
        }
        Ok(moved)
    }

    fn hear(&mut self, peer: u32, links: &mut impl Links<Request = R>) -> Result<bool, String> {
        match self.asked.get_mut(&peer) {
            None => {
                let Some(question) = Note::say(links, (peer, QUESTIONS), [0])? else {
                    return Ok(false);
                };
                self.asked.insert(peer, Some(question));
            }
            Some(question) => {
                if let Some(under_way) = question
                    && under_way.test(links)?.is_some()
                {
                    *question = None;
                }
            }
        }
        let mut moved = false;
        loop {
            if let Some(count) = self.hearing.get(&peer) {
                let Some(text) = count.test(links)? else { return Ok(moved) };
                let (tag, count) = text.split_at(4);
                let tag = u32::from_le_bytes(tag.try_into().unwrap_or_default());
                let count = u64::from_le_bytes(count.try_into().unwrap_or_default());
                self.told.insert((peer, tag), count);
                self.hearing.remove(&peer);
                moved = true;
            }
            let Some(next) = Note::hear(links, (peer, TOLD))? else { return Ok(moved) };
            self.hearing.insert(peer, next);
        }
    }

    /// What waits and can be received, with the peer and its tag.
    pub(crate) fn next(&mut self) -> Option<(u32, u32, Item<T>)> {
        let begun = |key| self.begun.get(&key).copied().unwrap_or(0);
        let told = |key| self.told.get(&key).copied().unwrap_or(0);
        let mut found = None;
        for (place, (tag, _)) in self.waiting.iter().enumerate() {
            // Of those who have something, who was received from least: nobody is passed over.
            let able =
                self.peers.iter().filter(|peer| told((**peer, *tag)) > begun((**peer, *tag)));
            if let Some(peer) = able.min_by_key(|peer| begun((**peer, *tag))) {
                found = Some((place, *peer));
                break;
            }
        }
        let (place, peer) = found?;
        self.waiting.remove(place).map(|(tag, item)| (peer, tag, item))
    }

    /// All that waits, with tags.
    pub(crate) fn items(&self) -> impl Iterator<Item = (u32, &Item<T>)> {
        self.waiting.iter().map(|(tag, item)| (*tag, item))
    }
    pub(crate) fn into_items(self) -> impl Iterator<Item = (u32, Item<T>)> {
        self.waiting.into_iter()
    }
}

impl<R> Default for Told<R> {
    fn default() -> Self {
        let (sent, untold, hearing, asked, gone) = Default::default();
        Told { sent, untold, hearing, asked, gone }
    }
}

impl<R> Told<R> {
    /// A message was posted.
    pub(crate) fn count(&mut self, to: u32, tag: u32) {
        *self.sent.entry((to, tag)).or_default() += 1;
        if !self.gone.contains(&to) {
            self.untold.entry(to).or_default().insert(tag);
        }
    }

    /// Peers that do not know of all that was sent to them. A short message is over before anybody
    /// asks for it, so there may be nothing under way to them.
    pub(crate) fn peers(&self) -> Vec<u32> {
        self.untold.keys().copied().collect()
    }

    /// Whether somebody who has asked is still to be told.
    pub(crate) fn is_behind(&self) -> bool {
        self.untold.keys().any(|peer| matches!(self.asked.get(peer), Some(None)))
    }

    /// A peer has ended.
    pub(crate) fn give_up(&mut self, peer: u32) {
        self.untold.remove(&peer);
        self.gone.insert(peer);
    }

    /// Tells a peer of messages, if it has asked; whether there was anything.
    ///
    /// # Errors
    /// If a channel has failed, with what it says.
    pub(crate) fn advance(
        &mut self,
        peer: u32,
        links: &mut impl Links<Request = R>,
    ) -> Result<bool, String> {
        if !self.asked.contains_key(&peer) {
            let Some(question) = self.hearing.get(&peer) else {
                let question = Note::hear(links, (peer, QUESTIONS))?;
                self.hearing.extend(question.map(|question| (peer, question)));
                return Ok(false);
            };
            if question.test(links)?.is_none() {
                return Ok(false);
            }
            self.hearing.remove(&peer);
            self.asked.insert(peer, None);
        }
        let Some(telling) = self.asked.get_mut(&peer) else { return Ok(false) };
        if let Some(count) = telling
            && count.test(links)?.is_none()
        {
            return Ok(false);
        }
        *telling = None;
        let Some(tags) = self.untold.get_mut(&peer) else { return Ok(false) };
        let Some(tag) = tags.first().copied() else { return Ok(false) };
        let mut text = [0; 12];
        text[..4].copy_from_slice(&tag.to_le_bytes());
        text[4..].copy_from_slice(&self.sent.get(&(peer, tag)).copied().unwrap_or(0).to_le_bytes());
        *telling = Note::say(links, (peer, TOLD), text)?;
        if telling.is_some() {
            tags.remove(&tag);
            if tags.is_empty() {
                self.untold.remove(&peer);
            }
        }
        Ok(telling.is_some())
    }
}
