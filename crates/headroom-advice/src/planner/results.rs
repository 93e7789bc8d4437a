//! What a change does to the results of training, and which changes a plan may make.

use headroom_scenario::Scenario;
use headroom_scenario::settings::Setting;

/// What a change does to the results of training, from nothing to most.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Results {
    /// The same numbers.
    #[default]
    Identical,
    /// The same sums in another order or with other kernels.
    Rounding,
    /// The same samples per update, with small differences: other batch statistics, states of eight bits, autocast.
    SameBatch,
    /// Other parameters, other data or another precision of the weights is trained.
    Changes,
}

impl Results {
    pub const ALL: [Self; 4] = [
        Self::Identical,
        Self::Rounding,
        Self::SameBatch,
        Self::Changes,
    ];

    pub const fn id(self) -> &'static str {
        match self {
            Self::Identical => "identical",
            Self::Rounding => "rounding",
            Self::SameBatch => "same-batch",
            Self::Changes => "changes",
        }
    }

    pub const fn label(self) -> &'static str {
        match self {
            Self::Identical => "identical",
            Self::Rounding => "identical up to rounding",
            Self::SameBatch => "same effective batch, small differences",
            Self::Changes => "changes training",
        }
    }

    pub fn from_id(id: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|class| class.id() == id)
    }
}

/// Which scenarios a plan may propose.
#[derive(Clone, Copy)]
pub struct Locks<'a> {
    /// The most that may happen to the results.
    pub most: Results,
    /// Settings that keep their values.
    pub kept: &'a [&'static Setting],
    /// What else a proposed run has to satisfy, such as that one program can run it.
    pub accepts: Option<&'a dyn Fn(&Scenario) -> bool>,
}

impl std::fmt::Debug for Locks<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Locks")
            .field("most", &self.most)
            .field("kept", &self.kept.len())
            .finish_non_exhaustive()
    }
}

impl Default for Locks<'_> {
    fn default() -> Self {
        Self {
            most: Results::SameBatch,
            kept: &[],
            accepts: None,
        }
    }
}

impl Locks<'_> {
    /// Whether the kept settings have the same values in both runs.
    pub fn keep(&self, before: &Scenario, after: &Scenario) -> bool {
        let same = |setting: &&Setting| setting.get(before) == setting.get(after);
        self.kept.iter().all(same)
    }
}
