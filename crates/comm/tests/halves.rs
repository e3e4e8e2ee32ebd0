//! Both halves of a channel with a network in between that does anything: connections die with what
//! is in them at any byte, lanes come back in any order, parts move from lane to lane, or go
//! over several. At the end every message has come once, every request is over once, and nobody has touched
//! memory after that.

#![expect(unsafe_code, reason = "buffers live as long as the channel")]

use std::collections::VecDeque;
use weft_comm::half::receiver::{Ended, RecvHalf};
use weft_comm::half::sender::{Completed, GivenUp, Part, SendHalf};
use weft_comm::stream::inflow::{Inflow, Sink};
use weft_comm::stream::outflow::{MOST_SLICES, Outflow};
use weft_comm::wire::{
    HEADER, Header, Kind, MOST_EAGER, MOST_PAYLOAD, Slot, Slots, WINDOW, WireError,
};
use weft_comm::{Sizes, Span};
use weft_trial::prelude::*;

const LANES: usize = 3;
/// Under Miri every step of a loop takes 50 us and more, so bytes are copied by the slice. Large
/// messages are read to where they belong, others copied.
const CASES: u32 = if cfg!(miri) { 3 } else { 300 };
const GROUPS: usize = if cfg!(miri) { 3 } else { 12 };
const STEPS: usize = if cfg!(miri) { 100 } else { 400 };
const SMALL: usize = if cfg!(miri) { 300 } else { 3_000 };
const LARGE: usize = if cfg!(miri) { 10_000 } else { 300_000 };

/// One of so many messages, and what it is sent and received with.
#[derive(Clone, Debug)]
struct Message {
    len: usize,
    room: usize,
    tag: i32,
}

/// What happens next.
#[derive(Clone, Copy, Debug)]
enum Step {
    Send,
    Receive,
    /// Of a lane: so many bytes leave; arrive; so many bytes of answers leave; arrive.
    Write(usize),
    Arrive(usize, usize),
    Answer(usize),
    Hear(usize, usize),
    /// Its connection dies; comes back.
    Die(usize),
    Connect(usize),
    /// What it has not begun goes to another.
    Move(usize, usize),
    /// What is left of a part goes over another lane as well.
    Again(usize, usize),
    /// Announcements are said again.
    Forget,
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let lane = 0..LANES;
    let some = prop_oneof![1..100usize, 1..20_000usize, Just(1 << 20)];
    let step = prop_oneof![
        4 => Just(Step::Send),
        4 => Just(Step::Receive),
        6 => lane.clone().prop_map(Step::Write),
        6 => (lane.clone(), some.clone()).prop_map(|(lane, bytes)| Step::Arrive(lane, bytes)),
        4 => lane.clone().prop_map(Step::Answer),
        4 => (lane.clone(), some).prop_map(|(lane, bytes)| Step::Hear(lane, bytes)),
        1 => lane.clone().prop_map(Step::Die),
        3 => lane.clone().prop_map(Step::Connect),
        1 => (lane.clone(), lane.clone()).prop_map(|(from, to)| Step::Move(from, to)),
        3 => (0..usize::MAX, lane).prop_map(|(part, to)| Step::Again(part, to)),
        1 => Just(Step::Forget),
    ];
    prop::collection::vec(step, 0..STEPS)
}

/// Groups of receives, and the order in which their messages are sent.
fn groups() -> impl Strategy<Value = (Vec<Vec<Message>>, Vec<usize>)> {
    let message = (prop_oneof![Just(0usize), 1..50usize, 50..SMALL, Just(LARGE)], 0..20usize);
    let group = prop::collection::vec(message, 1..=8).prop_map(|group| {
        let tagged = (0i32..).zip(group);
        tagged.map(|(tag, (len, more))| Message { len, room: len + more, tag }).collect::<Vec<_>>()
    });
    prop::collection::vec(group, 1..GROUPS).prop_flat_map(|groups| {
        // Inside a group sends come in any order; groups come in theirs.
        let orders: Vec<_> = groups
            .iter()
            .map(|group| Just((0..group.len()).collect::<Vec<_>>()).prop_shuffle())
            .collect();
        (Just(groups), orders).prop_map(|(groups, orders)| {
            let mut first = 0;
            let mut order = Vec::new();
            for (group, within) in groups.iter().zip(orders) {
                order.extend(within.into_iter().map(|place| first + place));
                first += group.len();
            }
            (groups, order)
        })
    })
}

