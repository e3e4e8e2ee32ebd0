//! The search towards one target: how many switches its paths have, where paths part, which ports take
//! which, and when enough is known.
//!
//! The first port goes from switch to switch until the target answers or nobody does. A few more are asked
//! at every distance; after that ports are asked only where these met different switches.
//!
//! Invariant: of each port one probe at most is out, so that an answer without any payload still has one
//! meaning.

use crate::linear::{Space, checks_again};
use crate::model::Model;
use crate::pace::Pace;
use crate::statistics::enough;
use crate::survey::Known;
use crate::trace::{Path, Seen, Trace, branches};
use crate::{Need, Reply, Rules};
use std::collections::{BTreeMap, BTreeSet};
use std::net::Ipv4Addr;
use std::sync::Arc;
use weft_units::Time;

mod found;

/// Ports that are asked side by side.
const WINDOW: usize = 8;
/// Silent switches in a row after which a path is taken to have ended.
const GAP: u8 = 2;
/// How long a port waits after its first lost probe; twice that after the second, and so on.
const AGAIN: Time = Time::ms(500);
/// So many times the ports that show all paths are asked for ports of a path, at most.
const RARE: u32 = 8;
/// How much rarer than elsewhere it has to be that the first target misses where paths part.
const LEADS: f64 = 0.01;
/// How much rarer than a path unseen by chance one has to be before it is given up.
const GIVEN_UP: f64 = 0.02;

/// A port under way.
#[derive(Clone, Debug)]
struct Asked {
    port: u16,
    trace: Trace,
    /// What it met before, if this is to find out whether that still holds.
    before: Option<Trace>,
    tries: u8,
    after: Time,
    out: bool,
    /// It is asked only on the way up.
    is_extra: bool,
}

/// What a search would do next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Next {
    /// Probe this port at this distance.
    Probe(u16, u8),
    /// Nothing before that; [`Time::MAX`]: nothing before an answer.
    At(Time),
    /// It has ended.
    Done,
}

/// A search.
#[derive(Clone, Debug)]
pub(crate) struct Search {
    rules: Rules,
    /// All ports, in the order in which they are taken.
    order: Arc<[u16]>,
    taken: usize,
    /// Whether the first switch is the same for all ports: another target has shown that; and who it is, if
    /// it is not asked at all.
    first_is_known: bool,
    first: Option<Ipv4Addr>,
    /// How many switches a path should have, if somebody knows, and how many it has.
    expected: Option<u8>,
    length: Option<u8>,
    branches: Option<Vec<u8>>,
    /// Others go by where its paths part; and where those of the first target do.
    is_leader: bool,
    parted: Vec<u8>,
    asked: Vec<Asked>,
    known: BTreeMap<u16, Trace>,
    /// Whether the ports that are known suffice.
    enough: bool,
    /// The bits in which ports differ.
    bits: u32,
    /// What moves nothing, if the hash is linear.
    space: Option<Space>,
    /// It is that of another target.
    is_borrowed: bool,
    /// The space of another target did not fit.
    is_other: bool,
    /// What a linear hash does towards all targets, and by which difference of ports it does the same here.
    model: Option<Arc<Model>>,
    offset: Option<u16>,
    /// The model did not fit.
    is_apart: bool,
    /// What somebody needs: no more than that is looked for.
    needs: Vec<Need>,
    /// Ports that are missing of that.
    missing: usize,
    /// Others go on at the same time: there is no hurry.
    is_of_many: bool,
    /// Ports of an older table that were not asked.
    foretold: BTreeMap<u16, Trace>,
    done: bool,
    /// Of ports that were asked again.
    pub(crate) checked: u32,
    pub(crate) changed: u32,
}

