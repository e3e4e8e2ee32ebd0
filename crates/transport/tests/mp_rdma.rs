//! MP-RDMA's window against steps worked out by hand.

use weft_transport::{AckInfo, Congestion, CongestionConfig, FlowPace, Loss, MpRdmaConfig};
use weft_trial::prelude::*;
use weft_units::Time;

/// Windows of 4 packets at first and 100 at most.
const CONFIG: MpRdmaConfig =
    MpRdmaConfig { initial_window: 4_000, max_window: 100_000, reordering: 32 };

fn mp_rdma(config: MpRdmaConfig) -> Congestion {
    let flow = FlowPace { mtu: 1000, rate: None, share: 1, hops: 4, header: 0, trims: false };
    Congestion::new(&CongestionConfig::MpRdma(config), &flow)
}
fn ack(congestion: &mut Congestion, seq: u32, marked: bool) -> u32 {
    let now = Time::ZERO;
    congestion.on_ack(&AckInfo { now, seq, packets: 1, marked, in_flight: 4, rtt: now });
    congestion.window()
}
/// Takes so many packets off, two marks each.
fn shrink(congestion: &mut Congestion, seq: u32, packets: u32) {
    (0..2 * packets).for_each(|_| _ = ack(congestion, seq, true));
}

#[test]
fn windows_by_hand() {
    let mut window = mp_rdma(CONFIG);
    assert_eq!(window.window(), 4);
    assert!(!window.is_paced() && !window.wants_rtt());
    // 4.25, 4.49, 4.71, 4.92, 5.12.
    let windows: Vec<u32> = (0..5).map(|seq| ack(&mut window, seq, false)).collect();
    assert_eq!(windows, [4, 4, 4, 4, 5]);
    // 4.62, 4.12, 3.62; and 3.90, 4.16.
    let marked: Vec<u32> = (5..8).map(|seq| ack(&mut window, seq, true)).collect();
    assert_eq!(marked, [4, 4, 3]);
    assert_eq!([8, 9].map(|seq| ack(&mut window, seq, false)), [3, 4]);
}

#[test]
fn a_window_has_two_ends() {
    let mut window = mp_rdma(MpRdmaConfig { max_window: 5_000, ..CONFIG });
    (0..1000).for_each(|seq| _ = ack(&mut window, seq, false));
    assert_eq!(window.window(), 5);
    // From 5: 4.5.
    assert_eq!(ack(&mut window, 1000, true), 4);
    shrink(&mut window, 1000, 100);
    assert_eq!(window.window(), 1);
    // From 1: 2.
    assert_eq!(ack(&mut window, 1001, false), 2);
    assert_eq!(mp_rdma(MpRdmaConfig { initial_window: 1, ..CONFIG }).window(), 1);
    assert_eq!(mp_rdma(MpRdmaConfig { max_window: 2_000, ..CONFIG }).window(), 2);
}

#[test]
fn a_path_that_is_too_slow_lets_nothing_out() {
    let mut window = mp_rdma(MpRdmaConfig { initial_window: 50_000, ..CONFIG });
    // 50.02 packets, then 50.04 for one that is 32 behind.
    assert_eq!([100, 68].map(|seq| ack(&mut window, seq, false)), [50, 50]);
    // 49.06 and 48.08: as many fewer as are back. With a mark half a packet more: 46.58.
    assert_eq!([67, 0].map(|seq| ack(&mut window, seq, false)), [49, 48]);
    assert_eq!(ack(&mut window, 67, true), 46);
    // As told.
    let told = MpRdmaConfig { initial_window: 50_000, reordering: 3, ..CONFIG };
    let mut window = mp_rdma(told);
    assert_eq!([10, 7, 6].map(|seq| ack(&mut window, seq, false)), [50, 50, 49]);
}

#[test]
fn a_loss_halves_the_window_once_for_all_that_was_out() {
    for loss in [Loss::Gap, Loss::TimeOut] {
        let mut window = mp_rdma(MpRdmaConfig { initial_window: 40_000, ..CONFIG });
        assert_eq!(ack(&mut window, 99, false), 40);
        window.on_loss(Time::ZERO, loss);
        assert_eq!(window.window(), 20);
        // Up to 40 packets from 100 on were out. None of them is slow: 20.01, 20.06, ...
        window.on_loss(Time::ZERO, loss);
        assert_eq!([138, 5].map(|seq| ack(&mut window, seq, false)), [20, 20]);
        window.on_loss(Time::ZERO, loss);
        assert_eq!(window.window(), 20);
        // The last of them is answered. What is slow now counts, and so does the next loss.
        assert_eq!([139, 190].map(|seq| ack(&mut window, seq, false)), [20, 20]);
        assert_eq!(ack(&mut window, 157, false), 19);
        assert_eq!(ack(&mut window, 139, false), 19, "sent before the loss");
        window.on_loss(Time::ZERO, loss);
        assert_eq!(window.window(), 9);
    }
}

trials! {
    /// However acknowledgements come, the window stays between its ends, marks never open it,
    /// and each takes no more than a packet and a half.
    fn steps_are_bounded(
        steps in prop::collection::vec((0u32..300, any::<bool>(), 0u32..40), 1..300),
        initial in 1u64..200_000, reordering in 1u32..64,
    ) {
        let config = MpRdmaConfig { initial_window: initial, reordering, ..CONFIG };
        let mut window = mp_rdma(config);
        for (seq, marked, loss) in steps {
            let before = window.window();
            if loss == 0 {
                window.on_loss(Time::ZERO, Loss::TimeOut);
                prop_assert!(window.window() >= before / 2);
            } else {
                let after = ack(&mut window, seq, marked);
                prop_assert!(after + 2 >= before && after <= before + u32::from(!marked));
            }
            prop_assert!((1..=100).contains(&window.window()));
        }
    }
}
