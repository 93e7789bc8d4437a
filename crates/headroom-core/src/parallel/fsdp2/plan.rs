//! Which modules the wrap policy makes units of.

use std::rc::Rc;

use super::group::Unit;
use super::{Module, State};
use crate::parallel::Role;
use crate::tape::{DType, Param, Tape};
use headroom_scenario::{Schedule, Trainer, Wrap};

impl State {
    /// The units of the policy, the root first.
    pub(super) fn plan(&self, tape: &Tape, state: &[Rc<Param>]) -> Vec<Unit> {
        let parallel = &self.world.parallel;
        let modules = self.modules.borrow();
        let heads = modules.iter().filter(|module| module.role == Role::Head);
        // A tied head's weight is the embedding's.
        let owns = |head: &Module| {
            state
                .iter()
                .any(|param| param.name == "weight" && tape.is_inside(param.scope, head.scope))
        };
        let is_input = |head: &Module| {
            let input = |module: &&Module| module.role == Role::InputEmbedding;
            modules
                .iter()
                .filter(input)
                .any(|input| input.scope == head.scope)
        };
        let tied = heads.clone().any(|head| !owns(head) || is_input(head));
        let in_tail = |role| match role {
            Role::FinalNorm | Role::Head => true,
            Role::InputEmbedding => self.wrap == Wrap::Ends && tied,
            Role::Model | Role::Layer | Role::Experts => false,
        };
        let ranks = u64::from(self.world.mesh.shard).max(1);
        let mut tail = Unit {
            scopes: Vec::new(),
            fold: None,
            reshards: false,
            reshards_to: None,
            ranks,
            is_partial: false,
        };
        let reshard = parallel.reshard && !self.keeps_stages();
        let roots = self.roots.borrow();
        let roots = roots.iter().map(|root| Unit {
            scopes: vec![*root],
            fold: None,
            reshards: reshard && parallel.reshard_root,
            reshards_to: None,
            ranks,
            is_partial: false,
        });
        let mut units: Vec<Unit> = roots.collect();
        for module in modules.iter() {
            if in_tail(module.role) {
                if !tail.scopes.contains(&module.scope) {
                    tail.scopes.push(module.scope);
                } else if module.role == Role::Head {
                    tail.is_partial = true;
                }
            } else {
                units.push(Unit {
                    scopes: vec![module.scope],
                    fold: module.fold,
                    reshards: reshard,
                    reshards_to: Some(u64::from(parallel.reshard_to))
                        .filter(|to| *to > 0 && *to < ranks && module.role != Role::Experts),
                    ranks: match module.role {
                        Role::Experts => self.expert_ranks(),
                        _ => ranks,
                    },
                    is_partial: false,
                });
            }
        }
        if !tail.scopes.is_empty() {
            units.push(tail);
        }
        units
    }

    /// Whether a pipeline keeps its stages' parameters from the first pass to the last: where it gathers and frees each of several
    /// stages as a whole, and in torchtitan (`get_fsdp_reshard_after_forward_policy` in distributed/fsdp.py).
    fn keeps_stages(&self) -> bool {
        let one_each = [Schedule::GPipe, Schedule::OneForwardOneBackward];
        let by_module = one_each.contains(&self.world.parallel.schedule)
            && self.world.trainer != Trainer::Torchtitan;
        self.is_pipelined() && !by_module
    }

    /// Whether a unit is experts that are divided over a mesh of their own.
    pub(super) fn is_of_experts(&self, unit: &Unit) -> bool {
        let modules = self.modules.borrow();
        let mut experts = modules.iter().filter(|module| module.role == Role::Experts);
        experts.any(|module| unit.scopes.contains(&module.scope))
    }

    /// Weights in bytes would not survive as shards: accelerate leaves them out.
    pub(super) fn ignores(&self, param: &Param) -> bool {
        param.data.dtype() == DType::U8 && !self.world.parallel.shard_quantized
    }

    /// GPUs that have the same experts, over which these are sharded (`efsdp`).
    fn expert_ranks(&self) -> u64 {
        let mesh = self.world.mesh;
        let all = u64::from(mesh.shard).saturating_mul(u64::from(mesh.tensor.max(1)));
        (all / u64::from(mesh.expert.max(1))).max(1)
    }
}
