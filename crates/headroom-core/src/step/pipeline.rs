//! One rank of a pipeline: its stages' passes in the order of a schedule (torch/distributed/pipelining/stage.py).

use std::collections::BTreeMap;
use std::rc::Rc;

use crate::nets::{Cx, Net, Output, Stage};
use crate::parallel::schedule::{Action, Chunk, Pipeline};
use crate::tape::{DType, KeptGraph, Param, Phase, Tape, Tensor, WeightGradients};

/// A micro-batch between its passes through a stage.
#[derive(Default)]
struct InFlight {
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
    /// What a backward in two parts leaves for the second.
    kept: KeptGraph,
    weights: WeightGradients,
    /// What was handed on, which the second part still names.
    outputs: Vec<Tensor>,
}

/// What all passes of a step have in common.
#[derive(Clone, Copy)]
pub(crate) struct Passes<'a> {
    pub net: &'a dyn Net,
    pub cx: &'a Cx,
    pub step: u32,
    /// The script keeps what the model returns.
    pub keeps_outputs: bool,
    /// The schedule keeps losses to the end of the step, and what it has sent back (torch.distributed.pipelining does).
    pub keeps_sent: bool,
    /// Micro-batches that do what others do, and are not run.
    pub not_run: u64,
}

/// Runs a step's passes. `batches` has the tensors of each micro-batch.
pub(crate) fn run(passes: Passes, pipeline: Pipeline, batches: &[Vec<Tensor>]) {
    let mut flights: BTreeMap<Chunk, InFlight> = BTreeMap::new();
    // Losses are kept to the end of the step, and with them what their graphs hold.
    let mut kept = Vec::new();
    let mut outputs: Vec<Tensor> = Vec::new();
    let count = pipeline.all_stages() as u64;
    let wrapper = &passes.cx.env.wrapper;
    let tape = &passes.cx.tape;
    // What the micro-batches hold that are not run.
    let mut held_in_flight: Option<Tensor> = None;
    let mut kept_of_others: Option<Tensor> = None;
    let mut measured = 0;
    let alike = wrapper.properties().repeats && !passes.keeps_outputs;
    let actions = if passes.cx.env.peak_only && alike {
        pipeline.peak_actions(tape.skips_kernels())
    } else {
        pipeline.actions()
    };
    for action in actions {
        match action {
            Action::ReceiveInput(chunk) => {
                let received = received(passes.cx);
                let leaves = received.iter().map(Tensor::as_received).collect();
                flights.entry(chunk).or_default().input = leaves;
            }
            Action::ReceiveGradient(chunk) => {
                let received = received(passes.cx);
                flights.entry(chunk).or_default().gradients = received;
            }
            Action::Forward(chunk) => {
                let stage = Stage {
                    index: chunk.stage as u64,
                    count,
                };
                let flight = flights.entry(chunk).or_default();
                if let Some(batch) = batches.get(chunk.micro_batch) {
                    forward(passes, stage, pipeline.splits_backward(), batch, flight);
                }
                if pipeline.is_own(chunk.stage + 1) {
                    // The next stage takes it as it is (`set_local_fwd_input`).
                    let input = flight
                        .roots
                        .iter()
                        .map(|output| output.detach().as_received());
                    let input = input.collect();
                    let next = Chunk {
                        stage: chunk.stage + 1,
                        ..chunk
                    };
                    flights.entry(next).or_default().input = input;
                }
            }
            Action::ReleaseOutput(chunk) => {
                let flight = flights.entry(chunk).or_default();
                flight.roots = flight.roots.iter().map(Tensor::edge_alone).collect();
            }
            Action::Backward(chunk) => {
                let last = chunk.stage as u64 + 1 == count;
                let flight = flights.entry(chunk).or_default();
                if last && passes.keeps_outputs {
                    outputs.extend(flight.held.iter().cloned());
                }
                // A full backward retains no graph, even where the schedule takes others apart.
                flight.kept = KeptGraph::default();
                backward(passes, last, flight);
                let held = (
                    std::mem::take(&mut flight.input),
                    std::mem::take(&mut flight.graph),
                );
                if last && passes.keeps_sent {
                    if passes.not_run > 0 && kept.is_empty() {
                        kept_of_others = Some(received_by(tape, &held.0, passes.not_run));
                    }
                    kept.push(held);
                }
                hand_back(pipeline, chunk, &mut flights);
                if !passes.keeps_sent {
                    flights.entry(chunk).or_default().sent.clear();
                }
            }
            Action::BackwardInput(chunk) => {
                let last = chunk.stage as u64 + 1 == count;
                let flight = flights.entry(chunk).or_default();
                if last && passes.keeps_outputs {
                    outputs.extend(flight.held.iter().cloned());
                }
                // The first stage has no input to compute a gradient for: all follow with the weights'.
                if chunk.stage > 0 {
                    backward_of_inputs(passes, last, flight);
                    hand_back(pipeline, chunk, &mut flights);
                }
            }
            Action::BackwardWeight(chunk) => {
                let flight = flights.entry(chunk).or_default();
                if chunk.stage > 0 {
                    backward_of_weights(passes, flight);
                } else {
                    backward(passes, count == 1, flight);
                    drop(std::mem::take(&mut flight.kept));
                }
            }
            Action::Unshard(stage) => wrapper.unshard_stage(passes.cx.stage_scope(stage)),
            Action::Reshard(stage) => wrapper.reshard_stage(passes.cx.stage_scope(stage)),
            Action::ReduceGradients(stage) => {
                wrapper.reduce_stage(passes.cx.stage_scope(stage));
            }
            Action::ReleaseInputGradient(chunk) => {
                drop(std::mem::take(flights.entry(chunk).or_default()));
            }
            Action::Measure => measured = tape.events(),
            Action::HoldInFlight(count) => {
                let bytes = tape.grown_since(measured).saturating_mul(count as u64);
                held_in_flight = Some(tape.empty("in_flight", [bytes], DType::U8));
            }
            Action::ReleaseHeld => drop(held_in_flight.take()),
        }
    }
    drop(kept_of_others);
    // `merge_chunks`, where `schedule.step` returns what the model does.
    if let Some((first, rest)) = outputs.split_first() {
        let rest: Vec<&Tensor> = rest.iter().collect();
        passes
            .cx
            .tape
            .no_grad(|| drop(Tensor::cat(first, &rest, 0)));
    }
}

