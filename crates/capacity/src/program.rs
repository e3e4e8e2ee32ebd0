//! The linear program: the largest share of all demands that can be routed at once.
//!
//! Its variables are the share, how much each pair of leaf classes sends through each plane,
//! and how much each pair of pods sends over each core class. That is all there is to choose:
//! within a plane, what goes from pod to pod is interchangeable, so any such numbers are a
//! routing over up-down paths.
//!
//! Nothing here is trusted: [`Routing::share`] adds up the loads that the found routing puts
//! on the real network, and the found prices are only lengths for [`Network::proof`].

use crate::Demands;
use crate::classes::Classes;
use crate::network::{CapacityGraph, Edge, Shape, all_pairs, pairs};
use crate::routing::{Found, Routing};
use clarabel::algebra::CscMatrix;
use clarabel::solver::SupportedConeT::{NonnegativeConeT, ZeroConeT};
use clarabel::solver::{DefaultSettings, DefaultSolver, IPSolver};

/// With more edges, classes counted once, the solver would take minutes.
const SOLVED_EDGES: usize = 3_000;

/// What solving the program finds. `limit` is some upper limit of the share, of its magnitude.
/// None in a large fabric.
pub(crate) fn solve(network: &CapacityGraph, demands: &Demands, limit: f64) -> Option<Found> {
    let shape = network.shape;
    let leaves = Classes::leaves(network, demands);
    let cores = Classes::cores(network);
    if 2 * (leaves.len() * shape.mids + shape.pods * cores.len()) > SOLVED_EDGES {
        return None;
    }
    let program = Program::new(network, demands, leaves, cores, limit);
    Some(program.solve(network))
}

/// Variables are numbered: the share, then `split`, then `over`, the last two row by row as in
/// [`Routing`], but only those that can carry anything.
struct Program {
    shape: Shape,
    leaves: Classes,
    cores: Classes,
    split: Vec<Option<usize>>,
    over: Vec<Option<usize>>,
    variables: usize,
    /// What one bit per second is in the program.
    scale: f64,
    /// More capacity than all demands together could use.
    plenty: f64,
    matrix: Triplets,
    /// The right-hand side, row by row.
    bounds: Vec<f64>,
    /// How many of the rows are equations; they come first.
    equations: usize,
    /// The edge of each row after the equations.
    edges: Vec<usize>,
}

#[derive(Default)]
struct Triplets {
    rows: Vec<usize>,
    columns: Vec<usize>,
    values: Vec<f64>,
}

impl Triplets {
    fn push(&mut self, row: usize, column: usize, value: f64) {
        self.rows.push(row);
        self.columns.push(column);
        self.values.push(value);
    }
}

impl Program {
    fn new(
        network: &CapacityGraph,
        demands: &Demands,
        leaves: Classes,
        cores: Classes,
        limit: f64,
    ) -> Program {
        let shape = network.shape;
        let mut program = Program {
            shape,
            split: vec![None; leaves.len() * leaves.len() * shape.mids],
            over: vec![None; shape.pods * shape.pods * cores.len()],
            leaves,
            cores,
            variables: 1,
            scale: 1.0,
            plenty: 0.0,
            matrix: Triplets::default(),
            bounds: Vec::new(),
            equations: 0,
            edges: Vec::new(),
        };
        // The share and what one edge of the busiest class carries are of the order of one: the
        // solver's residuals are absolute.
        let mut amounts = program.class_demands(demands);
        let unit = program.busiest(&amounts) / shape.mids.max(shape.cores) as f64;
        amounts.iter_mut().for_each(|amount| *amount /= unit);
        program.scale = demands.per as f64 / limit / unit;
        program.plenty = 2.0 * amounts.iter().sum::<f64>();
        program.number(network, &amounts);
        program.demand_rows(&amounts);
        program.plane_rows();
        program.equations = program.bounds.len();
        program.leaf_rows(network);
        program.core_rows(network);
        program.sign_rows();
        program
    }

    /// Demands between leaf classes.
    fn class_demands(&self, demands: &Demands) -> Vec<f64> {
        let mut amounts = vec![0.0; self.leaves.len() * self.leaves.len()];
        for (src, dst) in pairs(self.shape.leaves) {
            let classes = self.leaves.of[src] * self.leaves.len() + self.leaves.of[dst];
            amounts[classes] += demands.between(src, dst) as f64;
        }
        amounts
    }

    /// The most that any class sends.
    fn busiest(&self, amounts: &[f64]) -> f64 {
        let sums = amounts.chunks(self.leaves.len()).map(|row| row.iter().sum::<f64>());
        sums.fold(0.0, f64::max)
    }

    fn pod_of_class(&self, class: usize) -> usize {
        self.shape.pod(self.leaves.first[class])
    }

