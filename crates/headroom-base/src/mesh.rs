//! The device mesh of a job, and a rank's coordinates in it.

/// The sizes of a job's process groups (`DeviceMesh`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mesh {
    /// Copies of the model, or of its shards, that see different samples.
    pub data: u32,
    /// GPUs over which weights, gradients or states are sharded; they see different samples too.
    pub shard: u32,
    /// GPUs over which each weight matrix is split.
    pub tensor: u32,
    /// GPUs over which each sequence is split.
    pub context: u32,
    /// GPUs over which experts are split; they are among those of the other groups.
    pub expert: u32,
    /// Pipeline stages over which the layers are split.
    pub stages: u32,
}

impl Mesh {
    /// One GPU.
    pub const ALONE: Self = Self {
        data: 1,
        shard: 1,
        tensor: 1,
        context: 1,
        expert: 1,
        stages: 1,
    };

    /// The groups of more than one GPU, by what they are for.
    pub fn groups(&self) -> impl Iterator<Item = (&'static str, u32)> {
        let all = [
            ("replicas", self.data),
            ("shards", self.shard),
            ("tensor parallel", self.tensor),
            ("context parallel", self.context),
            ("expert parallel", self.expert),
            ("pipeline", self.stages),
        ];
        all.into_iter().filter(|(_, size)| *size > 1)
    }

    /// How many GPUs one stage of the pipeline has.
    pub fn gpus_of_a_stage(&self) -> u32 {
        [self.data, self.shard, self.tensor, self.context]
            .iter()
            .fold(1, |all: u32, &group| all.saturating_mul(group))
    }

    /// Where a GPU stands, by its number: tensors are split over neighbours, then sequences, then shards; a stage's GPUs lie
    /// together (torchtitan's `build_mesh` and Megatron-Core's `tp-cp-ep-dp-pp`).
    pub fn rank_of(&self, gpu: u32) -> Rank {
        let near = self.tensor.max(1).saturating_mul(self.context.max(1));
        Rank {
            stage: gpu / self.gpus_of_a_stage().max(1),
            shard: gpu / near % self.shard.max(1),
        }
    }

    /// How many GPUs there are.
    pub fn gpus(&self) -> u64 {
        let groups = [
            self.data,
            self.shard,
            self.tensor,
            self.context,
            self.stages,
        ];
        groups
            .iter()
            .fold(1, |all: u64, &group| all.saturating_mul(u64::from(group)))
    }
}

/// Where one GPU stands, as far as its memory depends on it: its peers in the other groups hold as much.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Rank {
    pub stage: u32,
    /// Its place among those over which tensors are sharded: the last get less where these do not divide evenly.
    pub shard: u32,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn experts_are_split_over_gpus_that_are_counted_already() {
        let mesh = Mesh {
            data: 2,
            shard: 8,
            tensor: 4,
            expert: 8,
            ..Mesh::ALONE
        };
        assert_eq!((Mesh::ALONE.gpus(), mesh.gpus()), (1, 64));
    }

    #[test]
    fn gpus_are_numbered_with_the_stages_outside() {
        let mesh = Mesh {
            shard: 2,
            tensor: 2,
            stages: 2,
            ..Mesh::ALONE
        };
        let places = (0..8).map(|gpu| mesh.rank_of(gpu));
        let places: Vec<_> = places.map(|rank| (rank.stage, rank.shard)).collect();
        let stage = |stage| [0, 0, 1, 1].map(|shard| (stage, shard));
        assert_eq!(places, [stage(0), stage(1)].concat());
        assert_eq!(Mesh::ALONE.rank_of(0), Rank::default());
    }
}
