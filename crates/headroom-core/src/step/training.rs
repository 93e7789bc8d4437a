//! The training loop, stage by stage.

use std::rc::Rc;

use super::optimizer::{self, OptimizerState};
use super::pipeline::{self, Passes};
use super::plan::{FEWEST_PASSES, MOST_PASSES, VllmShare};
use super::scaler::GradScaler;
use super::wrapper::{Pass, Wrapper};
use super::{
    MicroBatchPass, Run, RunPlan, batch, clipping, evaluation, one_by_one, plan, resume,
    tensor_parallel,
};
use crate::nets::{self, Cx, Model, Net, Output};
use crate::parallel::schedule::Pipeline;
use crate::tape::{Category, DType, Folding, Param, Phase, Stream, Tape, Tensor};
use headroom_scenario::{Checkpointing, Compile, CompileMode, Data, SamplingOffload, Training};

/// A model with all that trains it.
pub(crate) struct TrainingLoop<'a> {
    pub(super) net: &'a dyn Net,
    pub(super) data: &'a Data,
    pub(super) training: &'a Training,
    pub(super) plan: RunPlan,
    pub(super) pipeline: Option<Pipeline>,
    /// Micro-batches of a step that are run: the first of them, and the last.
    pub(super) passes: u64,
    pub(super) tape: Tape,
    pub(super) cx: Cx,
    pub(super) model: Model,
    pub(super) wrappers: Vec<Box<dyn Wrapper>>,
    pub(super) trainable: Vec<Rc<Param>>,
    /// Those of them that this rank's optimizer has.
    pub(super) stepped: Vec<Rc<Param>>,
    pub(super) optimizer: OptimizerState,
    pub(super) scaler: Option<GradScaler>,
    pub(super) variables: Variables,
    /// What vLLM holds from step to step.
    pub(super) _vllm: Option<[Tensor; 2]>,
}

/// Tensors that the script's local variables keep alive into the next iteration: each is freed when its name is
/// bound again.
#[derive(Default)]
pub(super) struct Variables {
    outputs: Vec<Tensor>,
    loss: Option<Tensor>,
    graph: Vec<Tensor>,
    batches: Vec<Vec<Tensor>>,
    gradient: Option<Tensor>,
}

/// A micro-batch between its forward and its backward.
struct InFlight {
    loss: Tensor,
    /// What nodes of its graph hold besides saved tensors.
    graph: Vec<Tensor>,
}