    /// Gives a variable to all that can carry something.
    fn number(&mut self, network: &CapacityGraph, amounts: &[f64]) {
        let shape = self.shape;
        let mut asked = vec![false; shape.pods * shape.pods];
        let mut next = self.variables;
        for (pair, (a, b)) in all_pairs(self.leaves.len()).enumerate() {
            if amounts[pair] == 0.0 {
                continue;
            }
            asked[self.pod_of_class(a) * shape.pods + self.pod_of_class(b)] = true;
            for mid in 0..shape.mids {
                let up = network.capacity(Edge::LeafUp(self.leaves.first[a], mid));
                let down = network.capacity(Edge::LeafDown(self.leaves.first[b], mid));
                if up.min(down) > 0 {
                    self.split[pair * shape.mids + mid] = Some(next);
                    next += 1;
                }
            }
        }
        for (from, to) in pairs(shape.pods).filter(|(from, to)| asked[from * shape.pods + to]) {
            for (class, first) in self.cores.first.iter().enumerate() {
                let up = network.capacity(Edge::PodUp(from, *first));
                let down = network.capacity(Edge::PodDown(to, *first));
                if up.min(down) > 0 {
                    self.over[(from * shape.pods + to) * self.cores.len() + class] = Some(next);
                    next += 1;
                }
            }
        }
        self.variables = next;
    }

    /// What a pair of leaf classes sends through all planes is the share of its demand.
    fn demand_rows(&mut self, amounts: &[f64]) {
        let mids = self.shape.mids;
        for (pair, amount) in amounts.iter().enumerate().filter(|(_, amount)| **amount > 0.0) {
            let row = self.bounds.len();
            self.bounds.push(0.0);
            self.matrix.push(row, 0, -amount);
            for variable in self.split[pair * mids..(pair + 1) * mids].iter().flatten() {
                self.matrix.push(row, *variable, 1.0);
            }
        }
    }

    /// What a pair of pods sends through a plane goes over the cores of the plane.
    fn plane_rows(&mut self) {
        let shape = self.shape;
        let first_row = self.bounds.len();
        let row_of = |from, to, plane| first_row + (from * shape.pods + to) * shape.mids + plane;
        self.bounds.resize(row_of(shape.pods, 0, 0), 0.0);
        for (pair, (a, b)) in all_pairs(self.leaves.len()).enumerate() {
            let (from, to) = (self.pod_of_class(a), self.pod_of_class(b));
            for plane in (0..shape.mids).filter(|_| from != to) {
                if let Some(variable) = self.split[pair * shape.mids + plane] {
                    self.matrix.push(row_of(from, to, plane), variable, -1.0);
                }
            }
        }
        for (from, to) in pairs(shape.pods) {
            for (class, first) in self.cores.first.iter().enumerate() {
                let over = (from * shape.pods + to) * self.cores.len() + class;
                if let Some(variable) = self.over[over] {
                    let plane = first / (shape.cores / shape.mids);
                    self.matrix.push(row_of(from, to, plane), variable, 1.0);
                }
            }
        }
    }

    /// `variables` together are at most `capacity`, in bits per second.
    fn capacity_row(&mut self, edge: usize, capacity: f64, variables: Vec<usize>) {
        if variables.is_empty() {
            return;
        }
        let row = self.bounds.len();
        self.bounds.push((capacity * self.scale).min(self.plenty));
        self.edges.push(edge);
        for variable in variables {
            self.matrix.push(row, variable, 1.0);
        }
    }

    fn leaf_rows(&mut self, network: &CapacityGraph) {
        let (shape, count) = (self.shape, self.leaves.len());
        for (class, mid) in (0..count).flat_map(|class| (0..shape.mids).map(move |m| (class, m))) {
            let (first, size) = (self.leaves.first[class], self.leaves.size[class] as f64);
            let at = |a: usize, b: usize| self.split[(a * count + b) * shape.mids + mid];
            let up = (0..count).filter_map(|other| at(class, other)).collect();
            let down = (0..count).filter_map(|other| at(other, class)).collect();
            for (edge, variables) in
                [(Edge::LeafUp(first, mid), up), (Edge::LeafDown(first, mid), down)]
            {
                let capacity = network.capacity(edge) as f64 * size;
                self.capacity_row(shape.edge(edge), capacity, variables);
            }
        }
    }

