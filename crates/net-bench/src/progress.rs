//! Channels at work: what NCCL's proxy thread does between two kernels. Receives are posted ahead,
//! sends as soon as what they send is there, and all is asked after in turn.

#![expect(unsafe_code, reason = "hands the buffers to the network")]

use crate::BenchError;
use crate::network::{NetworkPlugin, Span};
use crate::operation::Channel;
use std::collections::VecDeque;
use std::ops::Range;
use std::time::{Duration, Instant};

/// Chunks of a channel under way, each way, as NCCL's `NCCL_STEPS`.
pub const IN_FLIGHT: usize = 8;
/// Without any progress for so long the rest of the job is taken for dead.
const STUCK: Duration = Duration::from_secs(120);
/// How often it is asked whether to go on.
pub(crate) const ASKED: Duration = Duration::from_millis(100);
/// Rounds without progress before the thread sleeps between two.
const PATIENCE: u32 = 200;

/// Numbers of the spans that networks are told of.
pub const SOURCE: usize = 0;
/// The result.
pub const RESULT: usize = 1;
/// Where sums come in.
pub const STAGING: usize = 2;

/// The memory of a rank: allocated once, so that it can be registered.
#[derive(Debug)]
pub struct Buffers {
    source: Box<[f32]>,
    result: Box<[f32]>,
    staging: Box<[f32]>,
}

impl Buffers {
    /// Of so many elements, with staging for so many chunks.
    #[must_use]
    pub fn new(count: usize, chunks: usize, chunk: usize) -> Buffers {
        let zeros = |len: usize| vec![0.0; len].into_boxed_slice();
        Buffers { source: zeros(count), result: zeros(count), staging: zeros(chunks * chunk) }
    }

    /// As spans, by number.
    pub fn spans(&mut self) -> [Span; 3] {
        [&mut self.source, &mut self.result, &mut self.staging].map(|buffer| Span {
            start: buffer.as_mut_ptr().cast(),
            len: size_of_val::<[f32]>(buffer),
        })
    }

    /// The first elements of what is sent and of what comes out. Not while the network is at them.
    pub fn both(&mut self, count: usize) -> (&mut [f32], &mut [f32]) {
        (&mut self.source[..count], &mut self.result[..count])
    }
}

/// A channel and both its halves.
#[derive(Debug)]
pub struct Strand<N: NetworkPlugin> {
    pub(crate) sender: N::Sender,
    pub(crate) receiver: N::Receiver,
    pub(crate) sending: VecDeque<(usize, N::Request)>,
    pub(crate) receiving: VecDeque<(usize, N::Request)>,
}

impl<N: NetworkPlugin> Strand<N> {
    /// Both halves, with nothing under way.
    pub fn new(sender: N::Sender, receiver: N::Receiver) -> Strand<N> {
        Strand { sender, receiver, sending: VecDeque::new(), receiving: VecDeque::new() }
    }
}

/// How far a channel has come in one run of a collective.
#[derive(Clone, Copy, Debug, Default)]
struct Progress {
    sends_posted: usize,
    sends_done: usize,
    receives_posted: usize,
    receives_done: usize,
}

/// Where a collective's elements lie, while the network may be at them.
struct Place {
    spans: [Span; 3],
    from: usize,
    chunk: usize,
}

impl Place {
    fn span(&self, number: usize, range: &Range<usize>) -> Span {
        let bytes = size_of::<f32>();
        let whole = self.spans[number];
        assert!(range.end * bytes <= whole.len, "a schedule stays in its buffers");
        // SAFETY: inside the buffer, as was just checked.
        let start = unsafe { whole.start.add(range.start * bytes) };
        Span { start, len: range.len() * bytes }
    }

    /// Where receive `index` of a strand goes: into the result, or beside it if it is to be added.
    fn target(&self, strand: usize, index: usize, into: &Range<usize>, add: bool) -> (usize, Span) {
        if !add {
            return (RESULT, self.span(RESULT, into));
        }
        let slot = (strand * IN_FLIGHT + index % IN_FLIGHT) * self.chunk;
        (STAGING, self.span(STAGING, &(slot..slot + into.len())))
    }

    fn add(&self, staged: Span, into: &Range<usize>) {
        let target = self.span(RESULT, into);
        // SAFETY: both are inside live buffers of f32, apart from each other, and the network is done
        // with the one and has not been given the other: its send waits for this.
        let (sum, more) = unsafe {
            let count = into.len();
            let sum = std::slice::from_raw_parts_mut(target.start.cast::<f32>(), count);
            (sum, std::slice::from_raw_parts(staged.start.cast::<f32>(), count))
        };
        sum.iter_mut().zip(more).for_each(|(sum, more)| *sum += more);
    }
}

