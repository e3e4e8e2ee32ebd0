//! `[failures.NAME]`: which links fail, how, from when and for how long. Names are free; a
//! sweep or `--set` changes one by its name.

use crate::error::ExperimentError;
use crate::kind::{Flag, Integer, Number, OneOf, Or, Span, Texts, Wholes};
use crate::reader::{Asked, Choice, Reader, keys_asked_by};
use weft_fabric::{
    Direction, Fabric, Failure, FailureKind, Failures, Groups, LinkChoice, Pick, Queued, Tier,
};
use weft_units::Time;

type Result<T> = std::result::Result<T, ExperimentError>;

/// The section.
pub const NAME: &str = "failures";
/// When a failure begins: a time, or in an experiment file a share of the completion time.
pub const START: &str = "start";

/// All kinds of failure.
pub const KINDS: &[Choice<(), FailureKind>] = &[
    Choice {
        name: "degraded",
        summary: "links lose part of their bandwidth",
        source: "McClure et al. (2025), section 4",
        decode: degraded,
    },
    Choice {
        name: "flaky",
        summary: "links lose everything in random bursts",
        source: "McClure et al. (2025), sections 4 and 6.2",
        decode: flaky,
    },
    Choice {
        name: "down",
        summary: "links lose everything; routing learns of it after a while",
        source: "Ethereal (2025), section 4",
        decode: down,
    },
];

/// Reads all of `[failures]`.
pub fn read(r: &mut Reader<'_>, fabric: &Fabric) -> Result<Vec<Failure>> {
    let mut failures = Vec::new();
    for name in r.keys() {
        failures.push(r.section(&name, "a failure", |r| read_one(r, fabric))?);
    }
    Ok(failures)
}

fn read_one(r: &mut Reader<'_>, fabric: &Fabric) -> Result<Failure> {
    let links = read_links(r)?;
    let kind = r.choose(KIND, None, OF_KIND, KINDS, &())?;
    let (start, end) = read_times(r)?;
    let failure = Failure { links, kind, start, end };
    // The seed only changes which links are drawn, not whether there are enough.
    match Failures::new(fabric, std::slice::from_ref(&failure), 1) {
        Err(error) if !r.is_rehearsal() => {
            let key = at_fault(&failure, fabric);
            Err(r.wrong(key, error.0.replacen(": ", "; ", 1)))
        }
        _ => Ok(failure),
    }
}

const KIND: &str = "kind";
const OF_KIND: &str = "what is wrong with the links";

/// The keys of a failure but those of its kind.
pub fn keys() -> Vec<Asked> {
    let names: Vec<&str> = KINDS.iter().map(|kind| kind.name).collect();
    keys_asked_by("failures", |r| {
        read_links(r)?;
        r.get(KIND, OneOf(&names), None, OF_KIND)?;
        read_times(r)
    })
}

fn read_times(r: &mut Reader<'_>) -> Result<(Time, Time)> {
    let meaning = "when it begins; \"50%\": at half of the lower bound on the completion time without \
                   failures, which is when half of the payload could have arrived";
    let start = r.get(START, Span::ANY, Some(Time::ZERO), meaning)?;
    let lasts = r.get("duration", Or(Span::SOME, "forever"), Some(None), "how long it lasts")?;
    Ok((start, lasts.map_or(Time::MAX, |lasts| start.saturating_add(lasts))))
}

/// The key that makes a failure impossible on `fabric`.
fn at_fault(failure: &Failure, fabric: &Fabric) -> &'static str {
    let links = &failure.links;
    if failure.check_routes(fabric).is_err() {
        return "detect";
    }
    if links.resolve(fabric, 1).is_ok() {
        return "duration";
    }
    let LinkChoice::Of { tier, groups, pick, direction, plane, .. } = links else {
        return match links {
            LinkChoice::Planes(_) => "planes",
            LinkChoice::Switches(_) => "switches",
            _ => "links",
        };
    };
    let (tier, pick, direction) = (*tier, *pick, *direction);
    if plane.is_some_and(|plane| plane >= fabric.planes()) {
        return "plane";
    }
    let is_possible = |groups: &Groups| {
        let (groups, plane) = (groups.clone(), *plane);
        let one = LinkChoice::Of { tier, count: 1, groups, pick, direction, plane };
        one.resolve(fabric, 1).is_ok()
    };
    match (is_possible(&Groups::All), is_possible(groups)) {
        (false, _) => "tier",
        (true, false) => "groups",
        (true, true) => "count",
    }
}

fn read_links(r: &mut Reader<'_>) -> Result<LinkChoice> {
    let links = r.get(
        "links",
        Texts,
        Some(Vec::new()),
        "links by name, as \"leaf-0 -> spine-1\" or \"leaf-0 <-> spine-1\"; instead of tier",
    )?;
    if !links.is_empty() {
        refuse_beside(r, "links", &["switches", "planes"])?;
        return Ok(LinkChoice::Named(links));
    }
    let switches = r.get(
        "switches",
        Texts,
        Some(Vec::new()),
        "whole switches by name, as \"spine-0\": all their links both ways; instead of tier",
    )?;
    if !switches.is_empty() {
        refuse_beside(r, "switches", &["planes"])?;
        return Ok(LinkChoice::Switches(switches));
    }
    let planes = r.get(
        "planes",
        Wholes,
        Some(Vec::new()),
        "whole planes by number: all their links both ways; instead of tier",
    )?;
    if !planes.is_empty() {
        refuse_beside(r, "planes", &[])?;
        return Ok(LinkChoice::Planes(planes));
    }
    if !r.is_rehearsal() {
        let lists = ["links", "switches", "planes"];
        if let Some(empty) = lists.iter().find(|key| r.has(key) && !r.has("tier")) {
            return Err(r.wrong(empty, "is empty; name some, or use tier"));
        }
        if r.has("plane") && !r.has("tier") {
            let what = "says where links of a tier fail; add tier = \"leaf-up\", or use planes = [0] for a \
                        whole plane";
            return Err(r.wrong("plane", what));
        }
    }
    read_tier(r)
}

