//! The schemes of `docs/extend`, compiled as they stand there and put to work.

// The file says `crate::` and `super::`, as it would in `crates/balance/src/scheme`.
mod enforce {
    pub(crate) use weft_balance::enforce::{Enforce, PortRules};
}
mod forward {
    pub(crate) use weft_balance::forward::{Forward, Hashed, Hops, Passing, SwitchContext};
}
mod plan {
    pub(crate) use weft_balance::plan::{HostContext, Route, Unsplit};
}
mod steer {
    pub(crate) use weft_balance::steer::{Departure, Feedback, Fixed, FlowContext, Steer, TimeOut};
}
// Public there, private to this test.
#[allow(unreachable_pub)]
#[path = "guide"]
mod scheme {
    pub(crate) use weft_balance::scheme::{Scheme, SchemeInfo};
    pub(crate) mod cells;
    pub(crate) mod rotate;
    pub(crate) mod two_choices;
}

use forward::{Forward, Hops, Passing, SwitchContext};
use plan::Route;
use scheme::cells::Cells;
use scheme::rotate::Rotate;
use scheme::two_choices::TwoChoices;
use scheme::{Scheme, SchemeInfo};
use steer::{Departure, Feedback, FlowContext, Steer, TimeOut};
use weft_fabric::{Clos, Fabric, Link};
use weft_units::{HostId, Options, PortId, Rate, SwitchId, Time};

#[test]
fn the_guides_show_these_files() {
    for (guide, file) in [
        (include_str!("../../../docs/extend/scheme.md"), include_str!("guide/rotate.rs")),
        (
            include_str!("../../../docs/extend/scheme-on-pinned-paths.md"),
            include_str!("guide/cells.rs"),
        ),
        (
            include_str!("../../../docs/extend/scheme-in-switches.md"),
            include_str!("guide/two_choices.rs"),
        ),
    ] {
        assert!(guide.contains(&format!("```rust\n{file}```\n")));
    }
}

/// Two leaves with a host each, under four spines.
fn two_leaves() -> Fabric {
    let link = Link { rate: Rate::gbps(100), delay: Time::us(1) };
    Fabric::build(&Clos::leaf_spine(2, 4, 1, link)).unwrap()
}

fn context(fabric: &Fabric) -> FlowContext<'_> {
    let (hosts, hashing) = ((HostId(0), HostId(1)), None);
    FlowContext {
        flow: 1,
        seed: 1,
        mtu: 1000,
        bdp: 8000,
        wire_bytes: (1064, 64),
        trims: false,
        probes: false,
        fabric,
        hosts,
        hashing,
    }
}

#[test]
fn the_guides_scheme_rotates() {
    const INFO: SchemeInfo = Rotate::INFO;
    let mut options = Options::new("the guide", INFO.options, &[("entropies", "3")]).unwrap();
    let scheme = Rotate::read(&mut options).unwrap();
    let mut flow = scheme.steering(&context(&two_leaves()));
    let at = Departure { now: Time::ZERO, in_flight: 0 };
    let routes = [0; 5].map(|_| flow.route(Route::Hashed(65_535), at));
    assert_eq!(routes, [65_535, 0, 1, 65_535, 0].map(Route::Hashed));
}

/// Cells of three packets take the four paths in turn. One that nothing comes back from when packets time
/// out has no turn for 64 time-outs; one that answered keeps it.
#[test]
fn the_guides_cells_leave_a_path_that_is_silent() {
    const INFO: SchemeInfo = Cells::INFO;
    let mut options = Options::new("the guide", INFO.options, &[("cell", "3KB")]).unwrap();
    let scheme = Cells::read(&mut options).unwrap();
    let fabric = two_leaves();
    let mut flow = scheme.steering(&context(&fabric));
    let mut cells = |us: u64, count: usize| -> Vec<Route> {
        let at = Departure { now: Time::us(us), in_flight: 0 };
        let cell = |_| {
            let [first, second, third] = [0; 3].map(|_| flow.route(Route::Hashed(0), at));
            assert!(first == second && second == third, "one path for a cell");
            first
        };
        (0..count).map(cell).collect()
    };
    let first = cells(1, 8);
    assert_eq!(first[..4], first[4..], "in turn");
    assert!((0..4).all(|path| !first[..path].contains(&first[path])), "all paths");
    assert!(context(&fabric).routes(scheme.enforce).iter().all(|route| first.contains(route)));

    let feedback =
        |route: Route| Feedback { room: 1, ..Feedback::good(Time::us(4), route.number()) };
    for route in [first[0], first[1], first[3]] {
        flow.on_ack(feedback(route));
    }
    flow.on_time_out(TimeOut { now: Time::us(101), after: Time::us(100) });
    let mut cells = |us: u64, count: usize| -> Vec<Route> {
        let at = Departure { now: Time::us(us), in_flight: 0 };
        (0..3 * count).map(|_| flow.route(Route::Hashed(0), at)).step_by(3).collect()
    };
    assert_eq!(cells(102, 4), [first[0], first[1], first[3], first[0]]);
    assert_eq!(cells(101 + 6400, 3), [first[1], first[2], first[3]], "tried again");
}

/// Queues of so many bytes.
struct Queues(Vec<u64>);

impl Hops for Queues {
    fn count(&self) -> u32 {
        self.0.len() as u32
    }
    fn queued(&self, hop: u32) -> u64 {
        self.0[hop as usize]
    }
    fn port(&self, hop: u32) -> PortId {
        PortId(self.group() + hop)
    }
    fn group(&self) -> u32 {
        0
    }
    fn places(&self) -> u32 {
        self.count()
    }
    fn place(&self, hop: u32) -> u32 {
        hop
    }
    fn weights(&self) -> Option<&[u32]> {
        None
    }
}

/// Of 8 queues, each one byte longer than the one before, a packet that looks at two takes the
/// longest only if it draws it twice: one in 64; the shortest with 15 in 64.
#[test]
fn the_guides_switches_choose() {
    const INFO: SchemeInfo = TwoChoices::INFO;
    let mut options = Options::new("the guide", INFO.options, &[]).unwrap();
    let scheme = TwoChoices::read(&mut options).unwrap();
    let link = Link { rate: Rate::gbps(100), delay: Time::us(1) };
    let fabric = &Fabric::build(&Clos::leaf_spine(4, 8, 2, link)).unwrap();
    let context = SwitchContext { switch: SwitchId(3), fabric, seed: 1, buffer: 1_000 };
    let packet = Passing {
        now: Time::ZERO,
        flow: 0,
        dst: HostId(5),
        control: false,
        entropy: 9,
        hashed: 1,
        hash: 0,
        bytes: 1_000,
    };
    let mut switching = scheme.switching(&context);
    let queues = Queues((0..8).collect());
    let mut counts = [0u32; 8];
    for _ in 0..64_000 {
        counts[switching.choose(&packet, &queues) as usize] += 1;
    }
    // Within five standard deviations.
    assert!(counts[0].abs_diff(15_000) < 550 && counts[7].abs_diff(1_000) < 160, "{counts:?}");
    // A single hop costs no draw.
    let (mut one, mut other) = (scheme.switching(&context), scheme.switching(&context));
    assert_eq!(one.choose(&packet, &Queues(vec![9])), 0);
    let next = |switching: &mut scheme::two_choices::Chooser| switching.choose(&packet, &queues);
    assert!((0..50).all(|_| next(&mut one) == next(&mut other)));
}
