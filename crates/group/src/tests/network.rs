//! A network in memory: delivers what has been posted at both ends in an order drawn from a seed,
//! as late as it likes, and only then reads what was sent.

use crate::links::Links;
use std::cell::RefCell;
use std::collections::{BTreeMap, VecDeque};
use std::rc::Rc;

#[derive(Clone, Debug)]
struct Posted {
    start: *mut u8,
    len: usize,
    number: usize,
    /// What is sent, where the network has taken it already.
    taken: Option<Vec<u8>>,
}

/// A message that was delivered: from, to, bytes.
pub(super) type Message = (u32, u32, u64);

#[derive(Debug, Default)]
struct State {
    /// By sender, receiver and stream: what waits at either end.
    channels: BTreeMap<(u32, u32, u64), [VecDeque<Posted>; 2]>,
    /// Bytes that came, by request.
    done: Vec<Option<usize>>,
    log: Vec<Message>,
    /// Whether what is sent is over at once, whoever receives it when, as short messages are over TCP.
    is_eager: bool,
}

#[derive(Clone, Debug, Default)]
pub(super) struct Network(Rc<RefCell<State>>);

/// One rank's view.
pub(super) struct Port {
    network: Network,
    rank: u32,
    /// Requests of one channel and direction at a time.
    most: usize,
}

/// Draws numbers.
pub(super) struct Draw(pub(super) u64);

impl Draw {
    pub(super) fn below(&mut self, limit: usize) -> usize {
        self.0 = self.0.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        ((self.0 >> 33) as usize) % limit.max(1)
    }
}

impl Network {
    pub(super) fn eager(is_eager: bool) -> Network {
        Network(Rc::new(RefCell::new(State { is_eager, ..State::default() })))
    }
    pub(super) fn port(&self, rank: u32, most: usize) -> Port {
        Port { network: self.clone(), rank, most }
    }
    pub(super) fn log(&self) -> Vec<Message> {
        self.0.borrow().log.clone()
    }

    /// Streams that were used from one rank to another.
    pub(super) fn streams(&self, from: u32, to: u32) -> usize {
        let state = self.0.borrow();
        state.channels.keys().filter(|key| (key.0, key.1) == (from, to)).count()
    }

    /// Delivers one message, if one can be.
    pub(super) fn deliver(&self, draw: &mut Draw) -> bool {
        let mut state = self.0.borrow_mut();
        let able = |ends: &[VecDeque<Posted>; 2]| ends.iter().all(|end| !end.is_empty());
        let ready: Vec<_> =
            state.channels.iter().filter(|(_, ends)| able(ends)).map(|(key, _)| *key).collect();
        if ready.is_empty() {
            return false;
        }
        let key = ready[draw.below(ready.len())];
        let ends = state.channels.get_mut(&key).expect("is there");
        let (sent, taken) = (ends[0].pop_front(), ends[1].pop_front());
        let (sent, taken) = (sent.expect("not empty"), taken.expect("not empty"));
        let bytes = sent.len.min(taken.len);
        let start = sent.taken.as_ref().map_or(sent.start.cast_const(), |bytes| bytes.as_ptr());
        #[expect(unsafe_code, reason = "plays the network card")]
        // SAFETY: both ends' memory belongs to runs that are still there.
        unsafe {
            std::ptr::copy_nonoverlapping(start, taken.start, bytes);
        }
        state.done[sent.number] = Some(sent.len);
        state.done[taken.number] = Some(sent.len);
        state.log.push((key.0, key.1, sent.len as u64));
        true
    }
}

impl Port {
    fn post(
        &mut self,
        key: (u32, u32, u64),
        end: usize,
        start: *mut u8,
        len: usize,
    ) -> Option<usize> {
        let mut state = self.network.0.borrow_mut();
        let number = state.done.len();
        let is_taken = state.is_eager && end == 0;
        let queue = &mut state.channels.entry(key).or_default()[end];
        if queue.len() >= self.most {
            return None;
        }
        #[expect(unsafe_code, reason = "plays the network card")]
        // SAFETY: as in `deliver`.
        let bytes = is_taken.then(|| unsafe { std::slice::from_raw_parts(start, len) }.to_vec());
        queue.push_back(Posted { start, len, number, taken: bytes });
        state.done.push(is_taken.then_some(len));
        Some(number)
    }
}

#[expect(unsafe_code, reason = "the trait's are")]
impl Links for Port {
    type Request = usize;

    unsafe fn send(
        &mut self,
        to: u32,
        stream: u64,
        start: *const u8,
        len: usize,
    ) -> Result<Option<usize>, String> {
        Ok(self.post((self.rank, to, stream), 0, start.cast_mut(), len))
    }
    unsafe fn receive(
        &mut self,
        from: u32,
        stream: u64,
        start: *mut u8,
        len: usize,
    ) -> Result<Option<usize>, String> {
        Ok(self.post((from, self.rank, stream), 1, start, len))
    }
    fn test(&mut self, request: &usize) -> Result<Option<usize>, String> {
        Ok(self.network.0.borrow().done[*request])
    }
}
