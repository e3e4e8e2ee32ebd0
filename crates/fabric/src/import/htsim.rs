//! htsim's `.topo` files.
//!
//! A head (`Nodes`, `Tiers`, `Podsize` in hosts) and a section for each tier of switches, from
//! `Tier 0`, the leaves, up: ports to either side (`Radix_Down`, `Radix_Up`), the links below
//! (`Downlink_speed_Gbps`, `Downlink_Latency_ns`, and `Bundle`, how many to one switch), what a
//! packet waits in a switch (`Switch_Latency_ns`), and bytes of queue at a port (`Queue_down`,
//! `Queue_up`). Where tiers of switches have several latencies, those of the upper ones are in the delays of their
//! links (`shares`). Capitals do not matter, and `#` starts a remark. What the file says twice, such
//! as `Oversubscribed` beside radices and rates, has to agree.

use super::{Odd, unmarked};
use crate::{Bundle, Clos, FabricError, Link, Tiers};
use weft_units::options::quoted;
use weft_units::{Rate, Time};

/// A folded Clos, and what else the file says of its switches.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Htsim {
    /// What [`crate::Fabric::build`] builds, with the switch latency; hosts have the numbers
    /// that they have in htsim.
    pub clos: Clos,
    /// The latency of every switch, if the file gives one.
    pub switch_latency: Option<Time>,
    /// Queue sizes of each tier of switches, leaves first.
    pub queues: Vec<Queues>,
}

/// Queue sizes at the ports of one tier, in bytes; `None` is htsim's own default, which the
/// command line sets there.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Queues {
    /// At ports up.
    pub up: Option<u64>,
    /// At ports down.
    pub down: Option<u64>,
}

/// Reads a file; `name` stands in errors.
///
/// # Errors
/// If a line is not understood, a key is missing or given twice, or the numbers do not fit
/// together.
pub fn read(name: &str, text: &str) -> Result<Htsim, FabricError> {
    let read = || {
        let file = File::parse(unmarked(text))?;
        let htsim = file.build()?;
        htsim.clos.validate().map_err(Odd::whole)?;
        Ok(htsim)
    };
    read().map_err(|odd: Odd| odd.of(name))
}

/// A value and its line.
#[derive(Clone, Copy)]
struct Given {
    value: u32,
    line: u64,
}

const HEAD: [&str; 3] = ["Nodes", "Tiers", "Podsize"];
const SECTION: [&str; 9] = [
    "Radix_Down",
    "Downlink_speed_Gbps",
    "Downlink_Latency_ns",
    "Radix_Up",
    "Bundle",
    "Oversubscribed",
    "Switch_Latency_ns",
    "Queue_down",
    "Queue_up",
];

/// The values of some keys, in the order of the keys.
type Values<const N: usize> = [Option<Given>; N];

/// A file, line by line.
#[derive(Default)]
struct File {
    head: Values<3>,
    /// The section of each tier, with the line where it starts.
    tiers: [Option<(u64, Values<9>)>; 3],
}

impl File {
    fn parse(text: &str) -> Result<File, Odd> {
        let mut file = File::default();
        let mut tier = None;
        for (number, line) in (1..).zip(text.lines()) {
            let said = line.split('#').next().unwrap_or_default();
            let words: Vec<&str> = said.split_ascii_whitespace().collect();
            match words[..] {
                [] => {}
                [key, value] => file
                    .line(number, [key, value], &mut tier)
                    .map_err(|what| Odd::at(number, what))?,
                _ => {
                    let what = format!("{} is not 'key number'; correct it", quoted(said.trim()));
                    return Err(Odd::at(number, what));
                }
            }
        }
        Ok(file)
    }

