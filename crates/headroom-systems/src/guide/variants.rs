//! A preset and its variants, each predicted once.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;

use headroom_advice as strategy;
use headroom_base::units::Bytes;
use headroom_core::allocator::Card;
use headroom_core::estimate::{
    Category, Estimate, Growth, Prediction, Unsupported, estimate, quick_peak,
};
use headroom_scenario::{Case, Distribution, Irreps, Problem, Scenario, presets, settings};

/// A preset and its variants. Changes to it are written as for `--set`, with a space between two of them.
#[derive(Debug)]
pub struct Variants {
    base: Scenario,
    /// Changes that have a name, which stands for them with `$` before it.
    named: &'static BTreeMap<String, String>,
    peaks: RefCell<BTreeMap<String, Bytes>>,
    estimates: RefCell<BTreeMap<String, Rc<Estimate>>>,
}

impl Variants {
    /// Of this preset; `None` where there is none of this name.
    pub fn of(preset: &str) -> Option<Self> {
        static NONE: BTreeMap<String, String> = BTreeMap::new();
        Self::with_names(preset, &NONE)
    }

    pub fn with_names(preset: &str, named: &'static BTreeMap<String, String>) -> Option<Self> {
        Some(Self {
            base: presets::find(preset)?.scenario(),
            named,
            peaks: RefCell::default(),
            estimates: RefCell::default(),
        })
    }

    /// The preset with these changes.
    pub fn scenario(&self, changes: &str) -> Result<Scenario, Unsupported> {
        let mut scenario = self.base.clone();
        for change in changes.split_whitespace() {
            let (name, value) = change.split_once('=').unwrap_or((change, ""));
            let mut changed = scenario.clone();
            settings::set(&mut changed, name, value).map_err(Unsupported::Setting)?;
            if name == "dims" {
                // One dimension changes, the others of the preset stay.
                scenario.model.dims.extend(changed.model.dims);
            } else {
                scenario = changed;
            }
        }
        Ok(scenario)
    }

    /// The peak of a variant's tensors.
    pub fn peak(&self, changes: &str) -> Result<Bytes, Unsupported> {
        if let Some(peak) = self.peaks.borrow().get(changes) {
            return Ok(*peak);
        }
        let peak = quick_peak(&self.with_fixed_batches(changes)?)?;
        self.peaks.borrow_mut().insert(changes.into(), peak);
        Ok(peak)
    }

    /// A quantity of the preset with these changes, as the guides' data name it: bytes, or a count.
    pub fn quantity(&self, name: &str, changes: &str) -> Result<f64, Unsupported> {
        let words = changes.split(' ').map(|word| {
            let named = word.strip_prefix('$').and_then(|name| self.named.get(name));
            named.map_or(word, String::as_str)
        });
        let changes: &str = &words.collect::<Vec<_>>().join(" ");
        if let Some((_, of)) = OF_ESTIMATE.iter().find(|(known, _)| *known == name) {
            let found = self.estimate(changes)?;
            return Ok(of(&found));
        }
        let scenario = || self.scenario(changes);
        Ok(match name {
            "peak" => bytes(self.peak(changes)?),
            "samples" => scenario()?.effective_batch() as f64,
            "micro_batch" => scenario()?.data.micro_batch as f64,
            "full_epoch" => self.full_epoch(changes)? as f64,
            "chance_of_overflow" => strategy::batches(&scenario()?)?
                .and_then(|batches| batches.per_epoch)
                .unwrap_or_default(),
            "peak_with_cache_emptied_every" => self.peak_with_cache_emptied(number(changes)?)?,
            "reserved_per_allocated_after" => self.reserved_per_allocated(number(changes)?)?,
            "weights_per_edge" => weights_per_edge(changes)? as f64,
            _ => match name.strip_prefix("dim.") {
                Some(dim) => dim_of(&scenario()?, dim)? as f64,
                None => return Err(unknown(name, "a predicted quantity")),
            },
        })
    }

    /// The preset with these changes, and batches all of the usual size.
    fn with_fixed_batches(&self, changes: &str) -> Result<Scenario, Unsupported> {
        let mut scenario = self.scenario(changes)?;
        scenario.data.distribution = Distribution::Fixed;
        Ok(scenario)
    }

    fn estimate(&self, changes: &str) -> Result<Rc<Estimate>, Unsupported> {
        if let Some(found) = self.estimates.borrow().get(changes) {
            return Ok(found.clone());
        }
        let found = Rc::new(estimate(&self.with_fixed_batches(changes)?)?);
        self.estimates
            .borrow_mut()
            .insert(changes.into(), found.clone());
        Ok(found)
    }

