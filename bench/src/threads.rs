//! What more cores than this machine has would gain: a run's epochs, dealt out to so many threads on paper.
//!
//! A run is cut as it would be for that many threads, and each partition's events of each epoch are
//! counted. Then every epoch is dealt out as threads deal it out: each takes its own share of
//! the partitions, one after the other, and helps others when it is through. An epoch lasts as long as the
//! thread that is through last, and the meeting of all between two epochs; what is dealt out to nobody,
//! since it is too little, lasts as long as all of it. Events take as long as they do in that very run on one
//! thread, and a meeting as long as one of two threads here for every two. So caches and memory
//! that cores share are left out, and what is printed is the most that they gain.

use crate::cases::Case;
use crate::json;
use crate::machine::median;
use crate::stage::Stage;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;
use std::time::Instant;
use weft_sim::{RunConfig, Simulation, WORTH_COMPANY, partitions_for};

/// How many threads are tried.
const THREADS: [u32; 4] = [2, 4, 8, 16];
/// Meetings that are timed, and how often.
const MEETINGS: usize = 20_000;
const TIMINGS: usize = 5;

/// The heading of the rows.
pub(crate) fn heading() -> String {
    let speed_ups: String = THREADS.iter().map(|threads| format!(" {threads:>7}")).collect();
    format!(
        "{:<26} {:>8} {:>10} {:>10}  {speed_ups}",
        "speed-up by threads", "epochs", "events", "ns/event"
    )
}

/// What a case gave.
pub(crate) struct Plan {
    case: &'static Case,
    /// Of the finest cut.
    epochs: usize,
    events: u64,
    ns_per_event: f64,
    /// By number of threads: partitions, and the speed-up against one thread.
    speed_ups: Vec<(u32, f64)>,
}

impl Plan {
    /// Counts and times `case`.
    pub(crate) fn measure(case: &'static Case) -> Plan {
        let stage = Stage::new(case);
        let config = stage.config(case);
        let meeting = meeting_ns();
        let one = seconds(&config, 1) * 1e9;
        let (mut epochs, mut events, mut ns_per_event) = (0, 0, 0.0);
        let speed_up = |threads: u32| {
            let partitions = partitions_for(&config, threads);
            let log = Simulation::in_partitions(&config, partitions, 1);
            let (_, log) = log.run_logging(&AtomicBool::new(false)).expect("the cases finish");
            epochs = log.len();
            events = log.iter().flatten().sum::<u64>();
            ns_per_event = seconds(&config, partitions) * 1e9 / events as f64;
            let meeting = meeting * f64::from(threads) / 2.0;
            (partitions, one / time(&log, threads as usize, ns_per_event, meeting))
        };
        let speed_ups = THREADS.into_iter().map(speed_up).collect();
        Plan { case, epochs, events, ns_per_event, speed_ups }
    }

    /// A row under [`heading`].
    pub(crate) fn row(&self) -> String {
        let speed_ups: String =
            self.speed_ups.iter().map(|(_, speed_up)| format!(" {speed_up:>7.2}")).collect();
        format!(
            "{:<26} {:>8} {:>10} {:>10.1}  {speed_ups}",
            self.case.name, self.epochs, self.events, self.ns_per_event
        )
    }

    pub(crate) fn json(&self) -> String {
        let all: Vec<String> = THREADS
            .iter()
            .zip(&self.speed_ups)
            .map(|(threads, (partitions, speed_up))| {
                json::object(&[
                    ("threads", threads.to_string()),
                    ("partitions", partitions.to_string()),
                    ("speed_up", format!("{speed_up:.3}")),
                ])
            })
            .collect();
        json::object(&[
            ("name", json::text(self.case.name)),
            ("epochs", self.epochs.to_string()),
            ("events", self.events.to_string()),
            ("ns_per_event", format!("{:.2}", self.ns_per_event)),
            ("by_threads", json::list(&all)),
        ])
    }
}

/// Nanoseconds of a run on `threads` threads whose partitions have these events, epoch by epoch.
fn time(log: &[Box<[u64]>], threads: usize, ns_per_event: f64, meeting: f64) -> f64 {
    let mut before = u64::MAX;
    let mut of_epoch = |events: &[u64]| {
        let all: u64 = events.iter().sum();
        let alone = std::mem::replace(&mut before, all) < WORTH_COMPANY;
        match alone {
            true => all as f64 * ns_per_event,
            false => last(events, threads) as f64 * ns_per_event + meeting,
        }
    };
    log.iter().map(|events| of_epoch(events)).sum()
}

/// Events of the thread that is through last.
fn last(events: &[u64], threads: usize) -> u64 {
    let partitions = events.len();
    let threads = threads.min(partitions);
    let share = |thread: usize| thread * partitions / threads..(thread + 1) * partitions / threads;
    let mut left: Vec<_> = (0..threads).map(share).collect();
    let mut done = vec![0; threads];
    for _ in 0..partitions {
        // Whoever has done least takes the next: of its own, or of those after it.
        let thread = (0..threads).min_by_key(|thread| done[*thread]).expect("there is one");
        let next = (thread..threads).chain(0..thread).find_map(|one| left[one].next());
        done[thread] += events[next.expect("so many are left")];
    }
    done.into_iter().max().unwrap_or(0)
}

/// The median time of the simulation loop on one thread.
fn seconds(config: &RunConfig, partitions: u32) -> f64 {
    let run = |_| {
        let simulation = Simulation::in_partitions(config, partitions, 1);
        let start = Instant::now();
        simulation.run(&AtomicBool::new(false)).expect("the cases finish");
        start.elapsed().as_secs_f64()
    };
    median((0..3).map(run))
}

/// How long two threads take to meet that wait for each other at once.
fn meeting_ns() -> f64 {
    let timing = |_| {
        let turn = AtomicUsize::new(0);
        let take_turns = |own: usize| {
            for round in 0..MEETINGS {
                let mut looks = 0_u32;
                while turn.load(Ordering::Acquire) != 2 * round + own {
                    std::hint::spin_loop();
                    looks += 1;
                    if looks.is_multiple_of(10_000) {
                        thread::yield_now();
                    }
                }
                turn.store(2 * round + own + 1, Ordering::Release);
            }
        };
        let start = Instant::now();
        thread::scope(|scope| {
            scope.spawn(|| take_turns(1));
            take_turns(0);
        });
        // To the other one and back.
        start.elapsed().as_nanos() as f64 / MEETINGS as f64
    };
    median((0..TIMINGS).map(timing))
}

#[cfg(test)]
mod tests {
    use super::{last, time};

    #[test]
    fn an_epoch_lasts_as_long_as_its_slowest_thread() {
        assert_eq!(last(&[5, 1, 1, 1], 1), 8);
        // The second thread does its own two, and then helps the first.
        assert_eq!(last(&[5, 1, 1, 1], 2), 5);
        assert_eq!(last(&[5, 5, 1, 1], 2), 7);
        assert_eq!(last(&[4, 4, 4, 4], 16), 4);
    }

    #[test]
    fn epochs_with_little_to_do_are_not_dealt_out() {
        let log = [[300, 300], [2, 2], [1, 3]].map(|events| Box::from(&events[..]));
        // 300 and a meeting; 2 and a meeting, since the one before was long; all of the third.
        assert_eq!(time(&log, 2, 1.0, 10.0), 310.0 + 12.0 + 4.0);
    }
}
