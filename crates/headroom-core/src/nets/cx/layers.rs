//! Lists of layers: checkpointed where the run requests it, and run once where they are equal.

use std::rc::Rc;

use super::{Cx, Region};
use crate::parallel::Role;
use crate::tape::{Folding, Tensor};
use headroom_scenario::Compile;

/// What a layer of a list does to its state. Behind a pointer, so that the running of lists is compiled once and not
/// for each network: the page downloads every copy.
pub(crate) type Layer = dyn Fn(&Cx, &[Tensor]) -> Vec<Tensor>;

impl Cx {
    /// A list of like layers, each taking the state the one before left; checkpointed where the run requests it.
    pub fn layers(
        &self,
        name: &'static str,
        count: u64,
        state: Vec<Tensor>,
        layer: impl Fn(&Self, &[Tensor], usize) -> Vec<Tensor> + Clone + 'static,
    ) -> Vec<Tensor> {
        let layer = Rc::new(layer);
        let within_budget = |_: &u64| !self.tape.is_over_budget();
        let (range, state) = self.enter_layers(count, false, state);
        let end = range.end;
        let one = move |cx: &Self, state, i: u64| {
            let (layer, cx, i) = (layer.clone(), cx.of_block(i, count), i as usize);
            cx.layer(name, i, state, move |cx, state| layer(cx, state, i))
        };
        let state = range.take_while(within_budget).fold(state, |state, i| {
            self.in_segments(i, end, state, one.clone())
        });
        self.leave_layers(state)
    }

    /// A list of equal layers: those after the first are run once for all.
    pub fn equal_layers(
        &self,
        name: &'static str,
        count: u64,
        state: Vec<Tensor>,
        layer: impl Fn(&Self, &[Tensor]) -> Vec<Tensor> + Clone + 'static,
    ) -> Vec<Tensor> {
        let layer: Rc<Layer> = Rc::new(layer);
        let one = move |cx: &Self, state, i: u64| {
            let cx = cx.of_block(i, count);
            cx.shared_layer(name, i as usize, state, layer.clone())
        };
        self.periodic(count, 1, state, &|state, i| {
            self.in_segments(i as u64, count, state, one.clone())
        })
    }

    /// Runs layer `i` of a list that ends at `end`, or the segment of checkpointed layers that begins with it, unless it ran with that.
    fn in_segments(
        &self,
        i: u64,
        end: u64,
        state: Vec<Tensor>,
        one: impl Fn(&Self, Vec<Tensor>, u64) -> Vec<Tensor> + 'static,
    ) -> Vec<Tensor> {
        let training = &self.env.training;
        let span = training.checkpoint_span;
        if span <= 1 || self.in_segment {
            return one(self, state, i);
        }
        let at = i.saturating_sub(self.env.groups.stages.first.get())
            % training.checkpoint_every.max(span);
        if at >= span {
            let outside = Self {
                in_segment: true,
                ..self.clone()
            };
            return one(&outside, state, i);
        }
        if at > 0 {
            return state;
        }
        let last = i.saturating_add(span).min(end);
        self.block(Region::Segment, state, move |cx, state| {
            let cx = Self {
                in_segment: true,
                ..cx.clone()
            };
            (i..last).fold(state, |state, i| one(&cx, state, i))
        })
    }

    /// Layers of which each is like the one `period` places before it: the periods after the first are run
    /// once for all.
    pub fn periodic_layers(
        &self,
        count: u64,
        period: u64,
        state: Vec<Tensor>,
        layer: impl Fn(Vec<Tensor>, usize) -> Vec<Tensor>,
    ) -> Vec<Tensor> {
        self.periodic(count, period, state, &layer)
    }

    fn periodic(
        &self,
        count: u64,
        period: u64,
        state: Vec<Tensor>,
        layer: &dyn Fn(Vec<Tensor>, usize) -> Vec<Tensor>,
    ) -> Vec<Tensor> {
        let (range, state) = self.enter_layers(count, period == 1, state);
        let (start, count) = (range.start, range.end - range.start);
        let run = |state, from: u64, to: u64| {
            let within_budget = |_: &u64| !self.tape.is_over_budget();
            (from..to)
                .take_while(within_budget)
                .fold(state, |state, i| layer(state, (start + i) as usize))
        };
        // Blocks whose weights wait on the host are unlike the others, and equal among themselves.
        let waiting = self.swapped.min(count.saturating_sub(1));
        let here = count - waiting;
        let state = self.folded_run(here, period.max(1), state, &run);
        if waiting == 0 {
            return self.leave_layers(state);
        }
        let rest = |state, from, to| run(state, here + from, here + to);
        self.leave_layers(self.folded_run(waiting, period.max(1), state, &rest))
    }