    /// The epoch in which what evaluations leave behind fills the card, however few epochs the run has.
    fn full_epoch(&self, changes: &str) -> Result<u64, Unsupported> {
        let growth = Growth::of(&self.scenario(changes)?);
        let found = self.estimate(changes)?;
        let epoch = growth.and_then(|growth| growth.full_in(room(&found)));
        Ok(epoch.unwrap_or(u64::MAX))
    }

    /// The peak of sixty steps with `torch.cuda.empty_cache()` after every so many, relative to the peak without.
    fn peak_with_cache_emptied(&self, every: usize) -> Result<f64, Unsupported> {
        let prediction = Prediction::new(self.base.clone());
        let runtime = &prediction.scenario().runtime;
        let steps = prediction.many_steps(60)?;
        let plain = steps.on(Card::UNLIMITED, runtime).allocated();
        let emptied = steps.emptying_cache(Card::UNLIMITED, runtime, every);
        Ok(bytes(emptied.allocated()) / bytes(plain))
    }

    /// Reserved memory relative to allocated memory after this many steps.
    fn reserved_per_allocated(&self, steps: usize) -> Result<f64, Unsupported> {
        let prediction = Prediction::new(self.base.clone());
        let runtime = &prediction.scenario().runtime;
        let found = prediction.many_steps(steps)?.on(Card::UNLIMITED, runtime);
        Ok(bytes(found.reserved()) / bytes(found.allocated()))
    }
}

type OfEstimate = (&'static str, fn(&Estimate) -> f64);

const OF_ESTIMATE: &[OfEstimate] = &[
    ("device", |found| bytes(found.device.expected)),
    ("of_card", |found| {
        bytes(found.device.expected) / bytes(usable(found))
    }),
    ("usable", |found| bytes(usable(found))),
    ("room", |found| bytes(room(found))),
    ("reserved", |found| bytes(found.reserved.expected)),
    ("allocated", |found| bytes(found.allocated.expected)),
    ("cached", |found| {
        bytes(
            found
                .reserved
                .expected
                .saturating_sub(found.allocated.expected),
        )
    }),
    ("host", |found| bytes(found.host.total.expected)),
    ("parameters", |found| found.parameters as f64),
    ("trainable", |found| found.trainable as f64),
    ("flops", |found| found.flops.get()),
    ("part.parameters", |found| part(found, Category::Parameters)),
    ("part.gradients", |found| part(found, Category::Gradients)),
    ("part.optimizer_states", |found| {
        part(found, Category::OptimizerStates)
    }),
    ("part.ema", |found| part(found, Category::Ema)),
    ("part.inputs", |found| part(found, Category::Inputs)),
    ("part.activations", |found| {
        part(found, Category::Activations)
    }),
];

/// The bytes of a category at the peak.
fn part(found: &Estimate, what: Category) -> f64 {
    let part = found.breakdown.iter().find(|part| part.what == what);
    part.map_or(0.0, |part| bytes(part.bytes))
}

/// The memory of the card that a run can use.
fn usable(found: &Estimate) -> Bytes {
    found.usable.unwrap_or_default()
}

/// What a run leaves free on its card.
fn room(found: &Estimate) -> Bytes {
    usable(found).saturating_sub(found.device.expected)
}

/// A dimension of the model: the scenario's, or the catalogue's.
fn dim_of(scenario: &Scenario, name: &str) -> Result<u64, Unsupported> {
    let own = scenario.model.dims.get(name).copied();
    own.or_else(|| Case::of(scenario).model?.size(name))
        .ok_or_else(|| Unsupported::NoSize(name.into()))
}

/// The weights that a layer's radial network makes for each edge.
fn weights_per_edge(irreps: &str) -> Result<u64, Unsupported> {
    let irreps = Irreps::parse(irreps).map_err(|expected| unknown(irreps, &expected))?;
    Ok(irreps.weight_numel(&Irreps::harmonics(2), &irreps.before_gate()))
}

fn number(text: &str) -> Result<usize, Unsupported> {
    text.parse().map_err(|_| unknown(text, "a number"))
}

fn unknown(text: &str, expected: &str) -> Unsupported {
    Unsupported::Setting(Problem::new("expression", text, expected))
}

fn bytes(size: Bytes) -> f64 {
    size.get() as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn changed_dimensions_join_those_of_the_preset() {
        crate::install();
        let variants = Variants::of("dreams").unwrap();
        let scenario = variants.scenario("dims=peaks=80 mb=4").unwrap();
        assert_eq!(scenario.model.dims.get("peaks"), Some(&80));
        assert_eq!(scenario.data.micro_batch, 4);
    }
}