    /// Takes in one line that says something; `tier` is the section where it stands.
    fn line(&mut self, line: u64, said: [&str; 2], tier: &mut Option<usize>) -> Result<(), String> {
        let [key, text] = said;
        let place = |keys: &[&str]| keys.iter().position(|known| known.eq_ignore_ascii_case(key));
        let given = || match text.parse::<u32>() {
            Ok(value) => Ok(Given { value, line }),
            Err(_) => Err(format!("{key} {} is no whole number; correct it", quoted(text))),
        };
        if key.eq_ignore_ascii_case("Tier") {
            *tier = Some(self.open(given()?)?);
            return Ok(());
        }
        let slot = if let Some(place) = place(&HEAD) {
            &mut self.head[place]
        } else {
            let place = place(&SECTION).ok_or_else(|| unknown(key))?;
            let section = tier.and_then(|tier| self.tiers[tier].as_mut());
            let before = || format!("{key} before 'Tier 0'; it belongs below the line of a tier");
            &mut section.ok_or_else(before)?.1[place]
        };
        match slot.replace(given()?) {
            None => Ok(()),
            Some(first) => {
                Err(format!("{key} is already given on line {}; remove one", first.line))
            }
        }
    }

    /// Starts the section of a tier.
    fn open(&mut self, given: Given) -> Result<usize, String> {
        let tier = given.value as usize;
        match self.tiers.get_mut(tier) {
            None => Err(format!("Tier {tier}; tiers are 0 (leaves), 1 and 2")),
            Some(Some((first, _))) => {
                Err(format!("Tier {tier} already starts on line {first}; remove one"))
            }
            Some(section) => {
                *section = Some((given.line, [None; 9]));
                Ok(tier)
            }
        }
    }

    /// Puts the numbers together.
    fn build(&self) -> Result<Htsim, Odd> {
        let head = Head::new(&self.head)?;
        let tiers = self.sections(&head)?;
        let counts = Counts::new(&head, &tiers)?;
        let kinds = match counts.cores {
            None => Tiers::Two { leaves: counts.leaves, spines: counts.mids },
            Some(cores) => Tiers::Three {
                pods: counts.pods,
                leaves_per_pod: counts.leaves,
                aggs_per_pod: counts.mids,
                cores,
            },
        };
        let clos = Clos::uniform(kinds, tiers[0].radix_down.value, tiers[0].link);
        let shares = shares(&tiers)?;
        let bundle = |tier: usize| {
            let Section { link: Link { rate, .. }, bundle, .. } = tiers[tier];
            Bundle { link: Link { rate, delay: shares[tier] }, members: bundle.value }
        };
        // Without a latency htsim has none.
        let given = tiers.iter().any(|tier| tier.latency.is_some());
        let switch_latency = given.then(|| Time::ns(u64::from(latency(&tiers[0]))));
        Ok(Htsim {
            clos: Clos {
                leaf_bundle: bundle(1),
                agg_bundle: if tiers.len() > 2 { bundle(2) } else { clos.agg_bundle },
                switch_latency: switch_latency.unwrap_or(Time::ZERO),
                ..clos
            },
            switch_latency,
            queues: tiers.iter().map(|tier| tier.queues).collect(),
        })
    }

    /// The sections that `Tiers` promises, each with all that it needs.
    fn sections(&self, head: &Head) -> Result<Vec<Section>, Odd> {
        let mut sections = Vec::new();
        for (tier, section) in self.tiers.iter().enumerate() {
            match section {
                Some((line, _)) if tier >= head.tiers => {
                    let what = format!(
                        "Tier {tier} of {} tiers, which count from 0; correct 'Tiers' or remove it",
                        head.tiers
                    );
                    return Err(Odd::at(*line, what));
                }
                Some((line, values)) => {
                    sections.push(Section::new(tier, *line, values, tier + 1 == head.tiers)?);
                }
                None if tier < head.tiers => {
                    let what = format!("no 'Tier {tier}'; add it with its keys");
                    return Err(Odd::whole(what));
                }
                None => {}
            }
        }
        Ok(sections)
    }
}

/// The line for a key that no section has.
fn unknown(key: &str) -> String {
    let known: Vec<&str> = HEAD.into_iter().chain(["Tier"]).chain(SECTION).collect();
    format!("unknown key {}; a line starts with one of {}", quoted(key), known.join(", "))
}