/// One connection: bytes that have left each side.
#[derive(Default)]
struct Connection {
    out: Outflow,
    there: VecDeque<u8>,
    inflow: Inflow,
    back: VecDeque<u8>,
    answers: Inflow,
    told: u64,
}

struct Channel {
    groups: Vec<Vec<Message>>,
    order: Vec<usize>,
    contents: Vec<Vec<u8>>,
    originals: Vec<Vec<u8>>,
    /// Parts may go over several lanes; how many bytes of each part are left.
    repeats: bool,
    /// Small messages do not wait for buffers, and go whole.
    eager: bool,
    parts: Vec<u64>,
    buffers: Vec<Vec<u8>>,
    sender: SendHalf<usize>,
    receiver: RecvHalf<usize>,
    connections: [Option<Connection>; LANES],
    epochs: [u32; LANES],
    posted: usize,
    received: usize,
    sent: Vec<u32>,
    come: Vec<u32>,
    cuts: u32,
}

struct Taking<'a> {
    half: &'a mut RecvHalf<usize>,
    lane: u16,
    over: Vec<(usize, Sizes)>,
    late: Vec<u16>,
}

impl Sink for Taking<'_> {
    fn begin(&mut self, header: &Header) -> Result<Span, WireError> {
        self.half.handle_data(self.lane, header)
    }
    fn end(&mut self, header: &Header, _: &[u8]) -> Result<(), WireError> {
        if header.kind == Kind::Request {
            self.half.handle_request(header.total);
            return Ok(());
        }
        assert_eq!(header.kind, Kind::Data);
        let Ended { over, late } = self.half.handle_body(self.lane, header)?;
        self.over.extend(over);
        self.late.extend(late);
        Ok(())
    }
}

struct Hearing(Vec<(Header, Slots)>);

impl Sink for Hearing {
    fn begin(&mut self, _: &Header) -> Result<Span, WireError> {
        unreachable!("receivers send no data")
    }
    fn end(&mut self, header: &Header, body: &[u8]) -> Result<(), WireError> {
        self.0.push((*header, Slots::decode(header.slot, body)));
        Ok(())
    }
}

/// Puts `from` into `inflow`, some bytes at a time.
fn feed(inflow: &mut Inflow, from: &mut VecDeque<u8>, most: usize, sink: &mut impl Sink) {
    let mut left = most.min(from.len());
    while left > 0 {
        let (first, then) = inflow.room();
        let direct = first.len().min(left);
        let staged = then.len().min(left - direct);
        let bytes = from.make_contiguous()[..direct + staged].to_vec();
        from.drain(..bytes.len());
        // SAFETY: buffers live as long as the channel, and `first` has so much room.
        unsafe { std::ptr::copy_nonoverlapping(bytes.as_ptr(), first.start(), direct) };
        then[..staged].copy_from_slice(&bytes[direct..]);
        // SAFETY: as above.
        unsafe { inflow.advance(bytes.len(), sink) }.expect("nothing is damaged");
        left -= bytes.len();
    }
}

/// Takes every body to one place.
struct OnePlace(Vec<u8>);

impl Sink for OnePlace {
    fn begin(&mut self, header: &Header) -> Result<Span, WireError> {
        Ok(Span::new(self.0.as_mut_ptr(), header.len as usize))
    }
    fn end(&mut self, _: &Header, _: &[u8]) -> Result<(), WireError> {
        Ok(())
    }
}

/// Behind a long body a header is read alone, and what follows it without a copy; behind a short one as much as
/// there is.
#[test]
fn a_header_between_long_bodies_is_read_alone() {
    let mut inflow = Inflow::default();
    let mut place = OnePlace(vec![0; LARGE]);
    let whole = inflow.room().1.len();
    assert!(whole > HEADER);
    for (len, room) in [(9_000, HEADER), (9_000, HEADER), (100, whole), (8_000, whole)] {
        let header = Header { len: len as u32, ..Header::new(Kind::Data) };
        let mut bytes: VecDeque<u8> = header.encode().into_iter().collect();
        bytes.extend(std::iter::repeat_n(7, len));
        let all = bytes.len();
        feed(&mut inflow, &mut bytes, all, &mut place);
        let (rest, then) = inflow.room();
        assert_eq!((rest.len(), then.len()), (0, room), "behind {len} bytes");
        assert!(place.0[..len].iter().all(|byte| *byte == 7));
        place.0.fill(0);
    }
}

