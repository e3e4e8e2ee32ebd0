#![allow(missing_docs, clippy::disallowed_types)]
use std::time::Instant;
use weft_capacity::*;
use weft_fabric::*;
use weft_units::*;
fn main() {
    let link = Link { rate: Rate::gbps(100), delay: Time::us(1) };
    let args: Vec<String> = std::env::args().collect();
    let k: u32 = args.get(1).map_or(8, |s| s.parse().unwrap());
    let seeds: u64 = args.get(2).map_or(4, |s| s.parse().unwrap());
    let fabric = Fabric::build(&Clos::fat_tree(k, link)).unwrap();
    let perm = |seed: u64| {
        let mut to: Vec<HostId> = (0..fabric.hosts()).map(HostId).collect();
        Draw::new(seed, "p").stream(0).shuffle(&mut to);
        Demands::permutation(&fabric, &to)
    };
    for (count, lost) in [(2, 0.9), (4, 0.6), (9, 0.2), (3, 0.9)] {
        for direction in [Direction::Both, Direction::Up, Direction::Down] {
            for seed in 0..seeds {
                for what in ["a2a", "perm", "rnd"] {
                    let demands = match what {
                        "a2a" => Demands::all_to_all(&fabric),
                        "perm" => perm(seed),
                        _ => {
                            let mut d = Demands::none(&fabric);
                            for s in 0..fabric.hosts() {
                                for t in 0..fabric.hosts() {
                                    d.add(
                                        &fabric,
                                        HostId(s),
                                        HostId(t),
                                        Draw::new(seed, "r").at((s * fabric.hosts() + t) as u64, 0)
                                            % 1_000_000_000,
                                    );
                                }
                            }
                            d
                        }
                    };
                    let links = LinkChoice::Of {
                        tier: Tier::PodUp,
                        count,
                        groups: Groups::All,
                        pick: Pick::Random,
                        direction,
                    };
                    let f = Failure {
                        links,
                        kind: FailureKind::Degraded { lost },
                        start: Time::ZERO,
                        end: Time::MAX,
                    };
                    let failures = Failures::new(&fabric, &[f], seed).unwrap();
                    let caps = capacities(&fabric, &failures, Time::ZERO);
                    let t = Instant::now();
                    let v = carries(&fabric, &caps, &demands);
                    let b = v.bottleneck.as_ref().unwrap();
                    println!(
                        "{count}x{lost} {direction:?} {seed} {what}: {:?} {:.9} {:.9} gap {:.1e} links {} cut {} maxw {} {:.0} ms",
                        v.answer,
                        v.factor,
                        v.limit,
                        v.limit - v.factor,
                        b.links.len(),
                        b.is_cut(),
                        b.links.iter().map(|l| l.weight).max().unwrap(),
                        t.elapsed().as_secs_f64() * 1e3
                    );
                }
            }
        }
    }
}
