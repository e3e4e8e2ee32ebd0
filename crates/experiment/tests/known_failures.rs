//! A link that is dead before anything begins, and of which routing knows: no scheme sends into it.

use crate::twill_runs::{ALL_TO_ALL, column, run_over, slowdown, tables};
use weft_balance::scheme::SCHEMES;
use weft_experiment::RunResult;

const DEAD: &str = "[failures.dead]\nlinks = [\"leaf-0 <-> spine-1\"]\nkind = \"down\"\n";

fn small() -> String {
    tables(ALL_TO_ALL).replace("8MB", "400KB")
}
/// Over four leaves with four uplinks each.
fn run(scheme: &str, more: &str) -> RunResult {
    run_over(4, scheme, more, 1)
}

#[test]
fn no_scheme_sends_into_a_link_that_is_known_to_be_dead() {
    let text = format!("{}{DEAD}detect = \"0ns\"\n", small());
    for scheme in SCHEMES {
        let result = run(scheme.name, &text);
        assert_eq!(column(&result, "wire_drops"), 0.0, "{}", scheme.name);
    }
}

/// What the switch is for: runs of papers whose hosts find out by themselves.
#[test]
fn hosts_that_do_not_know_find_out_by_time_outs() {
    let more = |keys: &str| format!("{}{DEAD}{keys}", small());
    for scheme in ["ethereal", "hpn", "twill"] {
        let lost = |keys: &str| column(&run(scheme, &more(keys)), "wire_drops");
        for keys in ["", "detect = \"0ns\"\nhosts_know = false\n"] {
            assert!(lost(keys) > 0.0, "{scheme}: {keys}");
        }
    }
    // Under schemes that ask, hosts are told whatever routing learns.
    let keys = "detect = \"0ns\"\nhosts_know = false\n";
    assert_eq!(column(&run("ethereal-weighted", &more(keys)), "wire_drops"), 0.0);
}

#[test]
fn who_knows_pays_for_the_capacity_and_no_more() {
    let more = |keys: &str| format!("{}{DEAD}detect = \"0ns\"\n{keys}", tables(ALL_TO_ALL));
    for scheme in ["ethereal", "twill"] {
        let [known, unknown] =
            ["", "hosts_know = false\n"].map(|keys| slowdown(scheme, &more(keys)));
        assert!(known < 1.15 && known < unknown, "{scheme}: {known}, not told {unknown}");
    }
}
