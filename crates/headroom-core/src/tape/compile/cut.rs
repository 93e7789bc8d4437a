//! What a compiled graph saves for its backward: a minimum cut between what cannot be computed again and what backward needs.
//!
//! Follows torch/_functorch/partitioners.py (`solve_min_cut`, with the options of `activation_memory_budget=1`): a node costs its bytes, more
//! the further backward is away, twice as much where every use of it is fused; products, attention, random numbers, reductions
//! and what a product of backward reads are never computed again.

use std::collections::{BTreeSet, VecDeque};

/// A value of the forward graph, by the order in which values are made.
#[derive(Clone, Debug, Default, PartialEq)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "each is a rule of the partitioner, free of the others"
)]
pub(in crate::tape) struct Value {
    pub bytes: u64,
    /// Values it is computed from.
    pub inputs: Vec<usize>,
    /// It comes from outside the graph: a parameter or an input.
    pub outside: bool,
    /// Its operation may be computed again and fused (`recomputable_ops`).
    pub recomputable: bool,
    /// Checkpointing recomputes it (`must_recompute`).
    pub must_recompute: bool,
    /// Backward reads it.
    pub saved: bool,
    /// A kernel that is not generated reads it in backward, so that it needs memory.
    pub must_materialize: bool,
    /// Compute-intensive or random: never recomputed (`is_compute_intensive`, `is_random`).
    pub never_recompute: bool,
    /// The operation that makes it, and its work.
    pub operation: usize,
    pub flops: f64,
}

/// What else is never recomputed (`MinCutOptions`).
#[derive(Clone, Copy)]
pub(super) struct MinCutOptions {
    /// What is used far apart.
    far: bool,
    /// What a library's kernel reads in backward.
    materialized: bool,
    /// What is missing in the list of operations that may be.
    unlisted: bool,
}

impl MinCutOptions {
    pub(super) const DEFAULT: Self = Self {
        far: true,
        materialized: true,
        unlisted: true,
    };
    pub(super) const MORE: Self = Self {
        far: false,
        materialized: false,
        unlisted: true,
    };
    pub(super) const AGGRESSIVE: Self = Self {
        unlisted: false,
        ..Self::MORE
    };
}

/// Marks the values to keep, in their order. Operations that are `spared` may be computed again whatever they are.
pub(super) fn saved_values(
    values: &[Value],
    options: MinCutOptions,
    spared: &BTreeSet<usize>,
) -> Vec<bool> {
    let users = users(values);
    let banned = banned(values, &users, options, spared);
    let distances = distances(values, &users);
    let count = values.len();
    let (source, sink) = (2 * count, 2 * count + 1);
    let mut flow = Flow::new(2 * count + 2);
    for (i, value) in values.iter().enumerate() {
        let (inlet, outlet) = (2 * i, 2 * i + 1);
        if value.must_recompute {
            flow.edge(inlet, sink, u64::MAX);
            continue;
        }
        if value.outside || banned[i] {
            flow.edge(source, inlet, u64::MAX);
        }
        let fused = !value.outside
            && users[i].iter().all(|&user| fusible(value, &values[user]))
            && !value.must_materialize;
        let nearness = 1.1_f64.powi(distances[i].clamp(1, 100));
        let cost = (value.bytes as f64 * nearness) as u64;
        flow.edge(
            inlet,
            outlet,
            if fused { cost.saturating_mul(2) } else { cost },
        );
        if value.saved {
            flow.edge(outlet, sink, u64::MAX);
        }
        for &user in &users[i] {
            flow.edge(outlet, 2 * user, u64::MAX);
        }
    }
    let reached = flow.cut(source, sink);
    (0..count)
        .map(|i| reached[2 * i] && !reached[2 * i + 1])
        .collect()
}