/// Gives the gradient of a stage's input to the stage before, where this rank has both (`set_local_bwd_input`).
fn hand_back(pipeline: Pipeline, chunk: Chunk, flights: &mut BTreeMap<Chunk, InFlight>) {
    let Some(stage) = chunk.stage.checked_sub(1) else {
        return;
    };
    if !pipeline.is_own(stage) {
        return;
    }
    let sent = std::mem::take(&mut flights.entry(chunk).or_default().sent);
    let before = Chunk { stage, ..chunk };
    flights.entry(before).or_default().gradients = sent;
}

/// What so many micro-batches have received, of which this is one's.
fn received_by(tape: &Tape, input: &[Rc<Param>], micro_batches: u64) -> Tensor {
    let bytes = input.iter().map(|leaf| leaf.data.bytes());
    let bytes = bytes.fold(0, u64::saturating_add);
    tape.empty("recv", [bytes.saturating_mul(micro_batches)], DType::U8)
}

/// Receive buffers at a stage boundary.
fn received(cx: &Cx) -> Vec<Tensor> {
    let cast = cx.env.wrapper.properties().compute_dtype;
    let crossing = cx.env.groups.stages.crossing.borrow();
    let tensors = crossing.iter().map(|(shape, dtype)| {
        let dtype = cast.filter(|_| dtype.is_floating()).unwrap_or(*dtype);
        cx.tape.empty("recv", *shape, dtype)
    });
    tensors.collect()
}

fn forward(
    passes: Passes,
    stage: Stage,
    splits_backward: bool,
    batch: &[Tensor],
    flight: &mut InFlight,
) {
    let Passes { cx, net, step, .. } = passes;
    cx.tape.mark(step, Phase::Forward);
    let stages = &cx.env.groups.stages;
    let input = flight.input.iter().map(|leaf| leaf.tensor()).collect();
    stages.received.replace(input);
    let run = || cx.stage(stage, |cx| cx.call(net, batch));
    let Output { loss, held } = if splits_backward && !stage.is_first() {
        let (output, kept) = cx.tape.keeping_graph(run);
        flight.kept = kept;
        output
    } else {
        run()
    };
    flight.graph = cx.tape.take_graph();
    if stage.is_last() {
        flight.roots = vec![loss];
        flight.held = held;
    } else {
        drop((loss, held));
        let scope = cx.stage_scope(stage.index as usize);
        flight.roots = cx.env.wrapper.stage_outputs(scope, stages.sent.take());
    }
}

fn backward(passes: Passes, last: bool, flight: &mut InFlight) {
    let tape = &passes.cx.tape;
    tape.mark(passes.step, Phase::Backward);
    let roots = std::mem::take(&mut flight.roots);
    let gradients = std::mem::take(&mut flight.gradients);
    if last {
        for loss in roots {
            loss.backward();
        }
    } else {
        tape.backward_with(&roots, &gradients);
        drop(roots);
    }
    passes.cx.env.wrapper.after_backward();
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

/// The first part of backward: gradients of the input, which the second part still names, as it does what was received and
/// handed on.
fn backward_of_inputs(passes: Passes, last: bool, flight: &mut InFlight) {
    let tape = &passes.cx.tape;
    tape.mark(passes.step, Phase::Backward);
    let roots = std::mem::take(&mut flight.roots);
    flight.weights = tape.backward_of_inputs(|| {
        if last {
            for loss in roots {
                loss.backward();
            }
        } else {
            tape.backward_with(&roots, &flight.gradients);
            flight.outputs = roots.iter().map(Tensor::detach).collect();
        }
    });
    passes.cx.env.wrapper.after_backward();
    flight.graph.extend(tape.take_graph());
    flight.held.clear();
    let sent = flight.input.iter().map(|leaf| leaf.grad.borrow().clone());
    flight.sent = sent.flatten().collect();
}

/// The second part: gradients of the weights.
fn backward_of_weights(passes: Passes, flight: &mut InFlight) {
    let tape = &passes.cx.tape;
    tape.mark(passes.step, Phase::Backward);
    tape.backward_of_weights(std::mem::take(&mut flight.weights));
    flight.kept = KeptGraph::default();
    for leaf in flight.input.drain(..) {
        leaf.grad.take();
    }
    flight.graph.clear();
    flight.gradients.clear();
    flight.outputs.clear();
}
