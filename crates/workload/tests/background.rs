//! Traffic of others: as much of it as the load says, of sizes that are distributed as measured.

use std::ops::ControlFlow;
use weft_units::{HostId, Rate, Time};
use weft_workload::Background;
use weft_workload::background::{DATA_MINING, STORAGE, Sizes, Toward, WEB_SEARCH, as_job};

fn hosts(count: u32) -> Vec<HostId> {
    (0..count).map(HostId).collect()
}

#[test]
fn distributions_have_the_known_means() {
    // The middle of each part times its share, by hand for storage.
    assert_eq!(Sizes::Measured(STORAGE).mean().round(), 40_870.0);
    let mean = Sizes::Measured(WEB_SEARCH).mean();
    assert!((1.6e6..1.75e6).contains(&mean), "{mean}");
    let mean = Sizes::Measured(DATA_MINING).mean();
    assert!((7.3e6..7.6e6).contains(&mean), "{mean}");
    for points in [WEB_SEARCH, STORAGE] {
        let sizes = Sizes::Measured(points);
        let background = Background { pattern: Toward::Uniform, load: 0.5, sizes };
        let (line, second) = (Rate::gbps(100), Time::ms(1_000));
        let until = Time(200_000 * second.0 / background.count(32, line, second));
        let all = background.messages(&hosts(32), line, until, 3).expect("enough hosts");
        let drawn: Vec<u64> = all.into_iter().map(|message| message.bytes).collect();
        let mean = drawn.iter().sum::<u64>() as f64 / drawn.len() as f64;
        assert!((mean / sizes.mean() - 1.0).abs() < 0.02, "{mean}");
        for (bytes, share) in points {
            let below = drawn.iter().filter(|size| *size <= bytes).count() as f64;
            assert!((below / drawn.len() as f64 - f64::from(*share) / 1e4).abs() < 0.005);
        }
    }
}

#[test]
fn hosts_send_what_the_load_says() {
    for (pattern, load) in
        [(Toward::Uniform, 0.3), (Toward::Permutation, 0.5), (Toward::Incast(8), 0.1)]
    {
        let background = Background { pattern, load, sizes: Sizes::Fixed(10_000) };
        let (line, until) = (Rate::gbps(100), Time::ms(20));
        let all = background.messages(&hosts(32), line, until, 1).expect("enough hosts");
        let bytes: u64 = all.iter().map(|message| message.bytes).sum();
        let capacity = 32.0 * 12.5e9 * 20e-3;
        assert!((bytes as f64 / capacity / load - 1.0).abs() < 0.03, "{pattern:?}");
        assert!(all.is_sorted_by_key(|message| message.start));
        assert!(all.iter().all(|message| message.src != message.dst && message.start < until));
        let count = background.count(32, line, until) as f64;
        assert!((all.len() as f64 / count - 1.0).abs() < 0.03);
    }
}

#[test]
fn patterns_are_what_they_say() {
    let of = |pattern| {
        let background = Background { pattern, load: 0.5, sizes: Sizes::Fixed(10_000) };
        background.messages(&hosts(8), Rate::gbps(100), Time::ms(1), 1).expect("enough hosts")
    };
    let mut pairs: Vec<_> =
        of(Toward::Permutation).iter().map(|message| (message.src, message.dst)).collect();
    pairs.sort_unstable();
    pairs.dedup();
    assert_eq!(pairs.len(), 8);
    let incasts = of(Toward::Incast(3));
    for together in incasts.chunk_by(|one, other| one.start == other.start) {
        assert_eq!(together.len(), 3);
        assert!(together.iter().all(|message| message.dst == together[0].dst));
        assert!(together.windows(2).all(|pair| pair[0].src < pair[1].src));
    }
    let few = Background { pattern: Toward::Incast(8), load: 0.5, sizes: Sizes::Fixed(1) };
    let error = few.messages(&hosts(8), Rate::gbps(100), Time::ms(1), 1).expect_err("too few");
    assert_eq!(
        error.to_string(),
        "senders: 8 and a receiver are more than the 8 hosts that take part; use less, or more hosts"
    );
}

#[test]
fn as_a_job_they_are_the_same_messages() {
    let sizes = Sizes::Measured(STORAGE);
    let background = Background { pattern: Toward::Uniform, load: 0.5, sizes };
    let from: Vec<HostId> = [3, 5, 9, 11].map(HostId).into();
    let all = background.messages(&from, Rate::gbps(100), Time::ms(1), 1).expect("enough");
    let (job, hosts) = as_job(&all).expect("a job");
    assert_eq!(hosts, from);
    let mut told = Vec::new();
    let _ = job.traffic(|one| {
        told.push((hosts[one.src as usize], hosts[one.dst as usize], one.bytes));
        ControlFlow::Continue(())
    });
    let mut expected: Vec<_> =
        all.iter().map(|message| (message.src, message.dst, message.bytes)).collect();
    told.sort_unstable();
    expected.sort_unstable();
    assert_eq!(told, expected);
}
