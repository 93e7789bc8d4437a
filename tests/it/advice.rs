//! The laws of advice: plans against trying everything on the same axes, for runs of every kind.

#![allow(clippy::unwrap_used, reason = "helpers of tests are tests")]

use headroom_advice::planner::{Accepts, Edit, Sharding};
use headroom_advice::{Locks, PlanId, Plans, Results, plan};
use headroom_core::estimate::{Estimate, Fit, Prediction, allocatable, quick_peak};
use headroom_io::export;
use headroom_scenario::{
    Attention, Checkpointing, Kernels, LossKernel, Offload, Optimizer, Parallelism, Scenario,
    presets, settings,
};

/// Runs that people ask about, from one GPU to 64; the first are tried always.
const RUNS: &[&str] = &[
    "model=llama-3.2-1b dims=layers=4 gpu=rtx-4090 mb=8 seq=1024 mem=9000",
    "preset=dreams",
    "model=bert-large-uncased dims=layers=6 gpu=t4-16gb mb=32 seq=512 precision=amp-fp16",
    "model=llama-3.2-1b dims=layers=4 gpu=rtx-4090 mb=1 seq=512 mem=2500",
    "model=qwen2.5-7b dims=layers=4 gpu=a100-sxm4-40gb gpus=4 mb=2 seq=2048",
    "preset=rna-3e-ffi gpu=rtx-3070-8gb mem=8000",
    "model=vit-b16 gpu=rtx-3070-8gb mb=256 seq=1 precision=fp32",
    "model=llama-3.1-8b dims=layers=8 gpu=rtx-3090-24gb gpus=2 lora=on quant=nf4 precision=amp-bf16-on-bf16 mb=4 seq=2048",
    "model=gpt2 gpu=rtx-3070-8gb mb=32",
    "model=gpt2 gpu=rtx-3070-8gb mb=32 attn=eager keep_outputs=on use_cache=on zero_none=off",
    "model=gpt2-xl gpu=rtx-4090 mb=8",
    "model=gpt2-xl gpu=rtx-4090 mb=8 ema=on",
    "model=gpt2-medium gpu=rtx-4080-16gb mb=16 optim=sgd-momentum",
    "model=gpt2-medium gpu=rtx-4080-16gb mb=16 optim=adafactor-hf",
    "model=gpt2-medium gpu=rtx-4080-16gb mb=16 eval_mb=64",
    "model=qwen3-0.6b gpu=rtx-4080-16gb mb=8 seq=2048",
    "model=qwen3-0.6b gpu=rtx-4080-16gb mb=8 seq=2048 precision=bf16",
    "model=qwen3-0.6b gpu=rtx-4080-16gb mb=8 seq=2048 ckpt=layers",
    "model=qwen3-0.6b gpu=v100-sxm2-16gb mb=8 seq=1024 precision=amp-fp16",
    "model=qwen2.5-0.5b gpu=rtx-3070-8gb mb=4 seq=1024",
    "model=qwen2.5-1.5b gpu=rtx-4090 mb=2 seq=2048",
    "model=qwen2.5-1.5b gpu=rtx-4090 mb=2 seq=2048 lora=on",
    "model=qwen2.5-1.5b gpu=rtx-4090 mb=2 seq=2048 optim=lion",
    "model=qwen2.5-3b gpu=a100-sxm4-40gb mb=4 seq=2048",
    "model=llama-3.2-1b gpu=rtx-3090-24gb mb=4 seq=4096",
    "model=llama-3.2-3b gpu=l40s-48gb mb=4 seq=4096",
    "model=llama-3.1-8b gpu=a100-sxm4-80gb mb=2 seq=2048 precision=bf16",
    "model=llama-3.1-8b gpu=rtx-4090 mb=8 seq=4096 lora=on precision=amp-bf16-on-bf16",
    "model=llama-3.1-8b gpu=rtx-4080-16gb mb=8 seq=1024 lora=on quant=nf4-double precision=amp-bf16-on-bf16",
    "model=gemma-2b gpu=a100-sxm4-40gb mb=4 seq=1024",
    "model=mistral-7b-v0.1 gpu=a100-sxm4-80gb mb=4 seq=2048 lora=on precision=amp-bf16-on-bf16",
    "model=bert-base-uncased gpu=rtx-3070-8gb mb=128 seq=512",
    "model=bert-base-uncased gpu=rtx-3070-8gb mb=128 seq=512 precision=fp32",
    "model=t5-base gpu=rtx-3070-8gb mb=16 seq=512",
    "model=whisper-small gpu=rtx-4080-16gb mb=32 seq=448 precision=amp-fp16",
    "model=resnet-50 gpu=rtx-3070-8gb mb=256",
    "model=resnet-50 gpu=rtx-3070-8gb mb=256 precision=fp32",
    "model=vit-b16 gpu=rtx-4080-16gb mb=256",
    "model=llava-1.5-7b gpu=a100-sxm4-80gb mb=4 seq=1024 lora=on",
    "preset=prs-med gpu=a100-sxm4-80gb",
    "preset=prs-med gpu=rtx-3070-8gb",
    "preset=gsa-512m gpu=l40s-48gb",
    "preset=dreams gpu=rtx-3070-8gb",
    "preset=rna-3e-ffi",
    "model=llama-3.2-1b gpu=rtx-3090-24gb gpus=2 mb=4 seq=2048",
    "model=llama-3.2-1b gpu=h100-sxm5-80gb gpus=32 nodes=4 mb=4 seq=4096",
    "model=qwen2.5-7b gpu=h100-sxm5-80gb gpus=8 mb=4 seq=4096",
    "model=qwen2.5-7b gpu=a100-sxm4-40gb gpus=8 mb=1 seq=2048 optim=adamw-fused",
    "model=qwen2.5-7b gpu=a100-sxm4-80gb gpus=4 mb=1 seq=2048 precision=bf16",
    "model=qwen2.5-14b gpu=rtx-3090-24gb gpus=2 mb=4 seq=2048 lora=on quant=nf4 precision=amp-bf16-on-bf16",
    "model=llama-3.1-8b gpu=a100-sxm4-80gb gpus=8 mb=2 seq=4096",
    "model=llama-3.1-8b gpu=a100-sxm4-80gb gpus=16 nodes=2 mb=1 seq=8192",
    "model=llama-3.1-8b gpu=rtx-4090 gpus=4 mb=1 seq=2048 lora=on precision=amp-bf16-on-bf16",
    "model=llama-3-70b gpu=h100-sxm5-80gb gpus=8 mb=1 seq=4096 par=fsdp2",
    "model=llama-3-70b gpu=a100-sxm4-80gb gpus=8 mb=1 seq=4096 lora=on precision=amp-bf16-on-bf16",
    "model=llama-3-70b gpu=h100-sxm5-80gb gpus=64 nodes=8 mb=1 seq=4096",
    "model=mixtral-8x7b gpu=h100-sxm5-80gb gpus=16 nodes=2 mb=1 seq=4096",
    "model=gpt2-xl gpu=v100-sxm2-16gb gpus=4 mb=4 precision=amp-fp16",
    "model=gpt2-xl gpu=rtx-4090 gpus=2 mb=4 par=zero2",
    "model=vit-b16 gpu=rtx-4080-16gb gpus=4 mb=128",
    "model=resnet-50 gpu=v100-sxm2-16gb gpus=4 mb=256 precision=amp-fp16",
    "model=bert-large-uncased gpu=t4-16gb gpus=4 mb=32 seq=512 precision=amp-fp16",
];

