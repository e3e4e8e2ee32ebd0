//! One socket of an endpoint.

use super::rdma;
use crate::roce::Link;
use crate::stream::inflow::{Inflow, Sink};
use crate::stream::outflow::{MOST_SLICES, Outflow};
use crate::stream::sealed::{Opener, Sealer};
use crate::wire::{ChannelKey, HELLO, Hello, Home, Nonce, SEAL_KEY, Welcome, WireError};
use crate::{process, tcp};
use mio::net::TcpStream;
use std::io::{self, IoSlice, Read};
use std::net::{Ipv4Addr, Shutdown};
use std::os::fd::AsRawFd;
use std::time::Instant;

/// A turn ends after about so many bytes.
pub(super) const TURN: usize = 1 << 20;

/// A socket, and what is written to it and read from it.
#[derive(Debug)]
pub(super) struct Connection {
    pub(super) stream: TcpStream,
    pub(super) role: Role,
    /// The system may have something to read; may have room to write.
    pub(super) readable: bool,
    pub(super) writable: bool,
    /// The peer writes no more: what is left ends with a zero.
    pub(super) ending: bool,
    /// It is in line for a turn.
    pub(super) queued: bool,
    /// What it says as soon as it is challenged.
    pub(super) greeting: Option<Box<Greeting>>,
    /// Encrypts and decrypts, where that was agreed on; and how much of `small` goes before it as it is.
    pub(super) sealed: Option<Box<(Sealer, Opener)>>,
    plain: usize,
    /// Small things that go before `out`: hellos, and all that receivers say.
    pub(super) small: Vec<u8>,
    pub(super) out: Outflow,
    pub(super) inflow: Inflow,
    /// Nothing stays where it is in the next turn ([`Sink::may_stay`]).
    pub(super) hurries: bool,
    /// Data goes by it, if it is there, and only the rest by `stream`.
    pub(super) link: Option<Link>,
    /// What still has to go by it besides.
    pub(super) said: Vec<u8>,
    /// When something was last heard, or something was written after silence.
    pub(super) heard: Instant,
    /// When its peer last acknowledged something, or nothing was wanted of it.
    pub(super) spoke: Instant,
    /// A receiver's: an announcement over it is watched; one was not acknowledged in time, and nothing has been
    /// since: what it says leads nowhere.
    pub(super) watched: bool,
    pub(super) mute: bool,
    /// What the peer's system has taken; when that last grew or nothing was out; when it last grew while
    /// something was out, or nothing was wanted of it.
    pub(super) taken: Option<(u64, u32)>,
    pub(super) grew: Instant,
    pub(super) took: Instant,
}

/// How a connection begins, at the side that has opened it.
#[derive(Debug)]
pub(super) struct Greeting {
    pub(super) hello: Hello,
    pub(super) key: ChannelKey,
    /// What it was challenged with.
    pub(super) challenge: Option<Nonce>,
}

impl Greeting {
    /// Whether the welcome is that of the listener.
    pub(super) fn is_answered(&self, welcome: &Welcome, next: u64) -> bool {
        let numbers = self.challenge.as_ref().map(|challenge| (&self.hello.nonce, challenge));
        numbers.is_some_and(|numbers| welcome.is_proven(&self.key, numbers, next))
    }
}

/// What it is for.
#[derive(Debug)]
pub(super) enum Role {
    /// Somebody has connected and not said who it is.
    Stranger {
        challenge: Nonce,
        hello: [u8; HELLO],
        have: usize,
        since: Instant,
        from: Ipv4Addr,
        /// The NIC that it has connected to.
        nic: u8,
    },
    /// A lane of a sending half.
    Send { channel: u32, lane: u16 },
    /// A lane of a receiving half.
    Receive { channel: u32, lane: u16, told: Told },
    /// What is written is still to leave. Then the other side closes.
    Leaving { until: Instant, shut: bool },
    /// Asks whether an endpoint lives.
    Asks { home: Home },
}

/// What the sender of a lane has heard of it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Told {
    /// Frames below are acknowledged.
    pub(super) next: u64,
    /// What of those behind them has come, where its acknowledgement is held back ([`super::receiving`]).
    pub(super) held: Option<Held>,
}

/// What is here and not acknowledged.
#[derive(Clone, Copy, Debug)]
pub(super) struct Held {
    pub(super) bytes: u64,
    /// Somebody waits to hear of it.
    pub(super) wanted: bool,
}

/// Why a connection is over.
#[derive(Debug)]
pub(super) enum Broken {
    /// The peer has closed it.
    Closed,
    /// The system says so.
    System(io::Error),
    /// The peer says what it must not.
    Wire(WireError),
    /// The device says so.
    Rdma(String),
    /// The receiver has no room for it.
    Full,
}

