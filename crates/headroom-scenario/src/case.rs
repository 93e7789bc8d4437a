//! A scenario whose ids are resolved.

use super::Scenario;
use headroom_base::mesh::Rank;
use headroom_catalog::{self as catalog, Gpu, ModelEntry};

/// A scenario with the catalogue's entries for its GPU and its model, looked up once; as one of its job's ranks runs it.
#[derive(Clone, Copy, Debug)]
pub struct Case<'a> {
    pub scenario: &'a Scenario,
    /// `None` where the catalogue does not list the GPU.
    pub gpu: Option<&'static Gpu>,
    /// The model that `model.id` names, also where a declared network replaces it; `None` where it is not listed.
    pub model: Option<&'static ModelEntry>,
    pub rank: Rank,
}

impl<'a> Case<'a> {
    pub fn of(scenario: &'a Scenario) -> Self {
        Self {
            scenario,
            gpu: catalog::gpu(&scenario.hardware.gpu),
            model: catalog::model(&scenario.model.id),
            rank: Rank::default(),
        }
    }

    /// The same scenario as another rank runs it.
    pub fn on(self, rank: Rank) -> Self {
        Self { rank, ..self }
    }

    /// The listed model that runs; `None` where a declared network replaces it.
    pub fn listed_model(&self) -> Option<&'static ModelEntry> {
        self.model.filter(|_| self.scenario.model.network.is_none())
    }

    /// The GPU's compute capability: as given in the scenario, else as listed.
    pub fn capability(&self) -> Option<(u8, u8)> {
        let given = Some(self.scenario.hardware.capability).filter(|given| *given != (0, 0));
        given.or_else(|| self.gpu?.compute_capability)
    }

    /// A size of the listed model as the scenario changes it, else as listed.
    pub fn listed_size(&self, name: &str) -> Option<u64> {
        let changed = self.scenario.model.dims.get(name).copied();
        changed.or_else(|| self.model?.size(name))
    }
}
