//! A rank of a group of processes, for `weft.torch`.

use crate::wrong;
use pyo3::create_exception;
use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;
use std::collections::VecDeque;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::{Duration, Instant};
use weft_comm::{Endpoint, HANDLE, Handle};
use weft_deploy::{KeptPaths, Log};
use weft_group::{Apart, Call, Copies, Element, Group, GroupError as Failure, Operation};
use weft_group::{Reduction, Seat, Segment, Ticket, Tuning};

create_exception!(
    _native,
    GroupError,
    PyRuntimeError,
    "An operation of a group that did not come to its end, in one line."
);

fn failed(error: impl std::fmt::Display) -> PyErr {
    GroupError::new_err(error.to_string())
}

/// A NIC of this process, as the environment says.
#[pyclass(frozen, module = "weft._native")]
pub(crate) struct Nic {
    endpoint: Arc<Endpoint>,
    /// Of its interface or host, and of the scheme.
    #[pyo3(get)]
    name: String,
    #[pyo3(get)]
    scheme: String,
    /// Where statistics go in the end.
    #[pyo3(get)]
    stats: Option<String>,
    #[pyo3(get)]
    warnings: Vec<String>,
    /// What was chosen, where `WEFT_LOG` asks for it.
    #[pyo3(get)]
    chosen: Option<String>,
    /// Keeps discovered paths true, where ports come from a table of them.
    _paths: Vec<KeptPaths>,
}

#[pymethods]
impl Nic {
    /// The NIC number `index`, counted round; with several planes, those of a rail as one.
    #[new]
    fn new(py: Python<'_>, index: usize) -> PyResult<Nic> {
        let mut deployment = weft_deploy::of_this_process().map_err(wrong)?;
        let devices = deployment.of_process(index);
        let names: Vec<_> = devices.iter().map(|device| device.name.as_str()).collect();
        let name = names.join("+");
        if deployment.prometheus.is_some() {
            let text = "WEFT_PROMETHEUS: PyTorch's back end serves nothing; use WEFT_STATS";
            deployment.warnings.push(text.into());
        }
        let addresses: Vec<_> = devices.iter().map(|device| device.endpoint.address).collect();
        let configs = devices.into_iter().map(|device| device.endpoint).collect();
        let endpoint = py.detach(|| Endpoint::open_merged(configs)).map_err(failed)?;
        deployment.warnings.extend(endpoint.notice().map(str::to_owned));
        if deployment.log < Log::Warn {
            deployment.warnings.clear();
        }
        let of: Vec<_> = addresses.iter().map(ToString::to_string).collect();
        let chosen = || format!("NIC {name} ({}), scheme {}", of.join(", "), deployment.scheme);
        let chosen = (deployment.log >= Log::Info).then(chosen);
        let paths = deployment.paths.into_iter().map(|paths| {
            paths.only(&addresses).start(|line| eprintln!("weft: {line}")).map_err(wrong)
        });
        Ok(Nic {
            endpoint: Arc::new(endpoint),
            chosen,
            name,
            scheme: deployment.scheme,
            stats: deployment.stats.map(|path| path.display().to_string()),
            warnings: deployment.warnings,
            _paths: paths.collect::<PyResult<_>>()?,
        })
    }

    /// Begins to listen, as a rank of a group to be.
    fn listen(&self) -> PyResult<Rank> {
        let seat = Seat::take(self.endpoint.clone()).map_err(failed)?;
        Ok(Rank { seat: Mutex::new(Some(seat)) })
    }

    /// Bytes, time-outs and re-routes by peer and path, as JSON.
    fn statistics(&self) -> String {
        self.endpoint.statistics().json()
    }
}

/// A rank that listens, and does not know the others yet.
#[pyclass(frozen, module = "weft._native")]
pub(crate) struct Rank {
    seat: Mutex<Option<Seat>>,
}

#[pymethods]
impl Rank {
    /// What the others need. It holds a secret.
    fn handle(&self) -> PyResult<Vec<u8>> {
        let seat = self.seat.lock().unwrap_or_else(PoisonError::into_inner);
        let seat = seat.as_ref().ok_or_else(|| failed("weft: this rank has joined a group"))?;
        Ok(seat.handle.0.to_vec())
    }

