//! What holds of every way to share the work of one rank.

use crate::allocator::Settings;
use crate::estimate::Peaks;
use crate::nets::{self, Net, Sizes};
use crate::parallel::World;
use crate::step::{RunPlan, run, run_folded};
use crate::tape::{Folding, Machine};
use headroom_base::mesh::Mesh;
use headroom_catalog as catalog;
use headroom_scenario::{
    Checkpointing, Data, Lora, Optimizer, Parallel, Parallelism, PolicyType, Schedule, Training,
    Wrap,
};

const STRATEGIES: [Parallelism; 7] = [
    Parallelism::DataParallel,
    Parallelism::Fsdp1,
    Parallelism::Fsdp2,
    Parallelism::Hsdp,
    Parallelism::Zero1,
    Parallelism::Zero2,
    Parallelism::Zero3,
];

/// The peak of each phase and its end, and what is reserved, of a small Llama's first steps.
fn peaks_by_phase(world: World, training: &Training, folding: Folding) -> (Vec<[u64; 2]>, u64) {
    course_of("llama", world, training, folding)
}

/// The same for another network's small form.
fn course_of(
    architecture: &str,
    world: World,
    training: &Training,
    folding: Folding,
) -> (Vec<[u64; 2]>, u64) {
    let sizes = Sizes::from([
        ("layers", if architecture == "llama" { 6 } else { 12 }),
        ("hidden", 256),
        ("heads", 4),
        ("ffn", 640),
        ("vocab", 1000),
    ]);
    let net = nets::build(architecture, &sizes).unwrap();
    course_of_net(&*net, world, training, folding)
}

fn course_of_net(
    net: &dyn Net,
    world: World,
    training: &Training,
    folding: Folding,
) -> (Vec<[u64; 2]>, u64) {
    let data = Data {
        micro_batch: 1,
        sequence: 64,
        ..Data::default()
    };
    let plan = RunPlan {
        folding,
        world,
        ..RunPlan::first_steps(3)
    };
    let machine = Machine::default();
    let run = if folding == Folding::Nothing {
        run_folded(net, &data, training, machine, plan)
    } else {
        run(net, &data, training, machine, plan)
    };
    let peaks = Peaks::replayed(&run.trace, &Settings::default());
    let phases = peaks.phases.iter().map(|peak| [peak.bytes, peak.end]);
    (phases.collect(), peaks.reserved)
}

fn trainings() -> [Training; 3] {
    let plain = Training {
        optimizer: Optimizer::AdamWFused,
        ..Training::default()
    };
    let checkpointed = Training {
        checkpointing: Checkpointing::Layers,
        clip: true,
        ..plain.clone()
    };
    let accumulated = Training {
        accumulation: 2,
        ..plain.clone()
    };
    [plain, checkpointed, accumulated]
}

#[test]
fn one_rank_of_anything_is_a_gpu_alone() {
    for training in trainings() {
        let alone = peaks_by_phase(World::ALONE, &training, Folding::FromSecond);
        for strategy in STRATEGIES {
            let world = World::of(strategy, 1);
            let one = peaks_by_phase(world, &training, Folding::FromSecond);
            assert_eq!(one, alone, "{strategy:?}");
        }
    }
}

#[test]
fn layers_run_once_for_all_are_layers_run_one_by_one() {
    let changes: [fn(&mut World); 5] = [
        |_| {},
        |world| world.parallel.param_dtype = PolicyType::Bf16,
        |world| world.parallel.reshard = false,
        |world| world.parallel.sync_each = true,
        |world| world.parallel.wrap = Wrap::Ends,
    ];
    for training in trainings() {
        for change in changes {
            let mut world = World::of(Parallelism::Fsdp2, 4);
            world.parallel.param_dtype = PolicyType::Own;
            world.parallel.reduce_dtype = PolicyType::Fp32;
            change(&mut world);
            let folded = peaks_by_phase(world, &training, Folding::FromSecond);
            let unfolded = peaks_by_phase(world, &training, Folding::Nothing);
            assert_eq!(folded, unfolded, "{:?}", world.parallel);
        }
    }
}

#[test]
fn layers_run_once_for_all_under_every_wrapper() {
    for training in trainings() {
        for strategy in STRATEGIES.into_iter().chain([Parallelism::Ddp]) {
            for architecture in ["llama", "bert"] {
                let world = World::of(strategy, 4);
                let folded = course_of(architecture, world, &training, Folding::FromSecond);
                let unfolded = course_of(architecture, world, &training, Folding::Nothing);
                assert_eq!(folded, unfolded, "{architecture} {strategy:?}");
            }
        }
    }
}

