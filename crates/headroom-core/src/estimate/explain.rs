//! Groups the live tensors behind a number.

use std::collections::BTreeMap;

use super::{Category, PhasePeak, alive_at};
use crate::tape::{DType, Scope, Source, TensorInfo, Trace};
use headroom_base::order::sorted;
use headroom_base::units::Bytes;

/// Tensors alive at one instant that have the same operation and size, in modules that differ only by their index.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TensorGroup {
    /// What the tensors are used for.
    pub category: Category,
    /// The module, with `*` for numbers: `transformer.h.*.attn`.
    pub module: String,
    /// The operation that made them.
    pub op: &'static str,
    /// How many of them are alive.
    pub count: u64,
    /// The size of one, as the allocator rounds it.
    pub each: Bytes,
}

impl TensorGroup {
    /// The size of all of them together.
    pub fn total(&self) -> Bytes {
        self.each * self.count
    }
}

/// The groups alive at an instant, the largest first.
pub(super) fn groups(trace: &Trace, instant: &PhasePeak) -> Vec<TensorGroup> {
    let mut names: BTreeMap<Scope, String> = BTreeMap::new();
    let mut counts: BTreeMap<(Category, String, &str, u64), u64> = BTreeMap::new();
    for (storage, copies) in alive_at(trace, instant) {
        let Some(storage) = trace.storages.get(storage as usize) else {
            continue;
        };
        let Source { op, scope } = trace.source(storage);
        let name = names
            .entry(scope)
            .or_insert_with(|| numberless(&trace.path(scope)));
        let key = (storage.category, name.clone(), op, storage.rounded());
        *counts.entry(key).or_default() += copies;
    }
    let groups = counts
        .into_iter()
        .map(|((category, module, op, each), count)| TensorGroup {
            category,
            module,
            op,
            count,
            each: Bytes::new(each),
        });
    // A stable order: ties keep the order of the map.
    sorted(groups, |a, b| b.total().cmp(&a.total()))
}

/// A group of tensors with their shape and the operations that saved them for backward.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TensorDetail {
    /// The operation, size and module that the tensors share, and their number.
    pub group: TensorGroup,
    /// The shape of the first tensor on the storage; empty if none was recorded.
    pub shape: Vec<u64>,
    /// The dtype of the first tensor on the storage; `None` if none was recorded.
    pub dtype: Option<DType>,
    /// The operations whose backward needs them.
    pub saved_for: Vec<&'static str>,
}

/// The groups alive at an instant inside a module, whose path has `*` for indices; the largest first.
pub(super) fn inside(trace: &Trace, instant: &PhasePeak, module: &str) -> Vec<TensorDetail> {
    let mut infos: BTreeMap<u32, Vec<&TensorInfo>> = BTreeMap::new();
    for info in &trace.tensors {
        infos.entry(info.storage).or_default().push(info);
    }
    let mut details: Vec<TensorDetail> = Vec::new();
    for (id, copies) in alive_at(trace, instant) {
        let Some(storage) = trace.storages.get(id as usize) else {
            continue;
        };
        let Source { op, scope } = trace.source(storage);
        let name = numberless(&trace.path(scope));
        let inside = name.strip_prefix(module);
        if !inside.is_some_and(|rest| rest.is_empty() || rest.starts_with('.')) {
            continue;
        }
        let infos = infos.get(&id).map_or(&[][..], Vec::as_slice);
        let saved_for = infos.iter().map(|info| info.saved_for);
        let mut saved_for = sorted(saved_for.filter(|op| !op.is_empty()), Ord::cmp);
        saved_for.dedup();
        let first = infos.first();
        let detail = TensorDetail {
            group: TensorGroup {
                category: storage.category,
                module: name,
                op,
                count: copies,
                each: Bytes::new(storage.rounded()),
            },
            shape: first.map(|info| info.shape.to_vec()).unwrap_or_default(),
            dtype: first.map(|info| info.dtype),
            saved_for,
        };
        match details.iter_mut().find(|other| other.is_like(&detail)) {
            Some(same) => same.group.count += copies,
            None => details.push(detail),
        }
    }
    sorted(details, |a, b| b.group.total().cmp(&a.group.total()))
}

impl TensorDetail {
    /// Whether the two differ only in their count.
    fn is_like(&self, other: &Self) -> bool {
        let group = TensorGroup {
            count: other.group.count,
            ..self.group.clone()
        };
        group == other.group
            && (&self.shape, self.dtype, &self.saved_for)
                == (&other.shape, other.dtype, &other.saved_for)
    }
}

/// The path with `*` in the place of every number.
pub(super) fn numberless(path: &str) -> String {
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
    use crate::estimate::{At, Prediction};
    use headroom_scenario::Scenario;

    fn prediction() -> Prediction {
        Prediction::new(Scenario::default())
    }

    #[test]
    fn an_instants_tensors_sum_to_the_timeline() {
        let prediction = prediction();
        let timeline = &prediction.estimate().unwrap().timeline;
        for index in [
            0,
            timeline.len() / 3,
            timeline.len() / 2,
            timeline.len() - 1,
        ] {
            let groups = prediction.tensors(At::Instant(index)).unwrap();
            let sum: Bytes = groups.iter().map(TensorGroup::total).sum();
            let whole = timeline[index].bytes;
            assert!(
                sum <= whole && whole - sum < Bytes::mib(24),
                "{index}: {sum} of {whole}"
            );
        }
        let beyond = At::Instant(timeline.len());
        assert_eq!(prediction.tensors(beyond), Ok(Vec::new()));
    }

    #[test]
    fn the_tensors_sum_to_the_breakdown() {
        let prediction = prediction();
        let groups = prediction.tensors(At::Peak).unwrap();
        for part in &prediction.estimate().unwrap().breakdown {
            let same = groups.iter().filter(|group| group.category == part.what);
            let sum: Bytes = same.map(TensorGroup::total).sum();
            // What the allocator adds belongs to no tensor.
            assert!(
                sum == part.bytes || part.what == Category::Rounding,
                "{part:?}"
            );
        }
        let sizes: Vec<Bytes> = groups.iter().map(TensorGroup::total).collect();
        assert!(sizes.is_sorted_by(|a, b| a >= b));
        let of_layers = |group: &TensorGroup| group.count == 12 && group.module.contains(".*.");
        assert!(groups.iter().any(of_layers));
    }

    #[test]
    fn a_layer_shows_what_it_keeps_for_backward_and_why() {
        let layer = "transformer.h.*";
        let prediction = prediction();
        let all = prediction.tensors_in(layer).unwrap();
        // As derivatives.yaml says: a product keeps its input, attention its three parts and its result, a norm its statistics.
        for (op, module, shape, dtype, saved_for) in [
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
                .find(|detail| detail.group.op == op && detail.group.module == module);
            let found = found.map(|detail| (&*detail.shape, detail.dtype, &*detail.saved_for));
            assert_eq!(
                found,
                Some((shape, Some(dtype), &[saved_for][..])),
                "{module} {op}"
            );
        }
        let groups = prediction.tensors(At::Peak).unwrap();
        let inside = groups
            .iter()
            .filter(|group| group.module.starts_with(layer));
        let whole: Bytes = all.iter().map(|detail| detail.group.total()).sum();
        assert_eq!(whole, inside.map(TensorGroup::total).sum());
    }

    #[test]
    fn numbers_in_paths_become_stars() {
        let check = |path, expected: &str| assert_eq!(numberless(path), expected);
        check("transformer.h.11.attn", "transformer.h.*.attn");
        check("layer4.0.conv2", "layer4.*.conv2");
        check("", "");
    }
}
