//! NCCL's profiler interface: its tables, and what their events say, whatever the version.
//!
//! # Safety
//! All functions here are called by NCCL through its tables, with what its interface says.

#![expect(unsafe_code, reason = "functions that C calls, and symbols that it looks for")]

use super::line::{Id, Line, Phase};
use super::message::{Joined, PLUGIN};
use super::recorder::{Call, Communicator, Open, Recorder, State};
use crate::boundary::{Failure, enter};
use crate::logger;
use std::borrow::Cow;
use std::ffi::{CStr, c_char, c_int, c_void};
use std::ptr::{null_mut, with_exposed_provenance_mut};
use weft_nccl_abi::profiler::{
    CollectiveV4, DescriptorV3, DescriptorV4, DescriptorV5, NetworkEvent, P2pV4, ProfilerV3,
    ProfilerV4, ProfilerV5, ProxyOperation, StateArguments, event, state,
};
use weft_nccl_abi::{Logger, NcclResult};

/// What is asked for. What the proxy does between transfers is too much, and channels of kernels would have it do
/// more.
const WANTED_V3: u64 = event::GROUP
    | event::COLLECTIVE
    | event::P2P
    | event::PROXY_OPERATION
    | event::PROXY_STEP
    | event::NETWORK;
const WANTED_V5: u64 =
    WANTED_V3 | event::GROUP_CALL | event::COLLECTIVE_CALL | event::P2P_CALL | event::KERNEL_LAUNCH;

/// What an event is about, whatever the version.
enum About {
    GroupCall {
        depth: c_int,
        captured: bool,
    },
    /// Of a collective (`COLL_API`), or of a send or receive (`P2P_API`).
    Call {
        category: &'static str,
        function: *const c_char,
        count: usize,
        datatype: *const c_char,
        stream: u64,
        captured: bool,
    },
    Launch {
        stream: u64,
    },
    Group,
    /// `hash`: of the communicator, where the event tells it.
    Collective {
        one: CollectiveV4,
        hash: Option<u64>,
        group: u64,
    },
    /// `channels`: where NCCL tells them.
    P2p {
        one: P2pV4,
        hash: Option<u64>,
        group: u64,
        channels: Option<u8>,
    },
    Operation(ProxyOperation),
    Step(c_int),
    Kernel {
        channel: u8,
    },
    Network(NetworkEvent),
}

/// An event that begins, whatever the version.
struct Beginning {
    context: u64,
    parent: u64,
    rank: c_int,
    about: About,
}

/// Text of C's; nothing where there is none.
///
/// # Safety
/// Null, or text that ends in zero and stays as long as the result is used.
unsafe fn text<'a>(start: *const c_char) -> Cow<'a, str> {
    if start.is_null() {
        return Cow::Borrowed("");
    }
    // SAFETY: by the contract.
    unsafe { CStr::from_ptr(start) }.to_string_lossy()
}

fn begin_communicator(
    context: *mut *mut c_void,
    mask: *mut c_int,
    wanted: u64,
    one: Option<Communicator>,
) -> Result<(), Failure> {
    // SAFETY: a place for one pointer, and one for a number, by the interface.
    let (context, mask) = unsafe { (context.as_mut(), mask.as_mut()) };
    let context = context.ok_or(Failure::Null("context"))?;
    let mask = mask.ok_or(Failure::Null("eActivationMask"))?;
    let Some(recorder) = super::start()? else {
        // NCCL finds this table also where nobody has asked for it.
        (*context, *mask) = (null_mut(), 0);
        return Ok(());
    };
    *mask = wanted as c_int;
    let number = match one {
        Some(one) => recorder.lock().meet(one),
        None => u64::MAX,
    };
    *context = with_exposed_provenance_mut(number as usize);
    Ok(())
}

unsafe extern "C" fn init_v3(context: *mut *mut c_void, mask: *mut c_int) -> NcclResult {
    enter("profiler init", || begin_communicator(context, mask, WANTED_V3, None))
}