/// `whole` in parts of `part`, if they divide it.
fn divide(whole: Given, part: u32, what: &str) -> Result<u32, Odd> {
    if part > 0 && whole.value.is_multiple_of(part) {
        return Ok(whole.value / part);
    }
    Err(Odd::at(whole.line, format!("{} {what} {part}; correct one of them", whole.value)))
}

/// What stands before the tiers.
struct Head {
    nodes: Given,
    podsize: Given,
    tiers: usize,
}

impl Head {
    fn new(values: &Values<3>) -> Result<Head, Odd> {
        let mut given = [Given { value: 0, line: 0 }; 3];
        for (place, key) in HEAD.into_iter().enumerate() {
            match values[place] {
                Some(value) if value.value > 0 => given[place] = value,
                Some(zero) => return Err(Odd::at(zero.line, format!("{key} is 0; correct it"))),
                None => {
                    let what = format!("no '{key}' at the top of the file; add it");
                    return Err(Odd::whole(what));
                }
            }
        }
        let [nodes, tiers, podsize] = given;
        if !matches!(tiers.value, 2 | 3) {
            return Err(Odd::at(tiers.line, format!("Tiers {}; use 2 or 3", tiers.value)));
        }
        Ok(Head { nodes, podsize, tiers: tiers.value as usize })
    }
}

/// The section of a tier, with its defaults.
struct Section {
    radix_down: Given,
    /// Of the links below.
    link: Link,
    /// Of the top tier: zero.
    radix_up: Given,
    bundle: Given,
    oversubscribed: Option<Given>,
    latency: Option<Given>,
    queues: Queues,
}

impl Section {
    fn new(tier: usize, start: u64, values: &Values<9>, top: bool) -> Result<Section, Odd> {
        let needed = |place: usize| match values[place] {
            Some(given) if given.value > 0 => Ok(given),
            Some(given) => Err(Odd::at(given.line, format!("{} is 0; correct it", SECTION[place]))),
            None => {
                let what = format!("Tier {tier} has no '{}'; add it", SECTION[place]);
                Err(Odd::at(start, what))
            }
        };
        if top {
            nothing_up(values)?;
        }
        // The places are those of `SECTION`.
        let none = Given { value: 0, line: start };
        let one = Given { value: 1, line: start };
        let rate = Rate::gbps(u64::from(needed(1)?.value));
        let bytes = |place: usize| values[place].map(|given| u64::from(given.value));
        Ok(Section {
            radix_down: needed(0)?,
            link: Link { rate, delay: Time::ns(u64::from(needed(2)?.value)) },
            radix_up: if top { none } else { needed(3)? },
            bundle: if values[4].is_some() { needed(4)? } else { one },
            oversubscribed: if values[5].is_some() { Some(needed(5)?) } else { None },
            latency: values[6],
            queues: Queues { down: bytes(7), up: bytes(8) },
        })
    }

    /// Whether `Oversubscribed` is the capacity below over that above.
    fn check_capacity(&self, above: &Section) -> Result<(), Odd> {
        let Some(ratio) = self.oversubscribed else { return Ok(()) };
        let capacity = |radix: Given, link: Link| {
            u128::from(radix.value) * u128::from(link.rate.as_bps() / 1_000_000_000)
        };
        let below = capacity(self.radix_down, self.link);
        let up = capacity(self.radix_up, above.link);
        if below == u128::from(ratio.value) * up {
            return Ok(());
        }
        let what = format!(
            "Oversubscribed {}, but the links of a switch carry {below} Gb/s below and {up} Gb/s \
             above; correct it or the radices",
            ratio.value
        );
        Err(Odd::at(ratio.line, what))
    }
}

/// Whether the top tier says nothing of links up.
fn nothing_up(values: &Values<9>) -> Result<(), Odd> {
    for (key, value) in SECTION.into_iter().zip(values) {
        if let ("Radix_Up" | "Oversubscribed" | "Queue_up", Some(given)) = (key, value) {
            let what = format!("{key} in the top tier, which has no links up; remove it");
            return Err(Odd::at(given.line, what));
        }
    }
    Ok(())
}

/// How many of what.
struct Counts {
    pods: u32,
    /// In a pod, as the switches above them.
    leaves: u32,
    mids: u32,
    /// In all, with three tiers.
    cores: Option<u32>,
}

