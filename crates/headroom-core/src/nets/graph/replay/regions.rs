//! Layers and linear modules of a recorded program, run as such, so that wrappers see their inputs and outputs.

use std::rc::Rc;

use super::super::super::Cx;
use super::super::params::linear_module;
use super::super::plan::{Layer, Linear};
use super::super::program::Value;
use super::super::region::{self, Region};
use super::Replay;
use super::forward::{Forward, Kept};
use crate::tape::{DType, Tensor};

impl Replay {
    /// An item of a list of layers, whose inputs and outputs its wrapper sees.
    pub(super) fn layer(self: &Rc<Self>, cx: &Cx, layer: &Layer) {
        let tensors = self.inputs_of(&layer.region);
        let replay = self.clone();
        let place = layer.region.steps.start;
        let body = move |cx: &Cx, tensors: &[Tensor]| match replay.plan.layer_at(place) {
            Some(layer) => replay.inside(cx, &layer.region, tensors),
            None => Vec::new(),
        };
        let made = cx
            .root()
            .layer_at(&layer.path, layer.index, tensors, Rc::new(body));
        let mut forward = self.forward.borrow_mut();
        let outputs = made.iter();
        for ((output, place), tensor) in layer.region.after.iter().zip(outputs.clone()) {
            if let Some(edge) = tensor.gradient_edge() {
                forward.edges.insert(*output, edge);
            }
            let value = layer.region.outputs.get(*place);
            forward.bind_to(value, tensor.detach());
        }
        let rest = outputs.skip(layer.region.after.len());
        for (value, tensor) in layer.region.outputs.iter().zip(rest) {
            if forward.lacks(value.slot) {
                forward.bind_to(Some(value), tensor.detach());
            }
        }
        let gone: Vec<Option<Tensor>> = layer
            .region
            .freed
            .iter()
            .map(|slot| forward.replaced(*slot, None))
            .collect();
        drop(forward);
        drop(gone);
    }

    /// The inputs of a region: one for each gradient, then each piece of memory.
    fn inputs_of(&self, region: &Region) -> Vec<Tensor> {
        let forward = self.forward.borrow();
        let seen = |value: &Value| {
            let layout = self.types.get(*value).layout;
            forward
                .at(value.slot)
                .map(|tensor| tensor.with_layout(layout, false))
        };
        self.passed(&forward, &region.before, &region.inputs, &seen)
    }

    /// Tensors across a region's border: one for each returning gradient, then each piece of memory.
    fn passed(
        &self,
        forward: &Forward,
        gradients: &[(region::Output, usize)],
        values: &[Value],
        find: &dyn Fn(&Value) -> Option<Tensor>,
    ) -> Vec<Tensor> {
        let nothing = || self.tape.empty("recorded", [0; 0], DType::U8);
        let with_gradients = gradients.iter().map(|(output, place)| {
            let found = values.get(*place).and_then(find).unwrap_or_else(nothing);
            found.with_gradient_edge(forward.edge(*output))
        });
        let rest = values
            .iter()
            .map(|value| find(value).unwrap_or_else(nothing));
        with_gradients.chain(rest).collect()
    }

    /// Runs a region by itself, on names of its own.
    fn inside(self: &Rc<Self>, cx: &Cx, region: &Region, tensors: &[Tensor]) -> Vec<Tensor> {
        let used = self.used(&region.steps, false);
        let params: Vec<u32> = used
            .iter()
            .filter_map(|place| self.graph.params.get(*place))
            .map(|declared| declared.slot)
            .collect();
        let inputs: Vec<u32> = region.inputs.iter().map(|value| value.slot).collect();
        let own = [params, inputs, region.made.clone()].concat();
        let mut forward = self.forward.borrow_mut();
        forward.grow(&self.program);
        let before: Vec<(u32, Option<Tensor>)> = own
            .iter()
            .map(|slot| (*slot, forward.replaced(*slot, None)))
            .collect();
        let shared = tensors.len().saturating_sub(region.inputs.len());
        let outside = std::mem::take(&mut forward.edges);
        for ((output, _), tensor) in region.before.iter().zip(tensors) {
            if let Some(edge) = tensor.gradient_edge() {
                forward.edges.insert(*output, edge);
            }
        }
        for (value, tensor) in region.inputs.iter().zip(tensors.iter().skip(shared)) {
            forward.bind_to(Some(value), tensor.detach());
        }
        drop(forward);
        self.bind_params(cx, &used);
        self.steps(cx, region.steps.clone(), false);
        let mut forward = self.forward.borrow_mut();
        let made = |value: &Value| forward.at(value.slot);
        let outputs = self.passed(&forward, &region.after, &region.outputs, &made);
        // What is run again in backward leaves nothing behind.
        let inside = std::mem::replace(&mut forward.edges, outside);
        let mut gone: Vec<Option<Tensor>> = Vec::with_capacity(before.len());
        for (slot, tensor) in before {
            gone.push(forward.replaced(slot, tensor));
        }
        let nodes = region.nodes.iter();
        let nodes: Vec<_> = nodes
            .map(|node| forward.nodes.get_mut(*node as usize)?.take())
            .collect();
        for save in &region.saves {
            if let Some(place) = forward.saves.get_mut(*save as usize) {
                *place = Kept::None;
            }
        }
        drop(forward);
        drop((gone, nodes, inside));
        outputs
    }

    /// A linear module by the tape's own rules.
    pub(super) fn linear(self: &Rc<Self>, cx: &Cx, linear: &Linear) {
        let Some(declared) = self.graph.params.get(linear.param) else {
            return;
        };
        let tensors = self.inputs_of(&linear.region);
        let Some(x) = tensors.first().cloned() else {
            return;
        };
        drop(tensors);
        let y = linear_module(cx, declared, linear, &x);
        drop(x);
        let mut forward = self.forward.borrow_mut();
        for (output, _) in &linear.region.after {
            if let Some(edge) = y.gradient_edge() {
                forward.edges.insert(*output, edge);
            }
        }
        forward.bind_to(Some(&linear.output), y.detach());
    }
}