unsafe extern "C" fn init_v4(
    context: *mut *mut c_void,
    mask: *mut c_int,
    name: *const c_char,
    hash: u64,
    nodes: c_int,
    ranks: c_int,
    rank: c_int,
    log: Option<Logger>,
) -> NcclResult {
    logger::set(log);
    enter("profiler init", || {
        // SAFETY: as at the top.
        let name = unsafe { text(name) }.into_owned();
        let one = Communicator { hash, rank, told: Some((ranks, nodes, name)) };
        begin_communicator(context, mask, WANTED_V3, Some(one))
    })
}

unsafe extern "C" fn init_v5(
    context: *mut *mut c_void,
    hash: u64,
    mask: *mut c_int,
    name: *const c_char,
    nodes: c_int,
    ranks: c_int,
    rank: c_int,
    log: Option<Logger>,
) -> NcclResult {
    logger::set(log);
    enter("profiler init", || {
        // SAFETY: as at the top.
        let name = unsafe { text(name) }.into_owned();
        let one = Communicator { hash, rank, told: Some((ranks, nodes, name)) };
        begin_communicator(context, mask, WANTED_V5, Some(one))
    })
}

/// What an event of a kind that all versions have alike is about.
macro_rules! about_alike {
    ($about:ident, $kind:expr) => {
        Some(match $kind {
            event::GROUP => About::Group,
            event::PROXY_OPERATION => About::Operation($about.operation),
            event::PROXY_STEP => About::Step($about.step.step),
            event::KERNEL_CHANNEL => About::Kernel { channel: $about.kernel.channel },
            event::NETWORK => About::Network($about.network),
            _ => return None,
        })
    };
}

/// What an event of version 3 is about, if it is a kind that was asked for.
///
/// # Safety
/// Its kind says which field is there; so for the others.
unsafe fn about_v3(descriptor: &DescriptorV3) -> Option<About> {
    let about = &descriptor.about;
    let group = descriptor.parent.addr() as u64;
    // SAFETY: by the contract.
    unsafe {
        match u64::from(descriptor.kind) {
            event::COLLECTIVE => {
                let old = about.collective;
                let one = CollectiveV4 {
                    sequence: old.sequence,
                    function: old.function,
                    send: old.send,
                    receive: old.receive,
                    count: old.count,
                    root: old.root,
                    datatype: old.datatype,
                    channels: old.channels,
                    warps: old.warps,
                    algorithm: old.algorithm,
                    protocol: old.protocol,
                };
                Some(About::Collective { one, hash: Some(old.communicator), group })
            }
            event::P2P => {
                let old = about.p2p;
                let one = P2pV4 {
                    function: old.function,
                    buffer: old.buffer,
                    datatype: old.datatype,
                    count: old.count,
                    peer: old.peer,
                    channels: 0,
                };
                Some(About::P2p { one, hash: Some(old.communicator), group, channels: None })
            }
            kind => about_alike!(about, kind),
        }
    }
}

/// # Safety
/// As [`about_v3`].
unsafe fn about_v4(descriptor: &DescriptorV4) -> Option<About> {
    let about = &descriptor.about;
    let (hash, group) = (None, descriptor.parent.addr() as u64);
    // SAFETY: by the contract; `channels` of messages may not be there, and is not looked at.
    unsafe {
        match u64::from(descriptor.kind) {
            event::COLLECTIVE => Some(About::Collective { one: about.collective, hash, group }),
            event::P2P => Some(About::P2p { one: about.p2p, hash, group, channels: None }),
            kind => about_alike!(about, kind),
        }
    }
}

