//! Slow GPUs, and ranks that are late.

use weft_units::Time;
use weft_workload::Stragglers;
use weft_workload::stragglers::{Delays, Paces, Slow, Speed};

const NOBODY: Stragglers = Stragglers {
    slow: Slow::Count(0),
    factor: 2.0,
    speed: Speed::Equal,
    jitter: 0.0,
    start_delay: Time::ZERO,
    delays: Delays::Exponential,
};

fn paces(of: &Stragglers, ranks: u32) -> Paces {
    of.paces(ranks, 7).expect("they are there")
}

/// Mean and standard deviation.
fn moments(all: &[f64]) -> (f64, f64) {
    let count = all.len() as f64;
    let mean = all.iter().sum::<f64>() / count;
    let square = all.iter().map(|one| (one - mean) * (one - mean)).sum::<f64>();
    (mean, libm::sqrt(square / count))
}

#[test]
fn so_many_are_slow() {
    for slow in [Slow::Share(0.1), Slow::Count(10), Slow::Ranks((0..10).collect())] {
        let paces = paces(&Stragglers { slow, ..NOBODY }, 100);
        let of = |pace: f64| (0..100).filter(|rank| paces.pace(*rank) == pace).count();
        assert_eq!((of(2.0), of(1.0)), (10, 90));
    }
    // Another seed, other GPUs.
    let drawn = Stragglers { slow: Slow::Count(10), ..NOBODY };
    assert_ne!(drawn.paces(100, 1), drawn.paces(100, 2));
}

#[test]
fn speeds_are_distributed_as_told() {
    let speeds = |speed| {
        let paces = paces(&Stragglers { speed, ..NOBODY }, 20_000);
        (0..20_000).map(|rank| 1.0 / paces.pace(rank)).collect::<Vec<f64>>()
    };
    let (mean, deviation) = moments(&speeds(Speed::Normal(0.1)));
    assert!((mean - 1.0).abs() < 0.003 && (deviation - 0.1).abs() < 0.003, "{mean} {deviation}");
    let logarithms: Vec<f64> = speeds(Speed::Lognormal(0.2)).into_iter().map(libm::log).collect();
    let (mean, deviation) = moments(&logarithms);
    assert!(mean.abs() < 0.006 && (deviation - 0.2).abs() < 0.006, "{mean} {deviation}");
    let uniform = speeds(Speed::Uniform(0.3));
    assert!(uniform.iter().all(|speed| (0.7..=1.3).contains(speed)));
    // A width of 0.6 over the square root of 12.
    let (mean, deviation) = moments(&uniform);
    assert!((mean - 1.0).abs() < 0.006 && (deviation - 0.1732).abs() < 0.004);
}

#[test]
fn computations_take_longer_and_vary() {
    let slow = Slow::Ranks(vec![1]);
    let plain = paces(&Stragglers { slow: slow.clone(), factor: 1.5, ..NOBODY }, 4);
    assert_eq!(plain.computing(0, 9, Time::us(10)), Time::us(10));
    assert_eq!(plain.computing(1, 9, Time::us(10)), Time::us(15));
    // As part of a second job, rank 1 is its rank 0.
    assert_eq!(plain.of(1, 2).computing(0, 9, Time::us(10)), Time::us(15));
    let varied = paces(&Stragglers { slow, factor: 1.5, jitter: 0.2, ..NOBODY }, 4);
    let all: Vec<Time> = (0..1_000).map(|node| varied.computing(1, node, Time::us(10))).collect();
    assert!(all.iter().all(|time| (Time::us(15)..=Time::us(18)).contains(time)));
    assert!(all[0] != all[1]);
    let part = varied.of(1, 2);
    assert!((0..1_000).all(|node| part.computing(0, node, Time::us(10)) == all[node as usize]));
}

#[test]
fn delays_have_their_mean() {
    for delays in [Delays::Fixed, Delays::Uniform, Delays::Exponential] {
        let slow = Slow::Ranks(vec![3]);
        let one = Stragglers { slow, start_delay: Time::us(10), delays, ..NOBODY };
        let paces = paces(&one, 4);
        for (rank, expected) in [(0, 1e7), (3, 2e7)] {
            let drawn = (0..20_000).map(|node| paces.delay(rank, node).0 as f64);
            let (mean, _) = moments(&drawn.collect::<Vec<f64>>());
            assert!((mean / expected - 1.0).abs() < 0.03, "{delays:?} {mean}");
        }
    }
}
