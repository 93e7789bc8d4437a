//! What a network is declared of: each kind of item with its fields, in one table.

use super::FIELD;
use crate::Problem;
use crate::problem::nearest;
use headroom_base::decimal::decimal;
use headroom_base::order::sorted;

/// A kind of item.
#[derive(Debug, PartialEq, Eq)]
pub struct ItemType {
    pub name: &'static str,
    pub place: Position,
    pub fields: &'static [Field],
    pub about: &'static str,
}

/// Where an item of a kind stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Position {
    /// Once, by its name.
    Top,
    /// In the list of parts.
    Part,
    /// In a part's list of layers.
    Layer,
    /// In the list of tensors.
    Tensor,
}

/// A field of an item.
#[derive(Debug, PartialEq, Eq)]
pub struct Field {
    pub name: &'static str,
    pub takes: FieldType,
    /// Empty where the field must be given.
    pub default: &'static str,
}

/// What a field accepts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FieldType {
    /// A whole number, a named size, or an expression of them.
    Size,
    /// Sizes apart by colons.
    Shape,
    OneOf(&'static [&'static str]),
    Switch,
    /// A number from 0 to 1.
    Share,
    Name,
}

/// All item_types, in the order of the documentation.
pub const fn item_types() -> &'static [ItemType] {
    ITEM_TYPES
}

const fn field(name: &'static str, takes: FieldType, default: &'static str) -> Field {
    Field {
        name,
        takes,
        default,
    }
}

const NORMS: FieldType = FieldType::OneOf(&["none", "layer", "rms"]);
const ACTIVATIONS: FieldType = FieldType::OneOf(&["relu", "gelu", "silu", "tanh", "sigmoid"]);

const ITEM_TYPES: &[ItemType] = &[
    ItemType {
        name: "sizes",
        place: Position::Top,
        fields: &[],
        about: "Named sizes, each a whole number; `model.dims` may change them. `batch` and `sequence` are the data's.",
    },
    ItemType {
        name: "input",
        place: Position::Top,
        fields: &[
            field("kind", FieldType::OneOf(&["tokens", "values"]), "tokens"),
            field("shape", FieldType::Shape, "batch:sequence"),
        ],
        about: "What a batch is: token ids, or numbers in the weights' format.",
    },
    ItemType {
        name: "part",
        place: Position::Part,
        fields: &[
            field("name", FieldType::Name, ""),
            field("repeat", FieldType::Size, "1"),
            field("passes", FieldType::Size, "1"),
            field("gradient", FieldType::Size, "0"),
            field("frozen", FieldType::Switch, "off"),
            field("segments", FieldType::OneOf(&["layer", "pass"]), "layer"),
        ],
        about: "A stack of layers: `repeat` times with weights of their own, `passes` times over the same weights. Gradients flow through the last `gradient` passes (0: through all). With checkpointing a segment is a layer or a pass.",
    },
    ItemType {
        name: "embedding",
        place: Position::Layer,
        fields: &[
            field("rows", FieldType::Size, ""),
            field("width", FieldType::Size, ""),
        ],
        about: "A table looked up by token ids.",
    },
    ItemType {
        name: "linear",
        place: Position::Layer,
        fields: &[
            field("out", FieldType::Size, ""),
            field("bias", FieldType::Switch, "on"),
        ],
        about: "A linear layer over the last dimension.",
    },
    ItemType {
        name: "norm",
        place: Position::Layer,
        fields: &[field(
            "kind",
            FieldType::OneOf(&["layer", "rms", "batch"]),
            "layer",
        )],
        about: "A normalisation: layer and RMS over the last dimension, batch over the second.",
    },
    ItemType {
        name: "attention",
        place: Position::Layer,
        fields: &[
            field("heads", FieldType::Size, ""),
            field("kv", FieldType::Size, "0"),
            field("causal", FieldType::Switch, "off"),
            field("bias", FieldType::Switch, "on"),
            field("norm", NORMS, "layer"),
            field("residual", FieldType::Switch, "on"),
            field("dropout", FieldType::Share, "0"),
        ],
        about: "Self-attention over [batch, places, width] with projections, a norm before it and a residual around it; `kv` heads of keys and values where it is not 0. `training.attention` chooses the kernel.",
    },
    ItemType {
        name: "mlp",
        place: Position::Layer,
        fields: &[
            field("width", FieldType::Size, ""),
            field("gated", FieldType::Switch, "off"),
            field("activation", ACTIVATIONS, "gelu"),
            field("bias", FieldType::Switch, "on"),
            field("norm", NORMS, "layer"),
            field("residual", FieldType::Switch, "on"),
            field("dropout", FieldType::Share, "0"),
        ],
        about: "Two linear layers (three where gated) with an activation between, a norm before and a residual around.",
    },
    ItemType {
        name: "conv",
        place: Position::Layer,
        fields: &[
            field("out", FieldType::Size, ""),
            field("kernel", FieldType::Size, "3"),
            field("stride", FieldType::Size, "1"),
            field("groups", FieldType::Size, "1"),
            field("bias", FieldType::Switch, "on"),
        ],
        about: "A convolution over [batch, channels, ...] with one to three dimensions of space, padded by half its kernel.",
    },
    ItemType {
        name: "activation",
        place: Position::Layer,
        fields: &[field("kind", ACTIVATIONS, "relu")],
        about: "An element-wise function.",
    },
    ItemType {
        name: "dropout",
        place: Position::Layer,
        fields: &[field("p", FieldType::Share, "0.1")],
        about: "Drops elements, and keeps a mask.",
    },
    ItemType {
        name: "tensor",
        place: Position::Tensor,
        fields: &[
            field("name", FieldType::Name, ""),
            field("shape", FieldType::Shape, ""),
            field(
                "dtype",
                FieldType::OneOf(&[
                    "fp32", "fp64", "bf16", "fp16", "int64", "int32", "uint8", "bool",
                ]),
                "fp32",
            ),
            field(
                "lifetime",
                FieldType::OneOf(&["saved", "forward", "backward", "persistent"]),
                "saved",
            ),
            field("count", FieldType::Size, "1"),
            field("part", FieldType::Name, "loss"),
        ],
        about: "A tensor that no layer makes: saved from forward to backward, transient in either, or there all the time. It belongs to every run of a part's layers, or to the loss.",
    },
    ItemType {
        name: "loss",
        place: Position::Top,
        fields: &[field(
            "kind",
            FieldType::OneOf(&["cross-entropy", "mse", "mean"]),
            "mean",
        )],
        about: "What is trained for: classes along the last dimension, a target of the same shape, or the mean.",
    },
];

