//! Functions that are given the command line: `fire`, `typer`, `click`, `absl`.

use std::rc::Rc;

use super::Machine;
use super::arg_option::{Action, ArgOption, Number, is_flag};

use super::command_line::{flags, guessed};
use super::value::{Args, Closure, Hint, Id, Name, V, annotated_class, hint};
use crate::python::syntax::ast::{Expr, ParamKind};

impl Machine<'_> {
    /// Functions that run another one with the command line.
    pub(super) fn command_line_of(&mut self, path: &str, args: &Args) -> Option<V> {
        let function = args.plain.first().or_else(|| args.named("component"));
        Some(match path {
            "fire.Fire"
            | "fire.core.Fire"
            | "typer.run"
            | "jsonargparse.CLI"
            | "jsonargparse.auto_cli"
            | "chz.entrypoint"
            | "chz.nested_entrypoint"
            | "defopt.run"
            | "plac.call"
            | "hydra_zen.zen"
            | "tyro.cli"
            | "tyro.extras.subcommand_cli_from_dict"
            | "simple_parsing.parse"
            | "draccus.parse"
            | "pyrallis.parse"
            | "simple_parsing.helpers.parse"
            | "tyro.extras.overridable_config_cli"
            | "pydantic_settings.CliApp.run" => match function {
                Some(V::Class(class)) => self.class_from_arguments(&class.clone()),
                Some(V::Function(closure)) => self.with_command_line(&closure.clone()),
                Some(V::Name(class)) => {
                    let words = self.arguments.to_vec();
                    let named = self.leftover(&words, &[]);
                    let args = Args {
                        named,
                        ..Args::default()
                    };
                    self.record(class, None, args, None)
                }
                Some(V::Dict(id)) => self.chosen(*id),
                Some(other) => {
                    let other = other.clone();
                    self.call(&other, Args::default(), &|| path.to_string())
                }
                None => match args.named("config_class") {
                    Some(V::Class(class)) => self.class_from_arguments(&class.clone()),
                    _ => self.main_function(),
                },
            },
            "typer.Option" | "typer.Argument" | "cyclopts.Parameter" => match function {
                Some(V::Name(name)) if &**name == "..." => {
                    V::unknown("an option that was not given")
                }
                Some(value) => value.clone(),
                None => args.named("default").cloned().unwrap_or(V::None),
            },
            "absl.app.run" => {
                let main = function?.clone();
                let argv = self.list(Vec::new());
                self.call(&main, Args::of(vec![argv]), &String::new)
            }
            _ => return self.flag_of(path, args),
        })
    }

    /// `Fire()` and `CLI()` without a function.
    pub(super) fn main_function(&mut self) -> V {
        match self.lookup("main") {
            Some(V::Function(closure)) => self.with_command_line(&closure),
            _ => V::None,
        }
    }

    /// `Fire({"train": train, …})`: the first word says which.
    pub(super) fn chosen(&mut self, id: Id) -> V {
        let word = self.arguments.iter().find(|word| !is_flag(word)).cloned();
        let function = match word {
            Some(word) => self.entry(id, &word),
            None => self.entries(id).first().map(|(_, value)| value.clone()),
        };
        match function {
            Some(V::Function(closure)) => self.with_command_line(&closure),
            _ => V::None,
        }
    }

    /// absl's flags: `flags.DEFINE_integer("batch_size", 8, "…")`.
    pub(super) fn flag_of(&mut self, path: &str, args: &Args) -> Option<V> {
        let rest = path.strip_prefix("absl.flags.")?;
        if rest == "FLAGS" {
            return None;
        }
        let kind = rest.strip_prefix("DEFINE_")?;
        let name = args.text(0, "name")?.clone();
        let default = args.get(1, "default").cloned().unwrap_or(V::None);
        let hint = match kind {
            "integer" => Hint::Int,
            "float" => Hint::Float,
            "bool" | "boolean" => Hint::Bool,
            "list" | "multi_string" => Hint::Many,
            _ => Hint::Text,
        };
        let words = flags(self.arguments);
        let given = words
            .iter()
            .rev()
            .find(|(flag, _)| flag.trim_start_matches('-') == &*name);
        let value = match given {
            Some((_, words)) => match words.first() {
                Some(word) => self.hinted(hint, &word.as_str().into()),
                None => V::Bool(true),
            },
            None => default,
        };
        let flags = self.absl_flags();
        self.insert(flags, V::Text(name), value.clone());
        let holder = self.dict(vec![(V::text("value"), value)]);
        Some(holder)
    }

    pub(super) fn absl_flags(&mut self) -> Id {
        if let Some(id) = self.flags {
            return id;
        }
        match self.dict(Vec::new()) {
            V::Dict(id) => {
                self.flags = Some(id);
                id
            }
            _ => self.environment,
        }
    }

    /// A function called with the options that were given, as `fire`, `typer`, `tyro` and `jsonargparse` do.
    pub(super) fn with_command_line(&mut self, closure: &Rc<Closure>) -> V {
        let given = flags(self.arguments);
        let mut args = Args::default();
        let plain: Vec<String> = positional(self.arguments);
        let mut plain = plain.into_iter();
        let mut names = Vec::new();
        for (at, param) in closure.function.params.iter().enumerate() {
            if matches!(param.kind, ParamKind::Star | ParamKind::StarStar) {
                continue;
            }
            self.spend(1 + given.len() / 16);
            names.push(param.name.clone());
            let hint = param.annotation.as_ref().map_or(Hint::Any, hint);
            let found = given.iter().rev().find(|(flag, _)| {
                let flag = flag.trim_start_matches('-').replace('-', "_");
                flag == *param.name || flag.strip_prefix("no_") == Some(&param.name)
            });
            let default = closure.defaults.get(at).cloned().flatten();
            let value = match found {
                Some((flag, words)) => {
                    let negative = flag.trim_start_matches('-').replace('-', "_") != *param.name;
                    match words.first() {
                        _ if negative => V::Bool(false),
                        None => V::Bool(true),
                        Some(word) if hint == Hint::Any => guessed(word),
                        Some(word) if hint == Hint::Many => self.literal(word),
                        Some(word) => self.hinted(hint, &word.as_str().into()),
                    }
                }
                None if default.is_none() => match plain.next() {
                    Some(word) => guessed(&word),
                    None => self.unfilled(closure, param.annotation.as_ref(), &param.name),
                },
                None => continue,
            };
            args.named.push((param.name.clone(), value));
        }
        if closure
            .function
            .params
            .iter()
            .any(|param| param.kind == ParamKind::StarStar)
        {
            let words = self.arguments.to_vec();
            let more = self.leftover(&words, &names);
            args.named.extend(more);
        }
        self.run_function(closure, args, None)
    }

    /// An argument that must be given: a configuration class is filled, another one is missing.
    pub(super) fn unfilled(
        &mut self,
        closure: &Rc<Closure>,
        annotation: Option<&Expr>,
        name: &str,
    ) -> V {
        let class = annotation.and_then(annotated_class);
        let before = std::mem::replace(&mut self.scope, closure.scope);
        let class = class.and_then(|class| self.lookup(&class));
        self.scope = before;
        match class {
            Some(V::Class(class)) => self.class_from_arguments(&class),
            _ => {
                let option = format!("--{name}");
                self.missing(&option);
                V::unknown(format!("{option} is required and was not given"))
            }
        }
    }

    /// `@click.option("--batch-size", default=8)` over a function.
    pub(super) fn with_click(&mut self, closure: &Rc<Closure>) -> V {
        let mut options = Vec::new();
        for decorator in closure.decorators.iter().rev() {
            if !decorator.path.ends_with("option") && !decorator.path.ends_with("argument") {
                continue;
            }
            let args = &decorator.args;
            let flags: Vec<Name> = args
                .plain
                .iter()
                .filter_map(|flag| match flag {
                    V::Text(flag) => Some(flag.split('/').next().unwrap_or(flag).trim().into()),
                    _ => None,
                })
                .collect();
            let bare = flags.iter().find(|flag| !flag.starts_with('-'));
            let long = flags.iter().find(|flag| flag.starts_with("--"));
            let Some(name) = bare.or(long).or(flags.first()) else {
                continue;
            };
            let name = name
                .trim_start_matches('-')
                .replace('-', "_")
                .to_lowercase();
            let flag = matches!(args.named("is_flag"), Some(V::Bool(true)));
            let default = args.named("default").cloned();
            let boolean = matches!(default, Some(V::Bool(_)));
            options.push(ArgOption {
                flags: if decorator.path.ends_with("argument") {
                    flags.clone()
                } else {
                    flags
                        .iter()
                        .filter(|flag| flag.starts_with('-'))
                        .cloned()
                        .collect()
                },
                name: name.into(),
                default,
                convert: args
                    .named("type")
                    .filter(|kind| matches!(kind, V::Builtin(_)))
                    .cloned(),
                hint: Hint::Any,
                action: if flag || boolean {
                    Action::Boolean
                } else {
                    Action::Store
                },
                number: Number::One,
                required: matches!(args.named("required"), Some(V::Bool(true))),
                constant: None,
            });
        }
        let words = self.arguments.to_vec();
        let named = self.option_values(&options, &words);
        let args = Args {
            named,
            ..Args::default()
        };
        self.run_function(closure, args, None)
    }
}

/// The words in front of the first option.
pub fn positional(words: &[String]) -> Vec<String> {
    words
        .iter()
        .take_while(|word| !is_flag(word))
        .cloned()
        .collect()
}