impl TrainingLoop<'_> {
    /// Whether the run exceeds its budget: its steps are then not run.
    pub(crate) fn exceeds_budget(&self) -> bool {
        self.tape.is_over_budget()
    }

    /// Records a step that does what the one before it did without running it. Never the first two, for the first makes what
    /// stays and DDP lays its buckets out anew in the second, nor where something follows the last step.
    pub(crate) fn repeats(&self, step: u32) -> bool {
        let followed =
            self.plan.evaluation > 0 || self.plan.resumes || self.plan.looks_at_gradients;
        step > 1 && !followed && self.passes_are_equal() && self.tape.repeat_step(step)
    }

    /// Whether nothing around the model does at one micro-batch what it does not at another between the first and the last.
    fn passes_are_equal(&self) -> bool {
        self.cx.env.wrapper.properties().repeats
            && self.wrappers.iter().all(|wrapper| wrapper.repeats())
    }

    /// Records a micro-batch that does what the one before it did, which began with this phase, without running it. The first
    /// makes the gradients and the last completes them; what is in between adds to them.
    fn repeats_pass(&self, began: usize) -> bool {
        self.passes_are_equal() && self.tape.repeat_phases(began)
    }

    /// What vLLM adds while it samples: its pool, of which what has left for the host makes up a part.
    fn sampler(&self) -> VllmShare {
        let offload = self.training.task.sampling_offload;
        let on_card = |param: &Rc<Param>| param.data.storage_bytes().saturating_mul(param.copies());
        let parameters = match offload {
            SamplingOffload::Parameters | SamplingOffload::Both => self
                .model
                .state()
                .iter()
                .map(on_card)
                .fold(0, u64::saturating_add),
            SamplingOffload::None | SamplingOffload::Optimizer => 0,
        };
        let states = match offload {
            SamplingOffload::Optimizer | SamplingOffload::Both => self.optimizer.bytes(),
            SamplingOffload::None | SamplingOffload::Parameters => 0,
        };
        self.plan.vllm.less(parameters.saturating_add(states))
    }

    /// One step: the passes of its micro-batches, and the update of the weights.
    pub(crate) fn step(&mut self, step: u32) {
        self.tape.mark(step, Phase::Setup);
        if !self.plan.vllm.is_none() && self.training.task.vllm_sleep {
            // It wakes to sample, and sleeps while the model is trained.
            let wake = || drop(vllm(&self.tape, self.sampler()));
            self.tape.with_phase(Phase::Generation, wake);
        }
        self.net.before_step(&self.cx, self.data);
        if !self.training.task.objective.trains() {
            self.tape.mark(step, Phase::Optimizer);
            return;
        }
        let (mut batches, _waiting) = self.micro_batches();
        if let Some(pipeline) = self.pipeline {
            let passes = Passes {
                net: self.net,
                cx: &self.cx,
                step,
                keeps_outputs: self.training.keep_outputs,
                keeps_sent: !self.net.is_megatron_core(),
                not_run: (self.training.accumulation).saturating_sub(pipeline.micro_batches as u64),
            };
            pipeline::run(passes, pipeline, &batches);
            return self.update(step);
        }
        let mut flights: Vec<Option<InFlight>> = batches.iter().map(|_| None).collect();
        let mut before_second = 0;
        let mut pass_began = 0;
        for turn in one_by_one(batches.len()) {
            if self.exceeds_budget() {
                return;
            }
            match turn {
                MicroBatchPass::Forward(place) | MicroBatchPass::Backward(place)
                    if !self.is_run(place, batches.len()) => {}
                MicroBatchPass::Forward(place)
                    if place > 1 && place + 1 < batches.len() && self.repeats_pass(pass_began) =>
                {
                    pass_began = self.tape.phases() - (self.tape.phases() - pass_began) / 2;
                }
                MicroBatchPass::Forward(place) => {
                    pass_began = self.tape.phases();
                    if place == 1 {
                        before_second = self.tape.tensors_created();
                    }
                    self.load_in_turn(&mut batches, place);
                    if let Some((batch, flight)) = batches.get(place).zip(flights.get_mut(place)) {
                        *flight = Some(self.forward(Pass::of(step, place, batches.len()), batch));
                    }
                }
                MicroBatchPass::Backward(place) => {
                    if let Some(flight) = flights.get_mut(place).and_then(Option::take) {
                        self.backward(Pass::of(step, place, batches.len()), flight);
                    }
                    if (step, place) == (0, 1) {
                        let further = self.tape.tensors_created() - before_second;
                        self.run_what_is_affordable(further, pass_began);
                    }
                }
            }
        }
        self.update(step);
        drop(self.cx.env.shared.batch_leaves.take());
        if step + 1 == self.plan.steps {
            self.after_last(step);
            if self.plan.looks_at_gradients {
                self.variables.batches = batches;
            }
        }
    }

    /// Whether the micro-batch at `place` of `count` is run.
    fn is_run(&self, place: usize, count: usize) -> bool {
        (place as u64) + 1 < self.passes || place + 1 == count
    }

    /// After two micro-batches of the first step: leaves out what the budget does not allow, where a further one makes so many
    /// tensors. From the second on they are equal, but for what the last one completes.
    fn run_what_is_affordable(&mut self, further: u64, second: usize) {
        if self.passes_are_equal() && self.tape.could_repeat(second) {
            // Those in between are copied, which makes none.
            return;
        }
        let steps = u64::from(self.plan.steps.max(1));
        let all = self.tape.tensors_left().saturating_add(2 * further);
        // A tenth of it is for the optimizer.
        let affordable = (all - all / 10) / further.saturating_mul(steps).max(1);
        self.passes = affordable
            .clamp(FEWEST_PASSES, MOST_PASSES)
            .min(self.passes);
    }

    /// The batches of one step. All are on the device before the first forward; beyond a few, which show every state the
    /// memory can be in, the rest are held as they are and not run.
    fn micro_batches(&self) -> (Vec<Vec<Tensor>>, Option<Tensor>) {
        if let Some(pipeline) = &self.pipeline {
            let batch = |_| batch::loaded(self.net, &self.cx, self.data);
            return ((0..pipeline.micro_batches).map(batch).collect(), None);
        }
        let accumulation = self.training.accumulation.max(1);
        if self.net.loads_batches_in_turn() {
            let none = (0..accumulation.min(MOST_PASSES)).map(|_| Vec::new());
            return (none.collect(), None);
        }
        let batches: Vec<_> = (0..accumulation.min(MOST_PASSES))
            .map(|_| batch::loaded(self.net, &self.cx, self.data))
            .collect();
        let first = batches.first().filter(|_| accumulation > MOST_PASSES);
        let waiting = first.map(|first| {
            let bytes: u64 = first.iter().map(Tensor::bytes).fold(0, u64::saturating_add);
            let loads = self.cx.env.wrapper.properties().ranks_loaded_here;
            let rest = bytes.saturating_mul(loads * (accumulation - MOST_PASSES));
            self.tape.empty("inputs", [rest], DType::U8)
        });
        (batches, waiting)
    }

    /// Of a loop that loads a micro-batch when its turn comes: loads it, once the one before is freed.
    fn load_in_turn(&self, batches: &mut [Vec<Tensor>], place: usize) {
        if self.net.loads_batches_in_turn() {
            batches.iter_mut().for_each(Vec::clear);
            if let Some(own) = batches.get_mut(place) {
                *own = batch::loaded(self.net, &self.cx, self.data);
            }
        }
    }

    fn forward(&mut self, pass: Pass, batch: &[Tensor]) -> InFlight {
        self.tape.mark(pass.step, Phase::Forward);
        self.cx.env.wrapper.before_pass(pass.last);
        for wrapper in &mut self.wrappers {
            wrapper.before_forward(&self.model, pass);
        }
        let forward = || self.cx.call(self.net, batch);
        let offloads = self.training.checkpointing == Checkpointing::Offload
            || self.cx.env.libraries.offloads_activations;
        let Output { mut loss, held } = if offloads {
            if self.cx.env.libraries.offloads_as_trl {
                self.tape.offloading_by_trl(forward)
            } else {
                self.tape.offloading(forward)
            }
        } else {
            forward()
        };
        let held = self.returned(held);
        drop(self.variables.loss.take());
        if self.training.keep_outputs {
            self.variables.outputs = held;
        } else {
            drop(held);
        }
        if self.training.accumulation > 1 {
            loss = loss.mul_scalar();
        }
        if let Some(scaler) = &mut self.scaler {
            loss = scaler.scale(&self.tape, &loss);
        }
        self.variables.graph.clear();
        if pass.first && self.training.zero_late {
            self.zero_grad();
        }
        InFlight {
            loss,
            graph: self.tape.take_graph(),
        }
    }

    /// Model outputs as accelerate returns them (`convert_outputs_to_fp32`): all are cast before any is freed.
    fn returned(&self, held: Vec<Tensor>) -> Vec<Tensor> {
        if !self.plan.world.returns_fp32(self.training.precision) {
            return held;
        }
        let in_fp32 = |output: &Tensor| match output.dtype() {
            DType::BF16 | DType::F16 => output.to(DType::F32),
            _ => output.clone(),
        };
        held.iter().map(in_fp32).collect()
    }

    fn backward(&mut self, pass: Pass, flight: InFlight) {
        let InFlight { loss, mut graph } = flight;
        self.tape.mark(pass.step, Phase::Backward);
        for wrapper in &mut self.wrappers {
            wrapper.before_backward(pass);
        }
        self.variables.loss = self.training.keep_outputs.then(|| loss.clone());
        let replays = self.training.compile != Compile::Nothing
            && self.training.compile_mode == CompileMode::ReduceOverhead;
        if replays {
            self.tape.in_graph_pool(|| loss.backward());
            self.tape.forget_interrupted();
        } else {
            loss.backward();
        }
        if self.training.optimizer.consumes_gradients() {
            // `self.grad_func(0)` for the gradient that no other came after.
            self.optimizer.step(&self.tape, &self.stepped);
        }
        self.cx.env.wrapper.after_backward();
        graph.extend(self.tape.take_graph());
        if self.training.keep_outputs {
            self.variables.graph = graph;
        }
    }

    /// Unscale, clip, optimizer step, scaler update, EMA, zero_grad.
    fn update(&mut self, step: u32) {
        self.tape.mark(step, Phase::Optimizer);
        if let Some(scaler) = &mut self.scaler {
            scaler.unscale(&self.tape);
        }
        let wrapper = self.cx.env.wrapper.clone();
        if self.plan.looks_at_gradients && step + 1 == self.plan.steps {
            let last = self.trainable.last();
            self.variables.gradient = last.and_then(|param| param.grad.borrow().clone());
        }
        if self.training.clip && !wrapper.properties().clips {
            clipping::clip_by_norm(&self.tape, &self.trainable);
        }
        wrapper.before_step();
        let mut laid_out = tensor_parallel::laid_out_as_parameters(&self.tape, &self.trainable);
        if !optimizer::is_one_kernel(self.training.optimizer) {
            // Each of several operations lays them out for itself, before those that have temporaries of their own.
            laid_out.clear();
        }
        if !self.training.optimizer_in_backward {
            self.optimizer.step(&self.tape, &self.stepped);
        }
        drop(laid_out);
        wrapper.after_step();
        if let Some(scaler) = &mut self.scaler {
            scaler.update();
        }
        for wrapper in &mut self.wrappers {
            wrapper.after_step(&self.model);
        }
        if !self.training.zero_late {
            self.zero_grad();
        }
    }

    /// `optimizer.zero_grad()`: gradients go, unless they stay allocated as zeros.
    fn zero_grad(&self) {
        if plan::keeps_gradients(self.training, self.tape.machine()) {
            return;
        }
        for param in &self.trainable {
            if self.optimizer.steps(param) {
                param.grad.take();
            }
        }
    }

    fn after_last(&self, step: u32) {
        if self.plan.evaluation > 0 {
            self.tape.mark(step, Phase::Evaluation);
            evaluation::evaluate(self.net, &self.cx, self.data, &self.plan, step);
        }
        if self.plan.resumes {
            self.tape.mark(step, Phase::Resume);
            resume::load(&self.model, self.training.lora.is_some());
        }
    }

    /// Ends the run and hands over what it recorded.
    pub(crate) fn finish(self) -> Run {
        let Self {
            model,
            tape,
            cx,
            pipeline,
            ..
        } = self;
        tape.mark(self.plan.steps, Phase::Setup);
        Run {
            parameters: nets::count(model.parameters()),
            trainable: nets::count(model.trainable()),
            host_states: optimizer::on_host(self.training.optimizer, &self.trainable),
            host_weights: (cx.env.shared.waiting.borrow().iter())
                .map(|(param, bytes)| bytes.saturating_mul(param.copies()))
                .sum(),
            pinned: cx.env.wrapper.pinned(),
            bytes: nets::bytes(model.parameters()),
            trainable_bytes: nets::bytes(model.trainable()),
            tensor_parallel: cx.env.groups.tensor.group,
            context_parallel: cx.env.groups.context.group,
            expert_parallel: if cx.env.shared.divides_experts.get() {
                cx.env.groups.experts
            } else {
                1
            },
            pipeline_parallel: pipeline.map_or(1, |pipeline| pipeline.ranks as u32),
            like_layers: cx.env.folding != Folding::Nothing
                && cx.env.groups.stages.have_like_layers(),
            trace: tape.finish(),
        }
    }
}