/// # Safety
/// As [`about_v3`].
unsafe fn about_v5(descriptor: &DescriptorV5) -> Option<About> {
    let about = &descriptor.about;
    let call = |category, function, count, datatype, stream: *mut c_void, captured| {
        let stream = stream.addr() as u64;
        About::Call { category, function, count, datatype, stream, captured: captured != 0 }
    };
    // SAFETY: by the contract.
    unsafe {
        Some(match descriptor.kind {
            event::GROUP_CALL => {
                let one = about.group_call;
                About::GroupCall { depth: one.depth, captured: one.captured != 0 }
            }
            event::COLLECTIVE_CALL => {
                let one = about.collective_call;
                call("COLL_API", one.function, one.count, one.datatype, one.stream, one.captured)
            }
            event::P2P_CALL => {
                let one = about.p2p_call;
                call("P2P_API", one.function, one.count, one.datatype, one.stream, one.captured)
            }
            event::KERNEL_LAUNCH => About::Launch { stream: about.launch.stream.addr() as u64 },
            event::COLLECTIVE => {
                let (one, group) = (about.collective.base, about.collective.group);
                About::Collective { one, hash: None, group: group.addr() as u64 }
            }
            event::P2P => {
                let (one, group) = (about.p2p.base, about.p2p.group.addr() as u64);
                About::P2p { one, hash: None, group, channels: Some(one.channels) }
            }
            kind => return about_alike!(about, kind),
        })
    }
}

/// Begins an event; its handle is its number, or null.
macro_rules! start_event {
    ($name:ident, $descriptor:ty, $about:ident) => {
        unsafe extern "C" fn $name(
            context: *mut c_void,
            handle: *mut *mut c_void,
            descriptor: *mut $descriptor,
        ) -> NcclResult {
            enter("startEvent", || {
                // SAFETY: a place for one pointer, and NCCL's structure.
                let (handle, descriptor) = unsafe { (handle.as_mut(), descriptor.as_ref()) };
                let handle = handle.ok_or(Failure::Null("eHandle"))?;
                let descriptor = descriptor.ok_or(Failure::Null("eDescr"))?;
                *handle = null_mut();
                let Some(recorder) = super::recording() else { return Ok(()) };
                // SAFETY: as at the top.
                let Some(about) = (unsafe { $about(descriptor) }) else { return Ok(()) };
                let (parent, rank) = (descriptor.parent.addr() as u64, descriptor.rank);
                let context = context.addr() as u64;
                let beginning = Beginning { context, parent, rank, about };
                // SAFETY: as at the top.
                let number = unsafe { begin(recorder, &beginning) }.unwrap_or(0);
                *handle = with_exposed_provenance_mut(number as usize);
                Ok(())
            })
        }
    };
}

start_event!(start_event_v3, DescriptorV3, about_v3);
start_event!(start_event_v4, DescriptorV4, about_v4);
start_event!(start_event_v5, DescriptorV5, about_v5);

/// Records the beginning of an event; its number. What a message of ours belongs to is said at once, and nothing
/// begins.
///
/// # Safety
/// Its pointers are what NCCL's interface says.
unsafe fn begin(recorder: &Recorder, beginning: &Beginning) -> Option<u64> {
    let now = recorder.now();
    let mut state = recorder.lock();
    if let About::Network(network) = &beginning.about {
        if network.plugin == PLUGIN {
            // SAFETY: `Messages::begin` gave it, and waits.
            unsafe { join(&state, beginning, network.data.cast()) };
        }
        return None;
    }
    let number = state.take_number()?;
    let of = of(&mut state, beginning);
    // SAFETY: by the contract.
    unsafe {
        let open = describe(&state, beginning, of);
        write(&mut state, beginning, &open, number, now);
        if let About::GroupCall { .. } = beginning.about {
            state.keep_call(number, Call { stream: 0, group: number });
        }
        if let About::Call { stream, .. } = beginning.about {
            let group = beginning.parent;
            state.keep_call(number, Call { stream, group });
        }
        state.keep(number, open);
    }
    recorder.relieve(state);
    Some(number)
}

