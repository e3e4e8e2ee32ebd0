//! The library as NCCL's profiler, and as its network at once: each message is joined with the step that it
//! belongs to, and all of it is in the file. What this does stands for NCCL's core.

#![expect(unsafe_code, reason = "drives C functions")]

mod common;

use common::{Pair, environment, library, symbol, until};
use std::cell::RefCell;
use std::ffi::{c_char, c_int, c_void};
use std::path::{Path, PathBuf};
use std::ptr::{null, null_mut};
use std::sync::Mutex;
use weft_nccl_abi::profiler::{
    AboutV5, CollectiveV4, CollectiveV5, DescriptorV3, DescriptorV4, DescriptorV5, GroupCall,
    NetworkEvent, ProfilerV3, ProfilerV4, ProfilerV5, ProxyOperation, ProxyStep, StateArguments,
    event, network, state,
};
use weft_nccl_abi::{NcclResult, Version};
use weft_net_bench::log;
use weft_net_bench::table::{Net, Plugin};

/// Tests of this file write one file and read it: one after the other.
static ALONE: Mutex<()> = Mutex::new(());

fn directory() -> PathBuf {
    Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("profile-{}", std::process::id()))
}

fn set_up() {
    std::fs::create_dir_all(directory()).expect("it is made");
    environment(&[("WEFT_PROFILE", directory().to_str().expect("text"))]);
}

fn profiler() -> &'static ProfilerV5 {
    symbol("ncclProfiler_v5")
}

/// A descriptor of version 5 of which all bytes beyond what is said are zero.
fn descriptor(kind: u64, parent: *mut c_void, fill: impl FnOnce(&mut AboutV5)) -> DescriptorV5 {
    // SAFETY: numbers and pointers, all of which may be zero.
    let mut made: DescriptorV5 = unsafe { std::mem::zeroed() };
    (made.kind, made.parent, made.rank) = (kind, parent, 3);
    fill(&mut made.about);
    made
}

/// A communicator as NCCL makes it known; its context.
fn communicator(hash: u64) -> (*mut c_void, c_int) {
    let (mut context, mut mask) = (null_mut(), -1);
    // SAFETY: places for what it writes, and text that stays.
    let result = unsafe {
        (profiler().init)(&raw mut context, hash, &raw mut mask, c"world".as_ptr(), 2, 4, 3, None)
    };
    assert!(result.is_success());
    (context, mask)
}

fn start(context: *mut c_void, mut descriptor: DescriptorV5) -> *mut c_void {
    let mut handle = null_mut();
    // SAFETY: what it reads and writes is here.
    let result = unsafe { (profiler().start_event)(context, &raw mut handle, &raw mut descriptor) };
    assert!(result.is_success());
    handle
}

fn stop(handle: *mut c_void) {
    // SAFETY: a handle of its own.
    assert!(unsafe { (profiler().stop_event)(handle) }.is_success());
}

fn collective(context: *mut c_void, call: *mut c_void, group: *mut c_void) -> *mut c_void {
    let base = CollectiveV4 {
        sequence: 5,
        function: c"AllReduce".as_ptr(),
        send: null(),
        receive: null_mut(),
        count: 1_024,
        root: 0,
        datatype: c"ncclFloat32".as_ptr(),
        channels: 2,
        warps: 16,
        algorithm: c"RING".as_ptr(),
        protocol: c"SIMPLE".as_ptr(),
    };
    let fill = |about: &mut AboutV5| about.collective = CollectiveV5 { base, group };
    start(context, descriptor(event::COLLECTIVE, call, fill))
}

fn operation(context: *mut c_void, task: *mut c_void, process: u32) -> *mut c_void {
    let (process, channel) = (process as c_int, 1);
    let one = ProxyOperation { process, channel, peer: 2, steps: 1, chunk: 4_096, sends: 1 };
    start(context, descriptor(event::PROXY_OPERATION, task, |about| about.operation = one))
}

fn step(context: *mut c_void, operation: *mut c_void) -> *mut c_void {
    let fill = |about: &mut AboutV5| about.step = ProxyStep { step: 7 };
    start(context, descriptor(event::PROXY_STEP, operation, fill))
}

thread_local! {
    /// Context and step of what is posted next, as NCCL's core keeps them behind the handle of a message.
    static NOW: RefCell<(*mut c_void, *mut c_void)> = const { RefCell::new((null_mut(), null_mut())) };
}

