//! One rank of a pipeline: its stages' passes in the order of a schedule (torch/distributed/pipelining/stage.py).

use std::rc::Rc;

use crate::nets::{Cx, Net, Output, Stage};
use crate::order::Map;
use crate::parallel::schedule::{Action, Chunk, Pipeline};
use crate::tape::{Param, Phase, Tensor};

/// A micro-batch between its passes through a stage.
#[derive(Default)]
struct Flight {
    /// The input that was received.
    input: Vec<Rc<Param>>,
    /// Where backward begins: the loss, or what was handed on.
    roots: Vec<Tensor>,
    /// The model's output, which the last stage keeps through backward.
    held: Vec<Tensor>,
    /// What nodes of its graph hold besides saved tensors.
    graph: Vec<Tensor>,
    /// Gradients of what was handed on, as received.
    gradients: Vec<Tensor>,
    /// Gradients of the input, as sent.
    sent: Vec<Tensor>,
}

/// What all passes of a step have in common.
#[derive(Clone, Copy)]
pub struct Passes<'a> {
    pub net: &'a dyn Net,
    pub cx: &'a Cx,
    pub step: u32,
    /// The script keeps what the model returns.
    pub keeps_outputs: bool,
}

/// Runs a step's passes. `batches` has the tensors of each micro-batch.
pub fn run(passes: Passes, pipeline: Pipeline, batches: &[Vec<Tensor>]) {
    let mut flights: Map<Chunk, Flight> = Map::new();
    // Losses are kept to the end of the step, and with them what their graphs hold.
    let mut kept = Vec::new();
    let mut outputs: Vec<Tensor> = Vec::new();
    let count = pipeline.all_stages() as u64;
    for action in pipeline.actions() {
        match action {
            Action::ReceiveInput(chunk) => {
                let received = received(passes.cx);
                let leaves = received.iter().map(Tensor::as_received).collect();
                flights.or_insert(chunk, Flight::default()).input = leaves;
            }
            Action::ReceiveGradient(chunk) => {
                let received = received(passes.cx);
                flights.or_insert(chunk, Flight::default()).gradients = received;
            }
            Action::Forward(chunk) => {
                let stage = Stage {
                    index: chunk.stage as u64,
                    count,
                };
                let flight = flights.or_insert(chunk, Flight::default());
                if let Some(batch) = batches.get(chunk.micro_batch) {
                    forward(passes, stage, batch, flight);
                }
            }
            Action::ReleaseOutput(chunk) => {
                let flight = flights.or_insert(chunk, Flight::default());
                flight.roots = flight.roots.iter().map(Tensor::edge_alone).collect();
            }
            Action::Backward(chunk) => {
                let last = chunk.stage as u64 + 1 == count;
                let flight = flights.or_insert(chunk, Flight::default());
                if last && passes.keeps_outputs {
                    outputs.extend(flight.held.iter().cloned());
                }
                backward(passes, last, flight);
                if last {
                    let held = (
                        std::mem::take(&mut flight.input),
                        std::mem::take(&mut flight.graph),
                    );
                    kept.push(held);
                }
            }
            Action::ReleaseInputGradient(chunk) => {
                drop(std::mem::take(flights.or_insert(chunk, Flight::default())));
            }
        }
    }
    // `merge_chunks`, where `schedule.step` returns what the model does.
    if let Some((first, rest)) = outputs.split_first() {
        let rest: Vec<&Tensor> = rest.iter().collect();
        passes
            .cx
            .tape
            .no_grad(|| drop(Tensor::cat(first, &rest, 0)));
    }
}

/// Memory for what crosses a border.
fn received(cx: &Cx) -> Vec<Tensor> {
    let crossing = cx.env.stages.crossing.borrow();
    let tensors = crossing
        .iter()
        .map(|(shape, dtype)| cx.tape.empty("recv", *shape, *dtype));
    tensors.collect()
}

fn forward(passes: Passes, stage: Stage, batch: &[Tensor], flight: &mut Flight) {
    let Passes { cx, net, step, .. } = passes;
    cx.tape.mark(step, Phase::Forward);
    let stages = &cx.env.stages;
    let input = flight.input.iter().map(|leaf| leaf.tensor()).collect();
    stages.received.replace(input);
    let Output { loss, held } = cx.stage(stage, |cx| cx.call(net, batch));
    flight.graph = cx.tape.take_graph();
    if stage.is_last() {
        flight.roots = vec![loss];
        flight.held = held;
    } else {
        drop((loss, held));
        flight.roots = stages.sent.take();
    }
}

fn backward(passes: Passes, last: bool, flight: &mut Flight) {
    let tape = &passes.cx.tape;
    tape.mark(passes.step, Phase::Backward);
    let roots = std::mem::take(&mut flight.roots);
    let gradients = std::mem::take(&mut flight.gradients);
    if last {
        for loss in roots {
            loss.backward();
        }
    } else {
        tape.backward_through(&roots, &gradients);
        drop(roots);
    }
    flight.graph.extend(tape.take_graph());
    flight.held.clear();
    let sent = flight.input.iter().filter_map(|leaf| leaf.grad.take());
    flight.sent = sent.collect();
    if !last {
        flight.graph.clear();
        flight.input.clear();
    }
    drop(gradients);
}
