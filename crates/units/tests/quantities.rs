//! Exactness of times, rates, divisions and parsed quantities.

use weft_trial::prelude::*;
use weft_units::*;

#[test]
fn usual_links_serialise_exactly() {
    for (gbps, ps_per_byte) in [(10, 800), (25, 320), (100, 80), (200, 40), (400, 20), (800, 10)] {
        let wire = Wire::new(Rate::gbps(gbps));
        assert_eq!(wire.time(4000), Time::ps(4000 * ps_per_byte));
        assert_eq!(Rate::gbps(gbps).serialize(4000), Time::ps(4000 * ps_per_byte));
    }
}

#[test]
fn quantities_without_units_are_refused_with_the_mend() {
    assert_eq!(parse_size("64").unwrap_err().to_string(), "size \"64\" has no unit: write \"64B\"");
    assert!(parse_time("5 parsecs").unwrap_err().to_string().contains("unknown unit \"parsecs\""));
    let small = parse_size("64kb").unwrap_err().to_string();
    assert_eq!(small, "size \"64kb\" has an unknown unit \"kb\": write \"64KB\"");
    let bytes = parse_rate("12.5GB/s").unwrap_err().to_string();
    assert_eq!(
        bytes,
        "rate \"12.5GB/s\" has an unknown unit \"GB/s\": write \"100Gbps\", or \"12.5Gb/s\" if bits are \
         meant"
    );
    let small = parse_rate("100gbps").unwrap_err().to_string();
    assert_eq!(small, "rate \"100gbps\" has an unknown unit \"gbps\": write \"100Gbps\"");
    assert!(parse_rate("fast").unwrap_err().to_string().contains("\"400Gbps\""));
    assert!(parse_time("0.1ps").unwrap_err().to_string().contains("finer"));
    let huge = parse_size("99999999TB").unwrap_err().to_string();
    assert_eq!(huge, "size \"99999999TB\" is too large: write one such as \"64MB\"");
    assert!(parse_rate("0Gbps").is_err());
}

#[test]
fn decimal_and_binary_sizes_differ() {
    assert_eq!(parse_size("64MB"), Ok(64_000_000));
    assert_eq!(parse_size("64MiB"), Ok(67_108_864));
    assert_eq!(parse_time("1.5us"), Ok(Time::ns(1500)));
    assert_eq!(parse_time("1.5\u{b5}s"), Ok(Time::ns(1500)));
    assert_eq!(parse_time("1.5\u{3bc}s"), Ok(Time::ns(1500)));
    assert_eq!(parse_rate("0.4Tbps"), Ok(Rate::gbps(400)));
}

#[test]
fn letters_alone_are_units_and_numbers_alone_are_sizes_of_nccl_tests() {
    for (text, bytes) in [
        ("8", 8),
        ("64K", 65_536),
        ("2m", 2_097_152),
        ("1G", 1 << 30),
        (" 1.5 M ", 1_572_864),
        ("2MB", 2_000_000),
        ("2MiB", 2_097_152),
        ("4B", 4),
    ] {
        assert_eq!(parse_nccl_size(text), Ok(bytes), "{text}");
    }
    assert_eq!(parse_size("2M"), Ok(2 << 20));
    assert_eq!(parse_rate("100G"), Ok(Rate::gbps(100)));
    assert!(parse_size("8").is_err() && parse_rate("100").is_err());
    for wrong in ["2mb", "M", "", "-1", "2Q"] {
        assert!(parse_nccl_size(wrong).is_err(), "{wrong}");
    }
    let said = parse_nccl_size("0.5").unwrap_err().to_string();
    assert_eq!(said, "size \"0.5\" is finer than the smallest unit: write one such as \"64MB\"");
}

#[test]
fn four_digits_are_enough_for_a_reader() {
    assert_eq!(about_time(Time::ZERO), "0ns");
    assert_eq!(about_time(Time::ps(87_016_856)), "87.01us");
    assert_eq!(about_time(Time::ps(900_156_910_964)), "900.1ms");
    assert_eq!(about_time(Time::secs(12_345)), "12345s");
    assert_eq!(about_time(Time::us(1_500)), "1.5ms");
    assert_eq!(about_time(Time::ps(1_002_000)), "1.002us");
    assert_eq!(about_bytes(0), "0B");
    assert_eq!(about_bytes(500_000), "500KB");
    assert_eq!(about_bytes(999), "999B");
    assert_eq!(about_bytes(1_048_576), "1.048MB");
}

trials! {
    fn fast_division_is_division(n in any::<u32>(), divisor in 1u32..) {
        let fast = FastDiv::new(divisor);
        prop_assert_eq!(fast.div_rem(n), (n / divisor, n % divisor));
    }

    fn the_wire_never_beats_the_rate(bits in 1_000_000u64..2_000_000_000_000, bytes in 0u32..65_536) {
        let rate = Rate::bps(bits);
        let exact = rate.serialize(u64::from(bytes));
        let fast = Wire::new(rate).time(bytes);
        prop_assert!(fast >= exact && fast.0 - exact.0 <= 1, "{} against {}", fast, exact);
    }

    fn slower_wires_are_not_faster(bits in 1u64..1_000_000, faster in 1u64..1_000, bytes in 0u32..65_536) {
        let (slow, fast) = (Rate::bps(bits), Rate::bps(bits * faster));
        prop_assert!(Wire::new(slow).time(bytes) >= Wire::new(fast).time(bytes));
    }

    fn times_and_rates_print_and_parse_back(n in any::<u64>(), bits in 1u64..) {
        prop_assert_eq!(parse_time(&Time(n).to_string()), Ok(Time(n)));
        prop_assert_eq!(parse_rate(&Rate::bps(bits).to_string()), Ok(Rate::bps(bits)));
    }

    fn streams_and_single_draws_agree(seed in any::<u64>(), entity in any::<u64>()) {
        let draw = Draw::new(seed, "test");
        let mut stream = draw.stream(entity);
        for counter in 0..5 {
            prop_assert_eq!(stream.bits(), draw.at(entity, counter));
        }
    }
}
