//! Options as text: defaults, one form for what means the same, and what is refused.

use weft_units::options::ResolvedOptions;
use weft_units::{OptionError, OptionInfo, OptionKind, Options, Time};

const fn option(key: &'static str, default: &'static str, kind: OptionKind) -> OptionInfo {
    OptionInfo { key, default, kind, meaning: "for the test" }
}
const KNOWN: &[OptionInfo] = &[
    option("count", "16", OptionKind::Whole(1, 64)),
    option("most", "all of them", OptionKind::Whole(1, u32::MAX)),
    option("share", "0.5", OptionKind::Number(0.0, 1.0)),
    option("on", "true", OptionKind::Flag),
    option("wait", "100ns", OptionKind::Time(Time::ZERO)),
    option("bytes", "64KB", OptionKind::Size(0, u64::MAX)),
    option("way", "left", OptionKind::Word(&["left", "right"])),
    option("limit", "none", OptionKind::Or(&OptionKind::Size(1, 1_000), "none")),
];

#[derive(Clone, Copy, Debug, PartialEq)]
enum Way {
    Left,
    Right,
}

#[derive(Debug, PartialEq)]
struct All(u32, Option<u32>, f64, bool, Time, u64, Way, Option<u64>);

fn read(given: &[(&str, &str)]) -> Result<(All, ResolvedOptions), OptionError> {
    let mut o = Options::new("the test", KNOWN, given)?;
    let all = All(
        o.number("count")?,
        o.number_if_given("most")?,
        o.fraction("share")?,
        o.flag("on")?,
        o.time("wait")?,
        o.size("bytes")?,
        o.choice("way", &[("left", Way::Left), ("right", Way::Right)])?,
        o.size_or_word("limit")?,
    );
    Ok((all, o.resolve()?))
}

fn texts(settled: &ResolvedOptions) -> Vec<String> {
    settled.iter().map(|one| format!("{}={}", one.key, one.text)).collect()
}

#[test]
fn defaults_hold_and_are_written_out() {
    let (all, settled) = read(&[]).unwrap();
    assert_eq!(all, All(16, None, 0.5, true, Time::ns(100), 64_000, Way::Left, None));
    let expected =
        ["count=16", "share=0.5", "on=true", "wait=100ns", "bytes=64KB", "way=left", "limit=none"];
    assert_eq!(texts(&settled), expected);
}

#[test]
fn what_is_given_holds_and_is_written_in_one_form() {
    let given = [
        ("limit", "5B"),
        ("way", " right "),
        ("bytes", "1.5KB"),
        ("wait", "0.1us"),
        ("on", "false"),
        ("share", "1e-1"),
        ("most", "7"),
        ("count", "064"),
    ];
    let (all, settled) = read(&given).unwrap();
    assert_eq!(all, All(64, Some(7), 0.1, false, Time::ns(100), 1500, Way::Right, Some(5)));
    let expected = [
        "count=64",
        "most=7",
        "share=0.1",
        "on=false",
        "wait=100ns",
        "bytes=1500B",
        "way=right",
        "limit=5B",
    ];
    assert_eq!(texts(&settled), expected);
    let again: Vec<_> = settled.iter().map(|one| (one.key, one.text.as_str())).collect();
    assert_eq!(read(&again).unwrap(), (all, settled));
}

#[test]
fn mistakes_name_the_key_and_the_mend() {
    let cases = [
        ("count", "65", "count: 65 is out of range; use 1 to 64"),
        ("count", "-1", "count: \"-1\" is not a whole number; write one such as 16"),
        ("count", "4294967296", "count: 4294967296 is out of range; use 1 to 64"),
        ("most", "0", "most: 0 is out of range; use 1 or more"),
        ("most", "all of them", "most: \"all of them\" is not a whole number; write one such as 4"),
        ("share", "1.5", "share: 1.5 is out of range; use 0 to 1"),
        ("share", "nan", "share: \"nan\" is not a number; write one such as 0.5"),
        ("on", "yes", "on: unknown value \"yes\"; use one of true, false"),
        ("wait", "3", "wait: time \"3\" has no unit; write \"3ns\""),
        ("wait", "1001s", "wait: \"1001s\" is out of range; use \"0ns\" to \"1000s\""),
        ("bytes", "64", "bytes: size \"64\" has no unit; write \"64B\""),
        ("way", "up", "way: unknown value \"up\"; use one of left, right"),
        ("limit", "2KB", "limit: \"2KB\" is out of range; use \"1B\" to \"1KB\", or \"none\""),
        (
            "weight",
            "1",
            "weight: unknown option of the test; it has count, most, share, on, wait, bytes, way, limit",
        ),
    ];
    for (key, text, expected) in cases {
        assert_eq!(read(&[(key, text)]).unwrap_err().to_string(), expected);
    }
    let twice = read(&[("on", "true"), ("on", "true")]).unwrap_err();
    assert_eq!(twice.to_string(), "on: given twice; remove one");
}

#[test]
fn an_option_that_nobody_asks_for_is_refused() {
    let mut options = Options::new("the test", KNOWN, &[("count", "3"), ("way", "left")]).unwrap();
    assert_eq!(options.number("count"), Ok(3));
    assert_eq!(options.resolve().unwrap_err().to_string(), "way: does nothing here; remove it");
}

#[test]
#[should_panic(expected = "not listed")]
fn an_option_has_to_be_listed() {
    let _ = Options::new("the test", KNOWN, &[]).unwrap().flag("off");
}

#[test]
#[should_panic(expected = "read as something else")]
fn an_option_is_read_as_what_it_is_listed() {
    let _ = Options::new("the test", KNOWN, &[]).unwrap().time("count");
}

#[test]
#[should_panic(expected = "other words")]
fn an_option_has_the_words_that_are_listed() {
    let _ = Options::new("the test", KNOWN, &[]).unwrap().choice("way", &[("left", ())]);
}

#[test]
fn kinds_say_what_an_option_may_be() {
    let cases = [
        (OptionKind::Whole(0, u32::MAX), "a whole number"),
        (OptionKind::Whole(0, 16), "a whole number, 0 to 16"),
        (OptionKind::Whole(2, u32::MAX), "a whole number, 2 or more"),
        (OptionKind::Number(f64::NEG_INFINITY, f64::INFINITY), "a number"),
        (OptionKind::Number(0.5, 1e6), "a number, 0.5 to 1000000"),
        (OptionKind::Flag, "true or false"),
        (OptionKind::Time(Time::ns(1)), "a time with its unit (ps, ns, us, ms, s), 1ns to 1000s"),
        (OptionKind::Word(&["left", "right"]), "a word"),
        (OptionKind::Or(&OptionKind::Whole(1, 8), "auto"), "a whole number, 1 to 8, or \"auto\""),
    ];
    for (kind, expected) in cases {
        assert_eq!(kind.to_string(), expected);
    }
    assert_eq!(OptionKind::Word(&["left", "right"]).words(), ["left", "right"]);
    assert!(OptionKind::Flag.words().is_empty());
}
