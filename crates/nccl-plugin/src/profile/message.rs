//! Messages of the network plugin: who sent what when, over which paths, joined with the step of NCCL's proxy
//! that it belongs to.
//!
//! NCCL hands each message over with a handle of its own, and a function that begins events: through it the step
//! is found. It says nothing where NCCL has no profiler, and before version 10 of the network interface; then a
//! message is joined with the others by time alone.

#![expect(
    unsafe_code,
    reason = "calls NCCL's function, and is called back by it with what it gave"
)]

use super::line::{Id, Line, Phase};
use super::recorder::{Recorder, State};
use crate::nic::Nic;
use std::ffi::c_void;
use std::ptr::null_mut;
use std::sync::Arc;
use weft_comm::Notes;
use weft_comm::notes::{LaneTimeOut, Piece};
use weft_comm::statistics::path_name;
use weft_nccl_abi::Profiler;
use weft_nccl_abi::profiler::network;

/// Whose events they are, and of which version: NCCL's convention is a kind of network above 16 bits of version.
pub(crate) const PLUGIN: i64 = 0x5746 << 16 | 1;

/// What goes through NCCL to the profiler and comes back.
#[repr(C)]
pub(crate) struct Joined {
    /// The number of the step, or 0.
    pub(crate) step: u64,
    /// The communicator's hash and the rank, if `is_known`.
    pub(crate) communicator: u64,
    pub(crate) rank: i32,
    pub(crate) is_known: u8,
}

/// How messages of a communicator are recorded.
#[derive(Clone)]
pub(crate) struct Messages {
    recorder: &'static Recorder,
    profiler: Option<Profiler>,
    nic: Arc<Nic>,
}

/// A message under way.
pub(crate) struct Message {
    number: u64,
    began: u64,
    joined: Joined,
    /// The event of somebody else's profiler.
    foreign: usize,
    sends: bool,
    tag: i32,
}

impl Messages {
    pub(crate) fn new(
        recorder: &'static Recorder,
        profiler: Option<Profiler>,
        nic: Arc<Nic>,
    ) -> Messages {
        Messages { recorder, profiler, nic }
    }

    /// The time, as [`Messages::begin`] takes it.
    pub(crate) fn now(&self) -> u64 {
        self.recorder.now()
    }

    /// A message begins; `None`: there is no room.
    ///
    /// # Safety
    /// `handle` is null, or what NCCL gave with the send or receive.
    pub(crate) unsafe fn begin(
        &self,
        began: u64,
        handle: *mut c_void,
        sends: bool,
        tag: i32,
    ) -> Option<Message> {
        let number = self.recorder.lock().take_number()?;
        let mut joined = Joined { step: 0, communicator: 0, rank: -1, is_known: 0 };
        let mut event = null_mut();
        if let Some(profiler) = self.profiler.filter(|_| !handle.is_null()) {
            let data = (&raw mut joined).cast();
            // SAFETY: NCCL's function and handle; it reads and writes `joined` during the call alone. Whatever
            // it returns, the message goes on.
            let _ = unsafe { profiler(&raw mut event, network::START, handle, PLUGIN, data) };
        }
        Some(Message { number, began, joined, foreign: event.addr(), sends, tag })
    }

    /// It is over; `sizes`: what came, or `None`: its channel has failed.
    pub(crate) fn end(&self, message: &Message, notes: &Notes, sizes: Option<&[usize]>) {
        if let Some(profiler) = self.profiler.filter(|_| message.foreign != 0) {
            let mut event = std::ptr::with_exposed_provenance_mut(message.foreign);
            // SAFETY: the event is what this function began.
            let _ =
                unsafe { profiler(&raw mut event, network::STOP, null_mut(), PLUGIN, null_mut()) };
        }
        let now = self.recorder.now();
        let mut state = self.recorder.lock();
        if state.has_room() {
            self.write(&mut state, message, notes, sizes, now);
        }
        self.recorder.relieve(state);
    }

    fn write(
        &self,
        state: &mut State,
        message: &Message,
        notes: &Notes,
        sizes: Option<&[usize]>,
        now: u64,
    ) {
        let Message { number, began, joined, sends, tag, .. } = message;
        let peer = notes.peer.map_or("nobody".into(), |peer| peer.to_string());
        let (verb, category) = if *sends { ("send to", "WEFT") } else { ("receive from", "WEFT") };
        let name = format!("{verb} {peer}");
        let id = Id { category, name: &name, number: *number };
        let mut line = Line::new(&mut state.text, Phase::Begin, id, *began);
        line.number("Event", number).text("Device", &self.nic.name).text("Peer", &peer);
        line.number_if("Host", notes.host).number("Tag", tag);
        if joined.is_known != 0 {
            line.number("CommHash", joined.communicator).number("Rank", joined.rank);
        }
        line.number_if("Parent", Some(joined.step).filter(|step| *step > 0));
        match sizes {
            Some(sizes) => line.number("Bytes", sizes.iter().sum::<usize>()),
            None => line.text("Failed", "the channel has failed"),
        };
        if *sends {
            line.number("Pieces", notes.pieces.len()).number("TimeOuts", notes.time_outs.len());
        }
        line.number_if("OtherBytes", Some(notes.left_out_bytes).filter(|bytes| *bytes > 0));
        drop(line);
        if let Some(matched) = notes.matched {
            let matched = self.recorder.at(matched);
            let clear = Id { name: "clear to send", ..id };
            drop(Line::new(&mut state.text, Phase::Instant, clear, matched));
        }
        for one in &notes.time_outs {
            self.write_time_out(state, id, one);
        }
        drop(Line::new(&mut state.text, Phase::End, id, now));
        for piece in &notes.pieces {
            self.write_piece(state, message, &peer, piece, now);
        }
    }

    fn write_time_out(&self, state: &mut State, id: Id<'_>, one: &LaneTimeOut) {
        let id = Id { name: "time-out", ..id };
        let mut line = Line::new(&mut state.text, Phase::Instant, id, self.recorder.at(one.at));
        if let Some(path) = one.path {
            line.text("Path", &path_name(path));
        }
        line.number("Port", one.port);
        self.write_nic(&mut line, one.nic);
    }

    /// The NIC of this machine that something left from, and its plane where there are several.
    fn write_nic(&self, line: &mut Line<'_>, number: u8) {
        let Some(device) = self.nic.devices.get(usize::from(number)) else { return };
        line.text("Device", &device.name).number_if("Plane", device.endpoint.plane);
    }

    fn write_piece(
        &self,
        state: &mut State,
        message: &Message,
        peer: &str,
        piece: &Piece,
        now: u64,
    ) {
        let Some(number) = state.take_number() else { return };
        let name = match piece.path {
            Some(path) => format!("path {} to {peer}", path_name(path)),
            None => format!("port {} to {peer}", piece.port),
        };
        let id = Id { category: "WEFT_PIECE", name: &name, number };
        let given = self.recorder.at(piece.given);
        let mut line = Line::new(&mut state.text, Phase::Begin, id, given);
        line.number("Event", number).number("Parent", message.number).number("Bytes", piece.bytes);
        if let Some(path) = piece.path {
            line.text("Path", &path_name(path));
        }
        line.number("Port", piece.port).number("Lane", piece.lane);
        line.number("Start", piece.start).number("End", piece.end);
        self.write_nic(&mut line, piece.nic);
        drop(line);
        let done = piece.done.map_or(now, |done| self.recorder.at(done)).max(given);
        drop(Line::new(&mut state.text, Phase::End, id, done));
    }
}
