//! Runs that the planner proposes, which the worker sends to the page as lines of text.

use headroom_base::units::Bytes;

/// What a proposed run is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// The run as it is.
    Now,
    Plan,
    /// A plan with a change that is locked.
    Unlock,
    /// A run on the way to a plan.
    Step,
}

impl Kind {
    const ALL: [(Self, &'static str); 4] = [
        (Self::Now, "now"),
        (Self::Plan, "plan"),
        (Self::Unlock, "unlock"),
        (Self::Step, "step"),
    ];

    pub fn id(self) -> &'static str {
        let named = Self::ALL.iter().find(|(kind, _)| *kind == self);
        named.map_or("", |(_, id)| id)
    }

    fn from_id(id: &str) -> Option<Self> {
        let named = Self::ALL.iter().find(|(_, name)| *name == id);
        named.map(|(kind, _)| *kind)
    }
}

/// A run with its figures.
#[derive(Clone, Debug, PartialEq)]
pub struct Proposal {
    pub kind: Kind,
    pub name: String,
    /// Its changes, in an order in which each helps.
    pub steps: String,
    /// Each of them with what it does.
    pub changes: Vec<(String, String)>,
    pub results: String,
    pub programs: String,
    pub needs: Bytes,
    /// Of a step; `None` if the GPU's speed is unknown.
    pub seconds: Option<f64>,
    pub fits: bool,
    /// The run, which a button applies; empty if it is the present one.
    pub link: String,
}

const SEPARATOR: char = '\t';
/// Between a change and what it does, and after both.
const DOES: char = '\u{1e}';
const END: char = '\u{1f}';

impl Proposal {
    pub fn write(&self) -> String {
        let change = |(what, does): &(String, String)| format!("{what}{DOES}{does}{END}");
        let changes: String = self.changes.iter().map(change).collect();
        let seconds = self.seconds.map(|seconds| seconds.to_string());
        let fields = [
            self.kind.id(),
            &self.name,
            &self.steps,
            &changes,
            &self.results,
            &self.programs,
            &self.needs.get().to_string(),
            seconds.as_deref().unwrap_or_default(),
            if self.fits { "fits" } else { "" },
            &self.link,
        ];
        let flat = fields.map(|field| field.replace([SEPARATOR, '\n'], " "));
        flat.join("\t")
    }

    fn read(line: &str) -> Option<Self> {
        let mut fields = line.split(SEPARATOR).map(String::from);
        let mut next = || fields.next();
        let change = |entry: &str| {
            let (what, does) = entry.split_once(DOES)?;
            Some((what.into(), does.into()))
        };
        Some(Self {
            kind: Kind::from_id(&next()?)?,
            name: next()?,
            steps: next()?,
            changes: next()?.split(END).filter_map(change).collect(),
            results: next()?,
            programs: next()?,
            needs: Bytes::new(next()?.parse().ok()?),
            seconds: next()?.parse().ok(),
            fits: next()? == "fits",
            link: next()?,
        })
    }
}

/// What the planner found so far.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Found {
    /// What it says about them.
    pub message: String,
    pub runs: Vec<Proposal>,
}

impl Found {
    pub fn lines(&self) -> Vec<String> {
        let message = format!("say{SEPARATOR}{}", self.message);
        std::iter::once(message)
            .chain(self.runs.iter().map(Proposal::write))
            .collect()
    }

    pub fn read(lines: &[String]) -> Self {
        let said = lines.iter().find_map(|line| line.strip_prefix("say\t"));
        Self {
            message: said.unwrap_or_default().into(),
            runs: lines
                .iter()
                .filter_map(|line| Proposal::read(line))
                .collect(),
        }
    }

    /// What can be chosen: plans, or what they need unlocked.
    pub fn plans(&self) -> impl Iterator<Item = &Proposal> {
        let chosen = |run: &&Proposal| matches!(run.kind, Kind::Plan | Kind::Unlock);
        self.runs.iter().filter(chosen)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_found_round_trips_as_lines() {
        let run = |kind| Proposal {
            kind,
            name: "fastest".into(),
            steps: "a\tb; c\nd".into(),
            changes: vec![("a\tb".into(), "less".into()), ("c".into(), String::new())],
            results: "identical".into(),
            programs: "TRL".into(),
            needs: Bytes::gib(2.0),
            seconds: Some(0.25),
            fits: true,
            link: "v=1".into(),
        };
        let found = Found {
            message: "It fits.".into(),
            runs: Kind::ALL.map(|(kind, _)| run(kind)).into(),
        };
        let read = Found::read(&found.lines());
        assert_eq!(read.lines(), found.lines());
        assert_eq!(read.runs[0].steps, "a b; c d");
        assert_eq!(read.runs[0].changes.len(), 2);
        assert_eq!(read.plans().count(), 2);
        assert_eq!(Found::read(&["nonsense".into()]), Found::default());
    }
}