    /// Joins the ranks with these handles, by number. No operation may take longer than `limit_s`.
    fn join(&self, handles: Vec<Vec<u8>>, rank: u32, limit_s: f64) -> PyResult<Joined> {
        let each = handles.into_iter().map(|bytes| {
            let bytes: Result<[u8; HANDLE], _> = bytes.try_into();
            bytes.map(Handle).map_err(|_| failed("weft: a rank's handle has not its length"))
        });
        let handles = each.collect::<PyResult<Vec<_>>>()?;
        let seat = self.seat.lock().unwrap_or_else(PoisonError::into_inner).take();
        let seat = seat.ok_or_else(|| failed("weft: this rank has joined a group"))?;
        let limit = duration(limit_s);
        let group = seat.join(handles, rank, Tuning::default(), limit).map_err(failed)?;
        Ok(Joined { group: Mutex::new(Some(group)), kept: Mutex::default() })
    }
}

/// A rank of a group.
#[pyclass(frozen, module = "weft._native")]
pub(crate) struct Joined {
    group: Mutex<Option<Group>>,
    /// Whose memory is in use, by operation. Dropped after the group.
    kept: Mutex<VecDeque<(Ticket, Keep)>>,
}

/// What holds the memory of an operation, until it is over.
type Keep = Arc<Mutex<Option<Py<PyAny>>>>;

/// A buffer: address and bytes.
type Span = (usize, usize);

/// A tensor whose elements lie apart: its address, that of as much dense memory, bytes of an element, and
/// shape and strides in elements.
type Strided = (usize, usize, usize, Vec<usize>, Vec<isize>);

#[pymethods]
impl Joined {
    /// Begins an operation on memory that belongs to `keep`, which is kept until it is over. It may
    /// take `limit_s`; if that is not given, what the group has for all. `before` is made dense as it
    /// begins, and `after` is filled when it is over.
    ///
    /// The caller vouches for addresses: see `weft_group::Group::submit`.
    #[pyo3(signature = (operation, element, reduction, inputs, outputs, keep, peer=None, tag=0, limit_s=None, before=vec![], after=vec![]))]
    #[expect(clippy::too_many_arguments, reason = "an operation has as many parts")]
    fn submit(
        &self,
        operation: &str,
        element: &str,
        reduction: &str,
        inputs: Vec<Span>,
        outputs: Vec<Span>,
        keep: Py<PyAny>,
        peer: Option<u32>,
        tag: u32,
        limit_s: Option<f64>,
        before: Vec<Strided>,
        after: Vec<Strided>,
    ) -> PyResult<Pending> {
        let call = Call {
            operation: operation_named(operation, peer, tag)?,
            element: named("type", element, Element::ALL, Element::name)?,
            reduction: named("reduction", reduction, Reduction::ALL, Reduction::name)?,
            inputs: inputs.into_iter().map(segment).collect(),
            outputs: outputs.into_iter().map(segment).collect(),
        };
        let copies = Copies {
            before: before.into_iter().map(apart).collect(),
            after: after.into_iter().map(apart).collect(),
        };
        let group = self.group.lock().unwrap_or_else(PoisonError::into_inner);
        let group = group.as_ref().ok_or_else(|| failed("weft: the group was closed"))?;
        #[expect(unsafe_code, reason = "Python code hands over addresses of tensors")]
        // SAFETY: `weft.torch` passes addresses and lengths of tensors that `keep` holds, and `kept`
        // holds that until the ticket is done or the group gone.
        let ticket = unsafe { group.submit(call, copies, limit_s.map(duration)) };
        let ticket = ticket.map_err(failed)?;
        let keep = Arc::new(Mutex::new(Some(keep)));
        let mut over = Vec::new();
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        kept.retain(|(ticket, keep)| {
            let is_over = ticket.outcome().is_some();
            over.extend(is_over.then(|| keep.clone()));
            !is_over
        });
        kept.push_back((ticket.clone(), keep.clone()));
        // What goes may call Python code, which may come here.
        drop(kept);
        drop(over);
        Ok(Pending { ticket, keep })
    }

