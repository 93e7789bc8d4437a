//! `ZeroRedundancyOptimizer` (torch/distributed/optim/zero_redundancy_optimizer.py): each replica steps its own parameters.

use std::rc::Rc;

use crate::parallel::World;
use crate::tape::Param;
use headroom_base::order::sorted;
use headroom_scenario::Parallelism;

/// Whether the job divides the optimizer's states so.
pub(crate) fn is_partitioned(world: &World) -> bool {
    let parallel = &world.parallel;
    parallel.partition_optimizer && parallel.strategy == Parallelism::Ddp && world.mesh.data > 1
}

/// The parameters that this rank steps: the largest first, each goes to the rank that has the fewest elements so far
/// (`_partition_parameters`).
pub(crate) fn of_this_rank(world: &World, params: Vec<Rc<Param>>) -> Vec<Rc<Param>> {
    if !is_partitioned(world) {
        return params;
    }
    let mut sizes = vec![0_u64; world.mesh.data as usize];
    let largest_first = sorted(params.iter(), |a, b| b.data.numel().cmp(&a.data.numel()));
    let mut mine: Vec<&Rc<Param>> = Vec::new();
    for param in largest_first {
        let fewest = (0..sizes.len()).min_by_key(|rank| sizes.get(*rank));
        let Some((rank, size)) = fewest.and_then(|rank| Some((rank, sizes.get_mut(rank)?))) else {
            continue;
        };
        *size = size.saturating_add(param.data.numel());
        if rank == world.rank.shard as usize {
            mine.push(param);
        }
    }
    let is_mine = |param: &&Rc<Param>| mine.iter().any(|other| Rc::ptr_eq(other, param));
    params.iter().filter(is_mine).cloned().collect()
}
