//! How the GPUs may share the work: the ways to divide one copy of the model, and to shard what is left.

use super::edit::{Edit, Sharding};
use super::space::Space;
use crate::moves::conditions::{language_model, own_loss};
use headroom_scenario::{Hardware, Offload, Parallelism, Quantization, Scenario, Schedule};

/// All ways in which the run's GPUs may share the work, by how one copy of the model is divided; of each, the way that shards
/// most comes first. The run's own is the empty one.
pub fn layouts(space: &Space) -> Vec<Vec<Vec<Edit>>> {
    let run = &space.run;
    if run.hardware.gpus < 2 {
        return vec![vec![Vec::new()]];
    }
    let of = |degrees: &ParallelDegrees| {
        let shardings = shardings(run, degrees);
        let edits =
            |(sharding, host): &(Sharding, Offload)| arranged(run, degrees, *sharding, *host);
        shardings.iter().map(edits).collect()
    };
    let mut all = degrees(run);
    // Those that divide in one way come first: what is not modelled there is not tried with another.
    all.sort_by_key(|degrees| degrees.ways());
    all.iter().map(of).collect()
}

/// The edits that lead to a layout.
fn arranged(
    run: &Scenario,
    degrees: &ParallelDegrees,
    sharding: Sharding,
    host: Offload,
) -> Vec<Edit> {
    let layout = &run.parallel;
    let present = Sharding {
        strategy: layout.strategy,
        reshard: layout.reshard,
        sync_each: layout.sync_each,
    };
    let pipeline = Edit::Pipeline {
        stages: degrees.pp,
        schedule: Schedule::OneForwardOneBackward,
        virtual_stages: 1,
    };
    let all = [
        (sharding != present, Edit::Strategy(sharding)),
        (degrees.tp != layout.tp, Edit::Tensor(degrees.tp)),
        (degrees.pp != layout.pp, pipeline),
        (degrees.cp != layout.cp, Edit::Context(degrees.cp)),
        (degrees.ep != layout.ep, Edit::Expert(degrees.ep)),
        (host != layout.offload, Edit::Host(host)),
    ];
    let differing = all.into_iter().filter(|(differs, _)| *differs);
    differing.map(|(_, edit)| edit).collect()
}

/// The degrees of a layout; the remaining factor is data parallelism.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct ParallelDegrees {
    tp: u32,
    pp: u32,
    cp: u32,
    ep: u32,
}

impl ParallelDegrees {
    fn ways(self) -> usize {
        let all = [self.tp, self.pp, self.cp, self.ep];
        all.iter().filter(|degree| **degree > 1).count()
    }

    const fn of_a_copy(self) -> u32 {
        self.tp.saturating_mul(self.pp).saturating_mul(self.cp)
    }
}

fn degrees(run: &Scenario) -> Vec<ParallelDegrees> {
    let hardware = &run.hardware;
    let layout = &run.parallel;
    let present = ParallelDegrees {
        tp: layout.tp,
        pp: layout.pp,
        cp: layout.cp,
        ep: layout.ep,
    };
    let mut all = vec![present];
    let training = &run.training;
    let divides = own_loss(run)
        && language_model(run)
        && training.lora.is_none()
        && training.quantization == Quantization::None;
    let gpus = hardware.gpus;
    let machine = match hardware.nodes {
        0 | 1 => gpus.min(Hardware::ON_A_MACHINE),
        nodes => gpus / nodes,
    };
    let layers = run.model.dim("layers").unwrap_or(1);
    let experts = run.model.dim("experts").unwrap_or(0);
    // Rings of GPUs are for long sequences.
    let longest = run.data.sequence / 4096;
    let may = |wanted: bool, size: u32| size == 1 || wanted;
    for tp in powers(gpus).filter(|tp| may(divides && experts == 0, *tp) && *tp <= machine) {
        for pp in powers(gpus / tp).filter(|pp| may(divides, *pp) && u64::from(*pp) <= layers) {
            let sequences = powers(gpus / tp / pp);
            for cp in sequences
                .filter(|cp| may(divides && experts == 0 && u64::from(*cp) <= longest, *cp))
            {
                let parts = powers(gpus / pp).filter(|ep| {
                    // Groups of experts smaller than a machine gain nothing on many machines.
                    let machines = hardware.nodes > 1 && *ep > 1 && *ep < machine;
                    let whole = experts > 0 && experts.is_multiple_of((*ep).into()) && !machines;
                    may(divides && whole && tp * cp == 1, *ep)
                });
                for ep in parts {
                    let found = ParallelDegrees { tp, pp, cp, ep };
                    if !all.contains(&found) {
                        all.push(found);
                    }
                }
            }
        }
    }
    all
}

/// Strategies for the data-parallel dimension, with what they keep on the host; the one that shards most without the host
/// comes first.
fn shardings(run: &Scenario, degrees: &ParallelDegrees) -> Vec<(Sharding, Offload)> {
    use Parallelism::{Ddp, Fsdp1, Fsdp2, Hsdp, Zero1, Zero2, Zero3};
    let layout = &run.parallel;
    let copies = run.hardware.gpus / degrees.of_a_copy().max(1);
    let of = |strategy, reshard, sync_each| Sharding {
        strategy,
        reshard,
        sync_each,
    };
    let own = of(layout.strategy, layout.reshard, layout.sync_each);
    let mut all: Vec<(Sharding, Offload)> = Vec::new();
    let mut add = |sharding: Sharding, host: Offload| {
        if !all.contains(&(sharding, host)) {
            all.push((sharding, host));
        }
    };
    let whole = of(Ddp, layout.reshard, layout.sync_each);
    if copies.saturating_mul(degrees.cp) < 2 {
        add(whole, Offload::None);
        add(own, layout.offload);
        return all;
    }
    let quantized = run.training.quantization != Quantization::None;
    add(of(Fsdp2, true, true), Offload::None);
    add(own, layout.offload);
    if degrees.pp < 2 {
        // A pipeline's stages stay gathered from the first pass to the last, whatever `reshard` says.
        add(of(Fsdp2, false, true), Offload::None);
    }
    if run.hardware.nodes > 1 && copies.is_multiple_of(run.hardware.nodes) {
        add(of(Hsdp, true, true), Offload::None);
    }
    if degrees.ep < 2 {
        add(whole, Offload::None);
    }
    if degrees.of_a_copy() == 1 && degrees.ep < 2 {
        add(of(Fsdp2, true, false), Offload::None);
        add(of(Fsdp2, false, false), Offload::None);
        if quantized {
            add(of(Fsdp1, true, true), Offload::None);
            add(of(Fsdp1, true, true), Offload::Parameters);
        }
        for zero in [Zero1, Zero2, Zero3] {
            add(of(zero, true, layout.sync_each), Offload::None);
            add(of(zero, true, layout.sync_each), Offload::Optimizer);
        }
        add(of(Fsdp2, true, true), Offload::Parameters);
        add(of(Zero3, true, layout.sync_each), Offload::Parameters);
    }
    all
}

/// Powers of two that divide this number.
fn powers(of: u32) -> impl Iterator<Item = u32> {
    (0..=of.trailing_zeros().min(12)).map(|exponent| 1 << exponent)
}