impl Channel {
    fn new(
        groups: Vec<Vec<Message>>,
        order: Vec<usize>,
        (repeats, copies, eager): (bool, bool, bool),
    ) -> Channel {
        let all: Vec<&Message> = groups.iter().flatten().collect();
        let content = |(number, it): (usize, &&Message)| {
            let round: Vec<u8> = (0..256).map(|at| (at * 7 + number * 31) as u8).collect();
            let mut all = round.repeat(it.len.div_ceil(round.len()));
            all.truncate(it.len);
            all
        };
        let contents: Vec<_> = all.iter().enumerate().map(content).collect();
        let buffers = all.iter().map(|it| vec![0xEE; it.room]).collect();
        let mut sender = SendHalf::new(true);
        if repeats {
            sender.allow_repeats();
        }
        if copies {
            sender.allow_copies();
        }
        // Where parts repeat nobody is.
        let eager = eager && !repeats;
        if eager {
            sender.allow_eager(MOST_PAYLOAD.into());
        }
        for lane in 0..LANES {
            assert_eq!(usize::from(sender.open_lane()), lane);
        }
        Channel {
            sent: vec![0; all.len()],
            come: vec![0; groups.len()],
            originals: contents.clone(),
            contents,
            repeats,
            eager,
            parts: Vec::new(),
            buffers,
            groups,
            order,
            sender,
            receiver: RecvHalf::default(),
            connections: Default::default(),
            epochs: [0; LANES],
            posted: 0,
            received: 0,
            cuts: 0,
        }
    }

    fn send(&mut self) {
        let Some(&number) = self.order.get(self.posted) else { return };
        self.posted += 1;
        let tag = self.groups.iter().flatten().nth(number).expect("there").tag;
        let content = &mut self.contents[number];
        let span = Span::new(content.as_mut_ptr(), content.len());
        // SAFETY: contents stay as long as the channel.
        unsafe { self.sender.post(span, tag, number) }.expect("it fits");
        self.assign();
    }

    fn receive(&mut self) {
        let Some(group) = self.groups.get(self.received) else { return };
        let first: usize = self.groups[..self.received].iter().map(Vec::len).sum();
        let buffers: Vec<_> = group
            .iter()
            .zip(&mut self.buffers[first..])
            .map(|(it, buffer)| {
                let size = it.room as u64;
                let span = Span::new(buffer.as_mut_ptr(), buffer.len());
                (span, Slot { tag: it.tag, size, ..Slot::default() })
            })
            .collect();
        assert!(self.receiver.post(&buffers, self.received));
        self.received += 1;
        // SAFETY: buffers live as long as the channel.
        let over = unsafe { self.receiver.fill_early() };
        over.into_iter().for_each(|over| self.end_receive(over));
    }

    /// Cuts what has a buffer into up to three parts, for lanes in turn.
    fn assign(&mut self) {
        while let Some((send, bytes)) = self.sender.poll_matched() {
            let most = if self.eager && bytes <= u64::from(MOST_PAYLOAD) { 1 } else { bytes };
            let parts = u64::from(self.cuts % 3 + 1).min(most).max(1);
            for part in 0..parts {
                self.cuts = self.cuts.wrapping_mul(5).wrapping_add(1);
                let (start, end) = (bytes * part / parts, bytes * (part + 1) / parts);
                let lane = (self.cuts % LANES as u32) as u16;
                let subflow = self.parts.len() as u32;
                self.parts.push(end - start);
                self.sender.assign(lane, Part { send, subflow, start, end });
            }
        }
    }

    fn step(&mut self, step: Step) {
        match step {
            Step::Send => self.send(),
            Step::Receive => self.receive(),
            Step::Write(lane) => self.write(lane),
            Step::Arrive(lane, most) => self.arrive(lane, most),
            Step::Answer(lane) => self.answer(lane),
            Step::Hear(lane, most) => self.hear(lane, most),
            Step::Die(lane) => {
                self.connections[lane] = None;
                self.receiver.forget_told();
            }
            Step::Connect(lane) => self.connect(lane),
            Step::Move(from, to) => {
                for part in self.sender.take_rest(from as u16) {
                    self.sender.assign(to as u16, part);
                }
            }
            Step::Again(part, to) => self.again(part, to as u16),
            Step::Forget => self.receiver.forget_told(),
        }
    }