impl Search {
    pub(crate) fn new(rules: Rules, order: Arc<[u16]>) -> Search {
        let first = order.first().copied().unwrap_or(0);
        let bits = order.iter().fold(0, |bits, port| bits | (port ^ first)).count_ones();
        Search {
            rules,
            order,
            taken: 0,
            first_is_known: false,
            first: None,
            expected: None,
            length: None,
            branches: None,
            is_leader: false,
            parted: Vec::new(),
            asked: Vec::new(),
            known: BTreeMap::new(),
            enough: false,
            bits,
            space: None,
            is_borrowed: false,
            is_other: false,
            model: None,
            offset: None,
            is_apart: false,
            needs: Vec::new(),
            missing: 0,
            is_of_many: false,
            foretold: BTreeMap::new(),
            done: false,
            checked: 0,
            changed: 0,
        }
    }

    /// Goes on from what is known, of ports that were asked and of others that were `foretold`; with `check`
    /// only asks some ports of every path again, which follow from that number, and begins anew if one of
    /// them takes another path.
    pub(crate) fn restore(&mut self, known: Known, check: Option<u64>) {
        (self.length, self.known, self.foretold) = (known.hops, known.asked, known.predicted);
        self.find_branches();
        if self.branches.is_none() && check.is_some() && !self.known.is_empty() {
            // Few ports were needed, or few were asked of a linear hash.
            let all = self.known.values().chain(self.foretold.values());
            let found = branches(all, self.length.unwrap_or(0));
            self.branches = Some(if found.is_empty() { self.up() } else { found });
        }
        self.find_space();
        self.judge();
        let (Some(turn), Some(_)) = (check, &self.branches) else { return };
        for path in self.paths() {
            let (count, wanted) = (path.ports.len(), self.rules.sentinels as usize);
            for one in 0..wanted.min(count) {
                // Spread over the path's ports: linear hashes send those of a run alike.
                let place = (turn as usize + one * (count / wanted).max(1)) % count;
                let before = self.known.get(&path.ports[place]).cloned();
                self.asked.push(Asked { before, ..begin(path.ports[place]) });
            }
        }
    }

    /// Whether the hash was found to be linear.
    pub(crate) fn is_linear(&self) -> bool {
        self.space.is_some() || self.offset.is_some() || !self.foretold.is_empty()
    }

    /// What moves nothing, if the hash was found to be linear, and how many ports have shown it.
    pub(crate) fn space(&self) -> Option<Space> {
        self.space
    }

    /// Takes the space of another target whose paths are as long, until a port shows that it does not hold.
    pub(crate) fn offer(&mut self, space: Space) {
        if self.space.is_none() && !self.is_other && self.branches.is_some() {
            (self.space, self.is_borrowed) = (Some(space), true);
            self.find_space();
            self.judge();
        }
    }

    /// Takes what another target has shown of a linear hash, until a port shows that it does not hold here.
    pub(crate) fn offer_model(&mut self, model: &Arc<Model>) {
        if self.model.is_none() && !self.is_apart && self.branches.is_some() {
            self.model = Some(Arc::clone(model));
            self.find_space();
            self.judge();
        }
    }

    /// What this target has shown of a linear hash, if all of its paths are known.
    pub(crate) fn shown_model(&self) -> Option<Model> {
        let space = self.space.filter(|_| self.done)?;
        Model::of(space, self.bits, self.branches(), &self.known)
    }

    /// Takes it from another target where paths part, and asks at no other distance.
    pub(crate) fn begin_like(&mut self, other: &Search) {
        if self.length.is_none() && self.known.is_empty() && self.asked.is_empty() {
            (self.length, self.branches) = (self.expected, other.branches.clone());
            self.first =
                other.paths().first().and_then(|path| path.hops.first().copied().flatten());
        }
    }

