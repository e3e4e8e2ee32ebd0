//! Messages that go before their buffers are announced: how far ahead, and where they belong.

#![expect(unsafe_code, reason = "buffers live as long as the halves")]

use weft_comm::Span;
use weft_comm::half::receiver::RecvHalf;
use weft_comm::half::sender::{Completed, Part, SendHalf, TooLarge};
use weft_comm::wire::{Header, Kind, MOST_EAGER, MOST_EAGER_BYTES, MOST_PAYLOAD, Slot, Slots};

/// One that is `eager`, the `order`th with `tag`.
fn eager(half: &RecvHalf<u8>, tag: i32, order: u64, len: u32) -> Header {
    let (offset, total, frame) = (u64::from(tag as u32), order, half.next_frame(0));
    Header { eager: true, offset, total, len, frame, ..Header::new(Kind::Data) }
}

/// A receiver keeps no more than a sender may send without a buffer, and no frame twice.
#[test]
fn eager_frames_without_end_are_refused() {
    let fresh = || {
        let mut half: RecvHalf<u8> = RecvHalf::default();
        assert_eq!(half.hello(0, 1, 0), Ok(Some(0)));
        half
    };
    let take = |half: &mut RecvHalf<u8>, order, len| {
        let header = eager(half, 7, order, len);
        half.handle_data(0, &header).and_then(|_| half.handle_body(0, &header)).is_ok()
    };
    let mut half = fresh();
    let taken = (0..).take_while(|order| take(&mut half, *order, 1)).count();
    assert_eq!(taken, MOST_EAGER);
    let mut half = fresh();
    let taken = (0..).take_while(|order| take(&mut half, *order, MOST_PAYLOAD)).count();
    assert_eq!(taken as u64, MOST_EAGER_BYTES / u64::from(MOST_PAYLOAD));
    let mut half = fresh();
    assert!(take(&mut half, 5, 1) && !take(&mut half, 5, 1));
}

/// Tags are told apart, whatever order buffers are posted in; what does not fit says so.
#[test]
fn eager_frames_go_to_the_buffers_of_their_tags() {
    let mut half: RecvHalf<u8> = RecvHalf::default();
    assert_eq!(half.hello(0, 1, 0), Ok(Some(0)));
    let mut memory = [[0_u8; 8]; 3];
    for (tag, order, byte) in [(1, 0, 10), (-2, 0, 20), (1, 1, 11)] {
        let header = eager(&half, tag, order, 4);
        let place = half.handle_data(0, &header).expect("it is kept");
        // SAFETY: the half has made room for it.
        unsafe { place.start().write_bytes(byte, place.len()) };
        assert!(half.handle_body(0, &header).expect("it is kept").over.is_none());
    }
    let mut receive = |half: &mut RecvHalf<u8>, at: usize, tag, size: usize| {
        let span = Span::new(memory[at].as_mut_ptr(), size);
        let slot = Slot { tag, size: size as u64, ..Slot::default() };
        assert!(half.post(&[(span, slot)], at as u8));
        // SAFETY: it outlives the half.
        let over = unsafe { half.fill_early() };
        over.map(|(token, sizes)| (token, sizes.sizes[0], memory[at]))
    };
    assert_eq!(receive(&mut half, 0, -2, 8), Some((0, 4, [20, 20, 20, 20, 0, 0, 0, 0])));
    assert_eq!(receive(&mut half, 1, 1, 8), Some((1, 4, [10, 10, 10, 10, 0, 0, 0, 0])));
    assert!(half.has_early() && half.too_large().is_none());
    assert_eq!(receive(&mut half, 2, 1, 3), None);
    let TooLarge { size, room } = half.too_large().expect("it does not fit");
    assert_eq!((size, room), (4, 3));
}

/// Where much is under way already, a send waits for its buffer: announcements come in time then.
#[test]
fn a_flood_is_not_eager() {
    let mut content = [1_u8; 8];
    let span = Span::new(content.as_mut_ptr(), content.len());
    let mut half: SendHalf<u32> = SendHalf::new(false);
    half.allow_eager(MOST_PAYLOAD.into());
    let slots = Slots::new([Slot { size: 8, ..Slot::default() }]);
    half.handle_clear(0, MOST_EAGER as u64 - 1, slots).expect("in window").expect("they fit");
    for _ in 0..MOST_EAGER {
        // SAFETY: the content outlives the half.
        unsafe { half.post(span, 0, 0) }.expect("it fits");
        assert!(half.poll_matched().is_some(), "it has a buffer");
    }
    // SAFETY: as before.
    unsafe { half.post(span, 0, 0) }.expect("it fits");
    assert!(half.poll_matched().is_none() && half.waits());
    half.handle_clear(MOST_EAGER as u64, 0, slots).expect("in window").expect("it fits");
    assert!(half.poll_matched().is_some() && !half.waits());
}