/// How many are tried otherwise.
const FEW: usize = 8;

fn run(text: &str) -> Option<Scenario> {
    headroom_systems::install();
    let mut scenario = Scenario::default();
    for word in text.split_whitespace() {
        let (name, value) = word.split_once('=').unwrap();
        match name {
            "preset" => scenario = presets::find(value)?.scenario(),
            _ => settings::set(&mut scenario, name, value).unwrap(),
        }
    }
    scenario.check().is_empty().then_some(scenario)
}

/// Every value of the axes that matter most, in every combination, at every micro-batch.
fn everything(run: &Scenario) -> Vec<Scenario> {
    let mut all = vec![run.clone()];
    for axis in axes(run) {
        let more: Vec<Scenario> = all
            .iter()
            .flat_map(|run| axis.iter().filter_map(|edit| edit.on(run)))
            .collect();
        all.extend(more);
    }
    let samples = run.effective_batch();
    let mut runs = Vec::new();
    for changed in all {
        let each = samples / changed.replicas().max(1);
        for size in (0..12).map(|power| 1_u64 << power) {
            if size > each || !each.is_multiple_of(size) {
                continue;
            }
            let mut cut = changed.clone();
            cut.data.micro_batch = size;
            cut.training.accumulation = each / size;
            let follows = headroom_scenario::systems::follows(run, &cut);
            if cut.effective_batch() == samples && follows && cut.check().is_empty() {
                runs.push(cut);
            }
        }
    }
    runs
}

