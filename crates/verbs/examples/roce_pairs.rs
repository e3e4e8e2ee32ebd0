//! Queue pairs between two devices of one machine, each with a source port of its own; writes through
//! all of them at once and checks what arrived.
//!
//!     roce_pairs ADDRESS ADDRESS BYTES PORT...
//!
//! Prints `pair PORT QUEUE-PAIR PEER'S` for each, then `ok` with bytes and time.
#![expect(unsafe_code, reason = "vouches for the memory that is written")]

use std::error::Error;
use std::net::Ipv4Addr;
use std::sync::Arc;
use std::time::{Duration, Instant};
use weft_verbs::{
    Capacity, CompletionQueue, Device, MemoryRange, Outcome, Peer, QueuePair, Region, Route,
    Timing, Verbs, Work,
};

/// One of the two ends.
struct End {
    device: Arc<Device>,
    port: u8,
    address: weft_verbs::Address,
    completions: Arc<CompletionQueue>,
}

impl End {
    fn open(verbs: &Arc<Verbs>, address: Ipv4Addr) -> Result<End, Box<dyn Error>> {
        let (device, port, address) = Device::find(verbs, address)?;
        let completions = Arc::new(CompletionQueue::new(&device, 1024)?);
        println!("device {} address {} {:?}", device.name(), address.index, device.port(port)?);
        Ok(End { device, port, address, completions })
    }

    fn pair(&self) -> Result<QueuePair, Box<dyn Error>> {
        let capacity = Capacity { sends: 64, receives: 64, inline: 64 };
        Ok(QueuePair::new(&self.completions, self.port, capacity)?)
    }

    fn connect(
        &self,
        own: &QueuePair,
        other: &End,
        peer: &QueuePair,
        port: u16,
    ) -> Result<(), Box<dyn Error>> {
        let route = Route {
            address: self.address.index,
            flow_label: if port == 0xC000 { 0x4001 } else { u32::from(port) - 0xC000 },
            traffic_class: 26 << 2,
            hop_limit: 64,
        };
        let peer = Peer { gid: other.address.gid, number: peer.number(), first_packet: 7 };
        let timing = Timing::within(Duration::from_secs(60), 7);
        Ok(own.connect(peer, 7, route, self.device.port(self.port)?.mtu, timing)?)
    }
}

fn main() -> Result<(), Box<dyn Error>> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let [first, second, bytes, ports @ ..] = words.as_slice() else {
        return Err("usage: roce_pairs ADDRESS ADDRESS BYTES PORT...".into());
    };
    let bytes: usize = bytes.parse()?;
    let verbs = Verbs::load()?;
    let (here, there) = (End::open(&verbs, first.parse()?)?, End::open(&verbs, second.parse()?)?);

    let source: Vec<u8> = (0..ports.len() * bytes).map(|i| (i % 251) as u8).collect();
    let mut target = vec![0_u8; source.len()];
    let mut messages = vec![0_u8; ports.len() * 64];
    // SAFETY: all three outlive their regions, which end with `main` before them.
    let (from, to, inbox) = unsafe {
        (
            Region::new(&here.device, source.as_ptr().cast_mut(), source.len())?,
            Region::new(&there.device, target.as_mut_ptr(), target.len())?,
            Region::new(&there.device, messages.as_mut_ptr(), messages.len())?,
        )
    };
    let mut pairs = Vec::new();
    for (index, port) in ports.iter().enumerate() {
        let port: u16 = port.parse()?;
        let (ours, theirs) = (here.pair()?, there.pair()?);
        println!("pair {port} {} {}", ours.number(), theirs.number());
        let start = messages.as_ptr() as u64 + index as u64 * 64;
        // SAFETY: each has 64 bytes of `messages`, which is looked at only after the completion.
        unsafe {
            theirs.receive(index as u64, MemoryRange { start, len: 64, key: inbox.local_key() })?
        };
        there.connect(&theirs, &here, &ours, port)?;
        here.connect(&ours, &there, &theirs, port)?;
        pairs.push((ours, theirs));
    }
    let start = Instant::now();
    for (index, (ours, _)) in pairs.iter().enumerate() {
        let offset = (index * bytes) as u64;
        let range = MemoryRange {
            start: source.as_ptr() as u64 + offset,
            len: bytes as u32,
            key: from.local_key(),
        };
        // SAFETY: `source` is not changed; `target` is looked at only when the message behind has come.
        unsafe {
            let to_address = target.as_ptr() as u64 + offset;
            ours.write(index as u64, range, to_address, to.remote_key(), None, false)?;
        }
        ours.send(index as u64, format!("range {index}").as_bytes(), true)?;
    }
    let (mut sent, mut received) = (0, 0);
    let mut found = Vec::new();
    while sent < pairs.len() || received < pairs.len() {
        if start.elapsed() > Duration::from_secs(60) {
            return Err(format!("time is up: {sent} sent, {received} received").into());
        }
        here.completions.poll(&mut found)?;
        there.completions.poll(&mut found)?;
        for end in found.drain(..) {
            if end.outcome != Outcome::Done {
                return Err(format!("{end:?}: {}", here.completions.words(end.outcome)).into());
            }
            match end.work {
                Work::Send => sent += 1,
                Work::Receive => {
                    let message = &messages[end.id as usize * 64..][..end.bytes as usize];
                    if message != format!("range {}", end.id).as_bytes() {
                        return Err(format!("message {} is wrong: {message:?}", end.id).into());
                    }
                    received += 1;
                }
                other => return Err(format!("who posted {other:?}?").into()),
            }
        }
        std::thread::yield_now();
    }
    let time = start.elapsed();
    if source != target {
        return Err("what arrived is not what was sent".into());
    }
    println!("ok {} bytes in {:.3} s", source.len(), time.as_secs_f64());
    let moved = pairs[0].0.set_source_port(50_000);
    println!(
        "moving a connected queue pair: {}",
        moved.map_or_else(|error| error.to_string(), |()| "done".into())
    );
    Ok(())
}
