//! The scheme of `docs/add-a-scheme.md`, compiled as it stands there and put to work.

// The file says `crate::` and `super::`, as it would in `crates/balance/src/scheme`.
mod forward {
    pub(crate) use weft_balance::forward::{Hashed, SwitchContext};
}
mod plan {
    pub(crate) use weft_balance::plan::{HostContext, Route, Whole};
}
mod steer {
    pub(crate) use weft_balance::steer::{Departure, FlowContext, Steer};
}
// Public there, private to this test.
#[allow(unreachable_pub)]
#[path = "guide"]
mod scheme {
    pub(crate) use weft_balance::scheme::{Scheme, SchemeInfo};
    pub(crate) mod rotate;
}

use plan::Route;
use scheme::rotate::Rotate;
use scheme::{Scheme, SchemeInfo};
use steer::{Departure, FlowContext, Steer};
use weft_units::{Options, Time};

const GUIDE: &str = include_str!("../../../docs/add-a-scheme.md");

#[test]
fn the_guide_shows_this_file() {
    assert!(GUIDE.contains(&format!("```rust\n{}```\n", include_str!("guide/rotate.rs"))));
}

#[test]
fn the_guides_scheme_rotates() {
    const INFO: SchemeInfo = Rotate::INFO;
    let mut options = Options::new("the guide", INFO.options, &[("entropies", "3")]).unwrap();
    let scheme = Rotate::read(&mut options).unwrap();
    let mut flow = scheme.steering(&FlowContext { flow: 1, seed: 1, first_window: 8 });
    let at = Departure { now: Time::ZERO, in_flight: 0 };
    let routes = [0; 5].map(|_| flow.route(Route::Hashed(65_535), at));
    assert_eq!(routes, [65_535, 0, 1, 65_535, 0].map(Route::Hashed));
}