    fn core_rows(&mut self, network: &CapacityGraph) {
        let (shape, count) = (self.shape, self.cores.len());
        for (pod, class) in (0..shape.pods).flat_map(|pod| (0..count).map(move |c| (pod, c))) {
            let (first, size) = (self.cores.first[class], self.cores.size[class] as f64);
            let at = |from: usize, to: usize| self.over[(from * shape.pods + to) * count + class];
            let up = (0..shape.pods).filter_map(|other| at(pod, other)).collect();
            let down = (0..shape.pods).filter_map(|other| at(other, pod)).collect();
            for (edge, variables) in
                [(Edge::PodUp(pod, first), up), (Edge::PodDown(pod, first), down)]
            {
                let capacity = network.capacity(edge) as f64 * size;
                self.capacity_row(shape.edge(edge), capacity, variables);
            }
        }
    }

    /// Nothing is negative.
    fn sign_rows(&mut self) {
        for variable in 0..self.variables {
            self.matrix.push(self.bounds.len(), variable, -1.0);
            self.bounds.push(0.0);
        }
    }

    fn solve(self, network: &CapacityGraph) -> Found {
        let (rows, columns) = (self.bounds.len(), self.variables);
        let Triplets { rows: i, columns: j, values } = &self.matrix;
        let matrix =
            CscMatrix::new_from_triplets(rows, columns, i.clone(), j.clone(), values.clone());
        let mut objective = vec![0.0; columns];
        objective[0] = -1.0;
        let cones = [ZeroConeT(self.equations), NonnegativeConeT(rows - self.equations)];
        let quadratic = CscMatrix::zeros((columns, columns));
        let settings = DefaultSettings {
            verbose: false,
            tol_gap_abs: 1e-9,
            tol_gap_rel: 1e-9,
            tol_feas: 1e-9,
            // Programmes with many equal optima stall otherwise.
            iterative_refinement_max_iter: 50,
            iterative_refinement_reltol: 1e-15,
            iterative_refinement_abstol: 1e-14,
            ..DefaultSettings::default()
        };
        let solver =
            DefaultSolver::new(&quadratic, &objective, &matrix, &self.bounds, &cones, settings);
        let mut solver = solver.expect("the program has as many rows and columns as it says");
        solver.solve();
        self.found(network, &solver.solution.x, &solver.solution.z)
    }

    fn found(self, network: &CapacityGraph, x: &[f64], z: &[f64]) -> Found {
        let value = |variable: &Option<usize>| variable.map_or(0.0, |v| x[v].max(0.0));
        let mut split: Vec<f64> = self.split.iter().map(value).collect();
        let mut over: Vec<f64> = self.over.iter().map(value).collect();
        for (shares, variables) in
            split.chunks_mut(self.shape.mids).zip(self.split.chunks(self.shape.mids))
        {
            normalise(shares, variables);
        }
        // The classes of a plane stand together.
        let planes = self.cores.first.chunk_by(|a, b| self.plane(*a) == self.plane(*b));
        let widths: Vec<usize> = planes.map(<[usize]>::len).collect();
        let mut at = 0;
        while at < over.len() {
            for width in &widths {
                normalise(&mut over[at..at + width], &self.over[at..at + width]);
                at += width;
            }
        }
        let mut prices = vec![0.0; network.shape.edges()];
        for (edge, price) in self.edges.iter().zip(&z[self.equations..]) {
            prices[*edge] = price.max(0.0);
        }
        self.spread(&mut prices);
        let Program { leaves, cores, .. } = self;
        Found { routing: Routing { leaves, cores, split, over }, prices }
    }

    fn plane(&self, core: usize) -> usize {
        core / (self.shape.cores / self.shape.mids)
    }

    /// Gives every member of a class the price of the first.
    fn spread(&self, prices: &mut [f64]) {
        let shape = self.shape;
        let mut copy = |to: Edge, from: Edge| prices[shape.edge(to)] = prices[shape.edge(from)];
        for leaf in 0..shape.leaves {
            let first = self.leaves.first[self.leaves.of[leaf]];
            for mid in 0..shape.mids {
                copy(Edge::LeafUp(leaf, mid), Edge::LeafUp(first, mid));
                copy(Edge::LeafDown(leaf, mid), Edge::LeafDown(first, mid));
            }
        }
        for core in 0..shape.cores {
            let first = self.cores.first[self.cores.of[core]];
            for pod in 0..shape.pods {
                copy(Edge::PodUp(pod, core), Edge::PodUp(pod, first));
                copy(Edge::PodDown(pod, core), Edge::PodDown(pod, first));
            }
        }
    }
}

/// Makes shares sum to one; even among those that have a variable if they are all zero.
fn normalise(shares: &mut [f64], variables: &[Option<usize>]) {
    let sum: f64 = shares.iter().sum();
    let usable = variables.iter().flatten().count();
    for (share, variable) in shares.iter_mut().zip(variables) {
        *share = match variable {
            Some(_) if sum > 0.0 => *share / sum,
            Some(_) => 1.0 / usable as f64,
            None => 0.0,
        };
    }
}
