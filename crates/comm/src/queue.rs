//! Orders to the engine: handed over without waiting, and without waking a thread that is awake.

use crate::threads::{AtomicUsize, Mutex, MutexGuard};
use std::sync::PoisonError;
use std::sync::atomic::Ordering;

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
    inner: Mutex<Inner<T>>,
    /// How many orders, to be looked at without the lock.
    count: AtomicUsize,
}

#[derive(Debug)]
struct Inner<T> {
    orders: Vec<T>,
    /// Nobody takes orders any more.
    closed: bool,
    /// Whoever brings an order wakes the engine.
    sleeps: bool,
}

impl<T> Default for Queue<T> {
    fn default() -> Self {
        let inner = Inner { orders: Vec::new(), closed: false, sleeps: false };
        Queue { inner: Mutex::new(inner), count: AtomicUsize::new(0) }
    }
}

impl<T> Queue<T> {
    /// Hands over `order`, and says whether the engine sleeps: then whoever does so has it taken, or wakes it. Of an
    /// engine that is gone nobody hears.
    pub(crate) fn push(&self, order: T) -> bool {
        let mut inner = self.lock();
        if !inner.closed {
            inner.orders.push(order);
            self.count.store(inner.orders.len(), Ordering::Release);
        }
        inner.sleeps
    }

    /// Wakes the thread that sleeps until there are orders, if it does.
    pub(crate) fn wake_sleeper(&self, waker: &impl Wake) {
        let sleeps = std::mem::take(&mut self.lock().sleeps);
        if sleeps {
            waker.wake();
        }
    }

    /// Whether there are no orders. One that is just coming may not be seen.
    pub(crate) fn is_empty(&self) -> bool {
        self.count.load(Ordering::Acquire) == 0
    }

    /// Takes all orders into `out`, which is empty. One that is just coming may be left for later.
    pub(crate) fn take(&self, out: &mut Vec<T>) {
        if self.is_empty() {
            return;
        }
        let mut inner = self.lock();
        std::mem::swap(&mut inner.orders, out);
        self.count.store(0, Ordering::Release);
    }

    /// No more orders: those that wait are dropped, and all that come.
    pub(crate) fn close(&self) {
        let orders = {
            let mut inner = self.lock();
            inner.closed = true;
            std::mem::take(&mut inner.orders)
        };
        drop(orders);
    }

    /// The engine is about to sleep. Whether it may: else there are orders.
    pub(crate) fn fall_asleep(&self) -> bool {
        let mut inner = self.lock();
        inner.sleeps = inner.orders.is_empty();
        inner.sleeps
    }
    /// It is awake, after it was allowed to sleep.
    pub(crate) fn wake_up(&self) {
        self.lock().sleeps = false;
    }

    fn lock(&self) -> MutexGuard<'_, Inner<T>> {
        // Nothing in here panics half way.
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(all(test, loom))]
mod loom_tests {
    use super::*;
    use loom::sync::{Arc, Condvar};

    /// A pipe that wakes, as far as it matters: a wake that comes first is not lost.
    #[derive(Default)]
    struct Bell {
        rung: Mutex<bool>,
        changed: Condvar,
    }

    impl Wake for Bell {
        fn wake(&self) {
            *self.rung.lock().unwrap() = true;
            self.changed.notify_one();
        }
    }

    impl Bell {
        fn sleep(&self) {
            let mut rung = self.rung.lock().unwrap();
            while !*rung {
                rung = self.changed.wait(rung).unwrap();
            }
            *rung = false;
        }
    }

    fn engine(queue: &Queue<u32>, bell: &Bell, count: usize) -> Vec<u32> {
        let (mut all, mut some) = (Vec::new(), Vec::new());
        while all.len() < count {
            queue.take(&mut some);
            all.append(&mut some);
            if all.len() < count && queue.fall_asleep() {
                bell.sleep();
                queue.wake_up();
            }
        }
        all
    }

    /// Every order comes once, in the order of each thread, and none is slept through: that would be
    /// a deadlock.
    #[test]
    fn loom_no_order_is_slept_through() {
        let mut model = loom::model::Builder::new();
        // All orders of so many switches take minutes with more.
        model.preemption_bound = Some(3);
        model.check(|| {
            let shared = Arc::new((Queue::default(), Bell::default()));
            let pusher = |first: u32, count: u32| {
                let shared = shared.clone();
                move || {
                    for number in first..first + count {
                        shared.0.push(number);
                        shared.0.wake_sleeper(&shared.1);
                    }
                }
            };
            let one = loom::thread::spawn(pusher(0, 2));
            let other = loom::thread::spawn(pusher(10, 1));
            let all = engine(&shared.0, &shared.1, 3);
            one.join().unwrap();
            other.join().unwrap();
            let (small, large): (Vec<u32>, Vec<u32>) = all.into_iter().partition(|it| *it < 10);
            assert_eq!((small, large), (vec![0, 1], vec![10]));
        });
    }
}
