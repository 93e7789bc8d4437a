//! The arithmetic of a score.

use std::collections::BTreeMap;

use serde::Serialize;

use super::metric::Figure;
use headroom_base::units::Bytes;
use headroom_core::estimate::Band;

/// One case.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Row {
    pub id: String,
    pub group: String,
    #[serde(rename = "true")]
    pub truth: Option<u64>,
    pub predicted: Option<u64>,
    /// Percent; negative where the prediction is too low.
    pub error: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub unsupported: Option<String>,
    /// The metric of a published figure, where the case belongs to the set that is held to the targets.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub class: Option<&'static str>,
    /// Whether the truth lies in the stated band.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub inside: Option<bool>,
    /// The kind under which its band is counted. Where rows have kinds, rows without one are not counted.
    #[serde(skip)]
    pub kind: Option<&'static str>,
    /// The errors if the figure is allocated, reserved or driver memory: for a metric that is not named.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub against: Option<[f64; 3]>,
}

pub const GIB: f64 = (1_u64 << 30) as f64;

/// The class of figures whose metric is not named.
pub const UNNAMED: &str = "not named";

impl Row {
    pub fn unsupported(id: &str, group: &str, reason: String) -> Self {
        Self {
            id: id.into(),
            group: group.into(),
            unsupported: Some(reason),
            ..Self::default()
        }
    }

    pub fn scored(id: &str, group: &str, truth: u64, predicted: u64) -> Self {
        let error = 100.0 * (predicted as f64 - truth as f64) / truth.max(1) as f64;
        Self {
            id: id.into(),
            group: group.into(),
            truth: Some(truth),
            predicted: Some(predicted),
            error: Some(error),
            ..Self::default()
        }
    }

    /// Compares a predicted figure with the recorded one.
    pub fn compared(
        id: &str,
        group: &str,
        predicted: Result<Figure, String>,
        truth: Option<u64>,
    ) -> Self {
        match (predicted, truth) {
            (Err(reason), _) => Self::unsupported(id, group, reason),
            (Ok(_), None) => Self::unsupported(id, group, "the record lacks the metric".into()),
            (Ok(predicted), Some(truth)) => {
                Self::scored(id, group, truth, predicted.bytes).within(predicted.band)
            }
        }
    }

    /// Records whether the truth lies in the predicted range.
    pub fn within(self, band: Option<Band>) -> Self {
        let truth = self.truth.map(Bytes::new);
        let pair = band.zip(truth);
        Self {
            inside: pair.map(|(band, truth)| band.low <= truth && truth <= band.high),
            ..self
        }
    }
}

/// How many truths had a predicted range, and how many lay in it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Coverage {
    pub cases: usize,
    pub inside: usize,
}

/// Errors over a set of cases, in percent.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Summary {
    pub cases: usize,
    pub unsupported: usize,
    pub median: f64,
    pub p90: f64,
    pub max: f64,
    pub worst_under: f64,
}

/// The published figures that are held to the targets: one GPU, a named metric, a confidence of 4 or 5.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Selected {
    pub cases: usize,
    /// Shares in percent.
    pub expressed: f64,
    pub median: f64,
    pub p90: f64,
    pub inside: f64,
}

#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Report {
    #[serde(flatten)]
    pub all: Summary,
    pub by: BTreeMap<String, Summary>,
    /// The selected cases, all together under `selected` and by metric; empty where there are none.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub selected: Vec<(&'static str, Selected)>,
    pub rows: Vec<Row>,
}

impl Report {
    /// The bands' coverage, kind by kind where there are kinds.
    pub fn coverage(&self) -> Vec<(&'static str, Coverage)> {
        let mut kinds: BTreeMap<&'static str, Coverage> = BTreeMap::new();
        let has_kinds = self.rows.iter().any(|row| row.kind.is_some());
        for row in self
            .rows
            .iter()
            .filter(|row| row.kind.is_some() == has_kinds)
        {
            if let Some(inside) = row.inside {
                let coverage = kinds.entry(row.kind.unwrap_or_default()).or_default();
                coverage.cases += 1;
                coverage.inside += usize::from(inside);
            }
        }
        kinds.into_iter().collect()
    }
}

pub fn report(rows: Vec<Row>) -> Report {
    let mut groups: BTreeMap<String, Vec<&Row>> = BTreeMap::new();
    for row in &rows {
        groups.entry(row.group.clone()).or_default().push(row);
    }
    let by = groups
        .iter()
        .map(|(name, rows)| (name.clone(), summary(rows)))
        .collect();
    let all = summary(&rows.iter().collect::<Vec<_>>());
    let selected = selected(&rows);
    Report {
        all,
        by,
        selected,
        rows,
    }
}

fn selected(rows: &[Row]) -> Vec<(&'static str, Selected)> {
    let mut classes: BTreeMap<&'static str, Vec<&Row>> = BTreeMap::new();
    for row in rows {
        if let Some(class) = row.class {
            classes.entry(class).or_default().push(row);
        }
    }
    if classes.is_empty() {
        return Vec::new();
    }
    let named = classes.iter().filter(|(class, _)| **class != UNNAMED);
    let every: Vec<&Row> = named.flat_map(|(_, rows)| rows).copied().collect();
    let first = ("selected", of_selected(&every));
    let each = classes
        .iter()
        .map(|(class, rows)| (*class, of_selected(rows)));
    let against = classes
        .get(UNNAMED)
        .map_or_else(Vec::new, |rows| against(rows));
    std::iter::once(first).chain(each).chain(against).collect()
}

