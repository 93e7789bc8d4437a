//! Working out a network's sizes: the shapes that flow from layer to layer, and what does not fit.

mod layers;

use super::items::{Item, Position};
use super::plan::{ExtraTensor, Input, Lifetime, Loss, PartPlan, Plan};
use super::{Network, expression};
use crate::Problem;
use headroom_base::dtype::DType;
use headroom_base::order::Map;

/// An item and the path of its field.
type Placed<'a> = (String, &'a Item);

/// The most elements a tensor may have: 2^50 of eight bytes are still counted without wrapping.
const MOST_ELEMENTS: u64 = 1 << 50;
/// The most layers that one forward pass may run.
const MOST_RUNS: u64 = 20_000;

impl Network {
    /// Works the sizes out; the first thing that does not fit is named.
    pub fn plan(
        &self,
        changed: &Map<String, u64>,
        batch: u64,
        sequence: u64,
    ) -> Result<Plan, Problem> {
        let mut sizes = Map::new();
        for (_, item) in self.items().filter(|(_, item)| item.kind.name == "sizes") {
            for (name, value) in item.fields() {
                sizes.insert(name.clone(), value.parse().unwrap_or(0));
            }
        }
        for (name, value) in changed {
            sizes.insert(name.clone(), *value);
        }
        sizes.insert("batch".into(), batch);
        sizes.insert("sequence".into(), sequence);
        Planner {
            sizes,
            shape: Vec::new(),
            tokens: false,
            runs: 0,
        }
        .all(self)
    }
}

struct Planner {
    sizes: Map<String, u64>,
    /// What flows at the moment.
    shape: Vec<u64>,
    tokens: bool,
    runs: u64,
}

impl Planner {
    fn all(mut self, network: &Network) -> Result<Plan, Problem> {
        let items: Vec<(String, &Item)> = network.items().collect();
        let input = self.input(&items)?;
        let mut parts: Vec<(Placed, Vec<Placed>)> = Vec::new();
        let mut tensors = Vec::new();
        let mut loss = Loss::Mean;
        for (at, item) in &items {
            match item.kind.place {
                Position::Part => parts.push(((at.clone(), item), Vec::new())),
                Position::Layer => match parts.last_mut() {
                    Some((_, layers)) => layers.push((at.clone(), item)),
                    None => return Err(Problem::new(at, item.kind.name, "a part before it")),
                },
                Position::Tensor => tensors.push(self.tensor(at, item)?),
                Position::Top if item.kind.name == "loss" => {
                    loss = match item.get("kind") {
                        "cross-entropy" => Loss::CrossEntropy,
                        "mse" => Loss::Mse,
                        _ => Loss::Mean,
                    };
                }
                Position::Top => {}
            }
        }
        if parts.is_empty() {
            return Err(Problem::new("model.network.parts", "", "at least one part"));
        }
        let mut planned: Vec<PartPlan> = Vec::new();
        for ((at, part), layers) in &parts {
            let part = self.part(at, part, layers)?;
            if planned.iter().any(|other| other.name == part.name) || part.name == "loss" {
                let expected = "a name that no other part has, nor `loss`";
                return Err(Problem::new(format!("{at}.name"), &part.name, expected));
            }
            planned.push(part);
        }
        if self.tokens {
            let expected = "layers that make numbers of the token ids, such as an embedding";
            return Err(Problem::new("model.network.parts", "", expected));
        }
        let mut at_loss = Vec::new();
        for (place, at, tensor) in tensors {
            if place == "loss" {
                at_loss.push(tensor);
            } else if let Some(part) = planned.iter_mut().find(|part| part.name == place) {
                part.tensors.push(tensor);
            } else {
                let names: Vec<&str> = planned.iter().map(|part| part.name.as_str()).collect();
                let expected = format!("loss or a part: {}", names.join(", "));
                return Err(Problem::new(format!("{at}.part"), place, expected));
            }
        }
        Ok(Plan {
            input,
            parts: planned,
            at_loss,
            loss,
            output: self.shape,
        })
    }

    fn input(&mut self, items: &[(String, &Item)]) -> Result<Input, Problem> {
        let at = "model.network.input";
        let item = items.iter().find(|(_, item)| item.kind.name == "input");
        let tokens = item.is_none_or(|(_, item)| item.get("kind") == "tokens");
        let shape = item.map_or("batch:sequence", |(_, item)| item.get("shape"));
        self.shape = self.shape_of(&format!("{at}.shape"), shape)?;
        self.tokens = tokens;
        Ok(Input {
            tokens,
            shape: self.shape.clone(),
        })
    }

