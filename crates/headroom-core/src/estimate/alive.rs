//! Every tensor that is alive at an instant, in the order of allocation.

use std::collections::BTreeMap;
use std::fmt;

use super::expand::{EventRange, ExpandedEvent, Expansion};
use super::explain::numberless;
use super::{Category, Peaks, Phase, PhasePeak};
use crate::tape::{Scope, Source, Trace, rounded};
use headroom_base::units::Bytes;

/// The tensors that are alive at an instant, the oldest first.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AliveTensors {
    /// The step and the phase of the instant.
    pub when: Option<(u32, Phase)>,
    /// The requested size of each, and the index of its kind in `kinds`.
    pub tensors: Vec<(Bytes, usize)>,
    /// What the indices in `tensors` refer to, in order of the first tensor of each.
    pub kinds: Vec<TensorKind>,
}

/// Tensors made by the same operation, in modules that differ only by their index.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct TensorKind {
    /// What the tensors are used for.
    pub category: Category,
    /// The module, with `*` for numbers: `transformer.h.*.attn`.
    pub module: String,
    /// The operation that made them.
    pub op: &'static str,
}

impl fmt::Display for TensorKind {
    /// "gelu in transformer.h.*.mlp".
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.op)?;
        match self.module.as_str() {
            "" => Ok(()),
            module => write!(f, " in {module}"),
        }
    }
}

/// What is alive at an instant.
pub(super) fn at(trace: &Trace, peaks: &Peaks, instant: &PhasePeak) -> AliveTensors {
    let expansion = Expansion::new(trace);
    let mut order = Order::default();
    let mut follow = |range: &EventRange, most: usize| {
        let mut left = most;
        expansion.visit::<dyn FnMut(ExpandedEvent)>(range, &mut |event| {
            if left > 0 {
                left -= 1;
                order.event(event);
            }
        });
    };
    follow(&expansion.before(), usize::MAX);
    for phase in &peaks.phases {
        let is_last = phase.mark.at == instant.mark.at && phase.until == instant.until;
        let most = if is_last { instant.at } else { usize::MAX };
        follow(&expansion.between(phase.mark.at, phase.until), most);
        if is_last {
            break;
        }
    }
    let mut found = AliveTensors {
        when: Some((instant.mark.step, instant.mark.phase)),
        ..AliveTensors::default()
    };
    let mut places: BTreeMap<TensorKind, usize> = BTreeMap::new();
    let mut of_scope: BTreeMap<(&str, Scope, Category), usize> = BTreeMap::new();
    for storage in order.alive() {
        let Some(storage) = trace.storages.get(storage as usize) else {
            continue;
        };
        let Source { op, scope } = trace.source(storage);
        let place = *of_scope
            .entry((op, scope, storage.category))
            .or_insert_with(|| {
                let kind = TensorKind {
                    category: storage.category,
                    module: numberless(&trace.path(scope)),
                    op,
                };
                *places.entry(kind.clone()).or_insert_with(|| {
                    found.kinds.push(kind);
                    found.kinds.len() - 1
                })
            });
        found.tensors.push((Bytes::new(storage.bytes), place));
    }
    found
}

/// The instant whose live tensors are closest to these sizes, which are sorted and rounded as the allocator rounds them.
pub(super) fn nearest(trace: &Trace, peaks: &Peaks, sizes: &[u64]) -> Option<PhasePeak> {
    let expansion = Expansion::new(trace);
    let mut distance = SizeDistance::new(sizes);
    let follow = |range: &EventRange, distance: &mut SizeDistance| {
        expansion.visit::<dyn FnMut(ExpandedEvent)>(range, &mut |event| distance.event(event));
    };
    follow(&expansion.before(), &mut distance);
    let mut best: Option<(u128, PhasePeak)> = None;
    for phase in &peaks.phases {
        distance.begin();
        follow(
            &expansion.between(phase.mark.at, phase.until),
            &mut distance,
        );
        let (apart, at) = distance.best;
        if best.as_ref().is_none_or(|(least, _)| apart < *least) {
            best = Some((apart, PhasePeak { at, ..*phase }));
        }
    }
    best.map(|(_, instant)| instant)
}

/// Storages in the order of their allocation.
#[derive(Default)]
struct Order {
    /// What was allocated, one after the other; `DEAD` once it is freed.
    allocated: Vec<u32>,
    /// The place of each handle's last allocation.
    places: Vec<u32>,
}

