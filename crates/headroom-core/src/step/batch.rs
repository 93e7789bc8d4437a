//! The tensors of a micro-batch on this GPU before forward.

use crate::nets::{Cx, Net};
use crate::tape::Tensor;
use headroom_scenario::Data;

/// A rank's own samples; where one process loads those of all ranks, all of them on the first GPU, of which its own are a part.
pub(crate) fn loaded(net: &dyn Net, cx: &Cx, data: &Data) -> Vec<Tensor> {
    let ranks = cx.env.wrapper.properties().ranks_loaded_here;
    if ranks == 1 {
        return net.batch(cx, data);
    }
    let tape = &cx.tape;
    let outer = tape.set_shapes_only(true);
    let own = net.batch(cx, data);
    tape.set_shapes_only(outer);
    if ranks == 0 {
        return own;
    }
    let all = own.into_iter().map(|own| {
        let samples = own.shape().first().copied().unwrap_or(1);
        let shape = own.shape().with(0, samples.saturating_mul(ranks));
        let all = tape.empty("inputs", shape, own.dtype());
        all.as_strided(*own.layout())
    });
    all.collect()
}

#[cfg(test)]
mod tests {
    use crate::allocator::Settings;
    use crate::estimate::Peaks;
    use crate::nets::{self, Sizes};
    use crate::parallel::World;
    use crate::step::{RunPlan, run};
    use crate::tape::{Machine, Phase};
    use headroom_scenario::{Checkpointing, Data, Optimizer, Parallelism, Precision, Training};

    /// What a GPU of two reaches and reserves, and holds when forward ends.
    #[track_caller]
    fn check(rank: u32, checkpointing: Checkpointing, expected: [u64; 3]) {
        let sizes = Sizes::from([
            ("layers", 22),
            ("hidden", 2048),
            ("heads", 32),
            ("kv", 4),
            ("ffn", 5632),
            ("vocab", 32_000),
        ]);
        let net = nets::build("llama", &sizes).unwrap();
        let data = Data {
            micro_batch: 1,
            sequence: 512,
            ..Data::default()
        };
        let training = Training {
            precision: Precision::Bf16,
            optimizer: Optimizer::AdamWFused,
            checkpointing,
            ..Training::default()
        };
        let mut world = World::of(Parallelism::DataParallel, 2);
        world.rank.shard = rank;
        let plan = RunPlan {
            world,
            ..RunPlan::first_steps(3)
        };
        let trace = run(&*net, &data, &training, Machine::default(), plan).trace;
        let peaks = Peaks::replayed(&trace, &Settings::default());
        let highest = peaks.highest().map_or(0, |peak| peak.bytes);
        let mut forward = peaks.phases.iter().rev();
        let forward = forward.find(|peak| peak.mark.phase == Phase::Forward);
        let end = forward.map_or(0, |peak| peak.end);
        assert_eq!([highest, peaks.reserved, end], expected, "{rank}");
    }

    #[test]
    fn one_process_copies_its_model_and_gathers_on_the_first_gpu() {
        // Read from PyTorch 2.15's allocators on both GPUs, but for 8704 and 9216 bytes of inputs on the second.
        let layers = Checkpointing::Layers;
        check(0, layers, [11_011_262_976, 11_435_769_856, 6_726_906_880]);
        check(1, layers, [2_421_494_272, 2_545_942_528, 2_190_278_656]);
    }
}
