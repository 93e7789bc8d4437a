//! Several GPUs: what wrappers around a model do on one rank, a file for each of PyTorch's and DeepSpeed's.

use crate::mesh::{Mesh, Rank};
use crate::scenario::{Parallel, Parallelism};

/// The job that a run is one rank of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct World {
    pub mesh: Mesh,
    pub rank: Rank,
    pub parallel: Parallel,
}

impl World {
    /// One process on one GPU.
    pub const ALONE: Self = Self {
        mesh: Mesh::ALONE,
        rank: Rank { stage: 0, shard: 0 },
        parallel: Parallel {
            strategy: Parallelism::None,
            ..Parallel::DEFAULT
        },
    };

    /// The first rank of so many that share the work by one strategy alone.
    pub fn of(strategy: Parallelism, gpus: u32) -> Self {
        let (data, shard) = match strategy {
            Parallelism::None | Parallelism::Ddp => (gpus, 1),
            _ => (1, gpus),
        };
        Self {
            mesh: Mesh {
                data,
                shard,
                ..Mesh::ALONE
            },
            parallel: Parallel {
                strategy,
                ..Parallel::DEFAULT
            },
            ..Self::ALONE
        }
    }
}
