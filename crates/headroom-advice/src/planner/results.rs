//! What a change does to the results of training, and which changes a plan may make.

use std::rc::Rc;

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

/// Whether a run may be proposed.
pub type Accepts = Rc<dyn Fn(&Scenario) -> bool>;

/// Which scenarios a plan may propose.
#[derive(Clone)]
pub struct Locks {
    /// The most that may happen to the results.
    pub most: Results,
    /// Settings that keep their values.
    pub kept: Vec<&'static Setting>,
    /// What else a proposed run has to satisfy, such as that one program can run it.
    pub accepts: Option<Accepts>,
}

impl std::fmt::Debug for Locks {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let kept: Vec<&str> = self.kept.iter().map(|setting| setting.path).collect();
        f.debug_struct("Locks")
            .field("most", &self.most)
            .field("kept", &kept)
            .finish_non_exhaustive()
    }
}

impl Default for Locks {
    fn default() -> Self {
        Self {
            most: Results::SameBatch,
            kept: Vec::new(),
            accepts: None,
        }
    }
}

impl Locks {
    /// Whether the kept settings have the same values in both runs.
    pub fn keep(&self, before: &Scenario, after: &Scenario) -> bool {
        let same = |setting: &&Setting| setting.get(before) == setting.get(after);
        self.kept.iter().all(same)
    }
}