impl Order {
    const DEAD: u32 = u32::MAX;

    fn event(&mut self, event: ExpandedEvent) {
        let handle = event.handle as usize;
        if event.is_free {
            let place = self.places.get(handle).map(|place| *place as usize);
            if let Some(freed) = place.and_then(|place| self.allocated.get_mut(place)) {
                *freed = Self::DEAD;
            }
            return;
        }
        if event.handle == u32::MAX {
            return;
        }
        if self.places.len() <= handle {
            self.places.resize(handle + 1, u32::MAX);
        }
        if let Some(place) = self.places.get_mut(handle) {
            *place = self.allocated.len() as u32;
        }
        self.allocated.push(event.storage);
    }

    fn alive(&self) -> impl Iterator<Item = u32> {
        let allocated = self.allocated.iter().copied();
        allocated.filter(|storage| *storage != Self::DEAD)
    }
}

/// The distance between the live tensors and the wanted sizes: the bytes that only one of them has.
struct SizeDistance {
    /// Each wanted size, its wanted count, and its live count.
    wanted: Vec<(u64, i64, i64)>,
    apart: u128,
    happened: usize,
    /// The least distance of the phase, and the number of events before it; the latest on a tie.
    best: (u128, usize),
}

impl SizeDistance {
    fn new(sizes: &[u64]) -> Self {
        let mut wanted: Vec<(u64, i64, i64)> = Vec::new();
        for size in sizes {
            match wanted.last_mut() {
                Some((last, count, _)) if last == size => *count += 1,
                _ => wanted.push((*size, 1, 0)),
            }
        }
        Self {
            wanted,
            apart: sizes.iter().map(|size| u128::from(*size)).sum(),
            happened: 0,
            best: (u128::MAX, 0),
        }
    }

    fn begin(&mut self) {
        self.happened = 0;
        self.best = (self.apart, 0);
    }

    fn event(&mut self, event: ExpandedEvent) {
        let size = rounded(event.bytes);
        let place = self.wanted.binary_search_by_key(&size, |(size, ..)| *size);
        let place = place.ok().and_then(|place| self.wanted.get_mut(place));
        let is_nearer = match place {
            Some((_, wanted, alive)) if event.is_free => {
                *alive -= 1;
                *alive >= *wanted
            }
            Some((_, wanted, alive)) => {
                *alive += 1;
                *alive <= *wanted
            }
            None => event.is_free,
        };
        let size = u128::from(size);
        self.apart = if is_nearer {
            self.apart.saturating_sub(size)
        } else {
            self.apart.saturating_add(size)
        };
        self.happened += 1;
        if self.apart <= self.best.0 {
            self.best = (self.apart, self.happened);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::estimate::{At, Prediction, TensorGroup};
    use headroom_scenario::{Scenario, settings};

    #[track_caller]
    fn check(changes: &[(&str, &str)]) {
        let mut scenario = Scenario::default();
        for (name, value) in changes {
            settings::set(&mut scenario, name, value).unwrap();
        }
        let prediction = Prediction::new(scenario);
        let alive = prediction.alive_at_peak().unwrap();
        let groups = prediction.tensors(At::Peak).unwrap();
        let total: Bytes = groups.iter().map(TensorGroup::total).sum();
        let sum = |alive: &AliveTensors| -> Bytes {
            let sizes = alive.tensors.iter().map(|(bytes, _)| bytes.round_up(512));
            sizes.sum()
        };
        assert_eq!(sum(&alive), total, "{changes:?}");
        let count: u64 = groups.iter().map(|group| group.count).sum();
        assert_eq!(alive.tensors.len() as u64, count);
        // What is alive there is found again by its sizes alone.
        let mut sizes: Vec<u64> = alive
            .tensors
            .iter()
            .map(|(bytes, _)| rounded(bytes.get()))
            .collect();
        sizes.sort_unstable();
        let again = prediction.alive_nearest(&sizes).unwrap();
        let mut found: Vec<u64> = again
            .tensors
            .iter()
            .map(|(bytes, _)| rounded(bytes.get()))
            .collect();
        found.sort_unstable();
        assert_eq!(found, sizes);
    }

    #[test]
    fn single_tensors_sum_to_the_groups() {
        check(&[]);
        check(&[("precision", "fp32"), ("accum", "4")]);
        check(&[
            ("model", "llama-3.2-1b"),
            ("ckpt", "layers"),
            ("lora", "on"),
        ]);
    }
}
