//! Python read as a program: what it constructs and calls, with arguments as far as they can be known. Nothing is executed.

use super::Beside;

/// A value of Python.
#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    None,
    Bool(bool),
    Int(i128),
    Float(f64),
    Text(String),
    /// Lists, tuples and sets.
    List(Vec<Value>),
    Dict(Vec<(Value, Value)>),
    /// What a call returned, an instance of a class of another module, by its place in `Module::calls`.
    Object(usize),
    /// A name of another module, by its full path, such as `torch.bfloat16`.
    Name(String),
    /// What cannot be known, and why: `--data has no default`, `cfg is read from config.yaml`.
    Unknown(String),
}

/// A call of something that the module does not define itself, in the order in which a run would reach it.
#[derive(Clone, Debug, PartialEq)]
pub struct Call {
    /// The full path by its import, such as `transformers.TrainingArguments` or `peft.LoraConfig`; of a method the class or
    /// the object's constructor: `transformers.AutoModelForCausalLM.from_pretrained`, `.gradient_checkpointing_enable`.
    pub path: String,
    /// The object that a method is called on.
    pub on: Option<Value>,
    pub args: Vec<Value>,
    /// Named arguments, `**kwargs` spread.
    pub kwargs: Vec<(String, Value)>,
    /// It may not be reached: it stands under a condition that cannot be known.
    pub conditional: bool,
}

/// What a module does when it is run as `python file.py ARGUMENTS`.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Module {
    pub calls: Vec<Call>,
    /// Modules that it imports, by full name (`trl`, `transformers`, `peft`).
    pub imports: Vec<String>,
    /// Module-level names at the end.
    pub names: Vec<(String, Value)>,
    /// Attributes that are set on objects (`model.config.use_cache = False`, `param.requires_grad = False`), by what was
    /// written on the left.
    pub assigned: Vec<(String, Value)>,
    /// Options that its parser requires or reads without a default and that were not given: `--model_path`.
    pub missing: Vec<String>,
    /// Where its code is inside strings that it writes as files or runs (`subprocess.run("torchrun …")`, `!accelerate launch …`).
    pub commands: Vec<String>,
}

/// Evaluates a module as a run with these arguments would see it; `beside` has the files that it imports or opens.
pub fn evaluate(_text: &str, _arguments: &[String], _beside: &dyn Beside) -> Module {
    Module::default()
}

/// The code of a notebook, where the text is one.
pub fn notebook(_text: &str) -> Option<String> {
    None
}