fn axes(run: &Scenario) -> Vec<Vec<Edit>> {
    let sharding = |strategy, reshard| {
        Edit::Strategy(Sharding {
            strategy,
            reshard,
            sync_each: true,
        })
    };
    let mut axes = Vec::new();
    if run.hardware.gpus > 1 {
        axes.push(vec![
            sharding(Parallelism::Fsdp2, true),
            sharding(Parallelism::Fsdp2, false),
            sharding(Parallelism::Zero2, true),
            sharding(Parallelism::Zero3, true),
        ]);
        axes.push(vec![Edit::Host(Offload::Parameters)]);
    }
    axes.push(vec![Edit::Attention(Attention::Sdpa)]);
    axes.push(vec![Edit::Kernels(Kernels::Liger)]);
    axes.push(vec![
        Edit::Loss(LossKernel::LigerLinear),
        Edit::Loss(LossKernel::ChunkedHead),
    ]);
    axes.push(vec![
        Edit::Checkpointing(Checkpointing::None, 1),
        Edit::Checkpointing(Checkpointing::KeepMatmuls, 1),
        Edit::Checkpointing(Checkpointing::Layers, 1),
    ]);
    let adam = matches!(
        run.training.optimizer,
        Optimizer::AdamW | Optimizer::AdamWFused
    );
    if adam {
        axes.push(vec![
            Edit::Optimizer(Optimizer::AdamWFused),
            Edit::Optimizer(Optimizer::PagedAdamW8bit),
            Edit::Optimizer(Optimizer::AdamW8bitAo),
        ]);
    }
    axes
}

/// The fastest of these runs that fits, in a full estimate.
fn fastest(runs: Vec<Scenario>, than: f64) -> Option<(f64, Scenario)> {
    let mut best: Option<(f64, Scenario)> = None;
    for run in runs {
        let limit = best.as_ref().map_or(than, |best| best.0);
        let fits = quick_peak(&run).ok().zip(allocatable(&run));
        if fits.is_none_or(|(peak, room)| peak > room) {
            continue;
        }
        let prediction = Prediction::new(run);
        let Ok(time) = prediction.step_time() else {
            continue;
        };
        let seconds = time.step.expected.get();
        let modelled = |estimate: &Estimate| {
            let whole = estimate.not_modelled.iter();
            !whole.clone().any(|note| note.starts_with("parallel."))
        };
        if seconds < limit
            && prediction
                .estimate()
                .is_ok_and(|found| found.fits == Some(true) && modelled(found))
        {
            best = Some((seconds, prediction.scenario().clone()));
        }
    }
    best
}