impl From<WireError> for Broken {
    fn from(error: WireError) -> Broken {
        Broken::Wire(error)
    }
}

impl Broken {
    /// Nobody listens at the other side.
    pub(super) fn is_refused(&self) -> bool {
        matches!(self, Broken::System(error) if error.kind() == io::ErrorKind::ConnectionRefused)
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        process::forget(self.stream.as_raw_fd());
        // Closing alone would leave it open where a child of this process has it as well.
        let _ = self.stream.shutdown(Shutdown::Both);
    }
}

impl Connection {
    pub(super) fn new(stream: TcpStream, role: Role, now: Instant) -> Connection {
        process::keep_from_children(stream.as_raw_fd());
        Connection {
            stream,
            role,
            readable: true,
            writable: true,
            ending: false,
            queued: false,
            greeting: None,
            sealed: None,
            plain: 0,
            small: Vec::new(),
            out: Outflow::default(),
            inflow: Inflow::default(),
            hurries: false,
            link: None,
            said: Vec::new(),
            heard: now,
            spoke: now,
            watched: false,
            mute: false,
            taken: None,
            grew: now,
            took: now,
        }
    }

    /// Whether what it says may get through: all has been answered by now, or nothing has been missed.
    pub(super) fn may_be_heard(&mut self) -> bool {
        self.mute = self.mute && tcp::life(&self.stream).is_some_and(|life| life.unanswered);
        !self.mute
    }

    /// Where a receiver puts what it has to say: it goes by the link as soon as the sender listens there.
    pub(super) fn voice(&mut self) -> &mut Vec<u8> {
        match self.link.as_ref().is_some_and(Link::is_heard) {
            true => &mut self.said,
            false => &mut self.small,
        }
    }

    /// Says hello to whoever has drawn this number.
    pub(super) fn answer_challenge(&mut self, challenge: &Nonce) -> Result<(), WireError> {
        let fresh = self.greeting.as_mut().filter(|greeting| greeting.challenge.is_none());
        let Some(greeting) = fresh else { return Err(WireError::Nonsense("a second challenge")) };
        greeting.challenge = Some(*challenge);
        greeting.hello.prove(&greeting.key, challenge);
        self.small.extend_from_slice(&greeting.hello.encode());
        if greeting.hello.sealed {
            let [ours, theirs] = greeting.key.seals(&greeting.hello.nonce, challenge);
            self.plain = self.small.len();
            self.seal(&ours, &theirs);
        }
        Ok(())
    }

    /// Whether it has been challenged, and its proof has left: who closes it then does not take it.
    pub(super) fn has_proved(&self) -> bool {
        let challenged =
            self.greeting.as_ref().is_some_and(|greeting| greeting.challenge.is_some());
        challenged && self.is_written()
    }

    /// Encrypts from now on, both ways.
    pub(super) fn seal(&mut self, ours: &[u8; SEAL_KEY], theirs: &[u8; SEAL_KEY]) {
        self.sealed = Some(Box::new((Sealer::new(ours), Opener::new(theirs))));
    }

    /// Whether nothing waits that goes before `out`.
    pub(super) fn is_written(&self) -> bool {
        let sealed = self.sealed.as_ref().is_none_or(|sealed| sealed.0.rest().is_empty());
        sealed && self.small.is_empty()
    }

    /// Writes `small` as far as it goes, and what was said.
    pub(super) fn write_small(&mut self) -> Result<(), Broken> {
        rdma::say(&mut self.link, &mut self.said)?;
        loop {
            self.write_sealed()?;
            if !self.writable || self.small.is_empty() {
                return Ok(());
            }
            if let Some(sealed) = self.sealed.as_mut().filter(|_| self.plain == 0) {
                let count = sealed.0.seal(&[IoSlice::new(&self.small)]);
                self.small.drain(..count);
                continue;
            }
            // What goes before all that is encrypted.
            let end = if self.plain > 0 { self.plain } else { self.small.len() };
            match tcp::write(&self.stream, &[IoSlice::new(&self.small[..end])]) {
                Ok(count) => {
                    self.small.drain(..count);
                    self.plain = self.plain.saturating_sub(count);
                }
                Err(error) => self.stop_writing(error)?,
            }
        }
    }

    /// Writes the records that are encrypted, as far as it goes.
    fn write_sealed(&mut self) -> Result<(), Broken> {
        while self.writable
            && let Some(sealed) = self.sealed.as_mut().filter(|it| !it.0.rest().is_empty())
        {
            match tcp::write(&self.stream, &[IoSlice::new(sealed.0.rest())]) {
                Ok(count) => sealed.0.advance(count),
                Err(error) => self.stop_writing(error)?,
            }
        }
        Ok(())
    }