/// Of the catalogue's own sizes, whose gradients fill several of DDP's buckets.
#[test]
fn so_they_are_in_every_kind_of_network() {
    for model in [
        "gpt2",
        "bert-base-uncased",
        "vit-b16",
        "dinov2-vitb14",
        "beit-b16",
        "eva02-l14-448",
        "clip-vit-b16",
        "esm2-35m",
        "distilbert-base",
        "whisper-base",
        "opus-mt-en-de",
        "bart-base",
        "t5-small",
        "flux.1-dev",
        "flux.2-klein-base-4b",
        "dit-xl-2-256",
        "mae-vit-b-pretrain",
    ] {
        let entry = catalog::model(model).unwrap();
        let net = nets::build(entry.arch, &Sizes::from_entry(entry)).unwrap();
        for training in trainings() {
            for strategy in STRATEGIES.into_iter().chain([Parallelism::Ddp]) {
                let world = World::of(strategy, 4);
                let folded = course_of_net(&*net, world, &training, Folding::FromSecond);
                let unfolded = course_of_net(&*net, world, &training, Folding::Nothing);
                assert!(folded == unfolded, "{model} {strategy:?} {training:?}");
            }
        }
    }
}

#[test]
fn every_way_counts_the_same_parameters() {
    let sizes = Sizes::from([
        ("layers", 2),
        ("hidden", 64),
        ("heads", 4),
        ("ffn", 160),
        ("vocab", 100),
    ]);
    let net = nets::build("llama", &sizes).unwrap();
    let data = Data {
        micro_batch: 1,
        sequence: 16,
        ..Data::default()
    };
    for lora in [None, Some(Lora::default())] {
        let training = Training {
            lora,
            ..Training::default()
        };
        let counts = |world| {
            let plan = RunPlan {
                world,
                ..RunPlan::first_steps(1)
            };
            let run = run(&*net, &data, &training, Machine::default(), plan);
            (run.parameters, run.trainable)
        };
        let alone = counts(World::ALONE);
        for strategy in STRATEGIES {
            assert_eq!(counts(World::of(strategy, 4)), alone, "{strategy:?}");
        }
    }
}

#[test]
fn smaller_shards_hold_no_more_between_steps() {
    for training in trainings() {
        for strategy in STRATEGIES {
            let static_bytes = |gpus| {
                let (phases, _) =
                    peaks_by_phase(World::of(strategy, gpus), &training, Folding::FromSecond);
                phases.last().map(|[_, end]| *end)
            };
            assert!(static_bytes(8) <= static_bytes(4), "{strategy:?}");
        }
    }
}

/// A job in which the work is shared otherwise than by shards.
fn shared(change: impl FnOnce(&mut Mesh, &mut Parallel)) -> World {
    let mut world = World::of(Parallelism::None, 1);
    change(&mut world.mesh, &mut world.parallel);
    world
}

/// One of two stages, each sharded over four.
fn sharded_stage(stage: u32, schedule: Schedule, reduce: PolicyType) -> World {
    let mut world = World::of(Parallelism::Fsdp2, 4);
    world.rank.stage = stage;
    world.mesh.stages = 2;
    world.parallel.schedule = schedule;
    world.parallel.param_dtype = PolicyType::Bf16;
    world.parallel.reduce_dtype = reduce;
    world
}

#[test]
fn so_they_are_in_stages_and_on_parts_of_tensors_and_of_sequences() {
    let worlds = [
        shared(|mesh, _| mesh.stages = 2),
        shared(|mesh, _| mesh.context = 2),
        shared(|mesh, _| mesh.tensor = 2),
        shared(|mesh, parallel| {
            mesh.tensor = 2;
            parallel.sequence_parallel = true;
        }),
        shared(|mesh, parallel| {
            mesh.stages = 2;
            parallel.schedule = Schedule::Interleaved;
            parallel.virtual_stages = 2;
        }),
        sharded_stage(0, Schedule::OneForwardOneBackward, PolicyType::Own),
        sharded_stage(1, Schedule::OneForwardOneBackward, PolicyType::Fp32),
        sharded_stage(0, Schedule::GPipe, PolicyType::Fp32),
    ];
    for training in trainings() {
        for world in worlds {
            for architecture in ["torchtitan_llama3", "megatron_gpt"] {
                let folded = course_of(architecture, world, &training, Folding::FromSecond);
                let unfolded = course_of(architecture, world, &training, Folding::Nothing);
                assert_eq!(folded, unfolded, "{architecture} {:?}", world.mesh);
            }
        }
    }
}

#[test]
fn a_schedule_changes_nothing_between_steps() {
    let training = Training {
        accumulation: 4,
        ..Training::default()
    };
    let end = |schedule, strategy: Parallelism| {
        let world = shared(|mesh, parallel| {
            mesh.stages = 2;
            mesh.shard = if strategy == Parallelism::None { 1 } else { 2 };
            parallel.strategy = strategy;
            parallel.schedule = schedule;
            parallel.virtual_stages = 2;
        });
        let (phases, _) = course_of("torchtitan_llama3", world, &training, Folding::FromSecond);
        phases.last().map(|[_, end]| *end)
    };
    for strategy in [Parallelism::None, Parallelism::Fsdp2] {
        let expected = end(Schedule::Interleaved, strategy);
        for schedule in [Schedule::LoopedBfs, Schedule::ZeroBubble] {
            assert_eq!(
                end(schedule, strategy),
                expected,
                "{schedule:?} {strategy:?}"
            );
        }
        let expected = end(Schedule::ZeroBubbleV, strategy);
        assert_eq!(end(Schedule::DualPipeV, strategy), expected, "{strategy:?}");
    }
}
