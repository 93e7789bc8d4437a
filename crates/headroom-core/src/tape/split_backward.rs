//! Backward in two parts (torch/distributed/pipelining/_backward.py): the gradients of a stage's inputs, for which the stage
//! before waits, and later those of its weights.

use super::core::{Edge, Holder, WeightGradient};
use super::{Core, Grads, Mode, Scope, Tape, Tensor};

/// What forward's graph has saved, as long as nodes with weights lead to it: freed when the weights have their gradients.
#[derive(Default)]
#[allow(missing_debug_implementations)]
pub struct KeptGraph {
    _saved: Vec<Holder>,
}

/// The gradients of weights that a first part has deferred (`param_groups`).
#[derive(Default)]
#[allow(missing_debug_implementations)]
pub struct WeightGradients(Vec<WeightGradient>);

impl Tape {
    /// Runs forward for a backward in two parts: the first leaves what the graph has saved (`retain_graph`).
    pub fn keeping_graph<T>(&self, forward: impl FnOnce() -> T) -> (T, KeptGraph) {
        let split = &self.0.split;
        split.saved.replace(Some(Vec::new()));
        split.reached.set(0);
        let result = forward();
        let mut saved = split.saved.take().unwrap_or_default();
        saved.truncate(split.reached.get());
        (result, KeptGraph { _saved: saved })
    }

    /// `stage_backward_input`: runs `backward` for the gradients of inputs alone.
    pub fn backward_of_inputs(&self, backward: impl FnOnce()) -> WeightGradients {
        let split = &self.0.split;
        self.0.begin_backward();
        split.defers.set(true);
        backward();
        split.defers.set(false);
        WeightGradients(split.weights.take())
    }

    /// `stage_backward_weight`: each node with weights by itself, in the order of the weights.
    pub fn backward_of_weights(&self, WeightGradients(all): WeightGradients) {
        let added = &self.0.split.added;
        added.replace(Some(Vec::new()));
        for WeightGradient {
            scope,
            edges,
            compute,
        } in all.into_iter().rev()
        {
            let mode = self.mode().no_grad().with_autocast(None);
            self.0.begin_backward();
            let outer = self.enter(scope);
            let mut gradients = self.within(Mode { scope, ..mode }, compute);
            self.enter(outer);
            let roots = edges.into_iter().filter_map(|(place, edge)| {
                let gradient = gradients.get_mut(place).and_then(Option::take)?;
                Some((edge, gradient))
            });
            let roots = roots.collect();
            drop(gradients);
            // The earlier gradients' names (`dweights`, `dw`) are rebound once these exist.
            let before = added.replace(Some(Vec::new()));
            self.run_backward(roots);
            drop(before);
        }
        added.take();
    }

    /// A gradient has been added to a sum.
    pub fn has_added(&self, gradient: Tensor) {
        if let Some(added) = self.0.split.added.borrow_mut().as_mut() {
            added.push(gradient);
        }
    }

    /// Whether a node that computes gradients both for its input and for a weight puts the weight's off.
    pub(in crate::tape) fn defers_weight_gradients(&self) -> bool {
        self.0.split.defers.get()
    }

    /// Puts off the gradients of the weights of the node that runs.
    pub(in crate::tape) fn defer_weight_gradients(
        &self,
        compute: impl FnOnce() -> Grads + 'static,
    ) {
        self.0.split.deferred.replace(Some(Box::new(compute)));
    }
}

impl Core {
    pub(in crate::tape) fn keep_for_split(&self, saved: impl FnOnce() -> Holder) {
        if let Some(all) = self.split.saved.borrow_mut().as_mut() {
            all.push(saved());
        }
    }

    /// Whether the graph that is made is kept for a backward in two parts.
    pub(in crate::tape) fn keeps_graph(&self) -> bool {
        self.split.saved.borrow().is_some()
    }

    fn begin_backward(&self) {
        let backwards = &self.split.backwards;
        backwards.set(backwards.get() + 1);
    }

    /// The backward that runs, of those in parts: each weight's is one of its own (`_current_graph_task_id`).
    pub(in crate::tape) fn running_backward(&self) -> u64 {
        self.split.backwards.get()
    }

    /// A node with a weight is made: what has been saved so far is reached from it. Of its own it keeps what it needs itself.
    pub(in crate::tape) fn reached_from_weight(&self, own: usize) {
        if let Some(saved) = self.split.saved.borrow_mut().as_mut() {
            saved.truncate(saved.len().saturating_sub(own));
            self.split.reached.set(saved.len());
        }
    }

    /// Takes over what the node that has run deferred, with the edges of those gradients.
    pub(in crate::tape) fn take_deferred(&self, scope: Scope, edges: Vec<(usize, Edge)>) {
        if let Some(compute) = self.split.deferred.take() {
            self.split.weights.borrow_mut().push(WeightGradient {
                scope,
                edges,
                compute,
            });
        }
    }

    pub(in crate::tape) fn has_deferred(&self) -> bool {
        self.split.deferred.borrow().is_some()
    }
}