    /// Whether ports show a linear hash; or do not any more.
    fn find_space(&mut self) {
        if self.branches().is_empty() {
            return;
        }
        self.offset = self.model.as_ref().and_then(|model| model.offset(&self.known));
        if self.model.is_some() && self.offset.is_none() && !self.known.is_empty() {
            (self.model, self.is_apart) = (None, true);
        }
        let paths = self.paths();
        let ports = || paths.iter().map(|path| path.ports.as_slice());
        if self.space.is_some_and(|space| !space.fits(ports())) {
            (self.space, self.is_borrowed, self.is_other) = (None, false, true);
        }
        if self.space.is_none() && !self.is_other {
            let space = Space::of(ports());
            self.space = space.is_hash(paths.len(), self.bits).then_some(space);
        }
    }
    pub(crate) fn traces(&self) -> &BTreeMap<u16, Trace> {
        &self.known
    }
    pub(crate) fn branches(&self) -> &[u8] {
        self.branches.as_deref().unwrap_or_default()
    }
    pub(crate) fn length(&self) -> Option<u8> {
        self.length
    }
    pub(crate) fn is_done(&self) -> bool {
        self.done
    }
    /// How many switches a path should have, if somebody knows.
    pub(crate) fn expected(&self) -> Option<u8> {
        self.expected
    }
    /// Looks for no more than this, if it is anything.
    pub(crate) fn need(&mut self, needs: Vec<Need>) {
        self.needs = needs;
        self.missing = self.count_missing();
    }
    /// Others go on at the same time.
    pub(crate) fn is_of_many(&mut self) {
        self.is_of_many = true;
    }
    pub(crate) fn needs(&self) -> &[Need] {
        &self.needs
    }
    /// Distances on the way up at which paths may part, all ports below one leaf alike.
    fn up(&self) -> Vec<u8> {
        (2..=self.length.unwrap_or(0).div_ceil(2)).collect()
    }
    /// Whether all ports have met the same first switch.
    pub(crate) fn shows_first(&self) -> bool {
        self.branches.as_ref().is_some_and(|all| !all.contains(&1))
    }
    /// Others go by where its paths part.
    pub(crate) fn lead(&mut self) {
        self.is_leader = true;
    }
    /// Paths of the first target part there.
    pub(crate) fn parted(&mut self, distances: &[u8]) {
        self.parted = distances.to_vec();
    }
    /// Nobody is asked behind so many switches.
    pub(crate) fn expect(&mut self, length: u8) {
        self.expected = Some(length);
    }
    pub(crate) fn first_is_known(&mut self) {
        self.first_is_known = true;
    }

    /// Ports that are asked at every distance; the first target's show for others where paths part, so that
    /// more of them are asked on the way up.
    fn scouts(&self) -> usize {
        let unseen = self.rules.unseen * if self.is_leader { LEADS } else { 1.0 };
        enough(1, unseen) as usize
    }

    fn least_scouts(&self) -> usize {
        enough(1, self.rules.unseen) as usize
    }

    /// What to do now. `pace` says which distances may be asked.
    pub(crate) fn next(&mut self, now: Time, pace: &Pace) -> Next {
        self.begin_ports();
        self.settle();
        if self.done {
            return Next::Done;
        }
        let mut earliest = Time::MAX;
        for asked in self.asked.iter().filter(|asked| !asked.out) {
            let Some(ttl) = self.wanted(asked) else { continue };
            let is_last = asked.tries + 1 >= self.rules.tries;
            let ready = pace.ready(ttl, is_last && pace.needs_pause(ttl)).max(asked.after);
            if ready <= now {
                return Next::Probe(asked.port, ttl);
            }
            earliest = earliest.min(ready);
        }
        Next::At(earliest)
    }

    /// Takes more ports while they are needed.
    fn begin_ports(&mut self) {
        while !self.done && self.asked.len() < self.window() {
            let scouts = self.known.len() + self.asked.len();
            let wanted = match (self.length, &self.branches) {
                (None, _) => self.asked.is_empty(),
                (Some(0), _) => false,
                (Some(_), None) => scouts < self.scouts(),
                // Those that are only asked again come first.
                (Some(_), Some(_)) => {
                    !self.asked.iter().any(|asked| asked.before.is_some()) && !self.enough
                }
            };
            if !wanted {
                break;
            }
            if let Some(port) = self.port_of_a_new_class() {
                self.asked.push(begin(port));
                continue;
            }
            let Some(port) = self.order.get(self.taken).copied() else { break };
            self.taken += 1;
            if self.is_new(port) {
                let is_extra = self.branches.is_none() && scouts >= self.least_scouts();
                self.asked.push(Asked { is_extra, ..begin(port) });
            }
        }
        let found_nothing = self.length == Some(0);
        self.done |= self.asked.is_empty() && (found_nothing || self.branches.is_some());
        self.done |= self.asked.is_empty() && self.taken >= self.order.len();
    }