/// Runs a collective to its end. `check` is asked now and then whether to go on.
///
/// # Safety
/// Unless it returns `Ok`, the network may still read and write the buffers: they stay, and nobody
/// touches them, until the channels are closed.
///
/// # Errors
/// If the network fails, or nothing happens for two minutes, or `check` says so.
pub unsafe fn run<N: NetworkPlugin>(
    network: &N,
    strands: &mut [Strand<N>],
    channels: &[Channel],
    buffers: &mut Buffers,
    in_place: bool,
    chunk: usize,
    check: &dyn Fn() -> Result<(), BenchError>,
) -> Result<(), BenchError> {
    let from = if in_place { RESULT } else { SOURCE };
    let place = Place { spans: buffers.spans(), from, chunk };
    let mut progress = vec![Progress::default(); channels.len()];
    let (mut idle, mut last) = (0_u32, Instant::now());
    let mut asked = last;
    loop {
        let mut moved = false;
        let mut over = true;
        for (at, strand) in strands.iter_mut().enumerate() {
            let (channel, progress) = (&channels[at], &mut progress[at]);
            moved |= post_receives(network, &place, at, strand, channel, progress)?;
            moved |= post_sends(network, &place, strand, channel, progress)?;
            moved |= finish(network, &place, at, strand, channel, progress)?;
            over &= progress.sends_done == channel.sends.len()
                && progress.receives_done == channel.receives.len();
        }
        if over {
            return Ok(());
        }
        if moved {
            idle = 0;
            continue;
        }
        idle += 1;
        if idle < PATIENCE {
            std::thread::yield_now();
            continue;
        }
        std::thread::sleep(Duration::from_micros(50));
        let now = Instant::now();
        if idle == PATIENCE {
            last = now;
        }
        if now - last > STUCK {
            return Err(BenchError::Late(format!(
                "{}: nothing has come for {} s",
                network.describe(),
                STUCK.as_secs()
            )));
        }
        if now - asked > ASKED {
            asked = now;
            check()?;
        }
    }
}

fn post_receives<N: NetworkPlugin>(
    network: &N,
    place: &Place,
    at: usize,
    strand: &mut Strand<N>,
    channel: &Channel,
    progress: &mut Progress,
) -> Result<bool, BenchError> {
    let mut moved = false;
    while strand.receiving.len() < IN_FLIGHT
        && let Some(next) = channel.receives.get(progress.receives_posted)
        && next.after.is_none_or(|send| send < progress.sends_done)
    {
        let index = progress.receives_posted;
        let (span, part) = place.target(at, index, &next.into, next.add);
        // SAFETY: the buffers stay by the contract of `run`; schedules let no two use one place at a
        // time.
        let request = unsafe { network.irecv(&mut strand.receiver, span, part, 0)? };
        let Some(request) = request else { break };
        strand.receiving.push_back((index, request));
        progress.receives_posted += 1;
        moved = true;
    }
    Ok(moved)
}

fn post_sends<N: NetworkPlugin>(
    network: &N,
    place: &Place,
    strand: &mut Strand<N>,
    channel: &Channel,
    progress: &mut Progress,
) -> Result<bool, BenchError> {
    let mut moved = false;
    while strand.sending.len() < IN_FLIGHT
        && let Some(next) = channel.sends.get(progress.sends_posted)
        && next.after.is_none_or(|receive| receive < progress.receives_done)
    {
        let part = place.span(place.from, &next.from);
        // SAFETY: as above.
        let request = unsafe { network.isend(&mut strand.sender, place.from, part, 0)? };
        let Some(request) = request else { break };
        strand.sending.push_back((progress.sends_posted, request));
        progress.sends_posted += 1;
        moved = true;
    }
    Ok(moved)
}

fn finish<N: NetworkPlugin>(
    network: &N,
    place: &Place,
    at: usize,
    strand: &mut Strand<N>,
    channel: &Channel,
    progress: &mut Progress,
) -> Result<bool, BenchError> {
    let mut moved = false;
    while let Some((index, request)) = strand.receiving.front()
        && let Some(bytes) = network.received(&mut strand.receiver, request)?
    {
        let receive = &channel.receives[*index];
        let (_, part) = place.target(at, *index, &receive.into, receive.add);
        if bytes != part.len {
            return Err(BenchError::Broken(format!(
                "{}: a receive of {} bytes says that {bytes} came",
                network.describe(),
                part.len
            )));
        }
        if receive.add {
            place.add(part, &receive.into);
        }
        strand.receiving.pop_front();
        progress.receives_done += 1;
        moved = true;
    }
    while let Some((_, request)) = strand.sending.front()
        && network.sent(&mut strand.sender, request)?.is_some()
    {
        strand.sending.pop_front();
        progress.sends_done += 1;
        moved = true;
    }
    Ok(moved)
}