/// Figures whose metric is not named, compared with each.
fn against(rows: &[&Row]) -> Vec<(&'static str, Selected)> {
    const EACH: [&str; 3] = [
        "not named, as allocated",
        "not named, as reserved",
        "not named, as nvidia-smi",
    ];
    let of = |(place, name): (usize, &'static str)| {
        let held = rows.iter().map(|row| Row {
            error: row.against.and_then(|each| each.get(place).copied()),
            ..(*row).clone()
        });
        let held: Vec<Row> = held.collect();
        (name, of_selected(&held.iter().collect::<Vec<_>>()))
    };
    EACH.into_iter().enumerate().map(of).collect()
}

fn of_selected(rows: &[&Row]) -> Selected {
    let share = |n: usize, of: usize| 100.0 * n as f64 / of.max(1) as f64;
    let Summary { median, p90, .. } = summary(rows);
    let expressed = rows.iter().filter(|row| row.error.is_some()).count();
    let inside = rows.iter().filter(|row| row.inside == Some(true)).count();
    Selected {
        cases: rows.len(),
        expressed: share(expressed, rows.len()),
        median,
        p90,
        inside: share(inside, expressed),
    }
}

impl Selected {
    /// Whether any of the cases has an error to sum up.
    fn is_scored(&self) -> bool {
        self.expressed > 0.0
    }

    /// A share or an error in percent, "–" where no case has any.
    pub fn percent(&self, value: f64, digits: usize) -> String {
        percent(self.is_scored(), value, digits)
    }
}

impl std::fmt::Display for Selected {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let (cases, expressed) = (self.cases, self.expressed);
        let [median, p90] = [self.median, self.p90].map(|error| self.percent(error, 3));
        let inside = self.percent(self.inside, 1);
        write!(
            f,
            "cases {cases}  expressed {expressed:.1}%  median |e| {median}  p90 {p90}  inside the band {inside}"
        )
    }
}

/// "0.123%", or "–" where there is nothing to sum up: a zero would read as a perfect prediction.
fn percent(is_scored: bool, value: f64, digits: usize) -> String {
    if is_scored {
        format!("{value:.digits$}%")
    } else {
        "–".into()
    }
}

pub(super) fn summary(rows: &[&Row]) -> Summary {
    let errors: Vec<f64> = rows.iter().filter_map(|row| row.error).collect();
    let mut sizes: Vec<f64> = errors.iter().map(|e| e.abs()).collect();
    sizes.sort_by(f64::total_cmp);
    let at = |q: f64| {
        sizes
            .get(((sizes.len() as f64 * q) as usize).min(sizes.len().saturating_sub(1)))
            .copied()
            .unwrap_or(0.0)
    };
    Summary {
        cases: rows.len(),
        unsupported: rows.iter().filter(|row| row.unsupported.is_some()).count(),
        median: at(0.5),
        p90: at(0.9),
        max: at(1.0),
        worst_under: errors.iter().copied().fold(0.0, f64::min).abs(),
    }
}

impl Summary {
    /// The median, the 90th percentile, the largest error and the worst underestimate; "–" where no case has any.
    pub fn errors(&self) -> [String; 4] {
        let is_scored = self.cases > self.unsupported;
        [self.median, self.p90, self.max, self.worst_under]
            .map(|error| percent(is_scored, error, 3))
    }
}

impl std::fmt::Display for Summary {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let (cases, unsupported) = (self.cases, self.unsupported);
        let [median, p90, max, worst_under] = self.errors();
        write!(
            f,
            "cases {cases}  unsupported {unsupported}  median |e| {median}  p90 {p90}  max {max}  worst under {worst_under}"
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(errors: &[i64], expected: &str) {
        let rows = errors
            .iter()
            .map(|e| Row::scored("x", "g", 1000, (1000 + e) as u64))
            .collect();
        assert_eq!(report(rows).all.to_string(), expected);
    }

    #[test]
    fn selected_cases_are_summed_up_by_metric_too() {
        let of = |class, inside, row: Row| Row {
            class: Some(class),
            inside,
            ..row
        };
        let mixed = report(vec![
            of("allocated", Some(true), Row::scored("a", "g", 100, 101)),
            of("allocated", None, Row::unsupported("b", "g", "why".into())),
            of("reserved", Some(false), Row::scored("c", "g", 100, 150)),
            Row::scored("d", "g", 100, 900),
        ]);
        let lines: Vec<String> = mixed
            .selected
            .iter()
            .map(|(class, selected)| format!("{class} {selected}"))
            .collect();
        let expected = [
            "selected cases 3  expressed 66.7%  median |e| 50.000%  p90 50.000%  inside the band 50.0%",
            "allocated cases 2  expressed 50.0%  median |e| 1.000%  p90 1.000%  inside the band 100.0%",
            "reserved cases 1  expressed 100.0%  median |e| 50.000%  p90 50.000%  inside the band 0.0%",
        ];
        assert_eq!(lines, expected);
    }

    #[test]
    fn a_summary_is_in_percent_and_counts_what_it_could_not_do() {
        check(
            &[],
            "cases 0  unsupported 0  median |e| –  p90 –  max –  worst under –",
        );
        check(
            &[1, -20, 3, 0, 5],
            "cases 5  unsupported 0  median |e| 0.300%  p90 2.000%  max 2.000%  worst under 2.000%",
        );
        check(
            &[0],
            "cases 1  unsupported 0  median |e| 0.000%  p90 0.000%  max 0.000%  worst under 0.000%",
        );
        let none = report(vec![Row::unsupported("a", "g", "why".into())]);
        let expected = "cases 1  unsupported 1  median |e| –  p90 –  max –  worst under –";
        assert_eq!(none.all.to_string(), expected);
        let mixed = report(vec![
            Row::unsupported("a", "g", "why".into()),
            Row::scored("b", "g", 10, 11),
        ]);
        assert_eq!(
            (mixed.all.cases, mixed.all.unsupported, mixed.by["g"].cases),
            (2, 1, 2)
        );
    }
}
