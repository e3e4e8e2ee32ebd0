//! A host that opens a connection for every subflow, from the source port that enforces its path.
//!
//! What the receiver has of a subflow outlives a connection. A subflow that makes no progress for a
//! time-out gets another route of its planner, as a flow of datagrams does, and a new connection
//! that goes on where the receiver is. Everything else is TCP's.

use super::control::{Control, Order};
use super::sockets::mark;
use super::streams::{Inlet, Outlet};
use super::{Clock, HostConfig, HostReport};
use crate::messages::Messages;
use crate::pattern::Checked;
use crate::ports::Ports;
use crate::receiver::Receiver;
use crate::report::{Recovery, Sent};
use crate::script::Script;
use crate::sender::Given;
use crate::wire::{Data, Hello};
use mio::net::TcpListener;
use mio::{Events, Interest, Poll, Token};
use rustc_hash::FxHashMap;
use std::collections::BTreeMap;
use std::io;
use std::net::SocketAddr;
use std::time::Duration;
use weft_balance::Planner;
use weft_balance::plan::{Carrier, Chunk, FlowInfo, LossSignal, Post, Subflow};
use weft_units::Time;

const LISTENER: Token = Token(0);
const CONTROL: Token = Token(1);
/// Tokens of connections begin here: even ones are ours to send, odd ones to receive.
const FIRST: usize = 2;
/// Time-outs that a subflow gets before it is taken for stuck: TCP sends again by itself, and holds much
/// that nobody sees move.
const PATIENCE: u64 = 2;
/// Ports that are tried for a connection.
const TRIES: u32 = 16;
/// Progress is told after so many parts of all that is to come.
const STEPS: u64 = 64;

/// A subflow to send.
#[derive(Debug)]
struct Outgoing {
    subflow: Subflow,
    hello: Hello,
    outlet: Option<Outlet>,
    /// The source port that a plan made elsewhere gives it, while it stays on its way.
    planned: Option<u16>,
    port: Option<u16>,
    /// The highest byte that was ever written.
    reached: u64,
    /// When something last moved.
    progress: Time,
    time_outs: u32,
    /// Of a chunk: it has so long at least.
    patient_until: Time,
    /// Its queue pair was told that there is room.
    made_room: bool,
    finished: bool,
}

impl Outgoing {
    /// When it times out, where others do after `rto`.
    fn late_at(&self, rto: Time) -> Time {
        let rto = match self.subflow.carrier {
            Carrier::Chunk(Chunk { time_out, .. }) => time_out.min(rto),
            Carrier::Own | Carrier::Persistent { .. } => rto,
        };
        let after = rto * (1 << self.time_outs.min(4));
        self.progress.saturating_add(after).max(self.patient_until)
    }
}

struct Host {
    config: HostConfig,
    planner: Planner,
    ports: Ports,
    messages: Messages,
    script: Script,
    listener: TcpListener,
    outgoing: Vec<Outgoing>,
    inlets: BTreeMap<usize, Inlet>,
    accepted: usize,
    /// Of each subflow, by sender and flow: how much is here, and its connection. Never iterated.
    have: FxHashMap<(u32, u32), (u64, usize)>,
    receiver: Receiver,
    checked: Checked,
    sent: Sent,
    subflows: Vec<Subflow>,
    /// Connections opened.
    opened: u32,
    refused: u64,
    done: Option<Time>,
    heard: Time,
    told: u64,
}

