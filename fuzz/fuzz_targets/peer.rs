//! Both halves of a channel against a peer that knows the secret and says what it likes: what is
//! written stays inside the buffers that were posted, and nothing is done twice.

#![no_main]

use libfuzzer_sys::fuzz_target;
use weft_comm::half::receiver::RecvHalf;
use weft_comm::half::sender::{Completed, Part, SendHalf};
use weft_comm::stream::inflow::{Inflow, Sink};
use weft_comm::wire::{HEADER, Header, Kind, Slot, Slots, WireError};
use weft_comm::{Sizes, Span};

/// Bytes of each buffer, and what stands around it.
const ROOM: usize = 600;
const AROUND: usize = 64;
const MARK: u8 = 0xA5;

struct Receiving {
    half: RecvHalf<usize>,
    lane: u16,
    done: Vec<bool>,
    /// Lanes that have begun to bring what has come now.
    late: Vec<u16>,
}

impl Sink for &mut Receiving {
    fn begin(&mut self, header: &Header) -> Result<Span, WireError> {
        self.half.handle_data(self.lane, header)
    }
    fn end(&mut self, header: &Header, body: &[u8]) -> Result<(), WireError> {
        match header.kind {
            Kind::Data => {
                let ended = self.half.handle_body(self.lane, header)?;
                self.late.extend(ended.late);
                if let Some((token, sizes)) = ended.over {
                    self.over(token, &sizes);
                }
            }
            Kind::Clear => drop(Slots::decode(header.slot, body)),
            Kind::Request => self.half.handle_request(header.total),
            _ => {}
        }
        Ok(())
    }
}

impl Receiving {
    fn over(&mut self, token: usize, sizes: &Sizes) {
        assert!(!self.done[token], "a receive is over once");
        self.done[token] = true;
        assert!(sizes.sizes[..sizes.count].iter().all(|size| *size <= ROOM));
    }
}

/// Takes `count` bytes; zeros where there are no more.
fn take<'a>(data: &mut &'a [u8], count: usize) -> &'a [u8] {
    let (head, tail) = data.split_at(count.min(data.len()));
    *data = tail;
    head
}

fn number(data: &mut &[u8]) -> u64 {
    take(data, 1).first().map_or(0, |byte| u64::from(*byte))
}

/// A header of small numbers, now and then with a huge one, as it would come from a peer.
fn header(data: &mut &[u8]) -> Header {
    const KINDS: [Kind; 8] = [
        Kind::Data,
        Kind::Data,
        Kind::Data,
        Kind::Clear,
        Kind::Ack,
        Kind::Ping,
        Kind::Bye,
        Kind::Request,
    ];
    let mut header = Header::new(KINDS[number(data) as usize % KINDS.len()]);
    let wild = number(data);
    let mut value = |bit: u64, scale: u64| {
        let small = number(data) * scale;
        if wild & 1 << bit == 0 { small } else { u64::MAX - small }
    };
    header.frame = value(0, 1);
    header.group = value(1, 1);
    header.offset = value(2, 3);
    header.total = value(3, 3);
    header.len = value(4, 3) as u32;
    header.slot = value(5, 1) as u8 % 9;
    header
}