    fn again(&mut self, part: usize, to: u16) {
        if !self.repeats || self.parts.is_empty() {
            return;
        }
        for part in self.give_up((part % self.parts.len()) as u32) {
            self.sender.assign(to, part);
        }
    }

    /// Lanes are no longer alone with a part.
    fn give_up(&mut self, subflow: u32) -> Vec<Part> {
        let mut parts = Vec::new();
        for lane in 0..LANES {
            let mut out = GivenUp::default();
            self.sender.give_up(lane as u16, subflow, &mut out);
            parts.extend(out.parts);
            for frame in out.frames {
                if let Some(connection) = &mut self.connections[lane] {
                    // SAFETY: contents live as long as the channel.
                    unsafe { connection.out.keep(frame) };
                }
            }
        }
        parts
    }

    fn connect(&mut self, lane: usize) {
        self.epochs[lane] += 1;
        let (number, epoch) = (lane as u16, self.epochs[lane]);
        let next_group = self.sender.next_group();
        let next = self.receiver.hello(number, epoch, next_group).expect("groups that are there");
        let next = next.expect("newer than all");
        // Late ones are turned away.
        assert_eq!(self.receiver.hello(number, epoch, next_group), Ok(None));
        self.receiver.forget_told();
        let mut completed = Completed::default();
        self.sender.resume(number, next, &mut completed).expect("frames that were sent");
        self.complete(completed);
        self.connections[lane] = Some(Connection { told: next, ..Connection::default() });
    }

    fn complete(&mut self, completed: Completed<usize>) {
        for (subflow, bytes) in completed.subflows {
            let left = &mut self.parts[subflow as usize];
            *left = left.checked_sub(bytes).expect("each byte once");
            if *left == 0 && self.repeats {
                self.give_up(subflow);
            }
        }
        self.end_sends(completed.sends);
    }

    fn end_sends(&mut self, sends: Vec<(usize, u64)>) {
        for (number, bytes) in sends {
            self.sent[number] += 1;
            assert_eq!(bytes, self.contents[number].len() as u64);
            // It belongs to the application again.
            self.contents[number].fill(0xDD);
        }
    }

    /// Some frames leave, and perhaps a part of one.
    fn write(&mut self, lane: usize) {
        let Some(connection) = &mut self.connections[lane] else { return };
        if self.sender.has_request() {
            connection.out.push_header(&self.sender.request());
        }
        for _ in 0..3 {
            if let Some(frame) = self.sender.poll_frame(lane as u16) {
                connection.out.push(&frame);
            }
        }
        let mut slices = [std::io::IoSlice::new(&[]); MOST_SLICES];
        // SAFETY: contents live as long as the channel.
        let count = unsafe { connection.out.slices(&mut slices) };
        let bytes = slices[..count].iter().map(|one| &one[..]).collect::<Vec<_>>().concat();
        // All but a little: frames are cut anywhere.
        let some = bytes.len() - bytes.len() / 3;
        connection.there.extend(&bytes[..some]);
        let sender = &mut self.sender;
        let mut over = Vec::new();
        connection.out.advance(some, |number| {
            let written = sender.handle_written(lane as u16, number);
            over.extend(written.and_then(|written| written.over));
        });
        self.end_sends(over);
    }

    fn arrive(&mut self, lane: usize, most: usize) {
        let Some(connection) = &mut self.connections[lane] else { return };
        let half = &mut self.receiver;
        let (over, late) = (Vec::new(), Vec::new());
        let mut taking = Taking { half, lane: lane as u16, over, late };
        feed(&mut connection.inflow, &mut connection.there, most, &mut taking);
        let Taking { over, late, .. } = taking;
        for lane in late {
            if let Some(other) = &mut self.connections[usize::from(lane)] {
                other.inflow.divert();
            }
        }
        over.into_iter().for_each(|over| self.end_receive(over));
    }

    fn end_receive(&mut self, (group, sizes): (usize, Sizes)) {
        self.come[group] += 1;
        let expected: Vec<usize> = self.groups[group].iter().map(|it| it.len).collect();
        assert_eq!(sizes.sizes[..sizes.count], expected);
        let first: usize = self.groups[..group].iter().map(Vec::len).sum();
        let all = first..first + expected.len();
        for (buffer, content) in self.buffers[all.clone()].iter_mut().zip(&self.originals[all]) {
            let (come, rest) = buffer.split_at(content.len());
            assert!(come == &content[..], "other bytes");
            assert!(rest.iter().all(|byte| *byte == 0xEE), "more bytes");
            // It belongs to the application again.
            buffer.fill(0xEE);
        }
    }