/// Does what `config` says, and returns when told to stop or after the limit.
///
/// # Errors
/// If it cannot listen.
pub fn run(config: HostConfig) -> io::Result<HostReport> {
    let mut poll = Poll::new()?;
    let host = config.sender.host;
    let mut listener = TcpListener::bind(SocketAddr::from((config.listen(), config.port)))?;
    // Connections that it accepts take this over.
    mark(&listener, config.dscp)?;
    poll.registry().register(&mut listener, LISTENER, Interest::READABLE)?;
    let mut control = Control::connect(&config.control, &poll, CONTROL)?;
    let sender = &config.sender;
    let mut this = Host {
        planner: sender.planner(),
        ports: Ports::new(sender.fabric.uplinks_of(host)),
        messages: Messages::default(),
        script: Script::new(config.tasks.clone(), config.expected),
        listener,
        outgoing: Vec::new(),
        inlets: BTreeMap::new(),
        accepted: 0,
        have: FxHashMap::default(),
        receiver: Receiver::new(host, config.sender.flow.transport.recovery),
        checked: Checked::default(),
        sent: Sent::default(),
        subflows: Vec::new(),
        opened: 0,
        refused: 0,
        done: None,
        heard: Time::ZERO,
        told: 0,
        config,
    };
    control.say(&format!("ready {} {}\n", host.0, this.config.expected));
    if let Some(at) = control.wait_for_go(&mut poll, this.config.limit)? {
        this.work(Clock::from(at), &mut poll, &mut control)?;
    }
    Ok(this.report())
}

impl Host {
    fn work(&mut self, clock: Clock, poll: &mut Poll, control: &mut Control) -> io::Result<()> {
        let limit = Time(self.config.limit.as_nanos() as u64 * 1_000);
        let mut events = Events::with_capacity(256);
        loop {
            let now = clock.now();
            if now >= limit {
                return Ok(());
            }
            self.post(now, poll);
            self.check_time_outs(now, poll);
            self.tell(now, control);
            let wait = Duration::from_nanos(now.until(self.next(limit)).0.div_ceil(1_000));
            match poll.poll(&mut events, Some(wait)) {
                Err(error) if error.kind() != io::ErrorKind::Interrupted => return Err(error),
                _ => {}
            }
            for event in &events {
                let now = clock.now();
                if event.token() != CONTROL {
                    self.heard = now;
                }
                match event.token() {
                    CONTROL if control.order() == Some(Order::Stop) => return Ok(()),
                    CONTROL => {}
                    LISTENER => self.accept(poll),
                    Token(token) if token % 2 == FIRST % 2 => self.advance(now, token, poll),
                    Token(token) => self.read(now, token),
                }
            }
        }
    }

    fn next(&self, limit: Time) -> Time {
        let rto = self.config.sender.flow.transport.rto * PATIENCE;
        let open = self.outgoing.iter().filter(|one| !one.finished);
        let late = open.map(|one| one.late_at(rto));
        let others = [self.planner.deadline(), self.script.poll_deadline(), Some(limit)];
        late.chain(others.into_iter().flatten()).min().unwrap_or(limit)
    }

    fn post(&mut self, now: Time, poll: &Poll) {
        let fabric = self.config.sender.fabric.clone();
        if self.planner.deadline().is_some_and(|deadline| deadline <= now) {
            self.planner.flush(now, &fabric, &mut self.subflows);
        }
        while let Some(task) = self.script.poll_task(now) {
            let (message, dst, bytes) = (task.message, task.dst, task.bytes);
            let tag = self.messages.post(now, message, dst, bytes);
            let post = Post { message, dst, bytes, job: 0, ranks: (0, 0), tag };
            match &task.given {
                None => self.planner.post(now, post, &fabric, &mut self.subflows),
                Some(given) => {
                    let (delay, carrier) = (Time::ZERO, Carrier::Own);
                    for (part, one) in (0..).zip(given.clone()) {
                        let Given { bytes, route, port } = one;
                        let one = Subflow { message, dst, bytes, part, route, delay, tag, carrier };
                        self.open(one, port, now, poll);
                    }
                }
            }
        }
        self.open_subflows(now, poll);
    }

    fn open_subflows(&mut self, now: Time, poll: &Poll) {
        for subflow in std::mem::take(&mut self.subflows) {
            self.open(subflow, None, now, poll);
        }
    }

