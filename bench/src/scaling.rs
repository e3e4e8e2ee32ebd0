//! One simulation on two threads against two simulations side by side.
//!
//! Two cores rarely do twice the work of one: they share caches, memory and clock. What they
//! could give at best is what two independent runs side by side gain, so that is measured too,
//! interleaved with the others to see the same machine. The two stand side by side in two
//! threads of one process, as in a sweep: with the same allocator and the same pages as one
//! simulation on two threads, they differ from it in nothing but what is measured.

use crate::cases::Case;
use crate::json;
use crate::machine::{QUIET, Watch, median, remark_on};
use crate::stage::Stage;
use std::sync::Barrier;
use std::sync::atomic::AtomicBool;
use std::thread;
use std::time::Instant;
use weft_sim::{Outcome, RunConfig, Simulation};

/// At least this many rounds, however long they take.
const LEAST_ROUNDS: usize = 5;
/// From this many hosts on, two threads are to reach [`GOAL`] of what two runs gain.
const LARGE: u32 = 1024;
const GOAL: f64 = 0.85;
/// With a number of threads of its own choice, a run is to be at least this fast against one.
const NEVER_SLOWER: f64 = 0.95;

/// The heading of the rows.
pub(crate) fn heading() -> String {
    format!(
        "{:<26} {:>8} {:>8} {:>9}   {:>8} {:>12} {:>8}   {:>9}",
        "scaling (M hops/s)",
        "1 thread",
        "two runs",
        "2 threads",
        "speed-up",
        "side by side",
        "fraction",
        "automatic"
    )
}

/// What a case gave.
pub(crate) struct Scaling {
    case: &'static Case,
    hosts: u32,
    packet_hops: u64,
    useful_threads: u32,
    rounds: Vec<Round>,
    /// Cores that others used.
    others: f64,
}

/// Seconds of one round.
struct Round {
    /// One run on one thread.
    one: f64,
    /// Two runs at the same time on a thread each, until both are done.
    two_runs: f64,
    /// One run on two threads.
    two_threads: f64,
}

impl Scaling {
    /// Repeats rounds of `case` for `seconds`.
    ///
    /// # Panics
    /// If two threads give another outcome than one.
    pub(crate) fn measure(case: &'static Case, seconds: f64) -> Scaling {
        let stage = Stage::new(case);
        let config = stage.config(case);
        let useful_threads = weft_sim::useful_threads(&config);
        let (start, watch) = (Instant::now(), Watch::start());
        let mut expected: Option<Outcome> = None;
        let mut rounds = Vec::new();
        while rounds.len() < LEAST_ROUNDS || start.elapsed().as_secs_f64() < seconds {
            let mut seconds_of = |runs, threads| {
                let (seconds, outcome) = timed(&config, runs, threads);
                let same = expected.as_ref().is_none_or(|expected| outcome == *expected);
                assert!(same, "{threads} threads change the outcome");
                expected.get_or_insert(outcome);
                seconds
            };
            rounds.push(Round {
                one: seconds_of(1, 1),
                two_runs: seconds_of(2, 1),
                two_threads: seconds_of(1, 2),
            });
        }
        let packet_hops = expected.map_or(0, |outcome| outcome.totals.packet_hops);
        let (hosts, others) = (stage.fabric.hosts(), watch.others());
        Scaling { case, hosts, packet_hops, useful_threads, rounds, others }
    }

    /// Median over the rounds. Ratios are taken round by round: the machine may drift.
    fn middle(&self, of: impl Fn(&Round) -> f64) -> f64 {
        median(self.rounds.iter().map(of))
    }
    fn speed_up(&self) -> f64 {
        self.middle(|round| round.one / round.two_threads)
    }
    fn side_by_side(&self) -> f64 {
        self.middle(|round| 2.0 * round.one / round.two_runs)
    }
    /// The speed-up as a fraction of what two runs gain.
    fn fraction(&self) -> f64 {
        self.middle(|round| round.two_runs / (2.0 * round.two_threads))
    }
    /// Speed with the number of threads that the simulation finds useful, two at most, against
    /// one thread: by definition one of the two that were measured.
    fn automatic(&self) -> f64 {
        if self.useful_threads > 1 { self.speed_up() } else { 1.0 }
    }

    fn verdict(&self) -> String {
        if self.others > QUIET {
            "no verdict".to_owned()
        } else if self.hosts >= LARGE && self.fraction() < GOAL {
            format!("fraction below {GOAL}")
        } else if self.automatic() < NEVER_SLOWER {
            format!("automatic below {NEVER_SLOWER}")
        } else {
            "ok".to_owned()
        }
    }

    /// A row under [`heading`].
    pub(crate) fn row(&self) -> String {
        let rate = |seconds: f64, runs: f64| runs * self.packet_hops as f64 / seconds / 1e6;
        format!(
            "{:<26} {:>8.2} {:>8.2} {:>9.2}   {:>8.2} {:>12.2} {:>8.2}   {:>9.2}   {}{}",
            self.case.name,
            rate(self.middle(|round| round.one), 1.0),
            rate(self.middle(|round| round.two_runs), 2.0),
            rate(self.middle(|round| round.two_threads), 1.0),
            self.speed_up(),
            self.side_by_side(),
            self.fraction(),
            self.automatic(),
            self.verdict(),
            remark_on(self.others),
        )
    }

    pub(crate) fn json(&self) -> String {
        let times = |of: fn(&Round) -> f64| {
            json::all_seconds(&self.rounds.iter().map(of).collect::<Vec<_>>())
        };
        json::object(&[
            ("name", json::text(self.case.name)),
            ("packet_hops", self.packet_hops.to_string()),
            ("useful_threads", self.useful_threads.to_string()),
            ("speed_up", format!("{:.4}", self.speed_up())),
            ("side_by_side", format!("{:.4}", self.side_by_side())),
            ("fraction", format!("{:.4}", self.fraction())),
            ("automatic", format!("{:.4}", self.automatic())),
            ("verdict", json::text(&self.verdict())),
            ("others_cores", format!("{:.2}", self.others)),
            ("one_s", times(|round| round.one)),
            ("two_runs_s", times(|round| round.two_runs)),
            ("two_threads_s", times(|round| round.two_threads)),
        ])
    }
}

/// `runs` simulations started together, each on `threads` threads: seconds from the first
/// start until the last is done, and the outcome. All set up and run on threads of their own,
/// the single one as well, so that all get their memory in the same way.
fn timed(config: &RunConfig, runs: usize, threads: u32) -> (f64, Outcome) {
    let barrier = Barrier::new(runs);
    let run = || {
        let simulation = Simulation::on_threads(config, threads);
        barrier.wait();
        let start = Instant::now();
        let outcome = simulation.run(&AtomicBool::new(false));
        (start, Instant::now(), outcome.expect("the cases finish"))
    };
    let mut done: Vec<_> = thread::scope(|scope| {
        let handles: Vec<_> = (0..runs).map(|_| scope.spawn(run)).collect();
        handles.into_iter().map(|handle| handle.join().expect("a run panicked")).collect()
    });
    let start = done.iter().map(|run| run.0).min().expect("at least one run");
    let end = done.iter().map(|run| run.1).max().expect("at least one run");
    let (_, _, mut outcome) = done.swap_remove(0);
    // The one number that may depend on how the engine works.
    outcome.totals.events = 0;
    ((end - start).as_secs_f64(), outcome)
}