    /// Ports that are asked side by side: of many targets no more than are missing, at least.
    fn window(&self) -> usize {
        let scouted =
            self.branches.is_some() && self.asked.iter().all(|asked| asked.before.is_none());
        if !self.is_of_many || !scouted {
            return WINDOW;
        }
        let known = self.known.len();
        let missing = match (&self.model, self.needs.is_empty()) {
            (Some(model), _) => (1 + checks_again(model.paths()) as usize).saturating_sub(known),
            (None, false) => self.missing,
            (None, true) => WINDOW,
        };
        missing.clamp(1, WINDOW)
    }

    /// Whether a port is neither known nor asked.
    fn is_new(&self, port: u16) -> bool {
        !self.known.contains_key(&port) && self.asked.iter().all(|asked| asked.port != port)
    }

    /// Under a linear hash: a port that takes another path than all that are known or asked.
    fn port_of_a_new_class(&self) -> Option<u16> {
        let space = self.space?;
        let known = self.known.keys().copied().chain(self.asked.iter().map(|asked| asked.port));
        let classes: BTreeSet<u16> = known.map(|port| space.rest(port)).collect();
        if classes.len() >= space.paths(self.bits) {
            return None;
        }
        self.order.iter().copied().find(|port| !classes.contains(&space.rest(*port)))
    }

    /// What is missing, after what is known has changed.
    fn judge(&mut self) {
        self.missing = self.count_missing();
        self.enough = self.is_enough();
    }

    /// Whether the ports that are known suffice.
    fn is_enough(&self) -> bool {
        let Rules { unseen, ports_per_path, expected, most_ports, .. } = self.rules;
        let ports = self.known.len() as u32;
        let is_told = !self.foretold.is_empty() || self.is_met();
        if self.branches().is_empty() || ports >= most_ports || is_told {
            return true;
        }
        if let (Some(model), Some(_)) = (&self.model, self.offset) {
            // One shows the offset, and some that it holds.
            return ports > checks_again(model.paths());
        }
        let paths = self.paths();
        let count = paths.len() as u32;
        if let Some(space) = self.space {
            // One a path, and some that show that it holds here.
            return paths.len() == space.paths(self.bits)
                && ports >= count + checks_again(paths.len());
        }
        // Silence may be an answer that was late: such a path is not waited for.
        let is_named = |path: &&Path| self.branches().iter().all(|ttl| path.names(*ttl));
        let fewest = paths.iter().filter(is_named).map(|path| path.ports.len() as u32).min();
        let is_rare = ports >= enough(count, unseen).saturating_mul(RARE);
        let expected = expected.max(count + u32::from(!self.needs.is_empty()));
        let is_missing = count < expected && ports < enough(expected, unseen * GIVEN_UP);
        let has_ports = fewest >= Some(ports_per_path) || is_rare;
        ports >= enough(count, unseen) && has_ports && !is_missing
    }

    /// Whether all is there that somebody needs.
    fn is_met(&self) -> bool {
        !self.needs.is_empty() && self.missing == 0
    }

    /// Ports that are missing of what somebody needs.
    fn count_missing(&self) -> usize {
        let of = |need: &Need| {
            let is_of = |trace: &&Trace| self.branches().iter().all(|ttl| trace.names(*ttl));
            let leads = |trace: &&Trace| need.through.iter().all(|hop| trace.meets(*hop));
            let has = self.known.values().filter(is_of).filter(leads).count();
            (need.ports as usize).saturating_sub(has)
        };
        self.needs.iter().map(of).sum()
    }

