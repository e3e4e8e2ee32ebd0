//! Partitions side by side: epochs of time as long as the lookahead, on any number of threads.
//!
//! All partitions handle their events of an epoch, each by itself: what they cause elsewhere lies
//! behind the epoch's end, and is handed over between two epochs. So no order of partitions and
//! no number of threads changes anything (conservative synchronisation after Chandy, Misra and
//! Bryant, in the synchronous form of bounded lag).
//!
//! A thread has a share of the partitions, which stay in its cache, and helps others when it is
//! through. The last thread to finish an epoch plans the next. Nobody ever waits for a lock:
//! a partition is claimed by one thread, and mail lies in one of two halves that take turns.

mod cores;
mod gate;
mod watch;

use crate::engine::Engine;
use crate::halt::{Ending, Halt};
use crate::mail::Mail;
use crate::ports::Ports;
use crate::queue::EventQueue;
use crate::world::World;
use cores::Cores;
use gate::{Alarm, Gate, UNHARMED, lock};
use std::panic::resume_unwind;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard};
use watch::Watch;
use weft_units::Time;

/// Runs all partitions on `threads` threads until nothing is left to do.
pub(crate) fn run<'a, Q, P>(
    engines: Vec<Engine<'a, Q, P>>,
    world: &World<'a>,
    threads: u32,
    cancel: &AtomicBool,
) -> (Vec<Engine<'a, Q, P>>, Ending)
where
    Q: EventQueue + Send,
    P: Ports + Send,
{
    let crew = Crew::new(engines, world, threads, cancel);
    let threads = crew.shares.len();
    let cores = Cores::for_threads(threads);
    // The one place in the core with threads: they share nothing but what is above.
    #[expect(clippy::disallowed_methods, reason = "the outcome does not depend on them")]
    std::thread::scope(|scope| {
        let (crew, cores) = (&crew, &cores);
        let others = (1..threads).map(|thread| scope.spawn(move || crew.work(thread, cores)));
        let others: Vec<_> = others.collect();
        crew.work(0, cores);
        for other in others {
            // The panic of another thread goes on in this one, with its own words.
            other.join().unwrap_or_else(|panic| resume_unwind(panic));
        }
    });
    crew.finish()
}

/// Runs all partitions on this thread until nothing is left to do. `each` gets, epoch by epoch, how many
/// events every partition had in it.
pub(crate) fn run_logging<'a, Q, P>(
    engines: Vec<Engine<'a, Q, P>>,
    world: &World<'a>,
    cancel: &AtomicBool,
    mut each: impl FnMut(&[u64]),
) -> (Vec<Engine<'a, Q, P>>, Ending)
where
    Q: EventQueue + Send,
    P: Ports + Send,
{
    let crew = Crew::new(engines, world, 1, cancel);
    let mut events = vec![0; crew.engines.len()];
    loop {
        crew.plan_window();
        if crew.epoch.over.load(Ordering::Relaxed) {
            return crew.finish();
        }
        for (partition, events) in events.iter_mut().enumerate() {
            crew.advance(partition);
            *events = crew.epoch.handled.swap(0, Ordering::Relaxed);
        }
        each(&events);
    }
}

const NEVER: u64 = u64::MAX;

/// What the threads of a run share.
struct Crew<'c, 'a, Q, P> {
    world: &'c World<'a>,
    cancel: &'c AtomicBool,
    engines: Vec<Mutex<Engine<'a, Q, P>>>,
    /// When each partition's next event may be; [`NEVER`] if there is none.
    next: Vec<AtomicU64>,
    /// The two halves: one is read in this epoch, the other written.
    mail: [Exchange; 2],
    /// A partition's share of each thread, and how much of it is claimed.
    shares: Vec<Share>,
    epoch: Epoch,
    watch: Mutex<Watch>,
    ending: Mutex<Option<Ending>>,
    gate: Gate,
}

/// The present epoch.
struct Epoch {
    /// Where it ends.
    end: AtomicU64,
    /// Which half of the mail is read in it.
    read: AtomicUsize,
    over: AtomicBool,
    /// Events in it so far.
    handled: AtomicU64,
}

/// Where the last epoch had fewer events, one thread is faster than several that must meet.
pub const WORTH_COMPANY: u64 = 256;

/// Consecutive partitions.
#[repr(align(64))]
struct Share {
    claimed: AtomicUsize,
    partitions: std::ops::Range<usize>,
}

/// The mail of one epoch.
struct Exchange {
    /// From partition `f` to partition `t` at `t * partitions + f`.
    bags: Vec<Mutex<Mail>>,
    /// From which partitions there is mail for each partition: one bit each.
    from: Vec<AtomicU64>,
    /// When the first event in any bag is.
    first: AtomicU64,
}

impl<'c, 'a, Q, P> Crew<'c, 'a, Q, P>
where
    Q: EventQueue + Send,
    P: Ports + Send,
{
    fn new(
        engines: Vec<Engine<'a, Q, P>>,
        world: &'c World<'a>,
        threads: u32,
        cancel: &'c AtomicBool,
    ) -> Self {
        let partitions = engines.len();
        let threads = (threads as usize).clamp(1, partitions);
        let share = |thread: usize| Share {
            claimed: AtomicUsize::new(0),
            partitions: thread * partitions / threads..(thread + 1) * partitions / threads,
        };
        let next = engines.iter().map(|engine| AtomicU64::new(time(engine.agenda.next())));
        Crew {
            world,
            cancel,
            next: next.collect(),
            engines: engines.into_iter().map(Mutex::new).collect(),
            mail: [Exchange::new(partitions), Exchange::new(partitions)],
            shares: (0..threads).map(share).collect(),
            epoch: Epoch {
                end: AtomicU64::new(0),
                read: AtomicUsize::new(0),
                over: AtomicBool::new(false),
                handled: AtomicU64::new(0),
            },
            watch: Mutex::new(Watch::new(world.config)),
            ending: Mutex::new(None),
            gate: Gate::new(threads),
        }
    }

    /// The engines, and how it ended.
    fn finish(self) -> (Vec<Engine<'a, Q, P>>, Ending) {
        let engines = self.engines.into_iter().map(|engine| engine.into_inner().expect(UNHARMED));
        let ending = self.ending.into_inner().expect(UNHARMED);
        (engines.collect(), ending.expect("the work went on until the end"))
    }

    /// What one thread does from the beginning to the end.
    fn work(&self, thread: usize, cores: &Cores) {
        let _alarm = Alarm(&self.gate);
        let mut hold = cores.hold(thread);
        while self.gate.pass(|| self.plan()) {
            if self.epoch.over.load(Ordering::Relaxed) {
                return;
            }
            hold.check();
            for share in self.shares[thread..].iter().chain(&self.shares[..thread]) {
                while let Some(partition) = share.claim() {
                    self.advance(partition);
                }
            }
        }
    }

    /// Handles a partition's events of this epoch.
    fn advance(&self, partition: usize) {
        let end = self.epoch.end.load(Ordering::Relaxed);
        let read = self.epoch.read.load(Ordering::Relaxed);
        let from = self.mail[read].from[partition].swap(0, Ordering::Relaxed);
        if from == 0 && self.next[partition].load(Ordering::Relaxed) >= end {
            return;
        }
        let mut engine = lock(&self.engines[partition]);
        let before = engine.counts.totals.events;
        for sender in bits(from) {
            engine.take_in(sender, &mut self.mail[read].bag(sender, partition));
        }
        if let Err(ending) = engine.run_before(Time(end), self.cancel) {
            *lock(&self.ending) = Some(ending);
        }
        self.mail[1 - read].collect(partition, &mut engine);
        self.epoch.handled.fetch_add(engine.counts.totals.events - before, Ordering::Relaxed);
        self.next[partition].store(time(engine.agenda.next()), Ordering::Relaxed);
    }

    /// Decides which time the next epoch covers, while everybody else waits; and goes through
    /// it at once, and through the next ones, as long as there is little to do in them.
    fn plan(&self) {
        loop {
            self.plan_window();
            let handled = self.epoch.handled.swap(0, Ordering::Relaxed);
            let alone = handled < WORTH_COMPANY && self.gate.threads > 1;
            if !alone || self.epoch.over.load(Ordering::Relaxed) {
                return;
            }
            (0..self.engines.len()).for_each(|partition| self.advance(partition));
        }
    }

    /// Decides which time the next epoch covers.
    fn plan_window(&self) {
        let mut ending = lock(&self.ending);
        if self.world.config.probes.interval.is_some() {
            self.tell_unfinished();
        }
        let written = 1 - self.epoch.read.load(Ordering::Relaxed);
        let mail = self.mail[written].first.swap(NEVER, Ordering::Relaxed);
        let next = self.next.iter().map(|next| next.load(Ordering::Relaxed));
        let start = next.fold(mail, u64::min);
        let mut watch = lock(&self.watch);
        if ending.is_none() && start != NEVER && watch.is_due(start) {
            let engines: Vec<_> = self.engines.iter().map(lock).collect();
            *ending = watch.look(self.world, engines.iter().map(|engine| &**engine));
        }
        if ending.is_none() && start == NEVER {
            *ending = Some(Ending::Done);
        } else if ending.is_none() && self.cancel.load(Ordering::Relaxed) {
            *ending = Some(Ending::Halted(Halt::Cancelled));
        }
        let end = match self.engines.len() {
            1 => watch.next_after(start),
            _ => watch
                .next_after(start)
                .min(start.saturating_add(self.world.partitioning.lookahead.0)),
        };
        self.epoch.end.store(end, Ordering::Relaxed);
        self.epoch.read.store(written, Ordering::Relaxed);
        self.epoch.over.store(ending.is_some(), Ordering::Relaxed);
        self.shares.iter().for_each(|share| share.claimed.store(0, Ordering::Relaxed));
    }

    /// Tells every partition whether others have something left to do.
    fn tell_unfinished(&self) {
        let mut engines: Vec<_> = self.engines.iter().map(lock).collect();
        let all = engines.iter().filter(|engine| engine.is_unfinished()).count();
        for engine in &mut engines {
            engine.probes.others_unfinished = all > usize::from(engine.is_unfinished());
        }
    }
}

impl Share {
    /// The next partition that nobody has taken.
    fn claim(&self) -> Option<usize> {
        let partition = self.partitions.start + self.claimed.fetch_add(1, Ordering::Relaxed);
        self.partitions.contains(&partition).then_some(partition)
    }
}

impl Exchange {
    fn new(partitions: usize) -> Exchange {
        Exchange {
            bags: (0..partitions * partitions).map(|_| Mutex::default()).collect(),
            from: (0..partitions).map(|_| AtomicU64::new(0)).collect(),
            first: AtomicU64::new(NEVER),
        }
    }
    fn bag(&self, from: usize, to: usize) -> MutexGuard<'_, Mail> {
        lock(&self.bags[to * self.from.len() + from])
    }
    /// Takes what partition `from` sends.
    fn collect<Q: EventQueue, P>(&self, from: usize, engine: &mut Engine<Q, P>) {
        let mut first = NEVER;
        for (to, mail) in engine.agenda.outgoing() {
            first = first.min(time(mail.first()));
            self.from[to].fetch_or(1 << from, Ordering::Relaxed);
            std::mem::swap(mail, &mut self.bag(from, to));
        }
        self.first.fetch_min(first, Ordering::Relaxed);
    }
}

fn time(time: Option<Time>) -> u64 {
    time.map_or(NEVER, |time| time.0)
}

/// The numbers of the bits that are set.
fn bits(mut set: u64) -> impl Iterator<Item = usize> {
    std::iter::from_fn(move || {
        let bit = (set != 0).then(|| set.trailing_zeros() as usize)?;
        set &= set - 1;
        Some(bit)
    })
}