/// NCCL's function for events of network plugins.
unsafe extern "C" fn callback(
    handle: *mut *mut c_void,
    what: c_int,
    parent: *mut c_void,
    plugin: i64,
    data: *mut c_void,
) -> NcclResult {
    // SAFETY: what the network plugin gave, who waits.
    unsafe {
        if what == network::START {
            assert!(!parent.is_null(), "NCCL looks behind it");
            let (context, step) = NOW.with(|now| *now.borrow());
            let fill = |about: &mut AboutV5| about.network = NetworkEvent { plugin, data };
            *handle = start(context, descriptor(event::NETWORK, step, fill));
        } else {
            stop(*handle);
        }
    }
    NcclResult::SUCCESS
}

fn net(version: Version) -> Net {
    let plugin = Plugin::load(&library(), version).expect("the version is there");
    plugin.init_profiled(Some(log::logger()), Some(callback)).expect("init works")
}

/// The events in the file so far that have `needle`. Who reads in the middle of a write reads again.
fn lines(needle: &str) -> Vec<String> {
    let text = until("a whole file", || {
        let files = std::fs::read_dir(directory()).expect("the directory is made");
        let files = files.flatten().map(|file| file.path());
        let mut traces = files.filter(|path| path.extension().is_some_and(|end| end == "json"));
        let text = traces
            .next()
            .map_or(String::new(), |path| std::fs::read_to_string(path).expect("text"));
        assert!(traces.next().is_none(), "a process has one file");
        let is_whole = text.starts_with("[\n{") && text.ends_with(",\n{}]\n");
        (text.is_empty() || is_whole).then_some(text)
    });
    text.lines().filter(|line| line.contains(needle)).map(str::to_owned).collect()
}

/// The same, when there are so many.
fn lines_at_last(needle: &str, count: usize) -> Vec<String> {
    until(needle, || Some(lines(needle)).filter(|lines| lines.len() >= count))
}

/// The number behind a key of a line.
fn number(line: &str, key: &str) -> Option<u64> {
    let (_, rest) = line.split_once(&format!("\"{key}\":"))?;
    rest[..rest.find([',', '}'])?].parse().ok()
}

#[test]
fn a_message_is_joined_with_its_step_and_its_collective() {
    let _alone = ALONE.lock();
    set_up();
    for version in [Version::V10, Version::V12] {
        let hash = 7_000 + version as u64;
        let (context, mask) = communicator(hash);
        assert!(mask as u64 & event::NETWORK > 0 && mask as u64 & event::PROXY_CONTROL == 0);
        let depth = |about: &mut AboutV5| about.group_call = GroupCall { captured: 0, depth: 1 };
        let call = start(context, descriptor(event::GROUP_CALL, null_mut(), depth));
        let task = collective(context, call, null_mut());
        stop(task);
        let operation = operation(context, task, std::process::id());
        let step = step(context, operation);
        let net = net(version);
        NOW.with(|now| *now.borrow_mut() = (context, step));
        let mut pair = Pair::new(&net, 3 << 20);
        net.profile.set(std::ptr::without_provenance_mut(1));
        pair.transfer(3 << 20);
        let mut arguments = StateArguments { value: 3 << 20 };
        // SAFETY: the step is under way.
        let told = unsafe { (profiler().record_state)(step, state::SEND_WAIT, &raw mut arguments) };
        assert!(told.is_success());
        stop(step);
        stop(operation);
        stop(call);
        pair.close();
        net.finalize().expect("it ends");
        // SAFETY: the context is that of `init`.
        assert!(unsafe { (profiler().finalize)(context) }.is_success());

        let sends = lines_at_last("\"name\":\"send to 127.0.0.1\"", 2);
        let send = sends.iter().find(|line| number(line, "CommHash") == Some(hash));
        let send = send.expect("the communicator is known by the message");
        assert_eq!(number(send, "Rank"), Some(3));
        assert_eq!(number(send, "Parent"), Some(step.addr() as u64));
        assert_eq!(number(send, "Bytes"), Some(3 << 20));
        let id = number(send, "Event").expect("it has a number");
        let pieces = lines("\"WEFT_PIECE\"");
        let pieces = pieces.iter().filter(|line| number(line, "Parent") == Some(id));
        let (count, bytes) = pieces
            .fold((0, 0), |(count, sum), one| (count + 1, sum + number(one, "Bytes").unwrap()));
        assert_eq!((Some(count), bytes), (number(send, "Pieces"), 3 << 20), "every byte, once");
        assert!(count > 1, "it is large enough to be cut");

        let tasks = lines("\"cat\":\"COLL\"");
        let ours = |line: &&String| number(line, "CommHash") == Some(hash);
        let task_line = tasks.iter().find(ours).expect("it is there");
        for part in
            ["\"ph\":\"b\"", "\"SeqNum\":5", "\"Count\":1024", "\"ncclFloat32\"", "\"RING\""]
        {
            assert!(task_line.contains(part), "{task_line}");
        }
        // Its end is that of its operation, not of its enqueueing.
        let ends = |handle: *mut c_void, category: &str| {
            let id = format!("\"{category}\",\"ph\":\"e\"");
            let local = format!("{:#x}\"", handle.addr());
            let all = lines(&id);
            let end = all.into_iter().find(|line| line.contains(&local)).expect("it ends");
            number(&end.replace('.', ""), "ts").expect("a time")
        };
        assert!(ends(task, "COLL") >= ends(operation, "PROXY"));
        let step_end = lines("\"NET\",\"ph\":\"e\"");
        assert!(step_end.iter().any(|line| number(line, "Bytes") == Some(3 << 20)), "{step_end:?}");
    }
}

