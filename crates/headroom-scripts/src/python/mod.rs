//! Python read as a program: what it constructs and calls, with arguments as far as they can be known. Nothing is executed.

mod eval;
mod notebook;
mod syntax;
#[cfg(test)]
mod tests;

use super::Beside;
pub use notebook::notebook;

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
    /// A name of another module, by its full path, such as `torch.bfloat16`; the program's own functions by their name alone.
    Name(String),
    /// What cannot be known, and why: `--data was not given`, `config.yaml is not there`.
    Unknown(String),
}

/// A call of something that the module does not define itself, in the order in which a run would reach it.
#[derive(Clone, Debug, PartialEq)]
pub struct Call {
    /// The full path by its import, such as `transformers.TrainingArguments` or `peft.LoraConfig`; of a method the class or
    /// the object's constructor: `transformers.AutoModelForCausalLM.from_pretrained`, `.gradient_checkpointing_enable`.
    pub path: String,
    /// The program's own class, where it extends the one at `path`.
    pub class: Option<String>,
    /// The object that a method is called on.
    pub on: Option<Value>,
    pub args: Vec<Value>,
    /// Named arguments, `**kwargs` spread; what is spread and cannot be known is named `**`.
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
    /// Files that it writes, by name, as far as their text is known (`%%writefile ds_config.json`).
    pub files: Vec<(String, String)>,
    /// Versions that it installs or names: `transformers`, `4.34`.
    pub pins: Vec<(String, String)>,
    /// Its docstring's lines and the comments near its top.
    pub comments: Vec<String>,
    /// Files that it reads or imports and that are not beside it.
    pub absent: Vec<String>,
    /// Values that were taken although they stand under a condition that cannot be known.
    pub assumed: Vec<String>,
}

/// Evaluates a module, or a notebook, as a run with these arguments would see it; `beside` has the files that it imports
/// or opens.
pub fn evaluate(text: &str, arguments: &[String], beside: &dyn Beside) -> Module {
    match notebook(text) {
        Some(code) => eval::evaluate(&code, arguments, beside),
        None => eval::evaluate(text, arguments, beside),
    }
}
