//! Single messages of many tags, in any order at either end.

use super::network::{Draw, Network};
use crate::call::{Call, Operation};
use crate::element::{Element, Reduction};
use crate::exchange::Exchange;
use crate::item::Timer;
use crate::memory::Segment;
use std::collections::BTreeMap;
use std::time::{Duration, Instant};
use weft_trial::prelude::*;

/// A message: from, to, tag, bytes.
type Message = (u32, u32, u32, usize);

fn call(operation: Operation, buffer: &mut [u8]) -> Call {
    let segment = vec![Segment { start: buffer.as_mut_ptr(), len: buffer.len() }];
    let (inputs, outputs) = match operation {
        Operation::Send { .. } => (segment, vec![]),
        _ => (vec![], segment),
    };
    let (element, reduction) = (Element::U8, Reduction::Sum);
    Call { operation, element, reduction, inputs, outputs }
}

/// Mixes, but keeps what has the same peer and tag in order.
fn mixed(messages: &[Message], draw: &mut Draw) -> Vec<usize> {
    let mut left: BTreeMap<(u32, u32, u32), Vec<usize>> = BTreeMap::new();
    for (number, (from, to, tag, _)) in messages.iter().enumerate().rev() {
        left.entry((*from, *to, *tag)).or_default().push(number);
    }
    let mut order = Vec::new();
    while !left.is_empty() {
        let keys: Vec<_> = left.keys().copied().collect();
        let key = keys[draw.below(keys.len())];
        order.extend(left.get_mut(&key).and_then(Vec::pop));
        left.retain(|_, numbers| !numbers.is_empty());
    }
    order
}

/// Exchanges them; sends and receives are posted in these orders, as time goes on.
fn carry_out(messages: &[Message], sends: &[usize], receives: &[usize], draw: &mut Draw) {
    const RANKS: u32 = 3;
    let network = Network::default();
    let most = 1 + draw.below(4);
    let content = |number: usize, len| (0..len).map(move |at| (at * 7 + number * 31) as u8);
    let of = |(number, message): (usize, &Message)| content(number, message.3).collect();
    let mut out: Vec<Vec<u8>> = messages.iter().enumerate().map(of).collect();
    let mut into: Vec<Vec<u8>> = messages.iter().map(|one| vec![0; one.3]).collect();
    let mut all: Vec<_> =
        (0..RANKS).map(|rank| (Exchange::new(rank, RANKS), network.port(rank, most))).collect();
    let (mut sends, mut receives) = (sends.iter(), receives.iter());
    let (mut over, mut quiet) = (vec![0; 2 * messages.len()], 0);
    let timer = Timer { since: Instant::now(), limit: Duration::MAX };
    while over.contains(&0) {
        let mut moved = false;
        if draw.below(2) == 0
            && let Some(&number) = sends.next()
        {
            let (from, to, tag, _) = messages[number];
            let call = call(Operation::Send { to, tag }, &mut out[number]);
            all[from as usize].0.take(&call, 2 * number, timer).expect("a send");
            moved = true;
        }
        if draw.below(2) == 0
            && let Some(&number) = receives.next()
        {
            let (from, to, tag, _) = messages[number];
            let call = call(Operation::Receive { from, tag }, &mut into[number]);
            all[to as usize].0.take(&call, 2 * number + 1, timer).expect("a receive");
            moved = true;
        }
        for (exchange, port) in &mut all {
            let done = |ticket: usize, _| over[ticket] += 1;
            moved |= exchange.advance(port, done).expect("no channel fails");
        }
        for _ in 0..draw.below(4) {
            moved |= network.deliver(draw);
        }
        quiet = if moved { 0 } else { quiet + 1 };
        assert!(quiet < 100, "it stands still: {messages:?}");
    }
    assert!(over.iter().all(|count| *count == 1), "{over:?}");
    assert_eq!(out, into);
    assert!(all.iter().all(|(exchange, _)| exchange.is_empty()));
    for (from, to) in [(0, 1), (1, 0), (0, 2), (2, 0), (1, 2), (2, 1)] {
        // Three, and one where questions from anybody would come.
        assert!(network.streams(from, to) <= 4, "however many tags there are");
    }
}