/// The memory that vLLM takes for its weights and its cache.
pub(super) fn vllm(tape: &Tape, share: VllmShare) -> [Tensor; 2] {
    [("vllm weights", share.weights), ("vllm cache", share.cache)].map(|(name, bytes)| {
        let memory = tape.on(Stream::OUTSIDE, || tape.empty(name, [bytes], DType::U8));
        memory.set_category(Category::Sampler);
        memory
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::nets::{self, Sizes};
    use crate::parallel::World;
    use crate::tape::Machine;
    use headroom_catalog as catalog;
    use headroom_scenario::{Lora, Optimizer, Parallelism, Quantization, presets};

    /// The first step declares no parameter that the constructed model has not.
    #[track_caller]
    fn check(model: &str, data: &Data, training: &Training, plan: RunPlan) {
        let entry = catalog::model(model).unwrap();
        let Ok(net) = nets::build(entry.arch, &Sizes::from_entry(entry)) else {
            return;
        };
        let mut run = TrainingLoop::new(&*net, data, training, Machine::default(), plan);
        let declared = nets::count(run.model.parameters());
        assert!(declared > 0, "{model}");
        run.step(0);
        assert_eq!(run.tape.declared(), 0, "{model} {training:?}");
    }

    fn small() -> Data {
        Data {
            micro_batch: 1,
            sequence: 16,
            padding_mask: false,
            ..Data::default()
        }
    }

    #[test]
    fn a_constructed_model_has_all_that_its_forward_uses() {
        let plan = RunPlan::first_steps(1);
        for entry in catalog::models() {
            check(entry.id, &small(), &Training::default(), plan);
        }
        for preset in presets::all() {
            let scenario = preset.scenario();
            if scenario.model.network.is_none() {
                check(&scenario.model.id, &scenario.data, &scenario.training, plan);
            }
        }
    }

    #[test]
    fn so_has_a_model_that_is_changed_or_wrapped() {
        let changes: [fn(&mut Training); 8] = [
            |training| training.lora = Some(Lora::default()),
            |training| {
                training.lora = Some(Lora::default());
                training.quantization = Quantization::Nf4Double;
            },
            |training| training.channels_last = true,
            |training| training.freeze = vec!["0".into()],
            |training| training.prompt_tokens = 20,
            |training| {
                training.ema = true;
                training.optimizer = Optimizer::Muon;
            },
            |training| {
                training.checkpointing = Checkpointing::Layers;
                training.keep_outputs = true;
            },
            |training| {
                training.optimizer_in_backward = true;
                training.accumulation = 2;
            },
        ];
        let mut world = World::of(Parallelism::Ddp, 8);
        world.parallel.bucket_view = true;
        let plan = RunPlan {
            world,
            folding: Folding::Nothing,
            ..RunPlan::first_steps(1)
        };
        for model in [
            "gpt2",
            "llama-3.2-1b",
            "resnet-18",
            "flan-t5-small",
            "vit-b16",
        ] {
            for change in changes {
                let mut training = Training::default();
                change(&mut training);
                check(model, &small(), &training, plan);
            }
        }
    }
}