/// Says which step a message belongs to.
///
/// # Safety
/// `joined` is there, and nobody else's meanwhile.
unsafe fn join(state: &State, beginning: &Beginning, joined: *mut Joined) {
    let step = state.open.get(&beginning.parent);
    // SAFETY: by the contract.
    let Some(joined) = (unsafe { joined.as_mut() }) else { return };
    joined.step = if step.is_some() { beginning.parent } else { 0 };
    if let Some((communicator, rank)) = step.and_then(|step| step.of) {
        (joined.communicator, joined.rank, joined.is_known) = (communicator, rank, 1);
    }
}

/// Communicator and rank of an event. Contexts and parents of operations for other processes are theirs.
fn of(state: &mut State, beginning: &Beginning) -> Option<(u64, i32)> {
    if let About::Collective { hash: Some(hash), .. } | About::P2p { hash: Some(hash), .. } =
        beginning.about
    {
        state.meet_quietly(hash, beginning.rank);
        return Some((hash, beginning.rank));
    }
    match &beginning.about {
        About::Step(_) | About::Kernel { .. } => state.open.get(&beginning.parent)?.of,
        About::Operation(one) if one.process != *super::PROCESS as c_int => None,
        About::Operation(_) => {
            let task = state.open.get(&beginning.parent).and_then(|task| task.of);
            task.or_else(|| state.of_context(beginning.context))
        }
        _ => state.of_context(beginning.context),
    }
}

/// # Safety
/// As [`begin`].
unsafe fn describe(state: &State, beginning: &Beginning, of: Option<(u64, i32)>) -> Open {
    // SAFETY: by the contract.
    let (category, name): (_, Cow<'_, str>) = unsafe {
        match &beginning.about {
            About::GroupCall { .. } => ("GROUP_API", "Group API".into()),
            About::Call { category, function, .. } => (*category, text(*function)),
            About::Launch { .. } => ("KERNEL_LAUNCH", "KernelLaunch".into()),
            About::Group => ("GROUP", "Group".into()),
            About::Collective { one, .. } => ("COLL", text(one.function)),
            About::P2p { one, .. } => ("P2P", text(one.function)),
            About::Operation(one) if one.sends != 0 => ("PROXY", "ProxySend".into()),
            About::Operation(_) => ("PROXY", "ProxyRecv".into()),
            About::Step(_) => {
                let operation = state.open.get(&beginning.parent);
                let sends = operation.is_some_and(|operation| operation.name == "ProxySend");
                ("NET", if sends { "SendStep".into() } else { "RecvStep".into() })
            }
            About::Kernel { .. } => ("GPU", "KernelCh".into()),
            About::Network(_) => ("NET", "".into()),
        }
    };
    let is_task = matches!(beginning.about, About::Collective { .. } | About::P2p { .. });
    let foreign = matches!(&beginning.about, About::Operation(one) if one.process != *super::PROCESS as c_int);
    let parent = if foreign { 0 } else { beginning.parent };
    Open { category, name: name.into_owned(), parent, of, is_task, over: 0, transferred: 0 }
}

