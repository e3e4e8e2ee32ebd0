//! A Clos routed by tables, as any network may be, against the same by arithmetic: nothing may differ.

use crate::common::compare::{but_events, difference};
use crate::common::random::{Kind, setup};
use weft_fabric::{Fabric, Wiring};
use weft_trial::prelude::*;

trials! {
    #![cases(256)]

    fn tables_send_packets_where_arithmetic_does(setup in setup(Kind::ALL)) {
        let clos = *setup.fabric.clos().expect("a Clos");
        let mut plain = setup;
        // Tables know ways around dead links that a Clos does not take.
        plain.failures.clear();
        let mut tables = plain.clone();
        let mut wiring = Wiring::from(&clos);
        // No packet goes over other groups in a Clos.
        wiring.groups.fill(0);
        tables.fabric = Fabric::of_wiring(wiring).unwrap();
        let scheme = &plain.balance.scheme;
        let fits = scheme.fits(&tables.fabric).is_ok() && scheme.fits(&plain.fabric).is_ok();
        // A path id of a Clos names one member of a bundle down for each uplink; tables name them all.
        let has_bundles = clos.leaf_bundle.members.max(clos.agg_bundle.members) > 1;
        if fits && !(has_bundles && scheme.enforce().is_some()) {
            let [plain, tables] = [plain, tables].map(|setup| setup.try_run().map(but_events));
            prop_assert_eq!(difference(&plain, &tables), None);
        }
    }
}
