//! A send or receive, as the application sees it and as the engine does.

use crate::threads::{AtomicBool, AtomicU8, AtomicUsize};
use crate::{CommError, MOST_BUFFERS, Notes, Process, Sizes};
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

const PENDING: u8 = 0;
const DONE: u8 = 1;
const FAILED: u8 = 2;

/// What application and engine share of a request. The engine writes sizes, then the state; whoever
/// has seen the state may read the sizes.
#[derive(Debug)]
pub(crate) struct Status {
    state: AtomicU8,
    count: AtomicUsize,
    sizes: [AtomicUsize; MOST_BUFFERS],
    /// What happened to it, where somebody wants to know.
    notes: Option<Box<Mutex<Notes>>>,
    channel: Arc<ChannelState>,
}

/// What a channel shares with all its requests.
#[derive(Debug, Default)]
pub(crate) struct ChannelState {
    /// Why it failed.
    error: OnceLock<CommError>,
    /// Requests that count against the limit.
    pub(crate) under_way: AtomicUsize,
    /// Both sides know of it.
    open: AtomicBool,
    /// Payload goes by RDMA; known when it is open.
    rdma: AtomicBool,
    /// A bit for each NIC by whose device something has come that was not flushed.
    came: AtomicU8,
    /// The engine is gone, and touches nothing.
    dead: Arc<AtomicBool>,
    /// Whose engine it is.
    process: Process,
    /// Its requests keep notes.
    notes: bool,
}

impl ChannelState {
    /// Of a channel of an engine that says by `dead` that it is gone.
    pub(crate) fn new(dead: Arc<AtomicBool>, process: Process, notes: bool) -> ChannelState {
        ChannelState { dead, process, notes, ..ChannelState::default() }
    }
    /// Whether its requests keep notes.
    pub(crate) fn keeps_notes(&self) -> bool {
        self.notes
    }
    /// Whether this process has the engine, and is no child of the one that has.
    pub(crate) fn is_here(&self) -> bool {
        self.process.is_current()
    }
    /// It has failed; the first reason stays.
    pub(crate) fn fail(&self, error: CommError) {
        let _ = self.error.set(error);
    }
    pub(crate) fn error(&self) -> Option<&CommError> {
        self.error.get()
    }
    /// Both sides know of it, and whether payload goes by RDMA.
    pub(crate) fn open(&self, rdma: bool) {
        self.rdma.store(rdma, Ordering::Relaxed);
        self.open.store(true, Ordering::Release);
    }
    pub(crate) fn is_open(&self) -> bool {
        self.open.load(Ordering::Acquire)
    }
    pub(crate) fn is_rdma(&self) -> bool {
        self.is_open() && self.rdma.load(Ordering::Relaxed)
    }
    /// Something has come by the device of a NIC.
    pub(crate) fn came_by(&self, nic: u8) {
        self.came.fetch_or(1 << nic, Ordering::Release);
    }
    /// Takes the bits of NICs by whose devices something has come.
    pub(crate) fn take_came(&self) -> u8 {
        self.came.swap(0, Ordering::Acquire)
    }
    /// Counts one more request, if fewer than `most` are under way.
    pub(crate) fn begin(&self, most: usize) -> bool {
        let more = |count| (count < most).then_some(count + 1);
        self.under_way.fetch_update(Ordering::AcqRel, Ordering::Acquire, more).is_ok()
    }
    /// So many requests are over.
    pub(crate) fn end(&self, count: usize) {
        self.under_way.fetch_sub(count, Ordering::AcqRel);
    }
}

impl Status {
    pub(crate) fn new(channel: Arc<ChannelState>) -> Arc<Status> {
        let (state, count) = (AtomicU8::new(PENDING), AtomicUsize::new(0));
        let notes = channel.notes.then(Box::default);
        Arc::new(Status { state, count, sizes: Default::default(), notes, channel })
    }
    /// Notes something, where notes are kept.
    pub(crate) fn note(&self, what: impl FnOnce(&mut Notes)) {
        if let Some(notes) = &self.notes {
            what(&mut notes.lock().unwrap_or_else(PoisonError::into_inner));
        }
    }
    pub(crate) fn finish(&self, sizes: &Sizes) {
        for (to, from) in self.sizes.iter().zip(&sizes.sizes).take(sizes.count) {
            to.store(*from, Ordering::Relaxed);
        }
        self.count.store(sizes.count, Ordering::Relaxed);
        self.state.store(DONE, Ordering::Release);
    }
    /// The channel has failed, as [`ChannelState`] says.
    pub(crate) fn fail(&self) {
        self.state.store(FAILED, Ordering::Release);
    }
    /// Whether it is done, or has failed.
    pub(crate) fn is_over(&self) -> bool {
        self.state.load(Ordering::Acquire) != PENDING
    }
    pub(crate) fn test(&self) -> Result<Option<Sizes>, CommError> {
        if !self.channel.is_here() {
            return Err(CommError::forked());
        }
        match self.state.load(Ordering::Acquire) {
            DONE => {
                let mut out =
                    Sizes { count: self.count.load(Ordering::Relaxed), ..Sizes::default() };
                for (to, from) in out.sizes.iter_mut().zip(&self.sizes).take(out.count) {
                    *to = from.load(Ordering::Relaxed);
                }
                Ok(Some(out))
            }
            FAILED => {
                let unknown = || CommError::System("the channel has failed".into());
                Err(self.channel.error().cloned().unwrap_or_else(unknown))
            }
            // An order that the engine has never seen.
            _ if self.channel.dead.load(Ordering::Acquire)
                && self.state.load(Ordering::Acquire) == PENDING =>
            {
                let error = self.channel.error().cloned();
                Err(error.unwrap_or_else(|| CommError::System("the endpoint is closed".into())))
            }
            _ => Ok(None),
        }
    }
}

#[cfg(all(test, loom))]
mod loom_tests {
    use super::*;

    /// Whoever sees that a request is over sees its sizes, and that there is room for another.
    #[test]
    fn loom_sizes_come_before_the_state() {
        loom::model(|| {
            let state = Arc::new(ChannelState::default());
            assert!(state.begin(1));
            let status = Status::new(state.clone());
            let engine = {
                let (state, status) = (state.clone(), status.clone());
                loom::thread::spawn(move || {
                    let mut sizes = Sizes { count: 2, ..Sizes::default() };
                    (sizes.sizes[0], sizes.sizes[1]) = (5, 7);
                    state.end(1);
                    status.finish(&sizes);
                })
            };
            if let Ok(Some(sizes)) = status.test() {
                assert_eq!((sizes.count, sizes.sizes[0], sizes.sizes[1]), (2, 5, 7));
                assert!(state.begin(1));
            }
            engine.join().unwrap();
            assert!(status.test().unwrap().is_some());
        });
    }

    /// Whoever sees that a request has failed sees why.
    #[test]
    fn loom_the_reason_comes_before_the_state() {
        loom::model(|| {
            let state = Arc::new(ChannelState::default());
            let status = Status::new(state.clone());
            let engine = {
                let status = status.clone();
                loom::thread::spawn(move || {
                    state.fail(CommError::Remote("gone".into()));
                    status.fail();
                })
            };
            if let Err(error) = status.test() {
                assert_eq!(error, CommError::Remote("gone".into()));
            }
            engine.join().unwrap();
        });
    }
}
