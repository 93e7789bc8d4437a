//! Construction of a model with all that trains it.

use std::rc::Rc;

use super::ddp::Ddp;
use super::ema::Average;
use super::hooks::Hooks;
use super::optimizer::OptimizerState;
use super::plan::FEWEST_PASSES;
use super::scaler::GradScaler;
use super::training::{TrainingLoop, Variables, vllm};
use super::wrapper::Wrapper;
use super::{Detail, ModelMode, RunPlan, groups, redundancy};
use crate::nets::{Cx, Env, Libraries, Net, Stage, Stages, construct};
use crate::parallel::{self, MegatronDdp, World};
use crate::tape::{Folding, Machine, Tape};
use headroom_scenario::{
    Data, LowPrecision, Objective, Optimizer, Parallelism, Quantization, Trainer, Training,
};

impl<'a> TrainingLoop<'a> {
    /// Constructs the model and wraps it.
    pub(crate) fn new(
        net: &'a dyn Net,
        data: &'a Data,
        training: &'a Training,
        machine: Machine,
        plan: RunPlan,
    ) -> Self {
        let tape = Tape::new(Machine {
            tunes: machine.tunes && !plan.warm,
            ..machine
        });
        match plan.detail {
            Detail::Memory => tape.skip_kernels(),
            Detail::Kernels => {}
            Detail::Tensors => tape.record_tensors(),
        }
        tape.evaluate(plan.mode == ModelMode::Eval);
        if plan.dispatched {
            tape.accumulate_out_of_place();
        }
        let megatron_core = net.is_megatron_core();
        let wrapper: Rc<dyn parallel::Wrapper> = if megatron_core {
            Rc::new(MegatronDdp::new(plan.world))
        } else {
            plan.world.wrapper(&tape, training)
        };
        let libraries = Libraries {
            // Megatron-Core recomputes by a function of its own, as `CheckpointFunction` does.
            reentrant: plan.libraries.reentrant
                || megatron_core
                || uses_reentrant_checkpoints(training, &plan.world),
            ..plan.libraries
        };
        let pipeline = groups::pipeline(net, training, &plan);
        let splits = pipeline.is_some_and(|pipeline| pipeline.splits_backward());
        let alike =
            wrapper.properties().folds && !splits && !redundancy::is_partitioned(&plan.world);
        let folding = if alike {
            plan.folding
        } else {
            Folding::Nothing
        };
        let cast = cast_by_deepspeed(training, &plan.world);
        let mut env = Env::new(cast, libraries, folding).wrapped(wrapper);
        env.groups.tensor = groups::tensor(net, training, &plan.world);
        env.groups.context = groups::context(net, training, &plan.world);
        env.peak_only = plan.peak_only;
        env.groups.experts = plan.world.mesh.expert.max(1).into();
        if let Some(pipeline) = &pipeline {
            let count = pipeline.all_stages() as u64;
            let stage = |index| Stage {
                index: index as u64,
                count,
            };
            env.groups.stages = Rc::new(Stages::new(pipeline.own_stages().map(stage).collect()));
        }
        let cx = Cx::new(tape.clone(), Rc::new(env));
        let model = construct(net, &cx, data);
        // Each pass is a forward and a backward, in the first step and in the second.
        let passes = training.accumulation.clamp(1, FEWEST_PASSES);
        tape.check_passes(passes.saturating_mul(2 * u64::from(plan.steps.min(2))));
        let vllm = (!plan.vllm.is_none() && !training.task.vllm_sleep)
            .then(|| tape.setting_up(|| vllm(&tape, plan.vllm)));
        let trains = cx.env.wrapper.properties().has_trainable_params;
        let mut wrappers = if trains {
            wrappers(training, &plan, megatron_core)
        } else {
            Vec::new()
        };
        for wrapper in &mut wrappers {
            wrapper.wrap(&model);
        }
        let trainable: Vec<_> = model.trainable().filter(|_| trains).cloned().collect();
        Self {
            net,
            data,
            training,
            plan,
            pipeline,
            passes: training.accumulation.clamp(1, plan.passes),
            tape,
            cx,
            wrappers,
            stepped: redundancy::of_this_rank(&plan.world, trainable.clone()),
            trainable,
            model,
            optimizer: OptimizerState::new(stepped_by(training), plan.warm),
            scaler: training
                .precision
                .scales_gradients()
                .then(GradScaler::default),
            variables: Variables::default(),
            _vllm: vllm,
        }
    }
}

/// Under ZeRO-3, TRL's trainers have checkpoints of a model with adapters re-enter (`use_reentrant` in dpo_trainer.py).
fn uses_reentrant_checkpoints(training: &Training, world: &World) -> bool {
    world.parallel.strategy == Parallelism::Zero3
        && training.lora.is_some()
        && training.task.objective != Objective::Pretraining
}

/// DeepSpeed casts all weights to its 16-bit type, PEFT's adapters too, but for a model that was made under ZeRO-3
/// (`_cast_module_mixed_precision` in deepspeed/runtime/engine.py), which transformers does with weights that are not quantised
/// (`from_pretrained` in modeling_utils.py). TRL's trainers then make adapters in the weights' type (`autocast_adapter_dtype` in
/// trl/trainer/dpo_trainer.py).
fn cast_by_deepspeed(training: &Training, world: &World) -> Training {
    use Parallelism::{Zero0, Zero1, Zero2, Zero3};
    let mut training = training.clone();
    let casts = match world.parallel.strategy {
        Zero0 | Zero1 | Zero2 => true,
        Zero3 => training.quantization != Quantization::None || world.trainer == Trainer::Trl,
        _ => false,
    };
    if let Some(lora) = training.lora.as_mut().filter(|_| casts) {
        lora.fp32_adapters = false;
    }
    training
}

/// The run's wrappers, in order.
fn wrappers(training: &Training, plan: &RunPlan, megatron_core: bool) -> Vec<Box<dyn Wrapper>> {
    let mut all: Vec<Box<dyn Wrapper>> = Vec::new();
    if let Some(hooks) = Hooks::of(training, plan.warm) {
        all.push(Box::new(hooks));
    }
    if let Some(ddp) = Ddp::of(&plan.world).filter(|_| !megatron_core) {
        all.push(Box::new(ddp));
    }
    if training.ema {
        all.push(Box::new(Average::new(training.ema_on_host)));
    }
    all
}

/// The optimizer's implementation. Lists are not stepped where weights are of a class of their own, as torchao's are
/// (`_default_to_fused_or_foreach` in torch/optim/optimizer.py).
const fn stepped_by(training: &Training) -> Optimizer {
    match (training.low_precision, training.optimizer) {
        (
            LowPrecision::Int8Mixed | LowPrecision::BitNet | LowPrecision::MxFp8,
            Optimizer::AdamW,
        ) => Optimizer::AdamWLoop,
        (_, optimizer) => optimizer,
    }
}