    fn answer(&mut self, lane: usize) {
        let Some(connection) = &mut self.connections[lane] else { return };
        let mut out = Vec::new();
        // Whoever does not wait for announcements gets none, as long as it can be.
        while !self.receiver.is_unhurried()
            && let Some((group, behind, slots)) = self.receiver.poll_clear()
        {
            slots.encode(group, behind, &mut out);
        }
        let next = self.receiver.next_frame(lane as u16);
        if next > connection.told {
            connection.told = next;
            out.extend(Header { frame: next, ..Header::new(Kind::Ack) }.encode());
        }
        connection.back.extend(out);
    }

    fn hear(&mut self, lane: usize, most: usize) {
        let Some(connection) = &mut self.connections[lane] else { return };
        let mut hearing = Hearing(Vec::new());
        feed(&mut connection.answers, &mut connection.back, most, &mut hearing);
        for (header, slots) in hearing.0 {
            let mut completed = Completed::default();
            match header.kind {
                Kind::Clear => {
                    let fits = self.sender.handle_clear(header.group, header.total, slots);
                    let fits = fits.expect("in window");
                    fits.expect("it fits");
                }
                _ => {
                    let sane = self.sender.handle_ack(lane as u16, header.frame, &mut completed);
                    sane.expect("frames that were sent");
                }
            }
            self.complete(completed);
            self.assign();
        }
    }

    fn is_over(&self) -> bool {
        self.sent.iter().all(|count| *count > 0) && self.come.iter().all(|count| *count > 0)
    }

    /// From now on the network is good.
    fn finish(&mut self) {
        for _ in 0..2_000 {
            if self.is_over() {
                return;
            }
            self.send();
            self.receive();
            for lane in 0..LANES {
                if self.connections[lane].is_none() {
                    self.connect(lane);
                }
                self.write(lane);
                self.arrive(lane, usize::MAX);
                self.answer(lane);
                self.hear(lane, usize::MAX);
            }
        }
        panic!("it does not end: sent {:?}, come {:?}", self.sent, self.come);
    }
}