impl Counts {
    fn new(head: &Head, tiers: &[Section]) -> Result<Counts, Odd> {
        let pods = divide(head.nodes, head.podsize.value, "hosts are no whole pods of")?;
        if head.tiers == 2 && pods != 1 {
            let what = format!(
                "Podsize {} with two tiers, which are one pod; use all {} hosts or three tiers",
                head.podsize.value, head.nodes.value
            );
            return Err(Odd::at(head.podsize.line, what));
        }
        let [leaf, mid, ..] = tiers else {
            return Err(Odd::whole("two tiers at least are needed"));
        };
        one_link(leaf.bundle)?;
        let per_leaf = leaf.radix_down.value;
        let leaves = divide(head.podsize, per_leaf, "hosts of a pod are no whole leaves of")?;
        leaf.check_capacity(mid)?;
        let mids = above(leaf, mid)?;
        check_radix(mid, leaves, "leaves of a pod")?;
        let Some(core) = tiers.get(2) else {
            return Ok(Counts { pods, leaves, mids, cores: None });
        };
        mid.check_capacity(core)?;
        let in_plane = above(mid, core)?;
        check_radix(core, pods, "pods")?;
        let Some(cores) = mids.checked_mul(in_plane) else {
            let what = format!("{mids} planes of {in_plane} cores are too many");
            return Err(Odd::at(mid.radix_up.line, what));
        };
        Ok(Counts { pods, leaves, mids, cores: Some(cores) })
    }
}

/// Whether hosts have one link each.
fn one_link(bundle: Given) -> Result<(), Odd> {
    match bundle.value {
        1 => Ok(()),
        many => {
            let what = format!("Bundle {many} below leaves; only hosts with one link are imported");
            Err(Odd::at(bundle.line, what))
        }
    }
}

/// How many switches of the tier above are above each of this one.
fn above(tier: &Section, above: &Section) -> Result<u32, Odd> {
    divide(tier.radix_up, above.bundle.value, "ports up are no whole bundles of")
}

/// Whether the ports down are one bundle to each of what is below.
fn check_radix(tier: &Section, below: u32, kind: &str) -> Result<(), Odd> {
    let (radix, members) = (tier.radix_down, tier.bundle.value);
    let needed = u64::from(below) * u64::from(members);
    if u64::from(radix.value) == needed {
        return Ok(());
    }
    let what = format!(
        "Radix_Down {}, but {below} {kind} and {members} links to each make {needed}; correct one \
         of them",
        radix.value
    );
    Err(Odd::at(radix.line, what))
}

/// Of a tier of switches, in ns.
fn latency(tier: &Section) -> u32 {
    tier.latency.map_or(0, |given| given.value)
}

/// The delays of the links below each tier, if all switches have the latency of the leaves.
///
/// A packet crosses the links below a switch twice where it turns round there, and those below and above it once each where
/// it goes on. So with half of what a switch takes more than a leaf on the links below it, in both directions, and as
/// much on those above, every path takes as long as before. Switches of upper tiers are ahead of their time or
/// behind it, all packets there by as much: what meets in a queue is the same.
fn shares(tiers: &[Section]) -> Result<Vec<Time>, Odd> {
    let leaf = i128::from(latency(&tiers[0]));
    let more = |tier: &Section| i128::from(latency(tier)) - leaf;
    let mut below = 0;
    let share = |tier: &Section| {
        let own = more(tier);
        let delay = i128::from(tier.link.delay.0) + (below + own) * 1000 / 2;
        below = own;
        match u64::try_from(delay) {
            Ok(delay) if delay > 0 => Ok(Time::ps(delay)),
            _ => {
                let line = tier.latency.or(tiers[0].latency).map_or(0, |given| given.line);
                let what = format!(
                    "Switch_Latency_ns {} here and {leaf} in Tier 0, which is more than its links can \
                     make up for; give all switches one latency",
                    latency(tier)
                );
                Err(Odd::at(line, what))
            }
        }
    };
    tiers.iter().map(share).collect()
}