/// One item: its kind, and the fields that were given.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Item {
    pub kind: &'static ItemType,
    /// In the table's order; for `sizes`, which has any names, in the order of the alphabet.
    fields: Vec<(String, String)>,
}

impl Item {
    /// Reads an item; `at` is the path of its field.
    pub(super) fn read(
        kind: &str,
        given: Vec<(String, String)>,
        at: &str,
    ) -> Result<Self, Problem> {
        let Some(kind) = ITEM_TYPES.iter().find(|item| item.name == kind) else {
            let names = ITEM_TYPES.iter().map(|item| item.name);
            let expected = match nearest(kind, names.clone()) {
                Some(near) => format!("a known kind; did you mean {near}?"),
                None => format!("one of {}", names.collect::<Vec<_>>().join(", ")),
            };
            return Err(Problem::new(at, kind, expected));
        };
        let mut item = Self {
            kind,
            fields: Vec::new(),
        };
        for (key, value) in given {
            let path = format!("{at}.{key}");
            if kind.name == "sizes" {
                let size = value.parse::<u64>().ok().filter(|size| *size <= LARGEST);
                if size.is_none() || !is_name(&key) || matches!(key.as_str(), "batch" | "sequence")
                {
                    let expected = format!("a new name and a whole number up to {LARGEST}");
                    return Err(Problem::new(path, value, expected));
                }
            } else {
                let Some(field) = kind.fields.iter().find(|field| field.name == key) else {
                    let names = kind.fields.iter().map(|field| field.name);
                    let expected = match nearest(&key, names.clone()) {
                        Some(near) => format!("a known field; did you mean {near}?"),
                        None => format!("one of {}", names.collect::<Vec<_>>().join(", ")),
                    };
                    return Err(Problem::new(path, value, expected));
                };
                if !field.takes.accepts(&value) {
                    return Err(Problem::new(path, value, field.takes.expected()));
                }
            }
            if item.fields.iter().any(|(name, _)| *name == key) {
                return Err(Problem::new(path, value, "to be given once"));
            }
            item.fields.push((key, value));
        }
        let missing = kind.fields.iter().find(|field| {
            field.default.is_empty() && !item.fields.iter().any(|(name, _)| name == field.name)
        });
        if let Some(field) = missing {
            let path = format!("{at}.{}", field.name);
            return Err(Problem::new(path, "", field.takes.expected()));
        }
        item.settle();
        Ok(item)
    }

