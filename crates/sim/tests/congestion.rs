//! DCTCP in a network: long flows share a link fairly, keep it busy and the queue near the
//! marking threshold (Alizadeh et al., SIGCOMM 2010, section 3.3).

mod common;

use common::{LINK, Setup, messages};
use weft_fabric::Clos;
use weft_sim::{EcnConfig, ProbeConfig};
use weft_transport::{CongestionConfig, DctcpConfig};
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
        ProbeConfig { interval: Some(Time::us(1)), ports: vec![down], switches: Vec::new() };
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