fn plans_of(text: &str) -> Option<(Scenario, Plans)> {
    let run = run(text)?;
    let plans = plan(&run, Locks::default()).ok()?;
    Some((run, plans))
}

fn count() -> usize {
    if headroom_testing::slow() {
        RUNS.len()
    } else {
        FEW
    }
}

/// Law 1: the fastest offered is the fastest, no plan is dominated, and nothing fits only if trying everything finds nothing.
#[test]
fn no_better_plan_is_left_out() {
    let mut seen = 0;
    let mut beaten = Vec::new();
    for text in RUNS.iter().take(count()) {
        let Some((run, plans)) = plans_of(text) else {
            continue;
        };
        seen += 1;
        let found = plans.find(PlanId::Fastest).map(|plan| plan.full.seconds);
        // As fast to a hundredth, for a plan that is simpler.
        let than = found.map_or(f64::INFINITY, |seconds| seconds / 1.015);
        if let Some((seconds, run)) = fastest(everything(&run), than) {
            let link = headroom_scenario::share::write(&run);
            beaten.push(format!("{text}: {found:?}, but {seconds} by {link}"));
        }
        for plan in &plans.plans {
            let dominated = plans.plans.iter().any(|other| {
                other.full.device() < plan.full.device()
                    && other.full.seconds < plan.full.seconds
                    && other.changes.len() <= plan.changes.len()
            });
            if dominated {
                beaten.push(format!("{text}: {:?} is dominated", plan.id));
            }
        }
    }
    assert!(beaten.is_empty(), "{}", beaten.join("\n"));
    assert!(seen > count() * 9 / 10, "{seen}");
}

/// Law 3: no step raises memory unless it lowers time; applying a plan gives exactly its figures.
#[test]
fn each_step_saves_memory_or_time_and_a_plan_is_what_it_says() {
    for text in RUNS.iter().take(count()) {
        let Some((run, plans)) = plans_of(text) else {
            continue;
        };
        for plan in &plans.plans {
            assert!(plan.full.fits() && plan.results <= Results::SameBatch);
            let mut before = plans.now.estimate.device.expected + plans.now.estimate.growth;
            let mut seconds = plans.now.seconds;
            for change in &plan.changes {
                let (after, then) = (change.after.device(), change.after.seconds);
                let saves = after < before || seconds.is_none_or(|seconds| then < seconds);
                assert!(saves, "{text} {:?} {}", plan.id, change.id);
                (before, seconds) = (after, Some(then));
            }
            let link = headroom_scenario::share::write(&plan.full.scenario);
            let applied = headroom_scenario::share::read(&format!("#{link}"));
            let resolved = headroom_scenario::resolve(&applied.draft).scenario;
            assert_eq!(resolved, plan.full.scenario, "{text}");
            assert_eq!(resolved.effective_batch(), run.effective_batch(), "{text}");
            let applied = Prediction::new(resolved);
            assert_eq!(applied.estimate().unwrap(), &plan.full.estimate, "{text}");
        }
    }
}

/// Law 5: what is offered for a program, its export writes.
#[test]
fn what_is_offered_for_a_program_its_export_writes() {
    // Every program plans for itself: a few runs of each kind are enough.
    for text in RUNS.iter().take(if count() > FEW { FEW } else { FEW / 2 }) {
        let Some(run) = run(text) else {
            continue;
        };
        for id in ["hf", "torchtitan", "deepspeed", "plain"] {
            let target = export::target(id).unwrap();
            let estimate = Estimate::default();
            let runs = move |run: &Scenario| (target.write)(run, &estimate).is_ok();
            let locks = Locks {
                accepts: Some(Accepts::strictly(runs.clone())),
                ..Locks::default()
            };
            for plan in plan(&run, locks).unwrap().plans {
                assert!(runs(&plan.full.scenario), "{text} {id} {:?}", plan.id);
                assert_ne!(plan.full.fit(), Fit::No);
            }
        }
    }
}
