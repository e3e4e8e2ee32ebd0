//! One rank of a benchmark: meets the others, connects, and measures size after size.

use crate::network::{Handle, NetworkPlugin, Span};
use crate::operation::{Channel, Operation};
use crate::progress::{ASKED, Buffers, IN_FLIGHT, Strand, run};
use crate::{BenchError, data, meet::Meeting};
use std::mem::ManuallyDrop;
use std::time::{Duration, Instant};

/// What is measured.
#[derive(Clone, Debug)]
pub struct Benchmark {
    /// The collective that is timed.
    pub operation: Operation,
    /// Sizes in bytes, in order.
    pub sizes: Vec<usize>,
    /// Runs that count.
    pub iterations: usize,
    /// Runs before, that do not.
    pub warm_up: usize,
    /// Runs after, whose results are checked.
    pub checks: usize,
    /// Channels to a peer.
    pub channels: usize,
    /// Bytes of a message at most.
    pub chunk: usize,
}

impl Benchmark {
    /// What ranks have to have alike: options of the command line, and their values.
    pub(crate) fn shared(&self) -> Vec<(&'static str, String)> {
        let sizes = match self.sizes.as_slice() {
            [first, .., last] => format!("{} sizes, {first} to {last} bytes", self.sizes.len()),
            [one] => format!("one size, {one} bytes"),
            [] => "no size".to_owned(),
        };
        vec![
            ("--op", self.operation.name().to_owned()),
            ("-b, -e and -f", sizes),
            ("-n", self.iterations.to_string()),
            ("-w", self.warm_up.to_string()),
            ("-c", self.checks.to_string()),
            ("--channels", self.channels.to_string()),
            ("--chunk", format!("{} bytes", self.chunk)),
        ]
    }
}

/// One line of nccl-tests' table.
#[derive(Clone, Debug, PartialEq)]
pub struct Row {
    /// Bytes that the operation is about.
    pub size: usize,
    /// Elements, of operations with a part for each rank those of a part.
    pub count: usize,
    /// Seconds of one run: the mean over runs and ranks.
    pub seconds: f64,
    /// Seconds of the rank that took longest.
    pub slowest: f64,
    /// Bytes per second: size over time.
    pub algorithm: f64,
    /// Bytes per second of the busiest link of an ideal network.
    pub bus: f64,
    /// Elements of all ranks that were wrong; `None`: not checked.
    pub wrong: Option<u64>,
}

/// Measures. `row` is told each size when it is done; `check` may end it.
///
/// # Errors
/// If the network fails, or another rank, or `check` says so.
pub fn measure<N: NetworkPlugin>(
    network: &N,
    meeting: &mut Meeting,
    (rank, ranks): (usize, usize),
    plan: &Benchmark,
    row: &mut dyn FnMut(Row) -> Result<(), BenchError>,
    check: &dyn Fn() -> Result<(), BenchError>,
) -> Result<(), BenchError> {
    let operation = plan.operation;
    let chunk = chunk_of(plan);
    let largest = plan.sizes.iter().copied().max().unwrap_or(0) / size_of::<f32>();
    let shape = operation.channels(rank, ranks, 0, plan.channels, chunk);
    let peers = i32::try_from(operation.peers(ranks)).unwrap_or(i32::MAX);
    let flows = i32::try_from(plan.channels * IN_FLIGHT).unwrap_or(i32::MAX);
    network.expect(peers, flows)?;
    // After an error or a panic the network may still write into them: then they stay.
    let mut buffers = ManuallyDrop::new(Buffers::new(largest, shape.len() * IN_FLIGHT, chunk));
    let strands = connect(network, meeting, rank, &shape, &buffers.spans(), check)?;
    each_size(network, meeting, (rank, ranks), plan, strands, &mut buffers, row, check)?;
    drop(ManuallyDrop::into_inner(buffers));
    Ok(())
}

/// Elements of a message at most.
fn chunk_of(plan: &Benchmark) -> usize {
    (plan.chunk / size_of::<f32>()).max(1)
}

