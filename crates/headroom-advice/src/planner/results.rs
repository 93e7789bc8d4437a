//! What a change does to the results of training, and which changes a plan may make.

use std::rc::Rc;

use crate::goal::Goal;
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
#[derive(Clone)]
pub struct Accepts {
    holds: Rc<dyn Fn(&Scenario) -> bool>,
    /// Whether it holds for few runs, so that asking comes before simulating.
    pub is_strict: bool,
}

impl std::fmt::Debug for Accepts {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Accepts")
            .field("is_strict", &self.is_strict)
            .finish_non_exhaustive()
    }
}

impl Accepts {
    /// That one program can run it.
    pub fn strictly(holds: impl Fn(&Scenario) -> bool + 'static) -> Self {
        Self {
            holds: Rc::new(holds),
            is_strict: true,
        }
    }

    /// That some program can run it, which is true of nearly all, and asked only of runs around one of which it is.
    pub fn mostly(holds: impl Fn(&Scenario) -> bool + 'static) -> Self {
        Self {
            holds: Rc::new(holds),
            is_strict: false,
        }
    }
}

/// Which scenarios a plan may propose.
#[derive(Clone, Debug)]
pub struct Locks {
    /// The most that may happen to the results.
    pub most: Results,
    /// Settings that keep their values.
    pub kept: Vec<&'static Setting>,
    /// How much memory stays free.
    pub goal: Goal,
    /// What else a proposed run has to satisfy, such as that one program can run it.
    pub accepts: Option<Accepts>,
}

impl Default for Locks {
    fn default() -> Self {
        Self {
            most: Results::SameBatch,
            kept: Vec::new(),
            goal: Goal::default(),
            accepts: None,
        }
    }
}

impl Locks {
    /// Whether a run satisfies what is asked of it besides.
    pub fn accept(&self, run: &Scenario) -> bool {
        self.accepts
            .as_ref()
            .is_none_or(|accepts| (accepts.holds)(run))
    }

    pub fn is_strict(&self) -> bool {
        self.accepts
            .as_ref()
            .is_some_and(|accepts| accepts.is_strict)
    }

    /// Whether the kept settings have the same values in both runs.
    pub fn keep(&self, before: &Scenario, after: &Scenario) -> bool {
        let same = |setting: &&Setting| setting.get(before) == setting.get(after);
        self.kept.iter().all(same)
    }
}
