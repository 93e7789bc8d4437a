//! What holds of every way to share the work of one rank.

use crate::allocator::Settings;
use crate::estimate::Peaks;
use crate::nets::{self, Sizes};
use crate::parallel::World;
use crate::scenario::{Checkpointing, Data, Optimizer, Parallelism, PolicyType, Training, Wrap};
use crate::step::{RunPlan, run, run_folded};
use crate::tape::{Folding, Machine};

const STRATEGIES: [Parallelism; 6] = [
    Parallelism::Fsdp1,
    Parallelism::Fsdp2,
    Parallelism::Hsdp,
    Parallelism::Zero1,
    Parallelism::Zero2,
    Parallelism::Zero3,
];

/// The peak of each phase and its end, and what is reserved, of a small Llama's first steps.
fn course(world: World, training: &Training, folding: Folding) -> (Vec<[u64; 2]>, u64) {
    let sizes = Sizes::from([
        ("layers", 6),
        ("hidden", 256),
        ("heads", 4),
        ("ffn", 640),
        ("vocab", 1000),
    ]);
    let net = nets::build("llama", &sizes).unwrap();
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
        run_folded(&*net, &data, training, machine, plan)
    } else {
        run(&*net, &data, training, machine, plan)
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
        let alone = course(World::ALONE, &training, Folding::FromSecond);
        for strategy in STRATEGIES {
            let world = World::of(strategy, 1);
            let one = course(world, &training, Folding::FromSecond);
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
            let folded = course(world, &training, Folding::FromSecond);
            let unfolded = course(world, &training, Folding::Nothing);
            assert_eq!(folded, unfolded, "{:?}", world.parallel);
        }
    }
}

#[test]
fn smaller_shards_hold_no_more_between_steps() {
    for training in trainings() {
        for strategy in STRATEGIES {
            let static_bytes = |gpus| {
                let (phases, _) = course(World::of(strategy, gpus), &training, Folding::FromSecond);
                phases.last().map(|[_, end]| *end)
            };
            assert!(static_bytes(8) <= static_bytes(4), "{strategy:?}");
        }
    }
}