/// What the most aggressive cut does not compute again though backward needs it.
pub(super) fn never_recomputed(values: &[Value]) -> Vec<bool> {
    let users = users(values);
    let distances = distances(values, &users);
    let banned = banned(values, &users, MinCutOptions::AGGRESSIVE, &BTreeSet::new());
    let needed = distances.iter().map(|&distance| distance < FAR);
    banned
        .iter()
        .zip(needed)
        .map(|(banned, needed)| *banned && needed)
        .collect()
}

fn users(values: &[Value]) -> Vec<Vec<usize>> {
    let mut users = vec![Vec::new(); values.len()];
    for (i, value) in values.iter().enumerate() {
        for &input in &value.inputs {
            if let Some(of) = users.get_mut(input) {
                of.push(i);
            }
        }
    }
    users
}

fn fusible(made: &Value, used: &Value) -> bool {
    made.recomputable && used.recomputable
}

/// Which values are not computed again (`should_ban_recomputation`, `ban_if_used_far_apart`).
fn banned(
    values: &[Value],
    users: &[Vec<usize>],
    options: MinCutOptions,
    spared: &BTreeSet<usize>,
) -> Vec<bool> {
    let mut banned: Vec<bool> = values
        .iter()
        .map(|value| {
            let read = value.inputs.iter().filter_map(|&input| values.get(input));
            let input_bytes: u64 = read.map(|input| input.bytes).fold(0, u64::saturating_add);
            let by_kind = if options.unlisted {
                !value.recomputable
            } else {
                value.never_recompute
            };
            !value.outside
                && !spared.contains(&value.operation)
                && (by_kind
                    || (options.materialized && value.must_materialize)
                    || value.bytes.saturating_mul(4) < input_bytes)
        })
        .collect();
    if !options.far {
        return banned;
    }
    for (i, value) in values.iter().enumerate() {
        let Some(&last) = users[i].iter().max() else {
            continue;
        };
        let border = first_unfusible(values, users, &users[i], last);
        for &user in &users[i] {
            if user > border && fusible(value, &values[user]) {
                banned[user] = true;
            }
        }
    }
    banned
}

/// The first value after these that no kernel makes together with what it reads, or `last`.
fn first_unfusible(values: &[Value], users: &[Vec<usize>], from: &[usize], last: usize) -> usize {
    let mut open: std::collections::BTreeMap<usize, bool> =
        from.iter().map(|&value| (value, true)).collect();
    while let Some((value, is_fusible)) = open.pop_first() {
        if !is_fusible {
            return value;
        }
        for &user in users[value].iter().filter(|&&user| user <= last) {
            let joins = fusible(&values[value], &values[user]);
            open.entry(user)
                .and_modify(|all| *all &= joins)
                .or_insert(joins);
        }
    }
    last
}

/// The distance of what backward does not need.
const FAR: i32 = 1_000_000_000;

/// The distance of each value from backward.
fn distances(values: &[Value], users: &[Vec<usize>]) -> Vec<i32> {
    let mut distances = vec![FAR; values.len()];
    for i in (0..values.len()).rev() {
        let by_users = users[i]
            .iter()
            .map(|&user| distances[user].min(FAR - 1) + 1);
        let nearest = by_users.min().unwrap_or(FAR);
        distances[i] = if values[i].saved { 1 } else { nearest };
    }
    distances
}

/// A network in which a flow is as large as possible: Dinic's algorithm.
struct Flow {
    /// Where each edge leads and what it still carries; each is followed by its reverse.
    edges: Vec<(usize, u64)>,
    from: Vec<Vec<usize>>,
    levels: Vec<u32>,
    next: Vec<usize>,
}

impl Flow {
    fn new(nodes: usize) -> Self {
        Self {
            edges: Vec::new(),
            from: vec![Vec::new(); nodes],
            levels: Vec::new(),
            next: Vec::new(),
        }
    }

    fn edge(&mut self, from: usize, to: usize, capacity: u64) {
        self.from[from].push(self.edges.len());
        self.edges.push((to, capacity));
        self.from[to].push(self.edges.len());
        self.edges.push((from, 0));
    }