    fn part(
        &mut self,
        at: &str,
        item: &Item,
        layers: &[(String, &Item)],
    ) -> Result<PartPlan, Problem> {
        let count = |planner: &Self, field: &str| planner.size(at, item, field);
        let repeat = self.within(at, item, "repeat", 1, 10_000)?;
        let passes = self.within(at, item, "passes", 1, 10_000)?;
        let gradient = count(self, "gradient")?;
        if gradient > passes {
            let expected = format!("at most the passes, which are {passes}");
            return Err(Problem::new(
                format!("{at}.gradient"),
                item.get("gradient"),
                expected,
            ));
        }
        let before = (self.shape.clone(), self.tokens);
        let mut ops = Vec::new();
        for (at, layer) in layers {
            ops.push(self.op(at, layer)?);
        }
        if repeat * passes > 1 && before != (self.shape.clone(), self.tokens) {
            let field = if repeat > 1 { "repeat" } else { "passes" };
            let expected = format!(
                "1: its layers make {:?} of {:?}, which cannot go in again",
                self.shape, before.0
            );
            return Err(Problem::new(
                format!("{at}.{field}"),
                item.get(field),
                expected,
            ));
        }
        let runs = repeat
            .saturating_mul(passes)
            .saturating_mul(ops.len().max(1) as u64);
        self.runs = self.runs.saturating_add(runs);
        if self.runs > MOST_RUNS {
            let expected = format!("at most {MOST_RUNS} layers in one forward pass");
            return Err(Problem::new(at, self.runs.to_string(), expected));
        }
        Ok(PartPlan {
            name: item.get("name").to_string(),
            repeat,
            passes,
            without_gradient: if gradient == 0 { 0 } else { passes - gradient },
            frozen: item.is_on("frozen"),
            whole_passes: item.get("segments") == "pass",
            ops,
            tensors: Vec::new(),
        })
    }

    fn tensor(&self, at: &str, item: &Item) -> Result<(String, String, ExtraTensor), Problem> {
        let shape = self.shape_of(&format!("{at}.shape"), item.get("shape"))?;
        let tensor = ExtraTensor {
            name: item.get("name").to_string(),
            shape,
            dtype: match item.get("dtype") {
                "fp64" => DType::F64,
                "bf16" => DType::BF16,
                "fp16" => DType::F16,
                "int64" => DType::I64,
                "int32" => DType::I32,
                "uint8" => DType::U8,
                "bool" => DType::Bool,
                _ => DType::F32,
            },
            lifetime: match item.get("lifetime") {
                "forward" => Lifetime::Forward,
                "backward" => Lifetime::Backward,
                "persistent" => Lifetime::Persistent,
                _ => Lifetime::Saved,
            },
            count: self.within(at, item, "count", 0, 1_000)?,
        };
        Ok((item.get("part").to_string(), at.to_string(), tensor))
    }

    fn size(&self, at: &str, item: &Item, field: &str) -> Result<u64, Problem> {
        expression::value(item.get(field), &self.sizes)
            .map_err(|expected| Problem::new(format!("{at}.{field}"), item.get(field), expected))
    }

    fn some(&self, at: &str, item: &Item, field: &str) -> Result<u64, Problem> {
        self.within(at, item, field, 1, super::items::LARGEST)
    }

    fn within(
        &self,
        at: &str,
        item: &Item,
        field: &str,
        low: u64,
        high: u64,
    ) -> Result<u64, Problem> {
        let size = self.size(at, item, field)?;
        if (low..=high).contains(&size) {
            return Ok(size);
        }
        let expected = format!("a size from {low} to {high}, which {size} is not");
        Err(Problem::new(
            format!("{at}.{field}"),
            item.get(field),
            expected,
        ))
    }

    fn shape_of(&self, at: &str, text: &str) -> Result<Vec<u64>, Problem> {
        let size = |text: &str| {
            expression::value(text, &self.sizes)
                .map_err(|expected| Problem::new(at, text, expected))
        };
        let shape: Vec<u64> = text.split(':').map(size).collect::<Result<_, _>>()?;
        Self::countable(at, &shape)?;
        Ok(shape)
    }

    /// Refuses what no memory could hold, before it is multiplied out.
    fn countable(at: &str, shape: &[u64]) -> Result<(), Problem> {
        let product = shape
            .iter()
            .try_fold(1_u64, |all, size| all.checked_mul(*size));
        if product.is_some_and(|product| product <= MOST_ELEMENTS) {
            return Ok(());
        }
        let expected = "a tensor of at most 2^50 elements";
        Err(Problem::new(at, format!("{shape:?}"), expected))
    }

    fn set_last(&mut self, width: u64) {
        if let Some(last) = self.shape.last_mut() {
            *last = width;
        }
    }
}
