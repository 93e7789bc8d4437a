//! The tensors behind the numbers.

use super::{Category, Peaks, PhasePeak, Unsupported, alive_at};
use crate::order::{Map, sorted};
use crate::scenario::Scenario;
use crate::step::Told;
use crate::tape::{DType, Note, Scope};
use crate::units::Bytes;

/// Tensors of one kind that are alive at the step's peak: made by the same operation, of the same size, in modules
/// that differ only by their number.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Held {
    pub category: Category,
    /// The module, with `*` for numbers: `transformer.h.*.attn`.
    pub module: String,
    /// The operation that made them.
    pub op: &'static str,
    pub count: u64,
    /// The size of one, as the allocator rounds it.
    pub each: Bytes,
}

impl Held {
    pub fn all(&self) -> Bytes {
        self.each * self.count
    }
}

/// What is alive at the peak, the largest kind first.
pub fn held_at_peak(scenario: &Scenario) -> Result<Vec<Held>, Unsupported> {
    held(scenario, |peaks| peaks.highest().copied())
}

/// What is alive at an instant of the timeline, the largest kind first.
pub fn held_at_instant(scenario: &Scenario, index: usize) -> Result<Vec<Held>, Unsupported> {
    held(scenario, |peaks| peaks.instant(index))
}

fn held(
    scenario: &Scenario,
    when: impl FnOnce(&Peaks) -> Option<PhasePeak>,
) -> Result<Vec<Held>, Unsupported> {
    let (net, _) = super::built(scenario)?;
    let run = super::ran(&*net, scenario);
    let Some(peak) = when(&super::peaks(&run, scenario)) else {
        return Ok(Vec::new());
    };
    let mut names: Map<Scope, String> = Map::new();
    let mut kinds: Map<(Category, String, &str, u64), u64> = Map::new();
    for (block, copies) in alive_at(&run.trace, &peak) {
        let Some(block) = run.trace.blocks.get(block as usize) else {
            continue;
        };
        let name = names.or_insert_with(block.scope, || numberless(&run.trace.path(block.scope)));
        let kind = (block.category, name.clone(), block.op, block.rounded());
        *kinds.or_default(kind) += copies;
    }
    let held = kinds
        .into_iter()
        .map(|((category, module, op, each), count)| Held {
            category,
            module,
            op,
            count,
            each: Bytes::new(each),
        });
    // Equal sizes keep the order of the map: the same bytes out each time.
    Ok(sorted(held, |a, b| b.all().cmp(&a.all())))
}

/// Tensors of one kind that are alive at the peak inside a module, with what they look like and what keeps them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Kept {
    pub held: Held,
    pub shape: Vec<u64>,
    pub dtype: Option<DType>,
    /// The operations whose backward keeps them.
    pub kept_for: Vec<&'static str>,
}

/// What is alive at the peak inside a module, given with `*` for numbers; the largest kind first.
pub fn kept_in(scenario: &Scenario, module: &str) -> Result<Vec<Kept>, Unsupported> {
    let (net, _) = super::built(scenario)?;
    let run = super::ran_as(&*net, scenario, Told::Notes);
    let trace = &run.trace;
    let peaks = super::peaks(&run, scenario);
    let Some(peak) = peaks.highest() else {
        return Ok(Vec::new());
    };
    let mut notes: Map<u32, Vec<&Note>> = Map::new();
    for note in &trace.notes {
        notes.or_default(note.block).push(note);
    }
    let mut kinds: Vec<Kept> = Vec::new();
    for (id, copies) in alive_at(trace, peak) {
        let Some(block) = trace.blocks.get(id as usize) else {
            continue;
        };
        let name = numberless(&trace.path(block.scope));
        let inside = name.strip_prefix(module);
        if !inside.is_some_and(|it| it.is_empty() || it.starts_with('.')) {
            continue;
        }
        let notes = notes.get(&id).map_or(&[][..], |it| it);
        let kept_for = notes.iter().map(|it| it.kept_for);
        let mut kept_for = sorted(kept_for.filter(|it| !it.is_empty()), Ord::cmp);
        kept_for.dedup();
        let made = notes.first();
        let kind = Kept {
            held: Held {
                category: block.category,
                module: name,
                op: block.op,
                count: copies,
                each: Bytes::new(block.rounded()),
            },
            shape: made.map(|it| it.shape.to_vec()).unwrap_or_default(),
            dtype: made.map(|it| it.dtype),
            kept_for,
        };
        match kinds.iter_mut().find(|it| it.is_like(&kind)) {
            Some(same) => same.held.count += copies,
            None => kinds.push(kind),
        }
    }
    Ok(sorted(kinds, |a, b| b.held.all().cmp(&a.held.all())))
}

