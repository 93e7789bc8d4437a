//! A network that the scenario declares itself: named sizes, parts of layers, and further tensors by their shape.

mod document;
mod expression;
mod items;
mod plan;
mod planner;
mod recording;
#[cfg(test)]
mod tests;

pub use items::{Field, FieldType, Item, ItemType, Position, item_types};
pub use plan::{
    Attention, Conv, ExtraTensor, Input, Lifetime, Loss, Mlp, Norm, Op, PartPlan, Plan,
};
pub use recording::Recording;

use super::Problem;
use headroom_base::order::{Map, sorted};
use items::Context;

/// The longest text of a network, in bytes: what a link may carry, squeezed or not.
pub const LONGEST_TEXT: usize = 8192;

/// A declared network: what was said, item by item, each of a known kind with known fields. Whether its sizes fit one
/// another is known when it is planned for a batch.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Network {
    items: Vec<Item>,
    /// In place of items: a model's own forward pass, as a file has it.
    recording: Option<Recording>,
}

impl Network {
    /// Reads the compact text: items apart by `;`, each a kind and its fields, such as `attention,heads=8,causal=on`.
    pub fn parse(text: &str) -> Result<Self, Problem> {
        if text.len() > LONGEST_TEXT {
            let expected = format!("at most {LONGEST_TEXT} bytes");
            return Err(Problem::new(FIELD, text, expected));
        }
        if let Some(name) = text.strip_prefix(RECORDED) {
            let opened = Recording::named(name.trim_start_matches(':'));
            return opened.map(Self::recorded).ok_or_else(|| {
                Problem::new(
                    FIELD,
                    text,
                    "the file of this recorded model to be opened again",
                )
            });
        }
        let items: Result<Vec<Item>, Problem> = statements(text)
            .map(|(at, statement)| read(&at, statement))
            .collect();
        Self::of(items?)
    }

    /// The items, held to the bounds of a network.
    fn of(items: Vec<Item>) -> Result<Self, Problem> {
        const MOST: usize = 256;
        if items.len() > MOST {
            let expected = format!("at most {MOST} parts, layers and tensors");
            return Err(Problem::new(FIELD, items.len().to_string(), expected));
        }
        // The order of a document, whatever that of the text.
        let rank = |item: &Item| match (item.kind.name, item.kind.place) {
            ("sizes", _) => 0,
            ("input", _) => 1,
            (_, Position::Part | Position::Layer) => 2,
            (_, Position::Tensor) => 3,
            _ => 4,
        };
        let items = sorted(items, |a, b| rank(a).cmp(&rank(b)));
        let first = |place| items.iter().position(|item| item.kind.place == place);
        match (first(Position::Part), first(Position::Layer)) {
            (None, _) => {
                let expected = "at least one part, such as part,name=body";
                return Err(Problem::new(format!("{FIELD}.parts"), "", expected));
            }
            (Some(part), Some(layer)) if layer < part => {
                let expected = "a part before its first layer";
                return Err(Problem::new(format!("{FIELD}.parts"), "", expected));
            }
            _ => {}
        }
        for pair in items.windows(2) {
            if let [a, b] = pair
                && a.kind == b.kind
                && a.kind.place == Position::Top
            {
                let field = format!("{FIELD}.{}", a.kind.name);
                return Err(Problem::new(field, "", "to be given once"));
            }
        }
        let network = Self {
            items,
            recording: None,
        };
        let length = network.text().len();
        if length > LONGEST_TEXT {
            let expected = format!("at most {LONGEST_TEXT} bytes as text");
            return Err(Problem::new(FIELD, length.to_string(), expected));
        }
        Ok(network)
    }

    /// The network of a recorded model.
    pub fn recorded(recording: Recording) -> Self {
        Self {
            items: Vec::new(),
            recording: Some(recording),
        }
    }

    pub fn recording(&self) -> Option<&Recording> {
        self.recording.as_ref()
    }

    /// The compact text, which `parse` reads back. A recording has none, only a name that stands for it: elsewhere its
    /// file has to be opened again.
    pub fn text(&self) -> String {
        if let Some(recording) = &self.recording {
            return format!("{RECORDED}:{}", recording.name());
        }
        let items: Vec<String> = self.items.iter().map(Item::text).collect();
        items.join(";")
    }