fn receives(mut data: &[u8]) {
    let data = &mut data;
    let groups = 1 + number(data) as usize % 6;
    let mut memory = vec![MARK; groups * 8 * (ROOM + AROUND) + AROUND];
    let start = memory.as_mut_ptr();
    let mut sink = Receiving {
        half: RecvHalf::default(),
        lane: 0,
        done: vec![false; groups],
        late: Vec::new(),
    };
    // Some are posted later, when what they are for may be there.
    let first = number(data) as usize % (groups + 1);
    let post = |sink: &mut Receiving, data: &mut &[u8], group: usize| {
        let count = 1 + number(data) as usize % 8;
        let buffers: Vec<(Span, Slot)> = (0..count)
            .map(|slot| {
                let at = AROUND + (group * 8 + slot) * (ROOM + AROUND);
                let span = Span::new(start.wrapping_add(at), ROOM);
                (span, Slot { tag: slot as i32, size: ROOM as u64, ..Slot::default() })
            })
            .collect();
        assert!(sink.half.post(&buffers, group));
        // SAFETY: the memory outlives the half.
        if let Some((token, sizes)) = unsafe { sink.half.fill_early() } {
            sink.over(token, &sizes);
        }
        let _ = sink.half.poll_clear();
    };
    (0..first).for_each(|group| post(&mut sink, data, group));
    let mut later = first..groups;
    let mut inflows: Vec<Inflow> = (0..3).map(|_| Inflow::default()).collect();
    let mut epochs = [0_u32; 3];
    while !data.is_empty() {
        let what = number(data);
        let lane = what as usize % 3;
        sink.lane = lane as u16;
        if (224..240).contains(&what)
            && let Some(group) = later.next()
        {
            post(&mut sink, data, group);
            continue;
        }
        if what >= 240 || epochs[lane] == 0 {
            epochs[lane] += 1;
            inflows[lane] = Inflow::default();
            let group = number(data) % 8;
            if sink.half.hello(sink.lane, epochs[lane], group).is_err() {
                epochs[lane] = 0;
            }
            continue;
        }
        let mut stream = Vec::new();
        for _ in 0..1 + what / 3 % 4 {
            let mut header = header(data);
            if what & 64 != 0 {
                header.frame = sink.half.next_frame(sink.lane);
            }
            let body = take(data, (header.len as usize).min(ROOM)).to_vec();
            header.check = crc32c::crc32c(&body);
            header.repeats = header.kind == Kind::Data && what & 16 != 0;
            header.copied = header.kind == Kind::Data && what & 8 != 0;
            header.eager = header.kind == Kind::Data && !header.repeats && header.slot & 4 != 0;
            header.checked = header.kind == Kind::Clear || what & 128 != 0;
            stream.extend_from_slice(&header.encode());
            stream.extend_from_slice(&body);
        }
        if what & 32 != 0 {
            stream.extend_from_slice(take(data, HEADER));
        }
        let mut rest = stream.as_slice();
        while !rest.is_empty() {
            let (span, room) = inflows[lane].room();
            let direct = span.len().min(rest.len());
            // SAFETY: spans are parts of `memory`: that they are is what is tested, by the marks
            // around them and by the address sanitizer.
            unsafe { std::ptr::copy_nonoverlapping(rest.as_ptr(), span.start(), direct) };
            let staged = room.len().min(rest.len() - direct);
            room[..staged].copy_from_slice(&rest[direct..direct + staged]);
            rest = &rest[direct + staged..];
            // SAFETY: as above.
            if unsafe { inflows[lane].advance(direct + staged, &mut &mut sink) }.is_err() {
                epochs[lane] += 1;
                inflows[lane] = Inflow::default();
                let _ = sink.half.hello(sink.lane, epochs[lane], 0);
                break;
            }
            for other in sink.late.drain(..) {
                inflows[usize::from(other)].divert();
            }
        }
    }
    drop(inflows);
    for at in 0..groups * 8 {
        let from = at * (ROOM + AROUND);
        assert!(memory[from..from + AROUND].iter().all(|byte| *byte == MARK), "before buffer {at}");
    }
}

fn sends(mut data: &[u8]) {
    let data = &mut data;
    let body = vec![7_u8; 4096];
    let span = Span::new(body.as_ptr().cast_mut(), body.len());
    let how = number(data);
    let mut half: SendHalf<usize> = SendHalf::new(how & 1 == 1);
    if how & 2 == 2 {
        half.allow_eager(1_000);
    }
    let mut done = vec![false; 16];
    for (token, _) in done.iter().enumerate() {
        let size = number(data) as usize * 16;
        let part = span.part(0, size.min(body.len()));
        // SAFETY: the body outlives the half.
        if unsafe { half.post(part, token as i32 % 4, token) }.is_err() {
            return;
        }
    }
    let lane = half.open_lane();
    let mut out = Completed::default();
    while !data.is_empty() {
        let failed = match number(data) % 5 {
            0 => {
                let slot = |data: &mut &[u8]| Slot {
                    tag: number(data) as i32 % 4,
                    size: number(data) * 64,
                    ..Slot::default()
                };
                let count = 1 + number(data) % 8;
                let slots: Vec<_> = (0..count).map(|_| slot(data)).collect();
                let group = half.next_group().wrapping_add(number(data) % 3);
                match half.handle_clear(group, number(data) % 3, Slots::new(slots)) {
                    Ok(fits) => fits.is_err(),
                    Err(_) => true,
                }
            }
            1 => half.handle_ack(lane, number(data), &mut out).is_err(),
            2 => half.resume(lane, number(data), &mut out).is_err(),
            3 => {
                while let Some((send, size)) = half.poll_matched() {
                    half.assign(lane, part(send, size));
                }
                false
            }
            _ => {
                while let Some(frame) = half.poll_frame(lane) {
                    let number = frame.header.frame;
                    let _ = half.handle_written(lane, number);
                }
                false
            }
        };
        for (token, _) in out.sends.drain(..) {
            assert!(!done[token], "a send is done once");
            done[token] = true;
        }
        out.subflows.clear();
        if failed {
            return;
        }
    }
}

fn part(send: u32, size: u64) -> Part {
    Part { send, start: 0, end: size, subflow: send }
}

fuzz_target!(|data: &[u8]| {
    match data.split_first() {
        Some((first, rest)) if first & 1 == 0 => receives(rest),
        Some((_, rest)) => sends(rest),
        None => {}
    }
});