    /// How long operations that are submitted from now on may take.
    fn set_limit(&self, limit_s: f64) {
        let group = self.group.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(group) = group.as_ref() {
            group.set_limit(duration(limit_s));
        }
    }

    /// Closes all channels; what is under way fails.
    fn close(&self, py: Python<'_>) {
        let group = self.group.lock().unwrap_or_else(PoisonError::into_inner).take();
        py.detach(|| drop(group));
        let kept = std::mem::take(&mut *self.kept.lock().unwrap_or_else(PoisonError::into_inner));
        drop(kept);
    }
}

impl Drop for Joined {
    fn drop(&mut self) {
        // Before what is kept goes. Nobody needs Python for it: the thread knows no Python.
        drop(self.group.lock().unwrap_or_else(PoisonError::into_inner).take());
    }
}

/// An operation under way.
#[pyclass(frozen, module = "weft._native")]
pub(crate) struct Pending {
    ticket: Ticket,
    keep: Keep,
}

impl Pending {
    /// How it ended, if it has. Its memory is kept no longer then.
    fn outcome(&self) -> Option<Result<(), Failure>> {
        let outcome = self.ticket.outcome()?;
        let kept = self.keep.lock().unwrap_or_else(PoisonError::into_inner).take();
        drop(kept);
        Some(outcome)
    }
}

#[pymethods]
impl Pending {
    /// Waits, at most for so many seconds if that is given; whether it is over.
    #[pyo3(signature = (limit_s=None))]
    fn wait(&self, py: Python<'_>, limit_s: Option<f64>) -> PyResult<bool> {
        // In bits, so that Ctrl-C is heard.
        const BIT: Duration = Duration::from_millis(200);
        let mut left = limit_s.map(|limit| Duration::try_from_secs_f64(limit).unwrap_or_default());
        loop {
            let bit = left.map_or(BIT, |left| left.min(BIT));
            py.detach(|| self.ticket.wait(Some(bit)));
            match self.outcome() {
                Some(outcome) => return outcome.map(|()| true).map_err(failed),
                None => py.check_signals()?,
            }
            left = left.map(|left| left.saturating_sub(bit));
            if left.is_some_and(|left| left.is_zero()) {
                return Ok(false);
            }
        }
    }

    /// Whether it is over, well or not.
    fn is_over(&self) -> bool {
        self.outcome().is_some()
    }

    /// Why it failed, if it did.
    fn error(&self) -> Option<String> {
        self.outcome().and_then(Result::err).map(|error| error.to_string())
    }

    /// Of a receive that is over: the rank that has sent.
    fn source(&self) -> Option<u32> {
        self.ticket.source()
    }
}

/// Operations that somebody is to be told of when they are over.
#[pyclass(frozen, module = "weft._native")]
pub(crate) struct Vigil(Arc<Mutex<Ended>>);

#[derive(Default)]
struct Ended {
    /// In the order in which they ended.
    numbers: VecDeque<u64>,
    /// When the first of these came, or became the first.
    since: Option<Instant>,
    /// Threads that do what ends ask for.
    busy: usize,
    /// Of threads that wait the one that came last is called: it has slept for the shortest time.
    waiting: Vec<Arc<Condvar>>,
    /// Somebody looks again and again whether the busy ones keep up.
    is_watched: bool,
    closed: bool,
}

/// A thread that is busy for longer may be waiting for what has ended since: another one goes on.
const PATIENCE: Duration = Duration::from_micros(500);
/// Nobody looks any more when nothing has ended for so long.
const QUIET: Duration = Duration::from_millis(10);

#[pymethods]
impl Vigil {
    #[new]
    fn new() -> Vigil {
        Vigil(Arc::default())
    }