    /// Puts the fields in order and leaves out those that say what holds anyway, so that equal networks are equal.
    fn settle(&mut self) {
        let kind = self.kind;
        let place = |name: &str| kind.fields.iter().position(|field| field.name == name);
        self.fields.retain(|(name, value)| {
            let field = place(name).and_then(|at| kind.fields.get(at));
            field.is_none_or(|field| field.default != value)
        });
        let fields = std::mem::take(&mut self.fields);
        self.fields = sorted(fields, |a, b| (place(&a.0), &a.0).cmp(&(place(&b.0), &b.0)));
    }

    pub(super) fn text(&self) -> String {
        let mut text = self.kind.name.to_string();
        for (name, value) in &self.fields {
            text.push_str(&format!(",{name}={value}"));
        }
        text
    }

    /// The fields that were given.
    pub fn fields(&self) -> &[(String, String)] {
        &self.fields
    }

    /// A field's value, given or by default.
    pub fn get(&self, name: &str) -> &str {
        let given = self.fields.iter().find(|(key, _)| key == name);
        let field = || self.kind.fields.iter().find(|field| field.name == name);
        match given {
            Some((_, value)) => value,
            None => field().map_or("", |field| field.default),
        }
    }

    pub fn is_on(&self, name: &str) -> bool {
        matches!(self.get(name), "on" | "true" | "yes" | "1")
    }
}

impl FieldType {
    fn accepts(self, value: &str) -> bool {
        const LONGEST: usize = 200;
        let expression = |text: &str| {
            let sign = |c: char| c.is_ascii_alphanumeric() || "_+-*/() ".contains(c);
            !text.is_empty() && text.len() <= LONGEST && text.chars().all(sign)
        };
        match self {
            Self::Size => expression(value),
            Self::Shape => value.split(':').count() <= 6 && value.split(':').all(expression),
            Self::OneOf(words) => words.contains(&value),
            Self::Switch => matches!(
                value,
                "on" | "off" | "true" | "false" | "yes" | "no" | "1" | "0"
            ),
            Self::Share => decimal(value).is_some_and(|share| (0.0..=1.0).contains(&share)),
            Self::Name => is_name(value),
        }
    }

    /// What it accepts, as the end of "expected ...".
    pub fn expected(self) -> String {
        match self {
            Self::Size => "a size such as 384, hidden or 4*hidden".into(),
            Self::Shape => "up to six sizes apart by colons, such as batch:100:bins".into(),
            Self::OneOf(words) => format!("one of {}", words.join(", ")),
            Self::Switch => "on or off".into(),
            Self::Share => "a number from 0 to 1".into(),
            Self::Name => "a name of up to 40 letters, digits and _".into(),
        }
    }
}

/// The largest size that may be given or come out of an expression.
pub(super) const LARGEST: u64 = 10_000_000;

fn is_name(text: &str) -> bool {
    let plain = text.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
    plain && (1..=40).contains(&text.len()) && !text.starts_with(|c: char| c.is_ascii_digit())
}

/// Where the next item stands.
#[derive(Debug, Default)]
pub(super) struct Context {
    parts: usize,
    layers: usize,
    tensors: usize,
}

impl Context {
    /// The path of the next item's field.
    pub(super) fn next(&mut self, kind: &str) -> String {
        let place = ITEM_TYPES
            .iter()
            .find(|item| item.name == kind)
            .map(|item| item.place);
        match place {
            Some(Position::Top) => format!("{FIELD}.{kind}"),
            Some(Position::Part) => {
                (self.parts, self.layers) = (self.parts + 1, 0);
                format!("{FIELD}.parts.{}", self.parts - 1)
            }
            Some(Position::Tensor) => {
                self.tensors += 1;
                format!("{FIELD}.tensors.{}", self.tensors - 1)
            }
            Some(Position::Layer) | None => {
                self.layers += 1;
                let part = self.parts.saturating_sub(1);
                format!("{FIELD}.parts.{part}.layers.{}", self.layers - 1)
            }
        }
    }
}