    /// Runs `count` layers, the equal periods of them once for all.
    fn folded_run(
        &self,
        count: u64,
        period: u64,
        state: Vec<Tensor>,
        run: &dyn Fn(Vec<Tensor>, u64, u64) -> Vec<Tensor>,
    ) -> Vec<Tensor> {
        const LEAST_TO_FOLD: u64 = 4;
        let periods = count / period;
        let last = match self.env.folding {
            _ if periods < LEAST_TO_FOLD => 1,
            Folding::Nothing => 1,
            Folding::Between => periods - 1,
            Folding::FromSecond => periods,
        };
        let state = run(state, 0, period.min(count));
        if last <= 1 {
            return run(state, period, count);
        }
        let times = (last - 1).min(u64::from(u32::MAX)) as u32;
        let state = self.tape.folded(times, period as u32, state, |state| {
            run(state, period, 2 * period)
        });
        run(state, last * period, count)
    }

    /// One layer of a list; its other arguments belong to its closure, as keyword arguments belong to a
    /// checkpointed call.
    pub fn layer(
        &self,
        name: &'static str,
        index: usize,
        state: Vec<Tensor>,
        layer: impl Fn(&Self, &[Tensor]) -> Vec<Tensor> + 'static,
    ) -> Vec<Tensor> {
        self.shared_layer(name, index, state, Rc::new(layer))
    }

    fn shared_layer(
        &self,
        name: &'static str,
        index: usize,
        state: Vec<Tensor>,
        layer: Rc<Layer>,
    ) -> Vec<Tensor> {
        self.list_item(name, index, |cx| cx.as_layer(index, state, layer))
    }

    /// The same for a list whose path comes from outside the program.
    pub fn layer_at(
        &self,
        path: &[String],
        index: usize,
        state: Vec<Tensor>,
        layer: Rc<Layer>,
    ) -> Vec<Tensor> {
        match path.split_first() {
            Some((first, rest)) => {
                self.module_named(first, |cx| cx.layer_at(rest, index, state, layer))
            }
            None => self.as_layer(index, state, layer),
        }
    }

    /// Enters a layer during the declaration pass.
    pub fn in_layer(&self, path: &[String], body: &dyn Fn(&Self)) {
        match path.split_first() {
            Some((first, rest)) => {
                self.module_named(first, |cx| cx.in_layer(rest, body));
            }
            None => {
                let run = |state: Vec<Tensor>| {
                    body(self);
                    state
                };
                let wrapper = &self.env.wrapper;
                wrapper.module(Role::Layer, self.scope, Vec::new(), &run);
            }
        }
    }

    /// Runs this module as an item of a list of layers.
    fn as_layer(&self, index: usize, state: Vec<Tensor>, layer: Rc<Layer>) -> Vec<Tensor> {
        let wrapper = &self.env.wrapper;
        let libraries = &self.env.libraries;
        let region = Region::Layer(index);
        if self.compiles_checkpoints() {
            // `apply_compile` of torchtitan compiles layers that `apply_ac` has wrapped.
            let body: Rc<super::checkpoint::Body> = Rc::new(move |cx, state| layer(cx, &state));
            let run = |state: Vec<Tensor>| {
                self.compiled(&|| self.shared_block(region, state.clone(), body.clone()))
            };
            return wrapper.module(Role::Layer, self.scope, state, &run);
        }
        let body = move |cx: &Self, state: Vec<Tensor>| match cx.env.training.compile {
            Compile::Layers => cx.compiled(&|| layer(cx, &state)),
            Compile::Nothing | Compile::Model | Compile::ModelAgain => layer(cx, &state),
        };
        if libraries.checkpoint_calls_wrapper && wrapper.properties().runs_in_checkpoints {
            let wrapped = move |cx: &Self, state: Vec<Tensor>| {
                let run = |state: Vec<Tensor>| body(cx, state);
                cx.env.wrapper.module(Role::Layer, cx.scope, state, &run)
            };
            return self.block(region, state, wrapped);
        }
        let body: Rc<super::checkpoint::Body> = Rc::new(body);
        let run = |state: Vec<Tensor>| self.shared_block(region, state, body.clone());
        wrapper.module(Role::Layer, self.scope, state, &run)
    }
}