#[expect(clippy::too_many_arguments, reason = "the state of one rank")]
fn each_size<N: NetworkPlugin>(
    network: &N,
    meeting: &mut Meeting,
    (rank, ranks): (usize, usize),
    plan: &Benchmark,
    mut strands: Vec<Strand<N>>,
    buffers: &mut Buffers,
    row: &mut dyn FnMut(Row) -> Result<(), BenchError>,
    check: &dyn Fn() -> Result<(), BenchError>,
) -> Result<(), BenchError> {
    let (operation, chunk) = (plan.operation, chunk_of(plan));
    let mut asked = Instant::now();
    for size in &plan.sizes {
        let mut count = size / size_of::<f32>();
        if operation.by_rank() {
            count -= count % ranks;
        }
        let channels = operation.channels(rank, ranks, count, plan.channels, chunk);
        let mut one = |buffers: &mut Buffers| {
            let in_place = operation.in_place();
            // Who interrupts a long size does not wait for its end.
            if asked.elapsed() > ASKED {
                asked = Instant::now();
                check()?;
            }
            #[expect(unsafe_code, reason = "the network has the buffers meanwhile")]
            // SAFETY: after an error they are left alone for good (`measure`).
            unsafe {
                run(network, &mut strands, &channels, buffers, in_place, chunk, check)
            }
        };
        for _ in 0..plan.warm_up {
            one(buffers)?;
        }
        meeting.barrier()?;
        let start = Instant::now();
        for _ in 0..plan.iterations {
            one(buffers)?;
        }
        let seconds = start.elapsed().as_secs_f64() / plan.iterations.max(1) as f64;
        let all = meeting.numbers(seconds)?;
        let mut wrong = 0;
        for round in 0..plan.checks {
            let (source, result) = buffers.both(count);
            data::fill(operation, rank, ranks, round, source, result);
            meeting.barrier()?;
            one(buffers)?;
            wrong += data::wrong(operation, rank, ranks, round, buffers.both(count).1);
        }
        let wrong = meeting.numbers(wrong as f64)?.iter().sum::<f64>() as u64;
        let mean = all.iter().sum::<f64>() / ranks as f64;
        let bytes = count * size_of::<f32>();
        let algorithm = bytes as f64 / mean;
        row(Row {
            size: bytes,
            count: if operation.by_rank() { count / ranks } else { count },
            seconds: mean,
            slowest: all.iter().copied().fold(0.0, f64::max),
            algorithm,
            bus: algorithm * operation.bus_factor(ranks),
            wrong: (plan.checks > 0).then_some(wrong),
        })?;
    }
    meeting.barrier()?;
    strands.into_iter().try_for_each(|strand| network.close(strand.sender, strand.receiver))
}

/// Connects all channels of a rank, as NCCL does: all listen, handles go around, and then each end is
/// asked again until it is there.
fn connect<N: NetworkPlugin>(
    network: &N,
    meeting: &mut Meeting,
    rank: usize,
    channels: &[Channel],
    spans: &[Span],
    check: &dyn Fn() -> Result<(), BenchError>,
) -> Result<Vec<Strand<N>>, BenchError> {
    let mut listeners = Vec::new();
    let mut said = Vec::new();
    for channel in channels {
        let (listener, handle) = network.listen()?;
        listeners.push(listener);
        said.extend_from_slice(&u32::try_from(channel.from).unwrap_or(u32::MAX).to_le_bytes());
        said.extend_from_slice(&handle);
    }
    let all = meeting.share(&said)?;
    let mut connecting = Vec::new();
    for (at, channel) in channels.iter().enumerate() {
        // Which channel to that peer it is: listeners that wait for this rank stand in one order.
        let which = channels[..at].iter().filter(|other| other.to == channel.to).count();
        let handle = handle_for(&all[channel.to], rank, which).ok_or_else(|| {
            BenchError::Broken(format!(
                "rank {} expects other channels; do all run the same command?",
                channel.to
            ))
        })?;
        connecting.push(network.connect(&handle)?);
    }
    let mut senders: Vec<Option<N::Sender>> = channels.iter().map(|_| None).collect();
    let mut receivers: Vec<Option<N::Receiver>> = channels.iter().map(|_| None).collect();
    let until = Instant::now() + Duration::from_secs(120);
    loop {
        for at in 0..channels.len() {
            if senders[at].is_none() {
                senders[at] = network.connected(&mut connecting[at], spans)?;
            }
            if receivers[at].is_none() {
                receivers[at] = network.accept(&mut listeners[at], spans)?;
            }
        }
        if senders.iter().all(Option::is_some) && receivers.iter().all(Option::is_some) {
            let both = senders.into_iter().flatten().zip(receivers.into_iter().flatten());
            return Ok(both.map(|(sender, receiver)| Strand::new(sender, receiver)).collect());
        }
        check()?;
        if Instant::now() > until {
            return Err(BenchError::Late(format!(
                "rank {rank}: {} of {} channels are not connected after two minutes",
                senders.iter().filter(|one| one.is_none()).count()
                    + receivers.iter().filter(|one| one.is_none()).count(),
                2 * channels.len()
            )));
        }
        std::thread::sleep(Duration::from_micros(200));
    }
}

/// The `which`th handle that a rank made for `rank`.
fn handle_for(said: &[u8], rank: usize, which: usize) -> Option<Handle> {
    said.chunks_exact(4 + size_of::<Handle>())
        .filter(|entry| entry[..4] == u32::try_from(rank).unwrap_or(u32::MAX).to_le_bytes())
        .nth(which)
        .and_then(|entry| entry[4..].try_into().ok())
}