    /// The names of its sizes.
    pub fn sizes(&self) -> Vec<&str> {
        self.named().map(|(name, _)| name.as_str()).collect()
    }

    /// One of its sizes.
    pub fn size(&self, name: &str) -> Option<u64> {
        let (_, value) = self.named().find(|(known, _)| known == name)?;
        value.parse().ok()
    }

    fn named(&self) -> impl Iterator<Item = &(String, String)> {
        let sizes = self.items.iter().filter(|item| item.kind.name == "sizes");
        sizes.flat_map(Item::fields)
    }

    /// Sizes of the data alone: those that the shapes of inputs and declared tensors name and no layer does.
    pub fn sizes_of_data(&self) -> Vec<&str> {
        let names = |item: &Item, size: &str| {
            let name = |c: char| !c.is_ascii_alphanumeric() && c != '_';
            let fields = item.fields().iter();
            fields
                .flat_map(|(_, value)| value.split(name))
                .any(|word| word == size)
        };
        let of_data =
            |item: &Item| item.kind.name == "input" || item.kind.place == Position::Tensor;
        let used = |size: &str, data: bool| {
            let items = self.items.iter().filter(|item| item.kind.name != "sizes");
            items
                .filter(|item| of_data(item) == data)
                .any(|item| names(item, size))
        };
        let mut sizes = self.sizes();
        sizes.retain(|size| used(size, true) && !used(size, false));
        sizes
    }

    /// Its items in order, each with the path of its field.
    pub fn items(&self) -> impl Iterator<Item = (String, &Item)> {
        let mut context = Context::default();
        self.items
            .iter()
            .map(move |item| (context.next(item.kind.name), item))
    }
}

/// The statements of a network's text, right or not, each with the path of its field.
pub fn statements(text: &str) -> impl Iterator<Item = (String, &str)> {
    let mut context = Context::default();
    let all = text
        .split(';')
        .map(str::trim)
        .filter(|item| !item.is_empty());
    all.map(move |item| {
        let (kind, _) = item.split_once(',').unwrap_or((item, ""));
        (context.next(kind.trim()), item)
    })
}

fn read(at: &str, statement: &str) -> Result<Item, Problem> {
    let mut words = statement.split(',').map(str::trim);
    let kind = words.next().unwrap_or_default();
    let mut fields = Vec::new();
    for word in words {
        let Some((key, value)) = word.split_once('=') else {
            return Err(Problem::new(at, word, "a field such as heads=8"));
        };
        fields.push((key.trim().to_string(), value.trim().to_string()));
    }
    Item::read(kind, fields, at)
}

/// What is wrong with a text: of each statement the first thing, and where all can be read, what does not fit.
pub fn problems(text: &str, changed: &Map<String, u64>, batch: u64, sequence: u64) -> Vec<Problem> {
    let unread = statements(text).filter_map(|(at, statement)| read(&at, statement).err());
    let unread: Vec<Problem> = unread.collect();
    if !unread.is_empty() {
        return unread;
    }
    let network = Network::parse(text);
    let planned = network.and_then(|network| network.plan(changed, batch, sequence));
    planned.err().into_iter().collect()
}

/// Stands in texts for a network that only its file holds.
const RECORDED: &str = "recorded";

/// Where a network stands in a scenario.
pub const FIELD: &str = "model.network";

/// Networks for property tests.
#[cfg(test)]
pub(crate) const SAMPLES: &[&str] = &[
    "",
    "sizes,layers=2,vocab=100;part,name=body,repeat=layers;part,name=table;embedding,rows=vocab,width=8;linear,out=4",
    "sizes,heads=2,hidden=8;input,kind=values,shape=batch:4:hidden;part,name=core,repeat=2,passes=3,gradient=1;attention,heads=heads;mlp,width=4*hidden;tensor,name=grid,shape=batch:8:10,count=2;loss,kind=mse",
    "input,kind=values,shape=batch:3:8:8;part,name=stem,frozen=on;conv,out=4,kernel=5,stride=2;norm,kind=batch;activation;dropout,p=0.25",
];