trials! {
    // Under Miri each takes seconds.
    #![cases(if cfg!(miri) { 4 } else { 200 })]

    fn every_message_finds_its_receive(
        seed in any::<u64>(),
        given in prop::collection::vec((0..3u32, 1..3u32, 0..12u32, 0..50usize), 1..60),
    ) {
        let message = |(from, more, tag, len)| (from, (from + more) % 3, tag, len);
        let messages: Vec<Message> = given.into_iter().map(message).collect();
        let mut draw = Draw(seed);
        let (sends, receives) = (mixed(&messages, &mut draw), mixed(&messages, &mut draw));
        carry_out(&messages, &sends, &receives, &mut draw);
    }
}

/// More than any channel takes at a time, and the last that is sent is received first.
#[test]
fn tags_that_cross_do_not_wait_for_each_other() {
    let most = if cfg!(miri) { 30 } else { 200 };
    let messages: Vec<Message> = (1..most).map(|tag| (0, 1, tag, 10)).collect();
    let sends: Vec<usize> = (0..messages.len()).collect();
    let receives: Vec<usize> = sends.iter().rev().copied().collect();
    carry_out(&messages, &sends, &receives, &mut Draw(1));
}

/// Sends to rank 0, and as many receives of it from anybody; the first number of a message says who
/// has sent it.
fn from_anybody(sends: &[(u32, u32)], named: &[bool], is_eager: bool, draw: &mut Draw) {
    const RANKS: u32 = 3;
    let network = Network::eager(is_eager);
    let most = 1 + draw.below(4);
    // Each in memory of its own: what borrows one buffer says nothing of the others.
    let mut out: Vec<Vec<u8>> =
        sends.iter().enumerate().map(|(at, (from, _))| vec![*from as u8, at as u8]).collect();
    let mut into = vec![vec![0u8; 2]; sends.len()];
    let mut all: Vec<_> =
        (0..RANKS).map(|rank| (Exchange::new(rank, RANKS), network.port(rank, most))).collect();
    let timer = Timer { since: Instant::now(), limit: Duration::MAX };
    let mut sources = vec![None; sends.len()];
    let (mut sent, mut asked, mut quiet) = (0, 0, 0);
    while sources.contains(&None) {
        let mut moved = false;
        if draw.below(2) == 0 && sent < sends.len() {
            let (from, tag) = sends[sent];
            let call = call(Operation::Send { to: 0, tag }, &mut out[sent]);
            all[from as usize].0.take(&call, usize::MAX, timer).expect("a send");
            (sent, moved) = (sent + 1, true);
        }
        if draw.below(2) == 0 && asked < sends.len() {
            let (from, tag) = sends[asked];
            let operation = match named[asked % named.len()] {
                true => Operation::Receive { from, tag },
                false => Operation::ReceiveAny { tag },
            };
            let call = call(operation, &mut into[asked]);
            all[0].0.take(&call, asked, timer).expect("a receive");
            (asked, moved) = (asked + 1, true);
        }
        for (exchange, port) in &mut all {
            let done = |ticket: usize, peer| {
                if let Some(source) = sources.get_mut(ticket) {
                    assert_eq!(source.replace(peer), None);
                }
            };
            moved |= exchange.advance(port, done).expect("no channel fails");
        }
        for _ in 0..draw.below(4) {
            moved |= network.deliver(draw);
        }
        quiet = if moved { 0 } else { quiet + 1 };
        assert!(quiet < 100, "it stands still: {sends:?}");
    }
    for (content, source) in into.iter().zip(&sources) {
        assert_eq!(Some(u32::from(content[0])), *source);
    }
    // Each message once.
    for (from, tag) in [(1, 0), (1, 5), (2, 0), (2, 5)] {
        let of = |at: &&Vec<u8>| sends[usize::from(at[1])] == (from, tag);
        let numbers: Vec<u8> = into.iter().filter(of).map(|one| one[1]).collect();
        let count = sends.iter().filter(|one| **one == (from, tag)).count();
        assert_eq!(numbers.len(), count, "{into:?}");
    }
}

trials! {
    #![cases(if cfg!(miri) { 4 } else { 200 })]

    fn whoever_sends_is_received_from(
        seed in any::<u64>(),
        sends in prop::collection::vec((1..3u32, prop::sample::select(vec![0u32, 5])), 1..40),
        is_eager in any::<bool>(),
    ) {
        from_anybody(&sends, &[false], is_eager, &mut Draw(seed));
    }
}
