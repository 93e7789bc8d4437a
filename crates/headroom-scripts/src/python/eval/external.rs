//! Functions of other modules: those whose result is known are computed, the others recorded.

use std::rc::Rc;

use super::Machine;
use super::config::Format;
use super::operate::by_name;
use super::text::joined;
use super::value::{Args, Name, V};

/// Modules whose calls tell nothing about memory and are not recorded.
const QUIET: [&str; 34] = [
    "logging",
    "time",
    "random",
    "json",
    "re",
    "sys",
    "os",
    "gc",
    "glob",
    "shutil",
    "math",
    "datetime",
    "collections",
    "itertools",
    "functools",
    "typing",
    "pathlib",
    "warnings",
    "copy",
    "pprint",
    "string",
    "io",
    "csv",
    "pickle",
    "hashlib",
    "tempfile",
    "signal",
    "threading",
    "traceback",
    "tqdm",
    "rich",
    "platform",
    "socket",
    "loguru",
];

impl Machine<'_> {
    pub(super) fn external(&mut self, path: &Name, args: Args) -> V {
        if let Some(value) = self.initialize_base(path, args.clone()) {
            return value;
        }
        if let Some(value) = self.standard(path, &args) {
            return value;
        }
        if let Some(value) = self.configuration(path, &args) {
            return value;
        }
        if let Some(value) = self.parser_of(path, &args) {
            return value;
        }
        if let Some(value) = self.command_line_of(path, &args) {
            return value;
        }
        let package = path.split('.').next().unwrap_or("");
        if QUIET.contains(&package) {
            return V::unknown(format!("{path}()"));
        }
        let last = path.rsplit('.').next().unwrap_or("");
        let parser = args
            .plain
            .iter()
            .find(|value| matches!(value, V::Parser(_)));
        if let Some(parser) = parser.cloned() {
            if &**path == "deepspeed.add_config_arguments" {
                self.add_deepspeed_options(&parser);
            }
            return parser;
        }
        let callbacks = args.clone();
        let object = self.record(path, None, args, None);
        match (&**path, last) {
            ("wandb.init", _) => self.wandb = callbacks.named("config").cloned(),
            // Weights that are downloaded are named by where they come from.
            (_, "snapshot_download") => {
                let names = ["repo_id", "model_id"];
                let named = names.iter().find_map(|name| callbacks.named(name));
                if let Some(id) = named.or(callbacks.plain.first()) {
                    return id.clone();
                }
            }
            _ => {}
        }
        if let Some(known) = by_name(last) {
            return known;
        }
        self.launched(last, None, &callbacks);
        object
    }

    /// Functions of Python's own library, and of torch where the answer is known.
    fn standard(&mut self, path: &str, args: &Args) -> Option<V> {
        let first = args.plain.first();
        Some(match path {
            "os.getenv" | "os.environ.get" => {
                let environment = V::Dict(self.environment);
                self.plain_method(&environment, &"get".into(), args.clone())
            }
            "os.path.join" => self.join(&args.plain),
            "pathlib.Path" | "pathlib.PurePath" | "pathlib.PosixPath" => match args.plain.len() {
                0 => V::text("."),
                _ => self.join(&args.plain),
            },
            "os.path.abspath"
            | "os.path.expanduser"
            | "os.path.realpath"
            | "os.path.normpath"
            | "os.path.expandvars"
            | "os.fspath"
            | "typing.cast"
            | "copy.deepcopy"
            | "copy.copy"
            | "hydra.utils.to_absolute_path" => {
                let value = match path {
                    "typing.cast" => args.plain.get(1),
                    _ => first,
                };
                let value = value?.clone();
                if path.starts_with("copy") {
                    self.copied(&value)
                } else {
                    value
                }
            }
            "os.path.basename" | "os.path.dirname" | "os.path.splitext" => match first? {
                V::Text(text) => {
                    let text = text.clone();
                    self.path_function(path, &text)
                }
                other => other.clone(),
            },
            "os.path.exists" | "os.path.isfile" | "os.path.isdir" => match first? {
                // Nothing is there before a first run but the files beside.
                V::Text(text) => V::Bool(self.beside.text(text).is_some()),
                V::None => V::Bool(false),
                _ => V::unknown("whether a file exists"),
            },
            "os.system"
            | "os.popen"
            | "subprocess.run"
            | "subprocess.call"
            | "subprocess.Popen"
            | "subprocess.check_call"
            | "subprocess.check_output"
            | "subprocess.getoutput"
            | "IPython.get_ipython.system" => {
                self.run_command(args);
                V::unknown("what a command returns")
            }
            "IPython.get_ipython.run_cell_magic" => {
                self.cell(args);
                V::None
            }
            "functools.partial" => {
                let mut rest = args.clone();
                if rest.plain.is_empty() {
                    return None;
                }
                let function = rest.plain.remove(0);
                V::Partial(Rc::new((function, rest)))
            }
            "functools.lru_cache" | "functools.cache" | "functools.wraps" => first?.clone(),
            "collections.OrderedDict" | "collections.ChainMap" | "types.MappingProxyType" => {
                self.builtin("dict", args.clone())
            }
            "collections.defaultdict" => self.dict(Vec::new()),
            "types.SimpleNamespace" | "argparse.Namespace" => {
                let namespace = self.new_instance(None, args.named.clone());
                // What is not set is asked of the object whose attributes were spread.
                if let (V::Instance(id), Some(V::Object(index))) = (&namespace, &args.unknown)
                    && let Some(super::Cell::Instance(instance)) = self.heap.get_mut(*id)
                {
                    instance.object = Some(*index);
                }
                namespace
            }
            "dataclasses.field"
            | "pydantic.Field"
            | "attr.ib"
            | "attrs.field"
            | "chz.field"
            | "simple_parsing.field"
            | "simple_parsing.helpers.field"
            | "transformers.hf_argparser.HfArg"
            | "transformers.HfArg"
            | "draccus.field" => self.field(args),
            "dataclasses.asdict" | "attrs.asdict" | "dataclasses.astuple" => {
                self.builtin("vars", args.clone())
            }
            "dataclasses.replace" => self.replaced(args),
            "math.ceil" | "math.floor" | "math.sqrt" | "math.log" | "math.log2" | "math.prod"
            | "math.pow" | "math.isqrt" => self.mathematics(path, args)?,
            "math.inf" => V::Float(f64::INFINITY),
            "json.loads" => match first? {
                V::Text(text) => {
                    let text = text.clone();
                    self.document(&text, Format::Json)
                }
                other => other.clone(),
            },
            "json.dumps" => V::unknown("json.dumps()"),
            "ast.literal_eval" => match first? {
                V::Text(text) => {
                    let text = text.clone();
                    self.literal(&text)
                }
                other => other.clone(),
            },
            "torch.device" => match first? {
                V::Text(text) => V::Text(text.clone()),
                other => other.clone(),
            },
            "packaging.version.parse" | "packaging.version.Version" | "version.parse" => {
                first?.clone()
            }
            "torch.cuda.is_available" | "torch.distributed.is_available" => V::Bool(true),
            "torch.backends.mps.is_available" => V::Bool(false),
            "torch.cuda.get_device_capability" => self.tuple(vec![V::Int(9), V::Int(0)]),
            "torch.cuda.device_count" | "torch.distributed.get_world_size" => {
                V::unknown("the number of GPUs")
            }
            "torch.distributed.is_initialized" => V::unknown("whether torch.distributed runs"),
            "multiprocessing.cpu_count" | "os.cpu_count" => V::unknown("the number of CPU cores"),
            "importlib.import_module" => match first? {
                V::Text(module) => V::Name(module.clone()),
                other => other.clone(),
            },
            "yaml.dump" | "yaml.safe_dump" | "json.dump" => return self.dump(path, args),
            "contextlib.nullcontext" | "contextlib.suppress" | "mmengine.config.read_base" => {
                V::None
            }
            "inspect.signature" => V::unknown("inspect.signature()"),
            _ => return None,
        })
    }

    pub(super) fn join(&mut self, parts: &[V]) -> V {
        let mut path: Name = "".into();
        for part in parts {
            match part {
                V::Text(part) => path = joined(&path, part),
                other => {
                    return self.why(other);
                }
            }
            self.spend(1 + path.len() / 16);
            if path.len() > 4_000 {
                return V::unknown("a long path");
            }
        }
        V::Text(path)
    }

    fn path_function(&mut self, path: &str, text: &str) -> V {
        let (folder, name) = text.rsplit_once('/').unwrap_or(("", text));
        match path {
            "os.path.basename" => V::text(name),
            "os.path.dirname" => V::text(folder),
            _ => {
                let dot = name.rfind('.').filter(|at| *at > 0);
                let split = dot.map_or(text.len(), |at| text.len() - name.len() + at);
                let (stem, suffix) = text.split_at(split);
                self.tuple(vec![V::text(stem), V::text(suffix)])
            }
        }
    }

    fn copied(&mut self, value: &V) -> V {
        match value {
            V::List(id) => {
                let items = self.items(*id).to_vec();
                let kind = self.list_kind(*id);
                self.sequence(kind, items)
            }
            V::Dict(id) => {
                let entries = self.entries(*id).to_vec();
                self.dict(entries)
            }
            V::Instance(id) => {
                let (class, object) = self.class_of(*id);
                let attributes = self.attributes(*id).to_vec();
                let copy = self.new_instance(class, attributes);
                if let (V::Instance(copy), Some(_)) = (&copy, object)
                    && let Some(super::Cell::Instance(instance)) = self.heap.get_mut(*copy)
                {
                    instance.object = object;
                }
                copy
            }
            other => other.clone(),
        }
    }

    fn replaced(&mut self, args: &Args) -> V {
        let Some(first) = args.plain.first() else {
            return V::None;
        };
        let copy = self.copied(first);
        if let V::Instance(id) = copy {
            for (name, value) in &args.named {
                self.set_on_instance(id, name, value.clone());
            }
        }
        copy
    }

    /// `field(default=…)`, which a class reads when it is defined.
    fn field(&mut self, args: &Args) -> V {
        let mut entries = vec![(V::text("<field>"), V::Bool(true))];
        let default = args.named("default").or_else(|| args.plain.first());
        let ellipsis = matches!(default, Some(V::Name(path)) if &**path == "...");
        if let Some(default) = default.filter(|_| !ellipsis) {
            entries.push((V::text("default"), default.clone()));
        }
        let factory = args
            .named("default_factory")
            .or_else(|| args.named("factory"));
        if let Some(factory) = factory {
            entries.push((V::text("default_factory"), factory.clone()));
        }
        self.dict(entries)
    }

    fn mathematics(&mut self, path: &str, args: &Args) -> Option<V> {
        let first = args.plain.first()?;
        if path == "math.prod" {
            let V::List(id) = first else { return None };
            let items = self.items(*id).to_vec();
            let mut product = V::Int(1);
            for item in items {
                product = self.arithmetic(crate::python::syntax::ast::Op::Mul, &product, &item);
            }
            return Some(product);
        }
        let Some(number) = first.float() else {
            return Some(self.why(first));
        };
        Some(match path {
            "math.ceil" => whole(number.ceil()),
            "math.floor" => whole(number.floor()),
            "math.isqrt" => whole(number.sqrt().floor()),
            "math.sqrt" => V::Float(number.sqrt()),
            "math.log2" => V::Float(number.log2()),
            "math.log" => V::Float(number.ln()),
            _ => V::Float(number.powf(args.plain.get(1)?.float()?)),
        })
    }

    /// A command that the program runs, as one line.
    fn run_command(&mut self, args: &Args) {
        let line = match args.get(0, "args") {
            Some(V::Text(text)) => text.to_string(),
            Some(V::List(id)) => {
                let words: Vec<String> = self
                    .items(*id)
                    .iter()
                    .take(500)
                    .map(|word| self.shown(word).unwrap_or_else(|| "$unknown".into()))
                    .collect();
                words.join(" ")
            }
            _ => return,
        };
        self.command(&line);
    }

    pub(super) fn command(&mut self, line: &str) {
        let line = line.trim();
        if line.is_empty() || self.out.commands.len() >= 500 || line.len() > 100_000 {
            return;
        }
        self.spend(line.len() / 16);
        self.out.commands.push(line.to_string());
    }
}

fn whole(number: f64) -> V {
    if number.is_finite() && number.abs() < 1e30 {
        V::Int(number as i128)
    } else {
        V::Float(number)
    }
}