    fn open(&mut self, subflow: Subflow, planned: Option<u16>, now: Time, poll: &Poll) {
        let (offset, total) = self.messages.cut(&subflow);
        let flow = self.outgoing.len() as u32;
        let (src, message) = (self.config.sender.host.0, subflow.message.0);
        let data = Data { src, flow, seq: 0, packets: 1, message, offset, total, clock: 0 };
        let hello = Hello { data, bytes: subflow.bytes };
        self.outgoing.push(Outgoing {
            subflow,
            hello,
            outlet: None,
            planned,
            port: None,
            reached: 0,
            progress: now,
            time_outs: 0,
            patient_until: Time::ZERO,
            made_room: false,
            finished: false,
        });
        self.connect(flow as usize, poll);
    }

    /// Opens a connection for a subflow; without one it waits for its time-out.
    fn connect(&mut self, number: usize, poll: &Poll) {
        let address = self.config.addresses[self.config.sender.host.0 as usize];
        let one = &mut self.outgoing[number];
        one.outlet = None;
        for attempt in 0..TRIES {
            self.opened += 1;
            let planned = one.planned.filter(|_| attempt == 0);
            let port = planned.unwrap_or_else(|| self.ports.port(one.subflow.route, self.opened));
            let to = self.config.address(self.ports, one.subflow.dst, port);
            let Ok(mut outlet) = Outlet::connect(address, port, self.config.dscp, to, &one.hello)
            else {
                continue;
            };
            let token = Token(FIRST + 2 * number);
            let both = Interest::READABLE | Interest::WRITABLE;
            if poll.registry().register(outlet.stream(), token, both).is_ok() {
                (one.outlet, one.port) = (Some(outlet), Some(port));
                return;
            }
        }
        self.refused += 1;
    }

    fn advance(&mut self, now: Time, token: usize, poll: &Poll) {
        let number = (token - FIRST) / 2;
        let one = &mut self.outgoing[number];
        let Some(outlet) = &mut one.outlet else { return };
        let flow = outlet.advance(&one.hello);
        if let Some((from, count)) = flow.wrote {
            self.wrote(number, from, count);
        }
        let one = &mut self.outgoing[number];
        if flow.wrote.is_some() || flow.finished {
            if one.time_outs > 0 {
                let Outgoing { subflow, progress, time_outs, .. } = *one;
                let (message, part) = (subflow.message, subflow.part);
                let (since, until) = (progress, now);
                self.sent.recoveries.push(Recovery { message, part, since, until, time_outs });
            }
            (one.progress, one.time_outs) = (now, 0);
        }
        if flow.broken {
            one.outlet = None;
        }
        if flow.finished {
            (one.finished, one.outlet) = (true, None);
            let underway = FlowInfo::from(&one.subflow);
            let tag = one.subflow.tag;
            let fabric = &self.config.sender.fabric;
            self.planner.sent(now, &underway, fabric, &mut self.subflows);
            if let Some(record) = self.messages.answered(now, tag, underway.bytes) {
                self.sent.messages.push(record);
                self.script.handle_sent(now, record.message);
            }
            self.open_subflows(now, poll);
        }
        self.make_room(now, number, poll);
    }

    fn wrote(&mut self, number: usize, from: u64, count: u64) {
        let fabric = &self.config.sender.fabric;
        let one = &mut self.outgoing[number];
        let again = one.reached.saturating_sub(from).min(count);
        one.reached = one.reached.max(from + count);
        let near = fabric.leaf_of(one.subflow.dst) == fabric.leaf_of(self.config.sender.host);
        let counts = match one.port {
            Some(port) if !near => self.sent.by_port.entry(port).or_default(),
            _ => &mut self.sent.local,
        };
        counts.bytes += count - again;
        counts.again_bytes += again;
    }

    /// All of a subflow is with the system: its queue pair takes the next one.
    fn make_room(&mut self, now: Time, number: usize, poll: &Poll) {
        let one = &mut self.outgoing[number];
        if one.made_room || one.reached < one.subflow.bytes {
            return;
        }
        one.made_room = true;
        if let Some(queue_pair) = one.subflow.carrier.persistent() {
            let next = self.planner.next(now, queue_pair, &self.config.sender.fabric);
            self.subflows.extend(next);
            self.open_subflows(now, poll);
        }
    }

