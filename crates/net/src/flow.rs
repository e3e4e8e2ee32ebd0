//! A subflow of a message at its sender: loss recovery and congestion control are those of
//! [`weft_transport`], which the simulator drives as well; this adds what a subflow is, and its clock.
//!
//! What real hosts ask for beyond the simulator's:
//! - A round trip is told by the sender's clock, which data carries and its answer brings back: so an
//!   answer to a packet that left twice tells which one, and the clocks of two hosts never meet. It
//!   includes the time that both processes wait for a core.
//! - A gap between packets counts from when the last one left: who waited for a core does not catch up.

use crate::wire::Answer;
use weft_balance::Steering;
use weft_balance::plan::{Carrier, Chunk, FlowInfo, QueuePairId, Route, Subflow};
use weft_balance::steer::TimeOut;
use weft_transport::{
    Acknowledged, Acknowledgement, BackOff, Congestion, FlowPace, Loss, Sender, TransportConfig,
};
use weft_units::{HostId, MessageId, Time};

/// What is the same for all flows of a host.
#[derive(Clone, Copy, Debug)]
pub struct FlowConfig {
    /// Payload of a full packet, in bytes.
    pub mtu: u32,
    /// Loss recovery, congestion control, and the time-out.
    pub transport: TransportConfig,
}

/// Where a packet's payload stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Packet {
    /// Which of the flow.
    pub seq: u32,
    /// Where in its message.
    pub offset: u64,
    /// Payload in bytes.
    pub len: u32,
    /// Sent before.
    pub again: bool,
}

/// What a subflow leaves to the next one on its persistent queue pair.
#[derive(Clone, Debug)]
pub struct Left {
    congestion: Congestion,
    /// No packet may leave before then.
    not_before: Time,
}

/// A subflow on its way.
#[derive(Debug)]
pub struct Flow {
    config: FlowConfig,
    /// Its message.
    pub message: MessageId,
    /// Bytes of the whole message.
    pub total: u64,
    /// The sender's own number of the message.
    pub tag: u32,
    /// Which part of it.
    pub part: u32,
    /// The host that receives it.
    pub dst: HostId,
    /// The way that its planner gave it last.
    pub route: Route,
    /// The way that it took before it was given another.
    pub before: Option<Route>,
    /// The source port that a plan made elsewhere gives it.
    pub port: Option<u16>,
    /// Per-packet choice.
    pub steering: Steering,
    /// Has a place in the sender's round.
    pub queued: bool,
    /// Waits for a time at which it may send.
    pub delayed: bool,
    /// No packet may leave before then.
    pub not_before: Time,
    /// Has had its first turn.
    pub started: bool,
    /// Time-outs since something last came back.
    pub time_outs: u32,
    /// When something last came back; else when it began.
    pub progress: Time,
    /// How many packets it has.
    pub packets: u32,
    bytes: u64,
    offset: u64,
    carrier: Carrier,
    recovery: Sender,
    congestion: Congestion,
    back_off: BackOff,
    /// Something has come back.
    heard: bool,
    /// Of a chunk: it has so long at least.
    patient_until: Time,
    /// When it took the way that it is on.
    since: Time,
}

impl Flow {
    /// Of `subflow`, whose first byte is at `offset` of a message of `total` bytes, over a path of
    /// `hops` links; `left`: by the one before on its queue pair.
    pub fn new(
        subflow: &Subflow,
        (offset, total): (u64, u64),
        steering: Steering,
        hops: u32,
        left: Option<Left>,
        config: FlowConfig,
    ) -> Flow {
        let FlowConfig { mtu, transport } = config;
        let packets = subflow.bytes.div_ceil(u64::from(mtu)) as u32;
        let share = subflow.carrier.share();
        let pace = FlowPace { mtu, rate: None, share, hops, header: 0, trims: false };
        let Left { congestion, not_before } = left.unwrap_or_else(|| Left {
            congestion: Congestion::new(&transport.congestion, &pace),
            not_before: Time::ZERO,
        });
        Flow {
            config,
            message: subflow.message,
            total,
            tag: subflow.tag,
            part: subflow.part,
            dst: subflow.dst,
            route: subflow.route,
            before: None,
            port: None,
            steering,
            queued: false,
            delayed: false,
            not_before,
            started: false,
            time_outs: 0,
            progress: Time::ZERO,
            packets,
            bytes: subflow.bytes,
            offset,
            carrier: subflow.carrier,
            recovery: Sender::new(&transport.recovery, packets),
            congestion,
            back_off: BackOff::default(),
            heard: false,
            patient_until: Time::ZERO,
            since: Time::ZERO,
        }
    }

    /// It goes on another way.
    pub fn reroute(&mut self, now: Time, route: Route) {
        self.before = Some(self.route);
        (self.route, self.port, self.since) = (route, None, now);
    }
    /// Whether a time-out says something of the way that it is on.
    pub fn is_of_way(&self, time_out: TimeOut) -> bool {
        time_out.reaches(self.since)
    }

