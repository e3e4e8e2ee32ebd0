//! What NCCL keeps as pointers: communicators, memory, requests.
//!
//! Each is a box that a pointer stands for until it is closed. Requests are slots of their
//! communicator, so that none outlives it, whatever NCCL left under way.

#![expect(unsafe_code, reason = "pointers that NCCL keeps become references again")]

use crate::boundary::Failure;
use crate::profile::message::{Message, Messages};
use std::ffi::c_void;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use weft_comm::{
    Endpoint, GpuMemory, Listener, MOST_BUFFERS, MOST_REQUESTS, RecvChannel, Region, Request,
    SendChannel, Sizes,
};

/// `listenComm`, `sendComm` and `recvComm`. Fields are dropped in their order.
pub(crate) enum Comm {
    Listen(Listener, Arc<Endpoint>, Option<Messages>),
    Send(Half<SendChannel>),
    Receive(Half<RecvChannel>),
}

/// One half of a channel.
pub(crate) struct Half<C> {
    slots: Box<[Slot]>,
    next: AtomicUsize,
    pub(crate) channel: C,
    pub(crate) endpoint: Arc<Endpoint>,
}

/// `mhandle`.
pub(crate) struct Memory(pub(crate) Region);

/// `request`: a place for one under way.
pub(crate) struct Slot {
    place: Mutex<Option<UnderWay>>,
    /// How it is recorded, if it is.
    messages: Option<Arc<Messages>>,
}

/// A request, and what is recorded of it.
struct UnderWay {
    request: Request,
    message: Option<Message>,
}

/// NCCL may call from several threads, and close from another than it opened.
const _: () = {
    const fn any_thread<T: Send + Sync>() {}
    any_thread::<Comm>();
    any_thread::<Memory>();
    any_thread::<Slot>();
};

impl<C> Half<C> {
    fn new(
        channel: C,
        endpoint: Arc<Endpoint>,
        requests: usize,
        messages: Option<Messages>,
    ) -> Half<C> {
        let messages = messages.map(Arc::new);
        let slot = |_| Slot { place: Mutex::new(None), messages: messages.clone() };
        let slots = (0..requests).map(slot).collect();
        Half { slots, next: AtomicUsize::new(0), channel, endpoint }
    }

    /// Posts into a free slot, if there is one and the channel takes more. The pointer is the request. `begin`
    /// begins the record of it at a time, where there is one.
    pub(crate) fn post(
        &self,
        post: impl FnOnce(&C) -> Result<Option<Request>, Failure>,
        begin: impl FnOnce(&Messages, u64) -> Option<Message>,
    ) -> Result<*const Slot, Failure> {
        let first = self.next.load(Ordering::Relaxed);
        for step in 0..self.slots.len() {
            let at = (first + step) % self.slots.len();
            let slot = &self.slots[at];
            let mut place = slot.place.lock().unwrap_or_else(PoisonError::into_inner);
            if place.is_none() {
                // Posting may send already.
                let began = slot.messages.as_deref().map_or(0, Messages::now);
                let Some(request) = post(&self.channel)? else { break };
                let message = slot.messages.as_deref().and_then(|all| begin(all, began));
                *place = Some(UnderWay { request, message });
                self.next.store(at + 1, Ordering::Relaxed);
                return Ok(slot);
            }
        }
        Ok(std::ptr::null())
    }
}

impl Slot {
    /// The sizes if it is done; then the slot is free again.
    pub(crate) fn test(&self) -> Result<Option<Sizes>, Failure> {
        let mut place = self.place.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(UnderWay { request, message }) = place.as_mut() else {
            return Err(Failure::Argument("the request is over".into()));
        };
        let outcome = request.test();
        if !matches!(outcome, Ok(None))
            && let (Some(message), Some(messages)) = (message.take(), &self.messages)
        {
            let came = outcome.as_ref().ok().and_then(Option::as_ref);
            let sizes = came.map(|came| &came.sizes[..came.count]);
            messages.end(&message, &request.notes(), sizes);
        }
        let sizes = outcome?;
        if sizes.is_some() {
            *place = None;
        }
        Ok(sizes)
    }
}

impl Comm {
    pub(crate) fn sending(
        channel: SendChannel,
        endpoint: Arc<Endpoint>,
        messages: Option<Messages>,
    ) -> Comm {
        Comm::Send(Half::new(channel, endpoint, MOST_REQUESTS * MOST_BUFFERS, messages))
    }

    pub(crate) fn receiving(
        channel: RecvChannel,
        endpoint: Arc<Endpoint>,
        messages: Option<Messages>,
    ) -> Comm {
        // Each may be followed by a flush.
        Comm::Receive(Half::new(channel, endpoint, 2 * MOST_REQUESTS, messages))
    }

    /// With how messages of its channels are recorded.
    pub(crate) fn as_listener(
        &self,
    ) -> Result<(&Listener, &Arc<Endpoint>, &Option<Messages>), Failure> {
        match self {
            Comm::Listen(listener, endpoint, messages) => Ok((listener, endpoint, messages)),
            _ => Err(Failure::Argument("the communicator does not listen".into())),
        }
    }

    pub(crate) fn as_sender(&self) -> Result<&Half<SendChannel>, Failure> {
        match self {
            Comm::Send(half) => Ok(half),
            _ => Err(Failure::Argument("the communicator does not send".into())),
        }
    }

    pub(crate) fn as_receiver(&self) -> Result<&Half<RecvChannel>, Failure> {
        match self {
            Comm::Receive(half) => Ok(half),
            _ => Err(Failure::Argument("the communicator does not receive".into())),
        }
    }

    /// Makes memory of a GPU known to the channel's NIC.
    ///
    /// # Safety
    /// It stays where it is until it is forgotten.
    pub(crate) unsafe fn register_gpu(&self, memory: GpuMemory<'_>) -> Result<Region, Failure> {
        // SAFETY: as the caller says.
        let region = unsafe {
            match self {
                Comm::Send(half) => half.channel.register_gpu(memory)?,
                Comm::Receive(half) => half.channel.register_gpu(memory)?,
                Comm::Listen(..) => {
                    return Err(Failure::Argument("a listener has no memory".into()));
                }
            }
        };
        Ok(region)
    }

    pub(crate) fn endpoint(&self) -> &Arc<Endpoint> {
        match self {
            Comm::Listen(_, endpoint, _) => endpoint,
            Comm::Send(half) => &half.endpoint,
            Comm::Receive(half) => &half.endpoint,
        }
    }
}

/// Hands a box to NCCL.
pub(crate) fn give<T>(object: T) -> *mut c_void {
    Box::into_raw(Box::new(object)).cast()
}

/// What NCCL's pointer stands for.
///
/// # Safety
/// It is null, or came from [`give`] of the same type and was not taken back, as long as the reference
/// lives.
pub(crate) unsafe fn at<'a, T>(pointer: *mut c_void, what: &'static str) -> Result<&'a T, Failure> {
    // SAFETY: by the contract.
    unsafe { pointer.cast::<T>().as_ref() }.ok_or(Failure::Null(what))
}

/// Takes a box back from NCCL, to drop it.
///
/// # Safety
/// As [`at`]; nobody else has a reference, and nobody asks again.
pub(crate) unsafe fn take<T>(pointer: *mut c_void, what: &'static str) -> Result<Box<T>, Failure> {
    if pointer.is_null() {
        return Err(Failure::Null(what));
    }
    // SAFETY: by the contract.
    Ok(unsafe { Box::from_raw(pointer.cast()) })
}