    /// The nodes on the source's side of the smallest cut.
    fn cut(mut self, source: usize, sink: usize) -> Vec<bool> {
        while self.levels_from(source, sink) {
            self.next = vec![0; self.from.len()];
            while self.push(source, sink) > 0 {}
        }
        self.levels.iter().map(|&level| level != u32::MAX).collect()
    }

    fn levels_from(&mut self, source: usize, sink: usize) -> bool {
        self.levels = vec![u32::MAX; self.from.len()];
        self.levels[source] = 0;
        let mut open = VecDeque::from([source]);
        while let Some(node) = open.pop_front() {
            for &edge in &self.from[node] {
                let (to, left) = self.edges[edge];
                if left > 0 && self.levels[to] == u32::MAX {
                    self.levels[to] = self.levels[node] + 1;
                    open.push_back(to);
                }
            }
        }
        self.levels[sink] != u32::MAX
    }

    /// Sends more along one path, without recursion: models are deep.
    fn push(&mut self, source: usize, sink: usize) -> u64 {
        let mut path: Vec<usize> = Vec::new();
        let mut node = source;
        while node != sink {
            let step = self.from[node][self.next[node]..].iter().position(|&edge| {
                let (to, left) = self.edges[edge];
                left > 0 && self.levels[to] == self.levels[node] + 1
            });
            match step {
                Some(skipped) => {
                    self.next[node] += skipped;
                    let edge = self.from[node][self.next[node]];
                    path.push(edge);
                    node = self.edges[edge].0;
                }
                None => {
                    self.next[node] = self.from[node].len();
                    let Some(edge) = path.pop() else { return 0 };
                    node = self.edges[edge ^ 1].0;
                    self.next[node] += 1;
                }
            }
        }
        let most = path
            .iter()
            .map(|&edge| self.edges[edge].1)
            .min()
            .unwrap_or(0);
        for &edge in &path {
            if self.edges[edge].1 != u64::MAX {
                self.edges[edge].1 -= most;
            }
            let back = &mut self.edges[edge ^ 1].1;
            *back = back.saturating_add(most);
        }
        most
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn made(bytes: u64, inputs: &[usize]) -> Value {
        Value {
            bytes,
            inputs: inputs.to_vec(),
            recomputable: true,
            ..Value::default()
        }
    }

    #[track_caller]
    fn check(values: Vec<Value>, expected: &[usize]) {
        let kept = saved_values(&values, MinCutOptions::DEFAULT, &BTreeSet::new());
        let found: Vec<usize> = (0..kept.len()).filter(|&place| kept[place]).collect();
        assert_eq!(found, expected);
    }

    #[test]
    fn what_is_cheaper_of_a_chain_is_kept() {
        // A product, its cast to a wider type, and a function of that which backward reads.
        let product = Value {
            recomputable: false,
            ..made(2, &[])
        };
        let read = Value {
            saved: true,
            ..made(4, &[1])
        };
        check(vec![product, made(4, &[0]), read], &[0]);
    }

    #[test]
    fn what_a_product_reads_in_backward_is_kept_itself() {
        let input = Value {
            outside: true,
            saved: true,
            ..made(100, &[])
        };
        let read = Value {
            saved: true,
            must_materialize: true,
            ..made(100, &[0])
        };
        check(vec![input, read], &[0, 1]);
    }

    #[test]
    fn reductions_are_not_computed_again() {
        let input = Value {
            outside: true,
            saved: true,
            ..made(4096, &[])
        };
        let sum = Value {
            saved: true,
            ..made(4, &[0])
        };
        check(vec![input, sum], &[0, 1]);
    }

    #[test]
    fn checkpointed_values_are_recomputed_from_the_inputs() {
        let product = Value {
            recomputable: false,
            must_recompute: true,
            saved: true,
            ..made(8, &[0])
        };
        let input = Value {
            outside: true,
            ..made(8, &[])
        };
        check(vec![input, product], &[0]);
    }
}
