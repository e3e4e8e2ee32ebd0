//! Orders to the engine: handed over without waiting, and without waking an engine that is awake.

use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering, fence};

/// What wakes an engine that sleeps.
pub(crate) trait Wake {
    fn wake(&self);
}

impl Wake for mio::Waker {
    fn wake(&self) {
        // A pipe that is full has woken it already.
        let _ = mio::Waker::wake(self);
    }
}

/// Orders from any thread to one.
#[derive(Debug)]
pub(crate) struct Queue<T> {
    /// `None`: nobody takes orders any more.
    orders: Mutex<Option<Vec<T>>>,
    /// How many, to be looked at without the lock.
    count: AtomicUsize,
    sleeps: AtomicBool,
}

impl<T> Default for Queue<T> {
    fn default() -> Self {
        let (count, sleeps) = (AtomicUsize::new(0), AtomicBool::new(false));
        Queue { orders: Mutex::new(Some(Vec::new())), count, sleeps }
    }
}

impl<T> Queue<T> {
    /// Hands over `order`, and wakes the engine if it sleeps. Of an engine that is gone nobody hears.
    pub(crate) fn push(&self, order: T, waker: &impl Wake) {
        let mut open = self.orders.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        let Some(orders) = open.as_mut() else { return };
        orders.push(order);
        self.count.store(orders.len(), Ordering::Release);
        drop(open);
        // Between the order and the look at `sleeps`, and the other way round in `fall_asleep`: one
        // of the two sees the other.
        fence(Ordering::SeqCst);
        if self.sleeps.swap(false, Ordering::AcqRel) {
            waker.wake();
        }
    }

    /// Takes all orders into `out`, which is empty.
    pub(crate) fn take(&self, out: &mut Vec<T>) {
        if self.count.load(Ordering::Acquire) == 0 {
            return;
        }
        let mut orders = self.orders.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        if let Some(orders) = orders.as_mut() {
            std::mem::swap(orders, out);
        }
        self.count.store(0, Ordering::Release);
    }

    /// No more orders: those that wait are dropped, and all that come.
    pub(crate) fn close(&self) {
        *self.orders.lock().unwrap_or_else(std::sync::PoisonError::into_inner) = None;
    }

    /// The engine is about to sleep. Whether it may: else there are orders.
    pub(crate) fn fall_asleep(&self) -> bool {
        self.sleeps.store(true, Ordering::Release);
        fence(Ordering::SeqCst);
        let may = self.count.load(Ordering::Acquire) == 0;
        if !may {
            self.sleeps.store(false, Ordering::Release);
        }
        may
    }
    /// It is awake.
    pub(crate) fn wake_up(&self) {
        self.sleeps.store(false, Ordering::Release);
    }
}