    /// Writes `out` once; bytes written. Calls `written` with each frame that is to the end.
    ///
    /// # Safety
    /// The memory of its frames is there, and nobody writes it.
    #[expect(unsafe_code, reason = "payload is written from where it is")]
    pub(super) unsafe fn write_out(&mut self, written: impl FnMut(u64)) -> Result<usize, Broken> {
        let mut slices = [IoSlice::new(&[]); MOST_SLICES];
        // SAFETY: as the caller says.
        let count = unsafe { self.out.slices(&mut slices) };
        if let Some(sealed) = &mut self.sealed {
            let count = sealed.0.seal(&slices[..count]);
            self.out.advance(count, written);
            return self.write_sealed().map(|()| count);
        }
        match tcp::write(&self.stream, &slices[..count]) {
            Ok(count) => {
                self.out.advance(count, written);
                Ok(count)
            }
            Err(error) => self.stop_writing(error).map(|()| 0),
        }
    }

    fn stop_writing(&mut self, error: io::Error) -> Result<(), Broken> {
        // A connection that is not there yet says either.
        if matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::NotConnected) {
            self.writable = false;
            return Ok(());
        }
        Err(Broken::System(error))
    }

    /// Reads until nothing is there or the turn is over; bytes read.
    ///
    /// # Safety
    /// What `sink` gives is there, and nobody else's, until its frame has ended.
    #[expect(unsafe_code, reason = "payload is read to where it belongs")]
    pub(super) unsafe fn read(&mut self, sink: &mut impl Sink) -> Result<usize, Broken> {
        if self.sealed.is_some() {
            // SAFETY: as the caller says.
            return unsafe { self.read_sealed(sink) };
        }
        let mut all = 0;
        if self.inflow.stays() {
            // SAFETY: as the caller says.
            unsafe { self.inflow.advance(0, sink) }?;
        }
        while self.readable && all < TURN && !self.inflow.stays() {
            let (first, then) = self.inflow.room();
            let room = first.len() + then.len();
            // SAFETY: as the caller says.
            let count = match unsafe { tcp::read(&self.stream, first, then) } {
                Ok(0) => return Err(Broken::Closed),
                Ok(count) => count,
                Err(error) => {
                    let kind = error.kind();
                    if matches!(kind, io::ErrorKind::WouldBlock | io::ErrorKind::NotConnected) {
                        self.readable = false;
                        return Ok(all);
                    }
                    return Err(Broken::System(error));
                }
            };
            all += count;
            // SAFETY: as the caller says.
            unsafe { self.inflow.advance(count, sink) }?;
            // Less than there is room for: that was all, and the next bytes come with an event. Where
            // the memory is not there, `look_at_times` reads on and is told.
            self.readable = self.ending || count == room;
        }
        Ok(all)
    }

    /// As [`Connection::read`], where what comes is encrypted.
    ///
    /// # Safety
    /// As there.
    #[expect(unsafe_code, reason = "payload is put where it belongs")]
    unsafe fn read_sealed(&mut self, sink: &mut impl Sink) -> Result<usize, Broken> {
        let Some(sealed) = &mut self.sealed else { return Ok(0) };
        let opener = &mut sealed.1;
        let mut all = 0;
        if self.inflow.stays() {
            // SAFETY: as the caller says.
            unsafe { self.inflow.advance(0, sink) }?;
        }
        loop {
            while opener.has_some() && !self.inflow.stays() {
                let (first, then) = self.inflow.room();
                let some = opener.take(first.len() + then.len());
                let (into_first, into_then) = some.split_at(some.len().min(first.len()));
                then[..into_then.len()].copy_from_slice(into_then);
                // SAFETY: as the caller says.
                unsafe {
                    first.fill(into_first);
                    self.inflow.advance(some.len(), sink)?;
                }
            }
            if !self.readable || all >= TURN || self.inflow.stays() {
                return Ok(all);
            }
            let count = match (&self.stream).read(opener.room()) {
                Ok(0) => return Err(Broken::Closed),
                Ok(count) => count,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    self.readable = false;
                    return Ok(all);
                }
                Err(error) => return Err(Broken::System(error)),
            };
            all += count;
            opener.advance(count)?;
        }
    }

    /// Reads a little and throws it away. Whether there may be more.
    pub(super) fn discard(&mut self) -> Result<bool, Broken> {
        let mut waste = [0; 16 << 10];
        while self.readable {
            match (&self.stream).read(&mut waste) {
                Ok(0) => return Err(Broken::Closed),
                Ok(_) => return Ok(true),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => self.readable = false,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(Broken::System(error)),
            }
        }
        Ok(false)
    }
}