#[test]
fn what_another_process_has_is_no_parent_here() {
    let _alone = ALONE.lock();
    set_up();
    let (context, _) = communicator(8_000);
    let task = collective(context, null_mut(), null_mut());
    // PXN: the handle is a number of that process's, and may be one here as well.
    let foreign = operation(context, task, std::process::id() + 1);
    let step = step(context, foreign);
    for handle in [step, foreign, task, null_mut(), std::ptr::without_provenance_mut(1 << 40)] {
        stop(handle);
        stop(handle);
    }
    let local = format!("{:#x}\"", foreign.addr());
    let line = lines_at_last(&local, 2).swap_remove(0);
    assert!(!line.contains("Parent") && !line.contains("CommHash"), "{line}");
}

#[test]
fn a_network_without_profiler_has_messages_all_the_same() {
    let _alone = ALONE.lock();
    set_up();
    let before = lines("\"name\":\"send to 127.0.0.1\"").len();
    let net = common::net(Version::V8);
    let mut pair = Pair::new(&net, 64);
    pair.transfer(64);
    pair.transfer(0);
    pair.close();
    // A line for its beginning and one for its end.
    let sends = lines_at_last("\"name\":\"send to 127.0.0.1\"", before + 4);
    let receives = lines("\"name\":\"receive from 127.0.0.1\"");
    for line in &sends[before..] {
        assert!(!line.contains("CommHash"), "{line}");
    }
    assert!(receives.iter().any(|line| number(line, "Bytes") == Some(64)), "{receives:?}");
}

#[test]
fn older_versions_say_the_same() {
    let _alone = ALONE.lock();
    set_up();
    let (mut context, mut mask) = (null_mut(), 0);
    let v4: &ProfilerV4 = symbol("ncclProfiler_v4");
    // SAFETY: places for what it writes; names may be missing.
    let init = unsafe { (v4.init)(&raw mut context, &raw mut mask, null(), 9_004, 1, 1, 0, None) };
    assert!(init.is_success() && mask > 0 && mask < 1 << 8);
    // SAFETY: as in version 5.
    let mut old: DescriptorV4 = unsafe { std::mem::zeroed() };
    old.kind = event::COLLECTIVE as u8;
    // SAFETY: writing a field of a union that is zero otherwise.
    unsafe { describe(&mut old.about.collective.function, &mut old.about.collective.datatype) };
    let mut handle = null_mut();
    // SAFETY: as in version 5.
    assert!(unsafe { (v4.start_event)(context, &raw mut handle, &raw mut old) }.is_success());
    // SAFETY: the context is that of `init`.
    assert!(unsafe { (v4.finalize)(context) }.is_success());
    assert_eq!(tasks_of(9_004), 1);

    let v3: &ProfilerV3 = symbol("ncclProfiler_v3");
    // SAFETY: as above.
    assert!(unsafe { (v3.init)(&raw mut context, &raw mut mask) }.is_success());
    // SAFETY: as in version 5.
    let mut older: DescriptorV3 = unsafe { std::mem::zeroed() };
    older.kind = event::COLLECTIVE as u8;
    // SAFETY: as above.
    unsafe {
        older.about.collective.communicator = 9_003;
        describe(&mut older.about.collective.function, &mut older.about.collective.datatype);
        assert!((v3.start_event)(context, &raw mut handle, &raw mut older).is_success());
        assert!((v3.finalize)(context).is_success());
    }
    assert_eq!(tasks_of(9_003), 1);
}

fn describe(function: &mut *const c_char, datatype: &mut *const c_char) {
    (*function, *datatype) = (c"AllGather".as_ptr(), c"ncclInt8".as_ptr());
}

/// Beginnings of collectives of a communicator that are in the file.
fn tasks_of(hash: u64) -> usize {
    let begins = lines("\"COLL\",\"ph\":\"b\"");
    begins.iter().filter(|line| number(line, "CommHash") == Some(hash)).count()
}
