//! Calls: the program's own functions are followed, calls of other modules are recorded.

use std::rc::Rc;

use super::value::{Args, Class, Closure, ListKind, Name, ScopeId, V};
use super::{DEEPEST, Flow, Frame, Machine};
use crate::python::Call;
use crate::python::syntax::ast::ParamKind;

/// Calls that a module may record.
const MOST_CALLS: usize = 3_000;

/// Methods that return what they are called on.
const RETURN_SELF: [&str; 16] = [
    "to",
    "cuda",
    "cpu",
    "train",
    "eval",
    "half",
    "float",
    "bfloat16",
    "double",
    "type",
    "requires_grad_",
    "apply",
    "to_empty",
    "remote",
    "share_memory",
    "options",
];

impl Machine<'_> {
    pub(super) fn call(&mut self, callee: &V, args: Args, written: &dyn Fn() -> String) -> V {
        if self.depth >= DEEPEST || !self.spend(1) {
            return V::unknown("too much to evaluate");
        }
        self.depth += 1;
        let value = self.call_inside(callee, args, written);
        self.depth -= 1;
        value
    }

    fn call_inside(&mut self, callee: &V, args: Args, written: &dyn Fn() -> String) -> V {
        match callee {
            V::Function(closure) => self.enter_function(closure, args),
            V::Method(method) => {
                let (on, closure, owner) = &**method;
                self.call_method(on.clone(), closure, owner.clone(), args)
            }
            V::Class(class) => self.instantiate(class, args),
            V::Builtin(name) => self.builtin(name, args),
            V::PlainMethod(method) => self.plain_method(&method.0, &method.1, args),
            V::Partial(partial) => {
                let (function, first) = &**partial;
                let mut all = first.clone();
                self.spend(all.plain.len() + all.named.len());
                all.plain.extend(args.plain);
                for (name, value) in args.named {
                    all.set(&name, value);
                }
                all.unknown = args.unknown.or(all.unknown);
                self.call(&function.clone(), all, written)
            }
            V::Name(path) => self.external(path, args),
            V::Object(index) => self.call_object(*index, args),
            V::Part(index, path) => self.call_part(*index, path, args),
            V::Instance(id) => self.call_instance(*id, args),
            V::Unknown(reason) => V::Unknown(reason.clone()),
            V::Absent(option) => V::unknown(format!("{option} was not given")),
            _ => V::unknown(format!("{}(…)", written())),
        }
    }

    fn call_instance(&mut self, id: usize, args: Args) -> V {
        let instance = V::Instance(id);
        for name in ["__call__", "forward"] {
            let (class, _) = self.class_of(id);
            let found = class.and_then(|class| class.find(name));
            if let Some((V::Function(closure), owner)) = found {
                return self.call_method(instance, &closure, owner, args);
            }
        }
        V::unknown("what an instance returns")
    }

    /// Records a call of another module.
    pub(super) fn record(
        &mut self,
        path: &str,
        on: Option<&V>,
        args: Args,
        class: Option<Name>,
    ) -> V {
        if self.out.calls.len() >= MOST_CALLS {
            return V::unknown("too many calls");
        }
        let mut args = args;
        self.need_model(path, &mut args);
        if let Some((_, value)) = args
            .named
            .iter_mut()
            .find(|(name, _)| &**name == "model_init")
            && let V::Function(closure) = value
        {
            let closure = closure.clone();
            *value = self.run_function(&closure, Args::default(), None);
        }
        let on = on.map(|on| self.value(on));
        let plain = args.plain.iter().map(|value| self.value(value)).collect();
        let mut kwargs: Vec<(String, crate::python::Value)> = args
            .named
            .iter()
            .map(|(name, value)| (name.to_string(), self.value(value)))
            .collect();
        if let Some(unknown) = &args.unknown {
            let unknown = self.value(unknown);
            kwargs.push(("**".into(), unknown));
        }
        self.out.calls.push(Call {
            path: path.to_string(),
            class: class.map(|name| name.to_string()),
            on,
            args: plain,
            kwargs,
            conditional: !self.conditions.is_empty(),
        });
        self.given.push(args);
        V::Object(self.out.calls.len() - 1)
    }

    /// An option without default that names what is loaded must be given.
    fn need_model(&mut self, path: &str, args: &mut Args) {
        const NAMED: [&str; 5] = [
            "pretrained_model_name_or_path",
            "model_name_or_path",
            "model_name",
            "model",
            "model_id",
        ];
        let loads = path.ends_with("from_pretrained") || path.ends_with("Trainer");
        let Args { plain, named, .. } = args;
        let first = plain.iter_mut().take(1);
        let named = named
            .iter_mut()
            .filter(|(name, _)| NAMED.contains(&&**name))
            .map(|(_, value)| value);
        for value in first.chain(named) {
            if let V::Absent(option) = value
                && loads
            {
                let option = option.clone();
                *value = V::unknown(format!("{option} was not given"));
                self.missing(&option);
            }
        }
    }

    /// A call of a method of an object that an external call returned.
    fn call_part(&mut self, index: usize, path: &Name, args: Args) -> V {
        let last = path.rsplit('.').next().unwrap_or("");
        if let Some(command) = self.entry_of_part(index, last, &args) {
            return command;
        }
        let on = V::Object(index);
        let closures = args.clone();
        let prepared = args.plain.clone();
        let object = self.record(path, Some(&on), args, None);
        if RETURN_SELF.contains(&last) {
            return match path.strip_suffix(&format!(".{last}")) {
                Some("") | None => on,
                Some(base) => V::Part(index, base.into()),
            };
        }
        if let Some(known) = super::operate::by_name(last) {
            return known;
        }
        match (last, prepared.as_slice()) {
            ("prepare" | "setup" | "prepare_model" | "unwrap_model", [one]) => return one.clone(),
            ("get" | "add_argparse_args", [.., V::Parser(_)]) => {
                return prepared.last().cloned().unwrap_or(V::None);
            }
            _ => {}
        }
        self.launched(last, Some(index), &closures);
        self.run_hooks(index, last, &closures);
        object
    }

    /// A trainer that runs calls functions of the program's own classes: of a LightningModule that `fit` is given, of a
    /// class that extends the trainer.
    fn run_hooks(&mut self, index: usize, last: &str, args: &Args) {
        const TRAINER: [&str; 4] = [
            "create_model",
            "create_optimizer",
            "get_train_dataloader",
            "compute_loss",
        ];
        const LIGHTNING: [&str; 6] = [
            "prepare_data",
            "setup",
            "configure_model",
            "configure_optimizers",
            "train_dataloader",
            "training_step",
        ];
        let (hooks, instances): (&[&str], Vec<usize>) = match last {
            "train" => (
                &TRAINER,
                self.instances.get(&index).copied().into_iter().collect(),
            ),
            "fit" | "run" => {
                let named = args.named.iter().map(|(_, value)| value);
                let given = args
                    .plain
                    .iter()
                    .chain(named)
                    .filter_map(|value| match value {
                        V::Instance(id) => Some(*id),
                        V::Object(index) => self.instances.get(index).copied(),
                        _ => None,
                    });
                (&LIGHTNING, given.collect())
            }
            _ => return,
        };
        for id in instances {
            let Some(class) = self.class_of(id).0 else {
                continue;
            };
            for hook in hooks {
                if let Some((V::Function(closure), owner)) = class.find(hook) {
                    self.call_method(V::Instance(id), &closure, owner, Args::default());
                }
            }
        }
    }

    fn call_object(&mut self, index: usize, args: Args) -> V {
        if let Some(value) = self.run_app(index, &args) {
            return value;
        }
        self.record(".__call__", Some(&V::Object(index)), args, None)
    }

    /// Functions that a launcher is given and calls itself: `mp.spawn(main, args=…)`, `notebook_launcher(train, …)`.
    pub(super) fn launched(&mut self, last: &str, on: Option<usize>, args: &Args) {
        const LAUNCH: [&str; 10] = [
            "spawn",
            "launch",
            "notebook_launcher",
            "debug_launcher",
            "TorchTrainer",
            "TorchDistributor",
            "start_processes",
            "submit",
            "run_until_complete",
            "launch_agent",
        ];
        if !LAUNCH.contains(&last) {
            return;
        }
        let names = ["fn", "function", "target", "train_loop_per_worker"];
        let named = names.iter().find_map(|name| args.named(name));
        let callables = |value: &&V| matches!(value, V::Function(_) | V::Method(_) | V::Partial(_));
        let Some(function) = named.or_else(|| args.plain.iter().find(callables)).cloned() else {
            return;
        };
        let mut given = match (last, on) {
            ("spawn" | "start_processes", _) => vec![V::Int(0)],
            // Lightning's Fabric gives itself to the function.
            ("launch", Some(fabric)) => vec![V::Object(fabric)],
            _ => Vec::new(),
        };
        match args.named("args").or_else(|| args.plain.get(1)).cloned() {
            Some(V::List(id)) => given.extend(self.items(id).to_vec()),
            Some(other) if args.named("args").is_none() && last != "TorchTrainer" => {
                given.push(other);
                given.extend(args.plain.iter().skip(2).cloned());
            }
            _ => {}
        }
        if let Some(config) = args.named("train_loop_config") {
            given = vec![config.clone()];
        }
        self.call(&function, Args::of(given), &String::new);
    }

    pub(super) fn call_method(
        &mut self,
        on: V,
        closure: &Rc<Closure>,
        owner: Rc<Class>,
        args: Args,
    ) -> V {
        let mut all = args;
        all.plain.insert(0, on.clone());
        self.run_function(closure, all, Some((on, owner)))
    }

    /// Runs a function of the program's own.
    pub(super) fn run_function(
        &mut self,
        closure: &Rc<Closure>,
        args: Args,
        method: Option<(V, Rc<Class>)>,
    ) -> V {
        let function = &closure.function;
        let active = self.frames.iter().filter(|frame| {
            frame
                .function
                .as_ref()
                .is_some_and(|own| Rc::ptr_eq(own, function))
        });
        if active.count() >= 3 || self.depth >= DEEPEST {
            return V::unknown(format!("{} calls itself", function.name));
        }
        self.depth += 1;
        self.ran.insert(function.name.clone());
        let scope = self.new_scope(closure.scope);
        self.parameters(closure, scope, args);
        let scope_before = std::mem::replace(&mut self.scope, scope);
        let local_before = std::mem::replace(&mut self.local_scope, scope);
        let module = self.module_of(closure.scope);
        let module_before = std::mem::replace(&mut self.module, module);
        self.frames.push(Frame {
            method,
            function: Some(function.clone()),
            ..Frame::default()
        });
        let flow = self.block(&function.body);
        let frame = self.frames.pop().unwrap_or_default();
        self.scope = scope_before;
        self.local_scope = local_before;
        self.module = module_before;
        self.depth -= 1;
        let value = match flow {
            Flow::Return(value) => value,
            Flow::Raise => V::unknown(format!("{} raises", function.name)),
            _ => V::None,
        };
        if frame.yielded {
            return V::unknown(format!("what {} yields", function.name));
        }
        match frame.fallback {
            Some(fallback) if value.says_nothing() && !fallback.says_nothing() => fallback,
            _ => value,
        }
    }

    /// The module whose scope this is, or is inside of.
    fn module_of(&self, scope: ScopeId) -> usize {
        let mut root = scope;
        while let Some(parent) = self.scopes.get(root).and_then(|scope| scope.parent) {
            root = parent;
        }
        let found = self.modules.iter().position(|module| module.scope == root);
        found.unwrap_or(self.module)
    }

    /// Binds a function's parameters to arguments.
    fn parameters(&mut self, closure: &Rc<Closure>, scope: ScopeId, args: Args) {
        let function = &closure.function;
        let mut plain = args.plain.into_iter();
        let mut named = args.named;
        self.spend(named.len() + function.params.len());
        for (at, param) in function.params.iter().enumerate() {
            let value = match param.kind {
                ParamKind::Star => {
                    let rest: Vec<V> = plain.by_ref().collect();
                    self.sequence(ListKind::Tuple, rest)
                }
                ParamKind::StarStar => {
                    let mut rest: Vec<(V, V)> = std::mem::take(&mut named)
                        .into_iter()
                        .map(|(name, value)| (V::Text(name), value))
                        .collect();
                    if let Some(unknown) = &args.unknown {
                        rest.push((V::text("**"), unknown.clone()));
                    }
                    self.dict(rest)
                }
                ParamKind::Plain | ParamKind::Named => {
                    let by_place = match param.kind {
                        ParamKind::Plain => plain.next(),
                        _ => None,
                    };
                    let by_name = || {
                        let at = named.iter().position(|(name, _)| *name == param.name)?;
                        Some(named.remove(at).1)
                    };
                    let default = closure.defaults.get(at).cloned().flatten();
                    by_place.or_else(by_name).or(default).unwrap_or_else(|| {
                        V::unknown(format!("{}'s argument {}", function.name, param.name))
                    })
                }
            };
            if let Some(scope) = self.scopes.get_mut(scope) {
                scope.names.insert(param.name.clone(), value);
            }
        }
    }
}
