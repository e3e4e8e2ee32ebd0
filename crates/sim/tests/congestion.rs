//! Congestion control in a network. DCTCP: long flows share a link fairly, keep it busy and the
//! queue near the marking threshold (Alizadeh et al., SIGCOMM 2010, section 3.3). DCQCN: they share
//! it, keep it busy, and the queue within bounds.

use crate::common::{LINK, Setup, messages};
use weft_fabric::Clos;
use weft_sim::{EcnConfig, ProbeConfig};
use weft_transport::{CongestionConfig, DcqcnConfig, DctcpConfig, PathScale, RecoveryConfig};
use weft_units::{MessageId, SwitchId, Time};

#[test]
fn long_flows_share_a_link_and_keep_its_queue_short() {
    const PACKETS: u64 = 4000;
    const THRESHOLD: u64 = 20_000;
    let clos = Clos::leaf_spine(1, 1, 3, LINK);
    let list = [(1, 0, PACKETS * 960), (2, 0, PACKETS * 960)];
    let mut setup = Setup::new(clos, messages(3, &list));
    // A bandwidth-delay product is 27 kB. No mark is expected at first, so that the first ones
    // do not empty the link.
    setup.transport.congestion = CongestionConfig::Dctcp(DctcpConfig {
        gain: 1.0 / 16.0,
        initial_alpha: 0.0,
        initial_window: 27_000,
        max_window: 1_000_000,
    });
    setup.switch.ecn = Some(EcnConfig { kmin: THRESHOLD, kmax: THRESHOLD, pmax: 1.0 });
    let down = setup.fabric.ports_of(SwitchId(0)).first;
    setup.probes =
        ProbeConfig { interval: Some(Time::us(1)), ports: vec![down], ..ProbeConfig::default() };
    let outcome = setup.run();

    let busy = Time::ns(80 * 2 * PACKETS);
    let end = outcome.totals.cct;
    assert!(end >= busy && end < busy + Time::us(5), "the link idled: {end}, not {busy}");
    let [one, other] = [0, 1].map(|id| outcome.messages[MessageId(id)].received);
    let last = one.min(other);
    assert!(last > Time::us(560), "one took more than its share: done at {last}");
    // Once the first windows are digested, and before the end.
    let queue = &outcome.series[0].bytes[100..550];
    let (least, most) = (queue.iter().min().unwrap(), queue.iter().max().unwrap());
    assert!(*least > 0 && *most < 2 * THRESHOLD, "the queue swings from {least} to {most}");
    let mean = queue.iter().sum::<u64>() / queue.len() as u64;
    assert!((THRESHOLD / 2..THRESHOLD * 5 / 4).contains(&mean), "a mean queue of {mean}");
}

/// The sets of parameters in the documentation, with marks as the code behind ConWeave has them for
/// 100 Gb/s.
#[test]
fn dcqcn_shares_a_link_and_bounds_its_queue() {
    const PACKETS: u64 = 40_000;
    let published = DcqcnConfig::published(LINK.rate);
    let in_nics = DcqcnConfig {
        cnp_interval: Time::us(4),
        alpha_timer: Time::us(1),
        increase_timer: Time::us(300),
        byte_counter: None,
        fast_recovery: 1,
        clamp: false,
        gaps: true,
        ..published
    };
    // How much longer it takes than the link is busy, at most. The first cuts take all but an
    // eighth of the rate, and the paper's constant, made for 40 Gb/s, gives it back slowly.
    for (config, most) in [(published, 2.0), (in_nics, 1.25)] {
        let clos = Clos::leaf_spine(1, 1, 3, LINK);
        let list = [(1, 0, PACKETS * 960), (2, 0, PACKETS * 960)];
        let mut setup = Setup::new(clos, messages(3, &list));
        setup.transport.congestion = CongestionConfig::Dcqcn(config);
        setup.switch.ecn = Some(EcnConfig { kmin: 100_000, kmax: 400_000, pmax: 0.2 });
        let down = setup.fabric.ports_of(SwitchId(0)).first;
        setup.probes = ProbeConfig {
            interval: Some(Time::us(1)),
            ports: vec![down],
            ..ProbeConfig::default()
        };
        let outcome = setup.run();

        let busy = Time::ns(80 * 2 * PACKETS).as_secs_f64();
        let end = outcome.totals.cct.as_secs_f64();
        assert!(end > busy && end < busy * most, "{end} s of {busy} s under {config:?}");
        let [one, other] = [0, 1].map(|id| outcome.messages[MessageId(id)].received.as_secs_f64());
        assert!((one - other).abs() < end / 20.0, "done at {one} s and {other} s: {config:?}");
        let queue = outcome.series[0].bytes.iter().max().unwrap();
        assert!(*queue > 100_000 && *queue < 400_000, "a queue of {queue} under {config:?}");
    }
}

/// NSCC cuts windows below what is out, where none of that was to ask for a report and all of it is too little to
/// make the receiver report of itself. Nothing is lost, and nobody waits for a time-out.
#[test]
fn no_window_closes_over_packets_that_nobody_reports() {
    let path = PathScale {
        bdp: 33_000,
        line: LINK.rate,
        round_trip: Time::ns(2_670),
        oversubscribed: false,
    };
    for seed in 1..=8 {
        let list: Vec<_> = (1..=12).map(|src| (src, 0, 512_000)).collect();
        let mut setup = Setup::new(Clos::leaf_spine(1, 1, 13, LINK), messages(13, &list));
        setup.packet.mtu = 4096;
        setup.transport.congestion = CongestionConfig::read("nscc", &[], &path).unwrap();
        setup.transport.recovery = RecoveryConfig::read("uet", &[]).unwrap();
        setup.transport.rto = Time::ms(20);
        setup.switch.ecn = Some(EcnConfig { kmin: 40_000, kmax: 160_000, pmax: 1.0 });
        let totals = setup.seeded(seed).run().totals;
        assert_eq!((totals.retransmits, totals.drops), (0, 0), "seed {seed}");
    }
}
