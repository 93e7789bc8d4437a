//! The model that a script trains: from its constructor through what wraps it.

use headroom_scripts::python::{Call, Value};

use super::calls::{Calls, argument, ends_with, last};
use crate::fact::Fact;
use crate::keys::Keys;
use crate::programs::hf::precision;
use crate::words::{Task, Weights};

/// Wrappers that are followed.
const MOST_WRAPPERS: usize = 8;

#[derive(Debug, Default)]
pub struct Model<'a> {
    pub name: Fact<String>,
    /// `AutoModelForSequenceClassification`; empty where the trainer loads it itself.
    pub class: String,
    /// The arguments it is loaded with.
    pub keys: Keys,
    pub weights: Fact<Weights>,
    /// `get_peft_model` or its like, where it is wrapped so.
    pub wrapped: Option<&'a Call>,
    /// `prepare_model_for_kbit_training`, whose checkpointing is on unless it is turned off.
    pub prepared: Option<bool>,
}

impl<'a> Model<'a> {
    pub fn of(calls: &Calls<'a>, value: Option<&Value>, init: Option<&Value>) -> Self {
        let mut model = Self::default();
        let mut value = value.cloned();
        for _ in 0..MOST_WRAPPERS {
            match &value {
                Some(Value::Text(name)) => {
                    model.name = Fact::read(name.clone(), "model");
                    if let Some(init) = init {
                        model.init(calls, init);
                    }
                    return model;
                }
                Some(Value::Unknown(why)) => {
                    model.name = Fact::Unknown(why.clone());
                    return model;
                }
                Some(value @ (Value::Object(_) | Value::List(_))) if calls.of(value).is_some() => {}
                _ => break,
            }
            let Some(call) = value.as_ref().and_then(|value| calls.of(value)) else {
                break;
            };
            let inner = model.unwrap(calls, call);
            if inner.is_none() {
                return model;
            }
            value = inner;
        }
        // What the trainer gets cannot be followed: the model that is loaded last.
        let load = calls
            .all()
            .rev()
            .find(|call| loads(&call.path) && !is_part(&call.path));
        if let Some(call) = load {
            model.load(calls, call);
        }
        for call in calls.all() {
            if is_wrapper(&call.path) {
                model.wrapped = Some(call);
            }
            model.prepare(calls, call);
        }
        model
    }

    /// What a call wraps, noting what the call itself does; `None` where it is the constructor.
    fn unwrap(&mut self, calls: &Calls<'a>, call: &'a Call) -> Option<Value> {
        if loads(&call.path) {
            self.load(calls, call);
            return None;
        }
        if is_wrapper(&call.path) {
            self.wrapped = Some(call);
        }
        self.prepare(calls, call);
        // A method returns its object, a function wraps its first argument.
        let first = argument(call, "model", 0).cloned();
        first.or_else(|| call.on.clone())
    }

    fn prepare(&mut self, calls: &Calls<'a>, call: &Call) {
        if [
            "prepare_model_for_kbit_training",
            "prepare_model_for_int8_training",
        ]
        .iter()
        .any(|name| ends_with(&call.path, name))
        {
            let keys = calls.keys(call);
            let off = keys.switch("use_gradient_checkpointing").value() == Some(&false);
            self.prepared = Some(!off);
        }
    }

    fn load(&mut self, calls: &Calls<'a>, call: &'a Call) {
        self.keys = calls.keys(call);
        self.class = constructor(&call.path).to_string();
        let named = [
            "pretrained_model_name_or_path",
            "model_name",
            "model_name_or_path",
        ]
        .iter()
        .find_map(|name| {
            call.kwargs
                .iter()
                .find(|(own, _)| own == name)
                .map(|(_, value)| value)
        });
        let named = named.or_else(|| call.args.first());
        let downloaded = named.and_then(|value| calls.of(value)).filter(|call| {
            ["snapshot_download", "join", "Path", "hf_hub_download"].contains(&last(&call.path))
        });
        let named = downloaded.map_or(named, |call| {
            argument(call, "repo_id", 0).or_else(|| argument(call, "model_id", 0))
        });
        self.name = match named {
            Some(Value::Text(name)) => {
                Fact::read(name.clone(), format!("{}(…)", last(&self.class)))
            }
            Some(Value::Unknown(why)) => Fact::Unknown(why.clone()),
            Some(_) => Fact::Unknown("its name is made elsewhere".into()),
            None => Fact::Unknown("it is built from a configuration".into()),
        };
        self.types();
    }