impl Kept {
    fn is_like(&self, other: &Self) -> bool {
        let count = other.held.count;
        let held = Held {
            count,
            ..self.held.clone()
        };
        held == other.held
            && (&self.shape, self.dtype, &self.kept_for)
                == (&other.shape, other.dtype, &other.kept_for)
    }
}

/// The path with `*` in the place of every number.
fn numberless(path: &str) -> String {
    // A number, or a row of equal layers such as `1-30`.
    let is_number = |part: &str| {
        !part.is_empty()
            && part
                .bytes()
                .all(|byte| byte.is_ascii_digit() || byte == b'-')
    };
    let part = |part| if is_number(part) { "*" } else { part };
    path.split('.').map(part).collect::<Vec<_>>().join(".")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::estimate::estimate;

    #[test]
    fn an_instant_holds_what_the_timeline_says_without_the_allocators_slack() {
        let scenario = Scenario::default();
        let timeline = estimate(&scenario).unwrap().timeline;
        for index in [
            0,
            timeline.len() / 3,
            timeline.len() / 2,
            timeline.len() - 1,
        ] {
            let held: Bytes = held_at_instant(&scenario, index)
                .unwrap()
                .iter()
                .map(Held::all)
                .sum();
            let said = timeline[index].bytes;
            assert!(
                held <= said && said - held < Bytes::mib(24),
                "{index}: {held} of {said}"
            );
        }
        assert_eq!(held_at_instant(&scenario, timeline.len()), Ok(Vec::new()));
    }

    #[test]
    fn the_tensors_sum_to_the_breakdown() {
        let scenario = Scenario::default();
        let held = held_at_peak(&scenario).unwrap();
        for part in estimate(&scenario).unwrap().breakdown {
            let same = held.iter().filter(|kind| kind.category == part.what);
            let sum: Bytes = same.map(Held::all).sum();
            // What the allocator adds belongs to no tensor.
            assert!(
                sum == part.bytes || part.what == Category::Rounding,
                "{part:?}"
            );
        }
        assert!(held.windows(2).all(|pair| pair[0].all() >= pair[1].all()));
        assert!(
            held.iter()
                .any(|kind| kind.count == 12 && kind.module.contains(".*."))
        );
    }

    #[test]
    fn a_layer_shows_what_it_keeps_for_backward_and_why() {
        let layer = "transformer.h.*";
        let all = kept_in(&Scenario::default(), layer).unwrap();
        // As derivatives.yaml says: a product keeps its input, attention its three parts and its result, a norm its statistics.
        for (op, module, shape, dtype, kept_for) in [
            ("tanh", "mlp", &[8, 1024, 3072][..], DType::F32, "tanh"),
            ("to", "mlp.c_fc", &[8, 1024, 768], DType::BF16, "linear"),
            (
                "linear",
                "attn.c_attn",
                &[8192, 2304],
                DType::BF16,
                "flash_attention",
            ),
            (
                "layer_norm",
                "ln_1",
                &[8, 1024, 1],
                DType::F32,
                "layer_norm",
            ),
            (
                "dropout_mask",
                "mlp",
                &[8, 1024, 768],
                DType::Bool,
                "dropout",
            ),
        ] {
            let module = format!("{layer}.{module}");
            let found = all
                .iter()
                .find(|it| it.held.op == op && it.held.module == module);
            let found = found.map(|it| (&*it.shape, it.dtype, &*it.kept_for));
            assert_eq!(
                found,
                Some((shape, Some(dtype), &[kept_for][..])),
                "{module} {op}"
            );
        }
        let same = held_at_peak(&Scenario::default()).unwrap();
        let inside = same.iter().filter(|it| it.module.starts_with(layer));
        let whole: Bytes = all.iter().map(|it| it.held.all()).sum();
        assert_eq!(whole, inside.map(Held::all).sum());
    }

    #[test]
    fn numbers_in_paths_become_stars() {
        let check = |path, expected: &str| assert_eq!(numberless(path), expected);
        check("transformer.h.11.attn", "transformer.h.*.attn");
        check("layer4.0.conv2", "layer4.*.conv2");
        check("", "");
    }
}