    /// As planners know it.
    pub fn underway(&self) -> FlowInfo {
        let queue_pair = self.carrier.persistent();
        let chunk = self.carrier.chunk().map(|chunk| chunk.number);
        FlowInfo { dst: self.dst, route: self.route, bytes: self.bytes, queue_pair, chunk }
    }
    /// Packets on their way.
    pub fn in_flight(&self) -> u32 {
        self.recovery.in_flight()
    }
    /// Whether all has come.
    pub fn is_finished(&self) -> bool {
        self.recovery.is_done()
    }
    /// Whether nothing has ever come back, of one that its planner does not watch over.
    pub fn is_fresh(&self) -> bool {
        !self.heard && self.carrier.chunk().is_none()
    }
    /// Packets that the window lets out now.
    pub fn room(&self) -> u32 {
        self.congestion.window().saturating_sub(self.recovery.in_flight())
    }
    /// Whether a round trip was longer than congestion control aims at.
    pub fn is_late(&self, rtt: Time) -> bool {
        self.congestion.is_late(rtt)
    }
    /// Whether a packet may leave now.
    pub fn may_send(&self) -> bool {
        self.recovery.has_work_below(self.congestion.window())
    }

    /// Takes the next packet out, which [`Flow::may_send`], with `header` bytes before its payload.
    pub fn send(&mut self, now: Time, header: u32) -> Packet {
        let sent = self.recovery.send(now);
        let mtu = u64::from(self.config.mtu);
        let start = u64::from(sent.seq) * mtu;
        let len = (self.bytes - start).min(mtu) as u32;
        self.congestion.on_send(now, len + header);
        if let Some(gap) = self.congestion.pacing(len + header) {
            self.not_before = now.saturating_add(gap);
        }
        Packet { seq: sent.seq, offset: self.offset + start, len, again: sent.retransmission }
    }

    /// The queue pair that has room for another subflow, and what is left to that, if `sent` was the
    /// last of this one.
    pub fn makes_room(&self, sent: &Packet) -> Option<(QueuePairId, Left)> {
        let is_last = !sent.again && sent.seq + 1 == self.packets;
        let queue_pair = self.carrier.persistent().filter(|_| is_last)?;
        let Flow { congestion, not_before, .. } = self;
        Some((queue_pair, Left { congestion: congestion.clone(), not_before: *not_before }))
    }

    /// An answer came, `rtt` after its packet had left. `None`: it is no answer to this flow, or a
    /// NACK of what was known.
    pub fn handle_answer(&mut self, now: Time, answer: &Answer, rtt: Time) -> Option<Acknowledged> {
        let Answer { seq, cumulative, .. } = *answer;
        if seq >= self.packets || cumulative > self.packets {
            return None;
        }
        (self.heard, self.time_outs, self.progress) = (true, 0, now);
        // No switch of a test bed marks.
        let ack = Acknowledgement { now, seq, cumulative, marked: false, rtt };
        match answer.nack {
            true => ack.deliver_nack(&mut self.recovery, &mut self.congestion),
            false => Some(ack.deliver(&mut self.recovery, &mut self.congestion).0),
        }
    }

    /// How long it waits: a chunk for what its planner says, if that is sooner.
    fn rto(&self) -> Time {
        let usual = self.config.transport.rto;
        match self.carrier {
            Carrier::Chunk(Chunk { time_out, .. }) => time_out.min(usual),
            Carrier::Own | Carrier::Persistent { .. } => usual,
        }
    }
    /// When a time-out is due.
    pub fn deadline(&self) -> Option<Time> {
        let at = self.recovery.deadline(self.back_off.of(self.rto(), self.recovery.arrived()))?;
        Some(at.max(self.patient_until))
    }
    /// Its planner gives it time.
    pub fn wait(&mut self, until: Time) {
        self.patient_until = until;
    }

    /// If a time-out is due: how many packets are taken for lost, and the time-out.
    pub fn handle_time_out(&mut self, now: Time) -> Option<(u32, Time)> {
        let after = self.back_off.of(self.rto(), self.recovery.arrived());
        let backs_off = self.config.transport.backs_off;
        let lost = self.recovery.on_timer(now, after);
        if lost == 0 {
            return None;
        }
        if backs_off {
            self.back_off.timed_out(now, after, self.recovery.arrived());
        }
        self.congestion.on_loss(now, Loss::TimeOut);
        self.time_outs += 1;
        Some((lost, after))
    }
}

/// The clock as datagrams carry it: microseconds, which wrap after 71 minutes.
pub fn clock(now: Time) -> u32 {
    (now.0 / 1_000_000) as u32
}

/// How long ago a datagram left that carried `then`: a microsecond at least, since none is "not
/// known" to congestion control.
pub fn since(now: Time, then: u32) -> Time {
    Time::us(u64::from(clock(now).wrapping_sub(then).max(1)))
}
