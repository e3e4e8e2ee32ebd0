//! What ParaLet (2024) prints, and what it computes with.

use weft_plan::normal::{exceeded_once_in, upper_tail};
use weft_plan::paralet::{TuneError, Tuning, deviations, flowlet, ports, queue_pairs, slowdown};
use weft_units::{Rate, Time};

/// `value` cut to so many digits, as table 3 has its numbers: 43.96 is printed as 43.
fn cut(value: f64, unit: f64) -> f64 {
    (value / unit).floor() * unit
}

#[test]
fn table_3_comes_out_but_for_its_last_line() {
    let printed = [
        (1.0, 6.0, 1.0),
        (2.0, 43.0, 1.0),
        (3.0, 740.0, 1.0),
        (4.0, 31574.0, 1.0),
        (5.0, 3_488_555.0, 1.0),
        (6.0, 1.013e9, 1e6),
        (7.0, 7.813e11, 1e8),
    ];
    for (deviation, n, unit) in printed {
        assert_eq!(cut(ports(deviation), unit), n, "{deviation}");
        // And back: the quantile of the number that is not cut.
        assert!((exceeded_once_in(ports(deviation)) - deviation).abs() < 1e-12, "{deviation}");
    }
    // 1 - Phi(8) in double precision is three steps of 2^-52 and has one digit.
    let subtracted = 1.0 / (1.0 - (1.0 - upper_tail(8.0)));
    assert_eq!(cut(subtracted, 1e12), 1.501e15);
    assert_eq!(cut(ports(8.0), 1e12), 1.607e15);
}

/// Known quantiles, to their digits (Abramowitz and Stegun, table 26.5, and symmetry).
#[test]
fn quantiles() {
    let known = [
        (1.25, -0.841_621_233_573),
        (2.0, 0.0),
        (4.0, 0.674_489_750_196),
        (10.0, 1.281_551_565_545),
        (40.0, 1.959_963_984_540),
        (1e3, 3.090_232_306_168),
        (1e6, 4.753_424_308_823),
        (1e9, 5.997_807_015_008),
    ];
    for (times, quantile) in known {
        assert!((exceeded_once_in(times) - quantile).abs() < 1e-11, "{times}");
    }
    assert_eq!(exceeded_once_in(1.0), f64::NEG_INFINITY);
}

/// Section 5.2: 25 queue pairs for tens of thousands, 36 for 10^9, at a slowdown of 2.
#[test]
fn queue_pairs_of_section_5() {
    assert_eq!(queue_pairs(2.0, 1_000_000_000), Ok(36));
    // Its 25 is the square of 4.26 rounded up to 5.
    assert_eq!(queue_pairs(2.0, 100_000), Ok(19));
    let rounded = deviations(100_000).unwrap().ceil();
    assert_eq!(rounded * rounded, 25.0);
    for (ports, least) in [(10_000, 14), (50_000, 17)] {
        assert_eq!(queue_pairs(2.0, ports), Ok(least));
    }
    // The least: one fewer does not do.
    for wanted in [1.1, 1.3, 2.0, 5.0] {
        let least = queue_pairs(wanted, 1024).unwrap();
        assert!(slowdown(least, 1024).unwrap() <= wanted, "{wanted}");
        assert!(least == 1 || slowdown(least - 1, 1024).unwrap() > wanted, "{wanted}");
    }
}

#[test]
fn slowdowns_and_flowlets() {
    // 1 + Phi^-1(1 - 1/128) / sqrt(m).
    for (queue_pairs, expected) in [(8, 1.8547), (16, 1.6044), (32, 1.4274)] {
        let found = slowdown(queue_pairs, 128).unwrap();
        assert!((found - expected).abs() < 5e-5, "{queue_pairs}: {found}");
    }
    // 100 Gb/s times 8 us is 100 KB; four of these over 32 are 12.5 KB, in packets of 1000 B.
    let rate = Rate::gbps(100);
    assert_eq!(flowlet(rate, Time::us(8), 32, 1000), Ok(13_000));
    assert_eq!(flowlet(rate, Time::us(8), 4, 1000), Ok(100_000));
    let tuning = Tuning::new(1.5, 1024, rate, Time::us(8), 1000).unwrap();
    assert_eq!((tuning.queue_pairs, tuning.flowlet), (39, 11_000));
    assert!(tuning.slowdown <= 1.5 && tuning.rate == Rate::bps(2_564_102_564));
}

#[test]
fn questions_without_an_answer() {
    assert_eq!(slowdown(0, 8), Err(TuneError::QueuePairs));
    assert_eq!(slowdown(8, 1), Err(TuneError::Ports(1)));
    assert_eq!(queue_pairs(1.0, 8), Err(TuneError::Slowdown(1.0)));
    assert!(matches!(queue_pairs(f64::NAN, 8), Err(TuneError::Slowdown(_))));
    assert!(matches!(queue_pairs(1.000001, 1 << 40), Err(TuneError::TooMany { .. })));
    assert_eq!(flowlet(Rate::gbps(1), Time::us(1), 0, 1), Err(TuneError::QueuePairs));
    let with = |count| Tuning::with(count, 1024, Rate::gbps(1), Time::us(1), 1);
    assert!(with(4096).is_ok() && with(4097) == Err(TuneError::Most(4097)));
    let of = |wanted| Tuning::new(wanted, 1024, Rate::gbps(1), Time::us(1), 1);
    let Err(TuneError::Beyond { least, .. }) = of(1.01) else { panic!("{:?}", of(1.01)) };
    assert!(of(least).is_ok() && of(least - 0.001).is_err());
}