/// # Safety
/// As [`begin`].
unsafe fn write(state: &mut State, beginning: &Beginning, open: &Open, number: u64, now: u64) {
    let call = state.calls.get(&beginning.parent).copied();
    let id = Id { category: open.category, name: &open.name, number };
    let mut line = Line::new(&mut state.text, Phase::Begin, id, now);
    line.number("Event", number).number_if("Parent", Some(open.parent).filter(|one| *one > 0));
    if let Some((communicator, rank)) = open.of {
        line.number("CommHash", communicator).number("Rank", rank);
    }
    // SAFETY: by the contract.
    unsafe {
        match &beginning.about {
            About::GroupCall { depth, captured } => {
                line.number("Depth", depth).number("GraphCaptured", captured);
            }
            About::Call { count, datatype, stream, captured, .. } => {
                line.number("Count", count).text("Datatype", &text(*datatype));
                line.number("Stream", stream).number("GraphCaptured", captured);
            }
            About::Launch { stream } => {
                line.number("Stream", stream);
            }
            About::Collective { one, group, .. } => {
                line.number("SeqNum", one.sequence).number("Count", one.count);
                line.text("Datatype", &text(one.datatype)).number("Root", one.root);
                line.text("Algorithm", &text(one.algorithm)).text("Protocol", &text(one.protocol));
                line.number("nChannels", one.channels).number("Group", group);
                line.number_if("Stream", call.map(|call| call.stream));
            }
            About::P2p { one, group, channels, .. } => {
                line.number("Peer", one.peer).number("Count", one.count);
                line.text("Datatype", &text(one.datatype)).number_if("nChannels", *channels);
                line.number("Group", call.map_or(*group, |call| call.group));
                line.number_if("Stream", call.map(|call| call.stream));
            }
            About::Operation(one) => {
                line.number("Channel", one.channel).number("Peer", one.peer);
                line.number("Steps", one.steps).number("ChunkSize", one.chunk);
                line.number("Process", one.process);
            }
            About::Step(step) => {
                line.number("Step", step);
            }
            About::Kernel { channel } => {
                line.number("Channel", channel);
            }
            About::Group | About::Network(_) => {}
        }
    }
}

unsafe extern "C" fn stop_event(handle: *mut c_void) -> NcclResult {
    enter("stopEvent", || {
        if let Some(recorder) = super::recording() {
            let now = recorder.now();
            let mut state = recorder.lock();
            state.stop(handle.addr() as u64, now);
            recorder.relieve(state);
        }
        Ok(())
    })
}

unsafe extern "C" fn record_state(
    handle: *mut c_void,
    what: c_int,
    arguments: *mut StateArguments,
) -> NcclResult {
    enter("recordEventState", || {
        let Some(recorder) = super::recording() else { return Ok(()) };
        let name = match what {
            state::OPERATION_IN_PROGRESS => "InProgress",
            state::SEND_GPU_WAIT => "SendGpuWait",
            state::SEND_PEER_WAIT => "SendPeerWait",
            state::SEND_WAIT => "SendWait",
            state::RECEIVE_WAIT => "RecvWait",
            state::RECEIVE_FLUSH_WAIT => "RecvFlushWait",
            state::RECEIVE_GPU_WAIT => "RecvGpuWait",
            _ => return Ok(()),
        };
        let now = recorder.now();
        let number = handle.addr() as u64;
        let mut all = recorder.lock();
        let is_open = all.open.contains_key(&number);
        if !is_open || !all.has_room() {
            return Ok(());
        }
        // SAFETY: null, or as the state says; of steps bytes.
        if let Some(arguments) = unsafe { arguments.as_ref() }
            && what != state::OPERATION_IN_PROGRESS
            && let Some(open) = all.open.get_mut(&number)
        {
            open.transferred = arguments.value;
        }
        let category = all.open.get(&number).map_or("NET", |open| open.category);
        drop(Line::new(&mut all.text, Phase::Instant, Id { category, name, number }, now));
        recorder.relieve(all);
        Ok(())
    })
}

unsafe extern "C" fn finalize(context: *mut c_void) -> NcclResult {
    enter("profiler finalize", || {
        if let Some(recorder) = super::recording() {
            let of = recorder.lock().of_context(context.addr() as u64);
            recorder.end(of);
        }
        Ok(())
    })
}

/// Writes out one table, under the name by which NCCL looks for it.
macro_rules! export {
    ($symbol:ident: $table:ident, $init:ident, $start:ident) => {
        /// A table of this version.
        #[unsafe(no_mangle)]
        pub static $symbol: $table = $table {
            name: c"Weft".as_ptr(),
            init: $init,
            start_event: $start,
            stop_event,
            record_state,
            finalize,
        };
    };
}

export!(ncclProfiler_v3: ProfilerV3, init_v3, start_event_v3);
export!(ncclProfiler_v4: ProfilerV4, init_v4, start_event_v4);
export!(ncclProfiler_v5: ProfilerV5, init_v5, start_event_v5);
