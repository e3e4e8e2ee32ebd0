//! Rates kept up to date against rates found from scratch, by the textbook's algorithm.

use super::Rates;
use std::collections::BTreeMap;
use weft_trial::prelude::*;

const RESOURCES: usize = 8;
/// Each of these may be divided into so many others, which follow them.
const LINKS: usize = 3;

/// A flow: its resources with their weights, and its limit.
type Plain = (Vec<(u32, f64)>, f64);

/// Max-min fair rates: all grow alike until a resource is full or a flow at its limit (Bertsekas and
/// Gallager, section 6.5.2).
fn from_scratch(capacities: &[f64], flows: &BTreeMap<u32, Plain>) -> BTreeMap<u32, f64> {
    let mut left = capacities.to_vec();
    let mut rates = BTreeMap::new();
    while rates.len() < flows.len() {
        let open: Vec<u32> = flows.keys().copied().filter(|id| !rates.contains_key(id)).collect();
        let level = |resource: u32| {
            let weight = |id: &u32| {
                let uses = &flows[id].0;
                uses.iter().filter(|one| one.0 == resource).map(|one| one.1).sum::<f64>()
            };
            left[resource as usize].max(0.0) / open.iter().map(weight).sum::<f64>()
        };
        let most =
            |id: &u32| flows[id].0.iter().fold(flows[id].1, |most, one| most.min(level(one.0)));
        let lowest = open.iter().map(most).fold(f64::INFINITY, f64::min);
        let stopped: Vec<u32> =
            open.iter().copied().filter(|id| most(id) <= lowest * (1.0 + 1e-12)).collect();
        for id in stopped {
            flows[&id].0.iter().for_each(|one| left[one.0 as usize] -= lowest * one.1);
            rates.insert(id, lowest);
        }
    }
    rates
}

#[derive(Clone, Debug)]
enum Step {
    Add(Vec<(u32, f64)>, f64),
    Remove(usize),
    Capacity(u32, f64),
    Limit(usize, f64),
    Divide(u32),
    Settle,
}

fn step() -> impl Strategy<Value = Step> {
    let uses = prop::collection::btree_map(0..RESOURCES as u32, 0.01..4.0, 1..RESOURCES + 1);
    let uses = uses.prop_map(|uses| uses.into_iter().collect());
    prop_oneof![
        4 => (uses, 0.1..3.0).prop_map(|(uses, limit)| Step::Add(uses, limit)),
        2 => any::<usize>().prop_map(Step::Remove),
        1 => (0..RESOURCES as u32, 0.0..4.0).prop_map(|(id, capacity)| Step::Capacity(id, capacity)),
        2 => (any::<usize>(), 0.1..3.0).prop_map(|(place, limit)| Step::Limit(place, limit)),
        1 => (0..RESOURCES as u32).prop_map(Step::Divide),
        3 => Just(Step::Settle),
    ]
}

trials! {
    /// After any changes.
    fn rates_kept_up_to_date_are_those_found_from_scratch(
        steps in prop::collection::vec(step(), 1..60)
    ) {
        let all = RESOURCES * (1 + LINKS);
        let mut rates = Rates::new(all);
        let mut capacities = vec![1.0; all];
        capacities[RESOURCES..].fill(0.3);
        (0..).zip(&capacities).for_each(|(id, one)| rates.set_capacity(id, *one));
        let (mut flows, mut known) = (BTreeMap::new(), BTreeMap::new());
        for step in steps.into_iter().chain([Step::Settle]) {
            match step {
                Step::Add(uses, limit) => {
                    let id = rates.add_weighted(uses.iter().copied(), limit);
                    if let Some(rate) = rates.grant(id) {
                        known.insert(id, rate);
                    }
                    flows.insert(id, (uses, limit));
                }
                Step::Remove(place) => {
                    let id = flows.keys().copied().nth(place % flows.len().max(1));
                    if let Some(id) = id {
                        rates.remove(id);
                        flows.remove(&id);
                        known.remove(&id);
                    }
                }
                Step::Capacity(id, capacity) => {
                    capacities[id as usize] = capacity;
                    rates.set_capacity(id, capacity);
                }
                Step::Limit(place, limit) => {
                    if let Some(id) = flows.keys().copied().nth(place % flows.len().max(1)) {
                        rates.set_limit(id, limit);
                        flows.entry(id).and_modify(|flow: &mut Plain| flow.1 = limit);
                    }
                }
                Step::Divide(resource) => {
                    let first = RESOURCES as u32 + resource * LINKS as u32;
                    let links: Vec<u32> = (first..first + LINKS as u32).collect();
                    rates.divide(resource, &links);
                    for (uses, _) in flows.values_mut() {
                        let whole: Vec<f64> =
                            uses.extract_if(.., |one| one.0 == resource).map(|one| one.1).collect();
                        for weight in whole {
                            uses.extend(links.iter().map(|link| (*link, weight / LINKS as f64)));
                        }
                    }
                }
                Step::Settle => {
                    rates.settle(|id, _, rate| {
                        known.insert(id, rate);
                    });
                    let right = from_scratch(&capacities, &flows);
                    for (id, rate) in &right {
                        let mine = known.get(id).copied().unwrap_or(0.0);
                        prop_assert!((mine - rate).abs() < 1e-6, "{id}: {mine}, not {rate}; {flows:?}");
                    }
                }
            }
        }
    }
}
