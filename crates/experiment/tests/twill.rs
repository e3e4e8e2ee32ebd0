//! Twill over a network of packets: what failures cost, beside schemes that others have made.

use crate::twill_runs::{ALL_TO_ALL, DOUBLING, PERMUTATION, column, run_of, slowdown, tables};

#[test]
fn without_failures_it_is_at_the_bound_in_order_and_with_few_queue_pairs() {
    for workload in [PERMUTATION, ALL_TO_ALL, DOUBLING] {
        let result = run_of("twill", &tables(workload));
        let slowdown = column(&result, "slowdown");
        assert!(slowdown < 1.06, "{workload}: {slowdown}");
        assert_eq!(column(&result, "reorder_max"), 0.0, "{workload}");
        assert_eq!(column(&result, "retransmits"), 0.0, "{workload}");
        assert!(column(&result, "max_qps") <= 64.0, "{workload}");
    }
}

#[test]
fn a_bond_keeps_the_order_of_chunks_on_a_queue_pair() {
    let result = run_of("twill", &format!("homes = 2\n{}", tables(PERMUTATION)));
    assert_eq!(column(&result, "retransmits"), 0.0);
}

#[test]
fn slow_links_get_what_they_carry() {
    let slow = "[failures.slow]\ntier = \"leaf-up\"\nkind = \"degraded\"\nlost = 0.75\n";
    let more = format!("{}{slow}", tables(ALL_TO_ALL));
    let (twill, ethereal) = (slowdown("twill", &more), slowdown("ethereal", &more));
    assert!(twill < 1.15, "{twill}");
    assert!(ethereal > 2.5, "{ethereal}");
}

#[test]
fn a_link_that_dies_costs_a_time_out_that_adapts() {
    let dead =
        "[failures.dead]\nlinks = [\"leaf-0 <-> spine-0\"]\nkind = \"down\"\nstart = \"50us\"\n";
    let more = format!("{}{dead}", tables(DOUBLING));
    let (twill, ethereal) = (slowdown("twill", &more), slowdown("ethereal", &more));
    assert!(twill < 1.5, "{twill}");
    assert!(ethereal > twill * 1.3, "{ethereal} {twill}");
}

#[test]
fn those_who_are_ahead_do_not_hold_up_a_rank_that_is_late() {
    // By 40 us. Those who are ahead of their turn send to ranks that wait for the late one.
    let late = "[stragglers]\nranks = [3]\nfactor = 10.0\nstart_delay = \"4us\"\n\
                start_distribution = \"fixed\"\n";
    let doubling = tables(DOUBLING).replace("8MB", "4MB");
    let end = |more: &str| column(&run_of("twill", &format!("{doubling}{more}")), "cct_s");
    let in_time = end("");
    let cost = |more: &str| end(&format!("{late}{more}")) - in_time;
    let (defers, does_not) = (cost(""), cost("[balance]\ndefer = false\n"));
    assert!(defers < 130e-6 && does_not > defers * 3.0, "{defers} {does_not}");
}

#[test]
fn a_plane_that_dies_is_left() {
    let dead = "[failures.dead]\nplanes = [1]\nkind = \"down\"\nstart = \"50us\"\n";
    let planes = "planes = 4\n";
    let more = format!("{planes}{}{dead}", tables(PERMUTATION));
    let twill = slowdown("twill", &more);
    assert!(twill < 1.6, "{twill}");
}

#[test]
fn what_was_overtaken_on_its_queue_pair_goes_again_at_once() {
    let flaky = "[failures.flaky]\nlinks = [\"leaf-0 <-> spine-0\"]\nkind = \"flaky\"\n\
                 every = \"100us\"\nlength = \"5us\"\nregular = true\n";
    // Time-outs play no part: a chunk that waits for one is a millisecond late.
    let more = format!(
        "[transport]\nrto = \"1ms\"\n{}{flaky}[balance]\ntime_out = 0\n",
        tables(PERMUTATION)
    );
    let result = run_of("twill", &more);
    assert!(column(&result, "wire_drops") > 0.0);
    let slowdown = column(&result, "slowdown");
    assert!(slowdown < 1.5, "{slowdown}");
}

#[test]
fn many_who_send_to_one_take_no_longer_than_under_ecmp() {
    let more = tables(r#"workload = { pattern = "incast", size = "400KB" }"#);
    let (twill, ecmp) = (slowdown("twill", &more), slowdown("ecmp", &more));
    assert!(twill < ecmp * 1.05, "{twill} {ecmp}");
}
