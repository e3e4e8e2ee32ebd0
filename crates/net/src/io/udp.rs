//! A host that sends datagrams: reads, answers, sends, waits, until it is told to stop.

use super::control::{Control, Order};
use super::sockets::Sockets;
use super::{Clock, HostConfig, HostReport};
use crate::pattern::{Checked, Pattern};
use crate::ports::Ports;
use crate::receiver::Receiver;
use crate::script::Script;
use crate::sender::Sender;
use crate::wire::{ANSWER, DATA_HEADER, Datagram};
use mio::{Events, Poll, Token};
use std::io;
use std::time::Duration;
use weft_units::{HostId, Time};

const SOCKET: Token = Token(0);
const CONTROL: Token = Token(1);
/// Datagrams read, and sent, before the other is looked at.
const BURST: usize = 32;
/// Rounds of reading and sending before a host that is busy looks whether it was told something.
const ROUNDS: u32 = 16;
/// Progress is told after so many parts of all that is to come.
const STEPS: u64 = 64;

struct Host {
    config: HostConfig,
    sender: Sender,
    ports: Ports,
    receiver: Receiver,
    script: Script,
    sockets: Sockets,
    checked: Checked,
    buffer: Vec<u8>,
    refused: u64,
    done: Option<Time>,
    heard: Time,
    /// Progress that was told.
    told: u64,
}

/// Does what `config` says, and returns when told to stop or after the limit.
///
/// # Errors
/// If sockets cannot be opened, or break.
pub fn run(config: HostConfig) -> io::Result<HostReport> {
    let mut poll = Poll::new()?;
    let host = config.sender.host;
    let address = config.addresses[host.0 as usize];
    let sockets =
        Sockets::open((config.listen(), address), config.port, config.dscp, &poll, SOCKET)?;
    let mut control = Control::connect(&config.control, &poll, CONTROL)?;
    let room = ANSWER.max(DATA_HEADER + config.sender.flow.mtu as usize);
    let mut this = Host {
        sender: Sender::new(config.sender.clone()),
        ports: Ports::new(config.sender.fabric.uplinks_of(host)),
        receiver: Receiver::new(host, config.sender.flow.transport.recovery),
        script: Script::new(config.tasks.clone(), config.expected),
        sockets,
        checked: Checked::default(),
        buffer: vec![0; room],
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
        let mut events = Events::with_capacity(8);
        for round in 0u32.. {
            let now = clock.now();
            if now >= limit {
                return Ok(());
            }
            self.post(now);
            let more = self.receive(clock)?;
            // What waits to be read may say that nothing is late.
            if !more || round.is_multiple_of(ROUNDS) {
                self.sender.handle_time(clock.now());
            }
            let busy = self.transmit(clock)? | more;
            self.tell(clock.now(), control);
            if busy && !round.is_multiple_of(ROUNDS) {
                continue;
            }
            let wait = if busy { Duration::ZERO } else { self.patience(clock.now(), limit) };
            match poll.poll(&mut events, Some(wait)) {
                Err(error) if error.kind() != io::ErrorKind::Interrupted => return Err(error),
                _ => {}
            }
            if events.iter().any(|event| event.token() == CONTROL)
                && control.order() == Some(Order::Stop)
            {
                return Ok(());
            }
        }
        Ok(())
    }

    fn post(&mut self, now: Time) {
        while let Some(task) = self.script.poll_task(now) {
            match &task.given {
                Some(given) => self.sender.post_given(now, task.message, task.dst, given),
                None => self.sender.post(now, task.message, task.dst, task.bytes),
            }
        }
    }

    /// Reads and answers; returns whether there may be more.
    fn receive(&mut self, clock: Clock) -> io::Result<bool> {
        let mut more = true;
        for _ in 0..BURST {
            let Some((len, port)) = self.sockets.receive(&mut self.buffer)? else {
                more = false;
                break;
            };
            let now = clock.now();
            self.heard = now;
            match Datagram::decode(&self.buffer[..len]) {
                Ok(Datagram::Data(data, payload)) if self.is_host(data.src) => {
                    self.receiver.handle_data(now, port, &data, payload, &mut self.checked);
                }
                Ok(Datagram::Answer(answer)) => self.sender.handle_answer(now, &answer),
                _ => self.receiver.received.damaged += 1,
            }
        }
        while let Some(reply) = self.receiver.poll_reply() {
            let port = reply.answer.port;
            if !self.is_near(reply.dst) {
                *self.receiver.received.answers.entry(port).or_default() += 1;
            }
            let to = self.config.address(self.ports, reply.dst, port);
            let taken = self.sockets.send(port, to, &reply.answer.encode())?;
            self.refused += u64::from(!taken);
        }
        Ok(more)
    }

    /// Sends what may leave; returns whether there may be more.
    fn transmit(&mut self, clock: Clock) -> io::Result<bool> {
        for _ in 0..BURST {
            let now = clock.now();
            let Some(datagram) = self.sender.poll_transmit(now, &Pattern, &mut self.buffer) else {
                return Ok(false);
            };
            let bytes = &self.buffer[..datagram.len];
            let to = self.config.address(self.ports, datagram.dst, datagram.port);
            let taken = self.sockets.send(datagram.port, to, bytes)?;
            self.refused += u64::from(!taken);
        }
        Ok(true)
    }

    /// Passes news on: to the script, and to whoever started this host.
    fn tell(&mut self, now: Time, control: &mut Control) {
        while let Some(message) = self.sender.poll_finished() {
            self.script.handle_sent(now, message);
        }
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

    fn patience(&self, now: Time, limit: Time) -> Duration {
        let deadlines = [self.sender.poll_deadline(), self.script.poll_deadline(), Some(limit)];
        let next = deadlines.into_iter().flatten().min().unwrap_or(limit);
        Duration::from_nanos(now.until(next).0.div_ceil(1_000))
    }
    fn is_host(&self, number: u32) -> bool {
        (number as usize) < self.config.addresses.len()
    }
    fn is_near(&self, other: HostId) -> bool {
        let fabric = &self.config.sender.fabric;
        fabric.leaf_of(other) == fabric.leaf_of(self.config.sender.host)
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
            sent: self.sender.sent,
            received: self.receiver.received,
        }
    }
}
