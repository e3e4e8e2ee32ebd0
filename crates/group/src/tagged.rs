//! Messages with tags to and from one peer: however many tags, two channels of each direction.
//!
//! A channel keeps its order, and tags may be received in another order than they are sent. So who
//! receives asks for every message by its tag, as soon as it has room for it; who sends answers with
//! the tag and then the message, in the order in which both are there. Nothing comes that nobody
//! waits for, and no message holds up those of other tags.

use crate::item::Item;
use crate::links::Links;
use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};

/// The streams of questions, from who receives to who sends, and of answers.
const QUESTIONS: u64 = 2;
const ANSWERS: u64 = 3;
/// Questions that may come at a time.
const AT_ONCE: usize = 8;

/// A tag on its way, little-endian.
type Word<R> = Note<R, 4>;

/// A few bytes on their way. Shared with the network by pointer while this moves about: a box would
/// be its owner's alone, and atomics are nobody's.
#[derive(Debug)]
pub(crate) struct Note<R, const N: usize> {
    bytes: Arc<[AtomicU8; N]>,
    request: R,
}

impl<R, const N: usize> Note<R, N> {
    pub(crate) fn say(
        links: &mut impl Links<Request = R>,
        (to, stream): (u32, u64),
        text: [u8; N],
    ) -> Result<Option<Note<R, N>>, String> {
        let bytes = Arc::new(text.map(AtomicU8::new));
        #[expect(unsafe_code, reason = "the bytes are kept until they are sent")]
        // SAFETY: kept on the heap until the request is over or the links are closed.
        let request = unsafe { links.send(to, stream, bytes.as_ptr().cast(), N) }?;
        Ok(request.map(|request| Note { bytes, request }))
    }

    pub(crate) fn hear(
        links: &mut impl Links<Request = R>,
        (from, stream): (u32, u64),
    ) -> Result<Option<Note<R, N>>, String> {
        let bytes: Arc<[AtomicU8; N]> = Arc::new([const { AtomicU8::new(0) }; N]);
        #[expect(unsafe_code, reason = "the bytes are kept until they have come")]
        // SAFETY: as above.
        let request = unsafe { links.receive(from, stream, bytes.as_ptr().cast_mut().cast(), N) }?;
        Ok(request.map(|request| Note { bytes, request }))
    }

    /// What it says, if that is there.
    pub(crate) fn test(
        &self,
        links: &mut impl Links<Request = R>,
    ) -> Result<Option<[u8; N]>, String> {
        match links.test(&self.request)? {
            None => Ok(None),
            Some(bytes) if bytes == N => {
                Ok(Some(self.bytes.each_ref().map(|byte| byte.load(Ordering::Relaxed))))
            }
            Some(bytes) => Err(format!("a note of {bytes} bytes where {N} were due")),
        }
    }
}

/// Messages from a peer.
#[derive(Debug)]
pub(crate) struct Incoming<R, T> {
    /// Not begun to come, in the order of posting.
    waiting: VecDeque<(u32, Item<T>)>,
    /// So many of them have been asked for, from the first on.
    asked: usize,
    questions: VecDeque<Word<R>>,
    /// The tag of the next message.
    head: Option<Word<R>>,
    /// What is to come next, but could not be posted.
    next: Option<(u32, Item<T>)>,
    posted: VecDeque<(u32, Item<T>, R)>,
}

impl<R, T> Default for Incoming<R, T> {
    fn default() -> Self {
        let (waiting, questions, posted) = Default::default();
        Incoming { waiting, asked: 0, questions, head: None, next: None, posted }
    }
}

impl<R, T> Incoming<R, T> {
    pub(crate) fn take(&mut self, tag: u32, item: Item<T>) {
        self.waiting.push_back((tag, item));
    }

    /// As [`crate::exchange::Exchange::advance`].
    pub(crate) fn advance(
        &mut self,
        from: u32,
        links: &mut impl Links<Request = R>,
        done: &mut impl FnMut(T),
    ) -> Result<bool, String> {
        let mut moved = false;
        while let Some((_, item, request)) = self.posted.front() {
            let Some(bytes) = links.test(request)? else { break };
            item.expects(bytes)?;
            if let Some((_, item, _)) = self.posted.pop_front() {
                done(item.ticket);
            }
            moved = true;
        }
        while let Some(question) = self.questions.front() {
            match question.test(links) {
                Ok(None) => break,
                // It has answered already, and is gone.
                Err(_) if self.waiting.is_empty() => {}
                Err(why) => return Err(why),
                Ok(Some(_)) => {}
            }
            self.questions.pop_front();
            moved = true;
        }
        while let Some((tag, _)) = self.waiting.get(self.asked) {
            let Some(question) = Word::say(links, (from, QUESTIONS), tag.to_le_bytes())? else {
                break;
            };
            self.questions.push_back(question);
            self.asked += 1;
            moved = true;
        }
        while self.take_answer(from, links)? {
            moved = true;
        }
        Ok(moved)
    }