    /// The distance at which a port is to be asked next.
    fn wanted(&self, asked: &Asked) -> Option<u8> {
        let seen = &asked.trace.0;
        let Some(length) = self.length else {
            return Some(seen.keys().next_back().map_or(1, |last| last + 1));
        };
        // Behind a silent switch: does the port get through, and where?
        let behind = |ttl: u8| {
            let is_silent = seen.get(&ttl) == Some(&Seen::Silent);
            (is_silent && ttl < length && !seen.contains_key(&(ttl + 1))).then_some(ttl + 1)
        };
        let open = |ttl: &u8| !seen.contains_key(ttl);
        match &self.branches {
            // Where paths did not part they may now.
            Some(all) if all.is_empty() && asked.before.is_some() => match self.up() {
                up if up.is_empty() => (1..=length).find(open),
                up => up.into_iter().find(|ttl| open(ttl)),
            },
            Some(all) => {
                all.iter().copied().find(open).or_else(|| all.iter().copied().find_map(behind))
            }
            None if asked.is_extra => {
                let up = self.up();
                up.iter().copied().find(open).or_else(|| up.iter().copied().find_map(behind))
            }
            None => (1 + u8::from(self.first_is_known)..=length).find(open),
        }
    }

    fn asked_mut(&mut self, port: u16) -> Option<&mut Asked> {
        self.asked.iter_mut().find(|asked| asked.port == port)
    }

    pub(crate) fn sent(&mut self, port: u16) {
        if let Some(asked) = self.asked_mut(port) {
            asked.out = true;
        }
    }

    /// An answer to a probe of a port. `false`: nobody waited for it.
    pub(crate) fn answered(&mut self, port: u16, ttl: u8, reply: Reply, in_time: bool) -> bool {
        let Some(asked) = self.asked_mut(port) else { return false };
        asked.out &= !in_time;
        if asked.out || asked.trace.0.contains_key(&ttl) {
            return false;
        }
        let seen = match reply {
            Reply::Hop(address) => Seen::Hop(address),
            Reply::End => Seen::End,
            Reply::NoWay => Seen::NoWay,
        };
        self.mark(port, ttl, seen);
        true
    }

    /// Whether nothing was lost yet of what a port was asked at this distance.
    pub(crate) fn is_first_try(&self, port: u16) -> bool {
        self.asked.iter().any(|asked| asked.port == port && asked.tries == 0)
    }

    /// A probe of a port was lost. `true`: that was the last try, and the switch is silent.
    pub(crate) fn lost(&mut self, now: Time, port: u16, ttl: u8) -> bool {
        let tries = self.rules.tries;
        let Some(asked) = self.asked_mut(port) else { return false };
        asked.out = false;
        asked.tries += 1;
        if asked.tries < tries {
            asked.after = now.saturating_add(Time(AGAIN.0 << (asked.tries - 1).min(4)));
            return false;
        }
        self.mark(port, ttl, Seen::Silent);
        true
    }

    /// A port that this host cannot send from now. One that is only asked again stays in the table: the
    /// traffic itself has it, as a rule.
    pub(crate) fn refuse(&mut self, port: u16) {
        let is_new = self.asked_mut(port).is_none_or(|asked| asked.before.is_none());
        self.asked.retain(|asked| asked.port != port);
        if is_new {
            self.known.remove(&port);
        }
    }

    fn mark(&mut self, port: u16, ttl: u8, seen: Seen) {
        let Some(asked) = self.asked_mut(port) else { return };
        asked.trace.0.insert(ttl, seen);
        (asked.tries, asked.after) = (0, Time::ZERO);
        if seen == Seen::NoWay {
            if let Some(place) = self.asked.iter().position(|asked| asked.port == port) {
                let asked = self.asked.remove(place);
                self.finish(asked);
            }
        } else if self.length.is_none() {
            self.measure(port, ttl, seen);
        }
    }

