//! The sections of a scenario and their defaults.

mod hardware;
mod model;
mod parallel;
mod runtime;
mod training;

pub use hardware::Hardware;
pub use model::{Data, Model};
pub use parallel::Parallel;
pub use runtime::{Runtime, Stack};
pub use training::{Lora, Training};

use headroom_catalog::ModelEntry;

#[derive(Clone, Debug, PartialEq)]
pub struct Scenario {
    /// The format's version, `Scenario::VERSION` for everything this program writes.
    pub version: u32,
    pub hardware: Hardware,
    pub model: Model,
    pub data: Data,
    pub training: Training,
    pub parallel: Parallel,
    pub stack: Stack,
    pub runtime: Runtime,
}

impl Scenario {
    /// The version of the format: of files and of links.
    pub const VERSION: u32 = 1;

    /// The default scenario with this model, in sequences that it has places for.
    pub fn of_model(model: &ModelEntry) -> Self {
        let mut scenario = Self::default();
        scenario.model.id = model.id.into();
        if let Some(places) = model.longest() {
            scenario.data.sequence = scenario.data.sequence.min(places);
        }
        scenario
    }
}

impl Default for Scenario {
    fn default() -> Self {
        Self {
            version: Self::VERSION,
            hardware: Hardware::default(),
            model: Model::default(),
            data: Data::default(),
            training: Training::default(),
            parallel: Parallel::default(),
            stack: Stack::default(),
            runtime: Runtime::default(),
        }
    }
}