trials! {
    #![cases(CASES)]

    fn every_message_comes_once(
        (groups, order) in groups(), steps in steps(), ways in any::<(bool, bool, bool)>(),
    ) {
        let mut channel = Channel::new(groups, order, ways);
        for step in steps {
            channel.step(step);
        }
        channel.finish();
        prop_assert!(channel.sent.iter().all(|count| *count == 1), "{:?}", channel.sent);
        prop_assert!(channel.come.iter().all(|count| *count == 1), "{:?}", channel.come);
        // What is on its way still arrives, and copies are acknowledged.
        for lane in 0..LANES {
            channel.write(lane);
            channel.arrive(lane, usize::MAX);
            channel.answer(lane);
            channel.hear(lane, usize::MAX);
        }
        for buffer in &channel.buffers {
            prop_assert!(buffer.iter().all(|byte| *byte == 0xEE), "bytes for nobody");
        }
        prop_assert!(channel.sender.is_idle() && channel.receiver.is_empty());
        prop_assert!(!channel.receiver.has_early());
    }

    /// Whatever a peer says, nothing panics, and nothing is written outside the buffer.
    fn hostile_frames_are_refused_or_harmless(
        frames in prop::collection::vec(
            (0..3u64, 0..3u8, 0..60u64, 0..60u64, 0..60u32, any::<(bool, bool)>()), 1..40,
        ),
    ) {
        let mut half: RecvHalf<()> = RecvHalf::default();
        let mut memory = vec![0xEE_u8; 3 * 40];
        let span = Span::new(memory.as_mut_ptr().wrapping_add(40), 40);
        let slot = Slot { size: 40, ..Slot::default() };
        let taken = half.post(&[(span, slot)], ());
        prop_assert!(taken);
        prop_assert_eq!(half.hello(0, 1, 0), Ok(Some(0)));
        prop_assert_eq!(half.hello(1, 1, 0), Ok(Some(0)));
        let mut early = 0;
        for (group, slot, offset, total, len, (first, eager)) in frames {
            let lane = u16::from(!first);
            let header = Header {
                group, slot, offset, total, len, eager, frame: half.next_frame(lane),
                ..Header::new(Kind::Data)
            };
            if let Ok(place) = half.handle_data(lane, &header) {
                let start = place.start() as usize;
                let base = span.start() as usize;
                let within = start >= base && start + place.len() <= base + 40;
                // What has no buffer is kept, in memory of the half.
                prop_assert!(place.is_empty() || within || eager);
                early += u64::from(eager && !within);
                prop_assert!(early <= MOST_EAGER as u64);
                let _ = half.handle_body(lane, &header);
            }
        }
    }

    /// Nobody acknowledges what is still to be read from the memory of its sender.
    fn frames_that_are_not_written_are_not_acknowledged(
        steps in prop::collection::vec((0..4u8, 0..12u64), 1..60),
    ) {
        let content = vec![0_u8; 3 << 20];
        let mut half = SendHalf::new(false);
        let lane = half.open_lane();
        let span = Span::new(content.as_ptr().cast_mut(), content.len());
        // SAFETY: the content outlives the half.
        prop_assert_eq!(unsafe { half.post(span, 0, ()) }, Ok(()));
        let slot = Slot { size: content.len() as u64, ..Slot::default() };
        prop_assert_eq!(half.handle_clear(0, 0, Slots::new([slot])), Ok(Ok(())));
        let (send, end) = half.poll_matched().expect("it has a buffer");
        half.assign(lane, Part { send, subflow: 0, start: 0, end });
        // What the connection has been given, has written, and what has ever been written.
        let (mut given, mut written, mut ever, mut acknowledged) = (0, 0, 0, 0);
        let mut completed = Completed::default();
        for (step, number) in steps {
            match step {
                0 => given += u64::from(half.poll_frame(lane).is_some()),
                1 if written < given => {
                    half.handle_written(lane, written);
                    written += 1;
                    ever = written.max(ever);
                }
                2 => {
                    let sane = number <= written.max(acknowledged);
                    prop_assert_eq!(half.handle_ack(lane, number, &mut completed).is_ok(), sane);
                    if sane {
                        acknowledged = number.max(acknowledged);
                    }
                }
                3 if number <= ever && number >= acknowledged => {
                    prop_assert_eq!(half.resume(lane, number, &mut completed), Ok(()));
                    (given, written, acknowledged) = (number, number, number);
                }
                _ => {}
            }
        }
    }

    fn slots_survive_the_wire(
        slots in prop::collection::vec((any::<i32>(), any::<u64>(), any::<u64>(), any::<u32>()), 1..=8),
        nics in 1..=8usize,
        group in any::<u64>(),
        behind in 0..WINDOW,
    ) {
        let slot = |(tag, size, address, key): (i32, u64, u64, u32)| {
            let mut keys = [0; 8];
            let all = (0..nics as u32).map(|nic| key.rotate_left(nic) | 1);
            keys.iter_mut().zip(all).for_each(|(to, key)| *to = key);
            Slot { tag, size, address, keys }
        };
        let slots = Slots::new(slots.into_iter().map(slot));
        let mut bytes = Vec::new();
        slots.encode(group, behind, &mut bytes);
        let header = Header::decode(bytes[..48].try_into().expect("48")).expect("a header");
        prop_assert_eq!((header.kind, header.group, header.total), (Kind::Clear, group, behind));
        prop_assert_eq!(header.len as usize, bytes.len() - 48);
        // Of one NIC there are no keys behind a slot.
        prop_assert_eq!(bytes.len(), 48 + slots.as_slice().len() * (24 + 4 * (nics - 1)));
        prop_assert_eq!(Slots::decode(header.slot, &bytes[48..]), slots);
    }

    fn any_bit_of_a_header_counts(frame in any::<u64>(), offset in any::<u64>(), bit in 0..384usize) {
        let header = Header { frame, offset, ..Header::new(Kind::Data) };
        let mut bytes = header.encode();
        prop_assert_eq!(Header::decode(&bytes), Ok(header));
        bytes[bit / 8] ^= 1 << (bit % 8);
        prop_assert!(Header::decode(&bytes).is_err());
    }
}

/// No receiver has more receives under way than the window: one that says so would fill our memory.
#[test]
fn announcements_without_end_are_refused() {
    let mut half: SendHalf<()> = SendHalf::new(false);
    let slots = Slots::new([Slot::default()]);
    let refused = (0..10 * WINDOW).find(|group| half.handle_clear(*group, 0, slots).is_err());
    assert_eq!(refused, Some(WINDOW));
}