    /// Ends what is known of ports to the end.
    fn settle(&mut self) {
        let is_over = |this: &Search, asked: &Asked| {
            !asked.out && this.length.is_some() && this.wanted(asked).is_none()
        };
        while let Some(place) = self.asked.iter().position(|asked| is_over(self, asked)) {
            let asked = self.asked.remove(place);
            self.finish(asked);
            self.begin_ports();
        }
    }

    /// Where the path of the first port ends.
    fn measure(&mut self, port: u16, ttl: u8, seen: Seen) {
        let (most, expected) = (self.rules.most_hops, self.expected);
        let Some(asked) = self.asked_mut(port) else { return };
        let last = asked.trace.0.iter().rev().find(|(_, seen)| matches!(seen, Seen::Hop(_)));
        let last = last.map_or(0, |(ttl, _)| *ttl);
        let ends = match seen {
            Seen::End => true,
            // Of no use for this: another port measures.
            Seen::NoWay => false,
            _ if Some(ttl) == expected => true,
            Seen::Silent => ttl - last >= GAP || ttl >= most,
            Seen::Hop(_) => ttl >= most,
        };
        if ends {
            let length = match seen {
                Seen::End => ttl - 1,
                // Silent, but there.
                _ if last > 0 && Some(ttl) == expected => ttl,
                _ => last,
            };
            asked.trace.0.retain(|ttl, _| *ttl <= length);
            self.length = Some(length);
        }
    }

    /// All is known of a port that was to be.
    fn finish(&mut self, asked: Asked) {
        let Asked { port, trace, before, .. } = asked;
        if let Some(before) = before {
            self.checked += 1;
            if is_elsewhere(&before, &trace) {
                self.changed += 1;
                self.begin_anew();
            }
            return;
        }
        self.known.insert(port, trace);
        if self.length.is_none() && self.known.len() >= self.scouts() {
            // None of them leads there.
            self.length = Some(0);
        }
        if self.branches.is_none() && self.asked.is_empty() {
            self.find_branches();
        }
        self.find_space();
        self.judge();
    }

    /// Where paths part, if enough ports were asked everywhere.
    fn find_branches(&mut self) {
        if let Some(length) = self.length
            && self.known.len() >= self.scouts()
        {
            let mut all = branches(self.known.values(), length);
            all.extend(&self.parted);
            all.sort_unstable();
            all.dedup();
            self.branches = Some(all);
        }
    }

    /// Routing has changed: nothing that was known holds.
    fn begin_anew(&mut self) {
        self.known.clear();
        self.asked.retain(|asked| asked.out);
        for asked in &mut self.asked {
            (asked.before, asked.trace) = (None, Trace::default());
        }
        (self.length, self.branches, self.taken, self.enough) = (None, None, 0, false);
        (self.space, self.is_borrowed) = (None, false);
        (self.model, self.offset) = (None, None);
        self.foretold.clear();
        self.missing = self.count_missing();
    }

    /// Addresses of the switches that have answered.
    pub(crate) fn addresses(&self) -> impl Iterator<Item = Ipv4Addr> + '_ {
        self.known.values().flat_map(|trace| trace.0.values()).filter_map(|seen| match seen {
            Seen::Hop(address) => Some(*address),
            _ => None,
        })
    }
}

fn begin(port: u16) -> Asked {
    let trace = Trace::default();
    Asked { port, trace, before: None, tries: 0, after: Time::ZERO, out: false, is_extra: false }
}

/// Whether a port certainly meets other switches than before: silence is no proof.
fn is_elsewhere(before: &Trace, now: &Trace) -> bool {
    now.0.iter().any(|(ttl, seen)| match (before.0.get(ttl), seen) {
        (Some(Seen::Hop(before)), Seen::Hop(now)) => before != now,
        (Some(Seen::Silent), Seen::Hop(_)) | (Some(_), Seen::NoWay) => true,
        _ => false,
    })
}
