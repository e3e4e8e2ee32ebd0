//! Options as text: defaults, one form for what means the same, and what is refused.

use weft_units::options::ResolvedOptions;
use weft_units::{OptionError, OptionInfo, Options, Time};

const fn option(key: &'static str, default: &'static str) -> OptionInfo {
    OptionInfo { key, default, meaning: "for the test" }
}
const KNOWN: &[OptionInfo] = &[
    option("count", "16"),
    option("most", "all of them"),
    option("share", "0.5"),
    option("on", "true"),
    option("wait", "100ns"),
    option("bytes", "64KB"),
    option("way", "left"),
];

#[derive(Clone, Copy, Debug, PartialEq)]
enum Way {
    Left,
    Right,
}

#[derive(Debug, PartialEq)]
struct All(u32, Option<u32>, f64, bool, Time, u64, Way);

fn read(given: &[(&str, &str)]) -> Result<(All, ResolvedOptions), OptionError> {
    let mut o = Options::new("the test", KNOWN, given)?;
    let all = All(
        o.number("count", 1..=64)?,
        o.number_if_given("most", 1..)?,
        o.fraction("share", 0.0..=1.0)?,
        o.flag("on")?,
        o.time("wait")?,
        o.size("bytes")?,
        o.choice("way", &[("left", Way::Left), ("right", Way::Right)])?,
    );
    Ok((all, o.resolve()?))
}

fn texts(settled: &ResolvedOptions) -> Vec<String> {
    settled.iter().map(|one| format!("{}={}", one.key, one.text)).collect()
}

#[test]
fn defaults_hold_and_are_written_out() {
    let (all, settled) = read(&[]).unwrap();
    assert_eq!(all, All(16, None, 0.5, true, Time::ns(100), 64_000, Way::Left));
    let expected = ["count=16", "share=0.5", "on=true", "wait=100ns", "bytes=64KB", "way=left"];
    assert_eq!(texts(&settled), expected);
}

#[test]
fn what_is_given_holds_and_is_written_in_one_form() {
    let given = [
        ("way", " right "),
        ("bytes", "1.5KB"),
        ("wait", "0.1us"),
        ("on", "false"),
        ("share", "1e-1"),
        ("most", "7"),
        ("count", "064"),
    ];
    let (all, settled) = read(&given).unwrap();
    assert_eq!(all, All(64, Some(7), 0.1, false, Time::ns(100), 1500, Way::Right));
    let expected =
        ["count=64", "most=7", "share=0.1", "on=false", "wait=100ns", "bytes=1500B", "way=right"];
    assert_eq!(texts(&settled), expected);
    let again: Vec<_> = settled.iter().map(|one| (one.key, one.text.as_str())).collect();
    assert_eq!(read(&again).unwrap(), (all, settled));
}

#[test]
fn mistakes_name_the_key_and_the_mend() {
    let cases = [
        ("count", "65", "count: 65 is out of range; use 1 to 64"),
        ("count", "-1", "count: \"-1\" is not a whole number; write one such as 16"),
        ("count", "4294967296", "count: 4294967296 is out of range; use 4294967295 or less"),
        ("most", "0", "most: 0 is out of range; use 1 or more"),
        ("most", "all of them", "most: \"all of them\" is not a whole number; write one such as 4"),
        ("share", "1.5", "share: 1.5 is out of range; use 0 to 1"),
        ("share", "nan", "share: \"nan\" is not a number; write one such as 0.5"),
        ("on", "yes", "on: unknown value \"yes\"; use one of true, false"),
        ("wait", "3", "wait: time \"3\" has no unit; write \"3ns\""),
        ("wait", "1001s", "wait: \"1001s\" is out of range; use \"0ns\" to \"1000s\""),
        ("bytes", "64", "bytes: size \"64\" has no unit; write \"64B\""),
        ("way", "up", "way: unknown value \"up\"; use one of left, right"),
        (
            "weight",
            "1",
            "weight: unknown option of the test; it has count, most, share, on, wait, bytes, way",
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
    assert_eq!(options.number("count", ..), Ok(3));
    assert_eq!(options.resolve().unwrap_err().to_string(), "way: does nothing here; remove it");
}

#[test]
#[should_panic(expected = "not listed")]
fn an_option_has_to_be_listed() {
    let _ = Options::new("the test", KNOWN, &[]).unwrap().flag("off");
}

#[test]
fn what_was_read_knows_its_words() {
    let (_, settled) = read(&[]).unwrap();
    let words = |key: &str| &settled.iter().find(|one| one.key == key).unwrap().words;
    assert_eq!(words("way"), &["left", "right"]);
    assert!(words("on").is_empty() && words("count").is_empty());
}