    /// Has `number` told when all of these are over.
    fn add(&self, pending: Vec<PyRef<'_, Pending>>, number: u64) {
        let left = Arc::new(AtomicUsize::new(pending.len().max(1)));
        let tell = move |left: &AtomicUsize, to: &Mutex<Ended>| {
            if left.fetch_sub(1, Ordering::AcqRel) == 1 {
                let mut ended = to.lock().unwrap_or_else(PoisonError::into_inner);
                ended.numbers.push_back(number);
                ended.since.get_or_insert_with(Instant::now);
                // Who is busy is back in a moment, most often, and needs no call.
                let is_needed = ended.busy == 0 || !ended.is_watched;
                let last = is_needed.then(|| ended.waiting.pop()).flatten();
                drop(ended);
                last.inspect(|thread| thread.notify_one());
            }
        };
        if pending.is_empty() {
            tell(&left, &self.0);
        }
        for one in pending {
            let (left, to) = (left.clone(), self.0.clone());
            one.ticket.then(move || tell(&left, &to));
        }
    }

    /// Waits for the next; none if it was closed. `done`: the caller has had one before.
    fn next(&self, py: Python<'_>, done: bool) -> Option<u64> {
        py.detach(|| {
            let mut ended = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            ended.busy -= usize::from(done);
            let own = Arc::new(Condvar::new());
            let (mut watches, mut news) = (false, Instant::now());
            loop {
                if let Some(since) = ended.since {
                    news = since;
                    if ended.busy == 0 || since.elapsed() >= PATIENCE {
                        break;
                    }
                } else if ended.closed {
                    break;
                }
                let is_quiet = ended.since.is_none() && news.elapsed() >= QUIET;
                let may_watch = watches || !ended.is_watched;
                ended.is_watched &= !watches;
                watches = may_watch && ended.busy > 0 && !is_quiet;
                if watches {
                    ended.is_watched = true;
                    let (lock, _) =
                        own.wait_timeout(ended, PATIENCE).unwrap_or_else(PoisonError::into_inner);
                    ended = lock;
                } else {
                    ended.waiting.push(own.clone());
                    ended = own.wait(ended).unwrap_or_else(PoisonError::into_inner);
                    ended.waiting.retain(|other| !Arc::ptr_eq(other, &own));
                }
            }
            ended.is_watched &= !watches;
            let number = ended.numbers.pop_front();
            ended.since = (!ended.numbers.is_empty()).then(Instant::now);
            ended.busy += usize::from(number.is_some());
            number
        })
    }

    /// The caller has done what its number asked for, and waits for no other.
    fn leave(&self) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).busy -= 1;
    }

    /// Ends the waiting, when all that are over have been told.
    fn close(&self) {
        let mut ended = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        ended.closed = true;
        ended.waiting.drain(..).for_each(|thread| thread.notify_one());
    }
}

/// Python's seconds; what is beyond all bounds is no bound.
fn duration(seconds: f64) -> Duration {
    Duration::try_from_secs_f64(seconds).unwrap_or(Duration::MAX)
}

fn segment((start, len): Span) -> Segment {
    Segment { start: std::ptr::with_exposed_provenance_mut(start), len }
}

fn apart((start, dense, element, shape, strides): Strided) -> Apart {
    let strides = strides.into_iter().map(|stride| stride * element as isize);
    Apart {
        start: std::ptr::with_exposed_provenance_mut(start),
        dense: std::ptr::with_exposed_provenance_mut(dense),
        element,
        dims: shape.into_iter().zip(strides).collect(),
    }
}

fn named<T: Copy, const N: usize>(
    what: &str,
    given: &str,
    all: [T; N],
    name: impl Fn(T) -> &'static str,
) -> PyResult<T> {
    let found = all.into_iter().find(|one| name(*one) == given);
    found.ok_or_else(|| crate::not_one_of(what, given, &all.map(&name)))
}

/// Without a peer a receive is from whoever sends.
fn operation_named(name: &str, peer: Option<u32>, tag: u32) -> PyResult<Operation> {
    let root = peer.unwrap_or(0);
    let all = [
        Operation::AllReduce,
        Operation::AllGather,
        Operation::ReduceScatter,
        Operation::AllToAll,
        Operation::Broadcast { root },
        Operation::Reduce { root },
        Operation::Gather { root },
        Operation::Scatter { root },
        Operation::Barrier,
        Operation::Send { to: root, tag },
        peer.map_or(Operation::ReceiveAny { tag }, |from| Operation::Receive { from, tag }),
    ];
    named("operation", name, all, Operation::name)
}