    /// `model_init_kwargs`.
    fn init(&mut self, calls: &Calls<'a>, init: &Value) {
        if let Value::Dict(entries) = init {
            for (key, value) in entries {
                if let (Value::Text(key), Some(value)) = (key, calls.document(value, 4)) {
                    self.keys.set(key, value);
                }
            }
        }
        self.types();
    }

    fn types(&mut self) {
        let four = |keys: &Keys, path: &str| precision::quantised(&below(keys, path));
        let quantised =
            precision::quantised(&self.keys).or(four(&self.keys, "quantization_config"));
        self.weights = quantised.or(precision::loaded(&self.keys));
    }

    /// What is trained, by the class of its head.
    pub fn task(&self) -> Option<Task> {
        let class = last(&self.class);
        Some(if class.contains("ForSequenceClassification") {
            Task::Classification
        } else if class.contains("ForTokenClassification") {
            Task::TokenClassification
        } else if class.contains("ForQuestionAnswering") {
            Task::QuestionAnswering
        } else if class.contains("ForMaskedLM") {
            Task::MaskedLm
        } else if class.contains("Seq2Seq")
            || class.contains("ForConditionalGeneration") && class.contains("T5")
        {
            Task::Seq2Seq
        } else if class.contains("ForCTC") {
            Task::Ctc
        } else if class.contains("ImageClassification") {
            Task::Classification
        } else if class.contains("ObjectDetection") {
            Task::Detection
        } else if class.contains("SemanticSegmentation") {
            Task::Segmentation
        } else if class.contains("SentenceTransformer") {
            Task::Contrastive
        } else if class.contains("CrossEncoder") {
            Task::Reranking
        } else {
            return None;
        })
    }
}

/// A map inside as keys of its own.
fn below(keys: &Keys, path: &str) -> Keys {
    keys.peek(path)
        .map_or_else(Keys::default, |map| Keys::new(map.clone()))
}

/// Whether a call makes a model.
fn loads(path: &str) -> bool {
    let class = constructor(path);
    let by_name = ends_with(path, "from_pretrained") || ends_with(path, "from_config");
    let models = [
        "Model",
        "For",
        "FastLanguage",
        "FastVision",
        "Whisper",
        "LMHead",
        "Llava",
        "SentenceTransformer",
        "CrossEncoder",
    ];
    let made = |name: &str| models.iter().any(|part| name.contains(part));
    (by_name && made(last(class)) && !last(class).contains("Processor"))
        || ["SentenceTransformer", "CrossEncoder", "SparseEncoder"].contains(&last(path))
}

/// The class of `x.y.Class.from_pretrained`.
fn constructor(path: &str) -> &str {
    ["from_pretrained", "from_config"]
        .iter()
        .find_map(|method| path.strip_suffix(method)?.strip_suffix('.'))
        .unwrap_or(path)
}

/// Parts that are loaded beside the model.
fn is_part(path: &str) -> bool {
    ["Tokenizer", "Processor", "Config", "FeatureExtractor"]
        .iter()
        .any(|part| constructor(path).ends_with(part))
}

fn is_wrapper(path: &str) -> bool {
    [
        "get_peft_model",
        "PeftModel.from_pretrained",
        "PeftModelForCausalLM.from_pretrained",
    ]
    .iter()
    .any(|name| ends_with(path, name))
}