    fn check_time_outs(&mut self, now: Time, poll: &Poll) {
        let rto = self.config.sender.flow.transport.rto * PATIENCE;
        for number in 0..self.outgoing.len() {
            let one = &mut self.outgoing[number];
            if one.finished || one.late_at(rto) > now {
                continue;
            }
            let underway = FlowInfo::from(&one.subflow);
            let fabric = &self.config.sender.fabric;
            if underway.chunk.is_some()
                && let Some(more) = self.planner.patience(now, &underway, fabric)
            {
                one.patient_until = now.saturating_add(more.max(Time(1)));
                continue;
            }
            // `progress` stays: a stop is told from when something last moved.
            one.time_outs += 1;
            self.sent.time_outs += 1;
            let route = self.planner.on_loss(now, &underway, LossSignal::TimeOut, fabric);
            if let Some(route) = route.filter(|route| *route != underway.route) {
                let one = &mut self.outgoing[number];
                (one.subflow.route, one.planned) = (route, None);
                self.sent.remaps.push(now);
            }
            self.connect(number, poll);
        }
    }

    fn accept(&mut self, poll: &Poll) {
        while let Ok((stream, _)) = self.listener.accept() {
            let token = FIRST + 1 + 2 * self.accepted;
            self.accepted += 1;
            let mut inlet = Inlet::new(stream);
            if poll.registry().register(inlet.stream(), Token(token), Interest::READABLE).is_ok() {
                self.inlets.insert(token, inlet);
            }
        }
    }

    fn read(&mut self, now: Time, token: usize) {
        if self.try_read(now, token).is_err() {
            self.inlets.remove(&token);
        }
    }

    fn try_read(&mut self, now: Time, token: usize) -> io::Result<()> {
        let Some(inlet) = self.inlets.get_mut(&token) else { return Ok(()) };
        let hello = match inlet.hello {
            Some(hello) => hello,
            None => {
                let Some(hello) = inlet.greet()? else { return Ok(()) };
                let (have, before) =
                    self.have.insert(name(&hello), (0, token)).unwrap_or((0, token));
                self.have.insert(name(&hello), (have, token));
                if before != token {
                    // What the old connection still holds comes again over the new one.
                    self.inlets.remove(&before);
                }
                let inlet = self.inlets.get_mut(&token).expect("looked up above");
                inlet.say(have)?;
                hello
            }
        };
        let mut buffer = [0; 16 << 10];
        loop {
            let inlet = self.inlets.get_mut(&token).expect("looked up above");
            let Some(count) = inlet.read(&mut buffer)? else { return Ok(()) };
            let have = &mut self.have.get_mut(&name(&hello)).expect("greeted").0;
            let data = Data { offset: hello.data.offset + *have, ..hello.data };
            *have += count as u64;
            let all = *have == hello.bytes;
            if all {
                inlet.say(*have)?;
            }
            self.receiver.handle_bytes(now, &data, &buffer[..count], &mut self.checked);
        }
    }

    fn tell(&mut self, now: Time, control: &mut Control) {
        while let Some(done) = self.receiver.poll_complete() {
            self.script.handle_received(now, done.message, done.bytes);
        }
        let come = self.receiver.received.bytes;
        if come >= self.told + (self.config.expected / STEPS).max(1) {
            self.told = come;
            control.say(&format!("come {come}\n"));
        }
        if self.done.is_none() && self.script.is_done() {
            self.done = Some(now);
            control.say("done\n");
        }
    }

    fn report(self) -> HostReport {
        HostReport {
            host: self.config.sender.host,
            complete: self.script.is_done(),
            remaining: self.script.remaining(),
            done: self.done,
            heard: self.heard,
            wrong: self.checked.wrong,
            refused: self.refused,
            sent: self.sent,
            received: self.receiver.received,
        }
    }
}

/// By sender and flow.
fn name(hello: &Hello) -> (u32, u32) {
    (hello.data.src, hello.data.flow)
}