    /// One step with what comes; whether there was one.
    fn take_answer(
        &mut self,
        from: u32,
        links: &mut impl Links<Request = R>,
    ) -> Result<bool, String> {
        if let Some((_, item)) = &self.next {
            let (start, len) = (item.segment.start, item.segment.len);
            #[expect(unsafe_code, reason = "the memory is the caller's")]
            // SAFETY: as in `exchange`.
            let request = unsafe { links.receive(from, ANSWERS, start, len) }?;
            let Some(request) = request else { return Ok(false) };
            if let Some((tag, item)) = self.next.take() {
                self.posted.push_back((tag, item, request));
            }
            return Ok(true);
        }
        if let Some(head) = &self.head {
            let Some(tag) = head.test(links)?.map(u32::from_le_bytes) else { return Ok(false) };
            self.head = None;
            let mut asked = self.waiting.iter().take(self.asked);
            let Some(place) = asked.position(|(of, _)| *of == tag) else {
                return Err(format!("a message of tag {tag}, which nobody has asked for"));
            };
            self.next = self.waiting.remove(place);
            self.asked -= 1;
            return Ok(true);
        }
        if self.asked > 0 {
            self.head = Word::hear(links, (from, ANSWERS))?;
        }
        Ok(self.head.is_some())
    }

    /// All that is under way, with tags.
    pub(crate) fn items(&self) -> impl Iterator<Item = (u32, &Item<T>)> {
        let posted = self.posted.iter().map(|(tag, item, _)| (*tag, item));
        posted.chain(self.next.iter().chain(&self.waiting).map(|(tag, item)| (*tag, item)))
    }
    pub(crate) fn into_items(self) -> impl Iterator<Item = (u32, Item<T>)> {
        let posted = self.posted.into_iter().map(|(tag, item, _)| (tag, item));
        posted.chain(self.next).chain(self.waiting)
    }
    /// Whether it may be forgotten.
    pub(crate) fn is_over(&self) -> bool {
        self.items().next().is_none() && self.questions.is_empty()
    }
}

/// Messages to a peer.
#[derive(Debug)]
pub(crate) struct Outgoing<R, T> {
    /// Nobody has asked for them, in the order of posting.
    waiting: VecDeque<(u32, Item<T>)>,
    /// No more than what waits: each question is for one of these, or for one that is still to be posted.
    questions: VecDeque<Word<R>>,
    /// How many messages of a tag were asked for before they were there.
    wanted: BTreeMap<u32, usize>,
    /// Asked for, in the order in which they leave.
    leaving: VecDeque<(u32, Item<T>)>,
    /// The tag of the first of them, where that has been posted.
    head: Option<Word<R>>,
    posted: VecDeque<(u32, Item<T>, Word<R>, R)>,
}

impl<R, T> Default for Outgoing<R, T> {
    fn default() -> Self {
        let (waiting, questions, wanted, leaving, posted) = Default::default();
        Outgoing { waiting, questions, wanted, leaving, head: None, posted }
    }
}

impl<R, T> Outgoing<R, T> {
    pub(crate) fn take(&mut self, tag: u32, item: Item<T>) {
        let Some(wanted) = self.wanted.get_mut(&tag) else {
            return self.waiting.push_back((tag, item));
        };
        *wanted -= 1;
        if *wanted == 0 {
            self.wanted.remove(&tag);
        }
        self.leaving.push_back((tag, item));
    }

    /// As [`crate::exchange::Exchange::advance`].
    pub(crate) fn advance(
        &mut self,
        to: u32,
        links: &mut impl Links<Request = R>,
        done: &mut impl FnMut(T),
    ) -> Result<bool, String> {
        let mut moved = false;
        while let Some((_, item, head, request)) = self.posted.front() {
            let Some(bytes) = links.test(request)? else { break };
            item.expects(bytes)?;
            if head.test(links)?.is_none() {
                break;
            }
            if let Some((_, item, ..)) = self.posted.pop_front() {
                done(item.ticket);
            }
            moved = true;
        }
        loop {
            while let Some(question) = self.questions.front() {
                let Some(tag) = question.test(links)?.map(u32::from_le_bytes) else { break };
                self.questions.pop_front();
                moved = true;
                match self.waiting.iter().position(|(of, _)| *of == tag) {
                    Some(place) => self.leaving.extend(self.waiting.remove(place)),
                    None => *self.wanted.entry(tag).or_default() += 1,
                }
            }
            if self.questions.len() >= self.waiting.len().min(AT_ONCE) {
                break;
            }
            let Some(question) = Word::hear(links, (to, QUESTIONS))? else { break };
            self.questions.push_back(question);
            moved = true;
        }
        while let Some((tag, item)) = self.leaving.front() {
            if self.head.is_none() {
                self.head = Word::say(links, (to, ANSWERS), tag.to_le_bytes())?;
            }
            if self.head.is_none() {
                break;
            }
            let (start, len) = (item.segment.start, item.segment.len);
            #[expect(unsafe_code, reason = "the memory is the caller's")]
            // SAFETY: as in `exchange`.
            let request = unsafe { links.send(to, ANSWERS, start, len) }?;
            let Some(request) = request else { break };
            if let (Some((tag, item)), Some(head)) = (self.leaving.pop_front(), self.head.take()) {
                self.posted.push_back((tag, item, head, request));
            }
            moved = true;
        }
        Ok(moved)
    }

    /// All that is under way, with tags.
    pub(crate) fn items(&self) -> impl Iterator<Item = (u32, &Item<T>)> {
        let posted = self.posted.iter().map(|(tag, item, ..)| (*tag, item));
        posted.chain(self.leaving.iter().chain(&self.waiting).map(|(tag, item)| (*tag, item)))
    }
    pub(crate) fn into_items(self) -> impl Iterator<Item = (u32, Item<T>)> {
        let posted = self.posted.into_iter().map(|(tag, item, ..)| (tag, item));
        posted.chain(self.leaving).chain(self.waiting)
    }
    /// Whether it may be forgotten.
    pub(crate) fn is_over(&self) -> bool {
        self.items().next().is_none() && self.wanted.is_empty()
    }
}