/// Refuses what would choose links in another way than `key`, which was given: `others` and what
/// [`read_tier`] reads.
fn refuse_beside(r: &Reader<'_>, key: &str, others: &[&str]) -> Result<()> {
    let of_tier = ["tier", "count", "groups", "pick", "direction", "plane"];
    let stands = |other: &&&str| r.has(other) && !r.is_rehearsal();
    match others.iter().chain(&of_tier).find(stands) {
        Some(other) => Err(r.wrong(other, format!("stands beside {key}; remove one of them"))),
        None => Ok(()),
    }
}

/// The words for what lies between which switches, and for whole switches.
const TIERS: [(&str, Tier); 6] = [
    ("leaf-up", Tier::LeafUp),
    ("pod-up", Tier::PodUp),
    ("leaves", Tier::Leaves),
    ("spines", Tier::Spines),
    ("aggs", Tier::Spines),
    ("cores", Tier::Cores),
];

fn read_tier(r: &mut Reader<'_>) -> Result<LinkChoice> {
    let meaning = "links: \"leaf-up\" above leaves, \"pod-up\" between pods and cores; whole \
                   switches: \"leaves\", \"spines\" or \"aggs\", \"cores\"";
    let tier = read_word(r, "tier", &TIERS, None, meaning)?;
    let count =
        r.get("count", Integer { min: 1, max: 65_536 }, Some(1), "how many of each pod or leaf")?;
    let groups = r.get("groups", Or(Wholes, "all"), Some(None), "numbers of the pods or leaves")?;
    let picks = [("random", Pick::Random), ("first", Pick::First)];
    let pick = read_word(r, "pick", &picks, Some(0), "which: drawn by the seed, or the \"first\"")?;
    let directions = [("both", Direction::Both), ("up", Direction::Up), ("down", Direction::Down)];
    let direction = read_word(r, "direction", &directions, Some(0), "which way they fail")?;
    let plane = r.get(
        "plane",
        Or(Integer { min: 0, max: 7 }, "all"),
        Some(None),
        "in which plane, where NICs have several ports; \"all\": in each",
    )?;
    let groups = groups.map_or(Groups::All, Groups::Listed);
    Ok(LinkChoice::Of { tier, count, groups, pick, direction, plane })
}

/// One of some words, each with what it stands for.
fn read_word<T: Copy>(
    r: &mut Reader<'_>,
    key: &'static str,
    words: &[(&str, T)],
    default: Option<usize>,
    meaning: &'static str,
) -> Result<T> {
    let names: Vec<&str> = words.iter().map(|(name, _)| *name).collect();
    Ok(words[r.get(key, OneOf(&names), default, meaning)?].1)
}

fn degraded(r: &mut Reader<'_>, _: &()) -> Result<FailureKind> {
    let share = Number { min: 1e-9, max: 1.0 - 1e-9 };
    let lost = r.get("lost", share, None, "share of the bandwidth that is lost")?;
    Ok(FailureKind::Degraded { lost })
}

/// So many bursts at once in the mean: a link is free of them for a share of exp(-8), 0.03 %.
const MOST_BURSTS: u64 = 8;

fn flaky(r: &mut Reader<'_>, _: &()) -> Result<FailureKind> {
    // Each is drawn and simulated.
    let some = Span { min: Time::ns(1), ..Span::ANY };
    let every = r.get("every", some, None, "mean time from the start of a burst to the next")?;
    let length = r.get("length", Span::SOME, None, "mean length of a burst")?;
    let regular = r.get(
        "regular",
        Flag,
        Some(false),
        "bursts start exactly so far apart instead of at random",
    )?;
    if length > every * MOST_BURSTS && !r.is_rehearsal() {
        let what = format!(
            "bursts of {length} every {every} leave next to nothing between them; use kind = \
             \"down\", or shorter ones"
        );
        return Err(r.wrong(r.changed(&["length", "every"]), what));
    }
    Ok(FailureKind::Flaky { every, length, regular })
}

fn down(r: &mut Reader<'_>, _: &()) -> Result<FailureKind> {
    let detect = r.get(
        "detect",
        Or(Span::ANY, "never"),
        Some(Some(Time::ms(100))),
        "routing learns of it, and of the end, after this time",
    )?;
    let words = [("drains", Queued::Drains), ("lost", Queued::Lost)];
    let meaning = "what waits at a switch for the link \"drains\" into it at its rate, or is \"lost\" \
                   at once, with all that comes while it is dead";
    let queued = read_word(r, "queued", &words, Some(0), meaning)?;
    let meaning = "hosts know from the start what routing knows by then, and choose other paths, as a plan \
                   does; false: they find out by time-outs";
    let hosts_know = r.get("hosts_know", Flag, Some(true), meaning)?;
    Ok(FailureKind::Down { detect, queued, hosts_know })
}