/// Long messages are not either, from so many bytes on until few are left.
#[test]
fn a_flood_of_long_messages_is_not_eager() {
    let mut content = vec![1_u8; 400_000];
    let span = Span::new(content.as_mut_ptr(), content.len());
    let mut half: SendHalf<u32> = SendHalf::new(false);
    half.allow_eager(MOST_PAYLOAD.into());
    let lane = half.open_lane();
    // Writes what need not wait; whether it was eager.
    let write = |half: &mut SendHalf<u32>| {
        let (send, end) = half.poll_matched()?;
        half.assign(lane, Part { send, subflow: 0, start: 0, end });
        let header = half.poll_frame(lane).expect("it has one").header;
        half.handle_written(lane, header.frame);
        Some(header.eager)
    };
    let send = |half: &mut SendHalf<u32>| {
        // SAFETY: the content outlives the half.
        unsafe { half.post(span, 3, 0) }.expect("it fits");
        write(half)
    };
    let slots = Slots::new([Slot { tag: 3, size: 400_000, ..Slot::default() }]);
    let acknowledge = |half: &mut SendHalf<u32>, frames| {
        half.handle_ack(lane, frames, &mut Completed::default()).expect("they were sent");
    };
    assert_eq!([0; 3].map(|_| send(&mut half)), [Some(true), Some(true), None]);
    half.handle_clear(0, 2, slots).expect("in window").expect("they fit");
    assert_eq!(write(&mut half), Some(false));
    acknowledge(&mut half, 2);
    assert_eq!(send(&mut half), None, "one is left");
    half.handle_clear(3, 0, slots).expect("in window").expect("it fits");
    assert_eq!(write(&mut half), Some(false));
    acknowledge(&mut half, 4);
    assert_eq!(send(&mut half), Some(true));
}

/// The sender goes on without a buffer until it has as much out as a receiver keeps; somebody who waits is told
/// of, and everybody behind waits, too.
#[test]
fn eager_sends_stop_where_a_receiver_does() {
    let mut content = vec![1_u8; MOST_PAYLOAD as usize + 1];
    let start = content.as_mut_ptr();
    let mut half: SendHalf<u32> = SendHalf::new(false);
    half.allow_eager(MOST_PAYLOAD.into());
    let lane = half.open_lane();
    let send = |half: &mut SendHalf<u32>, len: usize| {
        // SAFETY: the content outlives the half.
        unsafe { half.post(Span::new(start, len), 3, 0) }.expect("it fits");
        let matched = half.poll_matched();
        if let Some((send, end)) = matched {
            half.assign(lane, Part { send, subflow: 0, start: 0, end });
            while half.poll_frame(lane).is_some() {}
        }
        matched.is_some()
    };
    let short = 64 << 10;
    let most = MOST_EAGER_BYTES as usize / short;
    assert!((0..most).all(|_| send(&mut half, short)));
    assert!(!half.waits() && !half.has_request());
    assert!(!send(&mut half, short) && !send(&mut half, 1));
    assert!(half.waits() && half.has_request());
    assert_eq!(half.request().total, most as u64);
    assert!(!half.has_request(), "once");
    let slots = Slots::new([Slot { tag: 3, size: 200_000, ..Slot::default() }]);
    half.handle_clear(0, most as u64 - 1, slots).expect("in window").expect("they fit");
    assert!(half.poll_matched().is_none(), "these were out");
    half.handle_clear(most as u64, 1, slots).expect("in window").expect("they fit");
    assert!(half.poll_matched().is_some() && half.poll_matched().is_some() && !half.waits());
    // What no frame holds waits, too.
    let most = MOST_PAYLOAD as usize;
    for (len, goes) in [(most, true), (most + 1, false)] {
        let mut half = SendHalf::new(false);
        half.allow_eager(u64::MAX);
        assert_eq!(half.open_lane(), lane);
        assert_eq!(send(&mut half, len), goes, "{len} bytes");
    }
}
