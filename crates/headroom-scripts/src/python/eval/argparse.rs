//! `argparse`: options with their defaults, and the arguments that were given.

use super::arg_option::{Action, ArgOption, Number, find_option, is_flag, option};
use super::value::{Args, Class, Hint, Id, Name, V};
use super::{Cell, Machine};
use std::rc::Rc;

/// Options of one parser.
const MOST_OPTIONS: usize = 2_000;

#[derive(Debug)]
pub enum ParserKind {
    Options,
    /// Dataclasses whose fields are options, or classes of other modules.
    Classes(Vec<V>),
}

#[derive(Debug)]
pub struct ArgParser {
    pub kind: ParserKind,
    pub options: Vec<ArgOption>,
    pub defaults: Vec<(Name, V)>,
}

impl Machine<'_> {
    pub(super) fn new_parser(&mut self, kind: ParserKind) -> V {
        self.spend(1);
        self.heap.push(Cell::Parser(Box::new(ArgParser {
            kind,
            options: Vec::new(),
            defaults: Vec::new(),
        })));
        V::Parser(self.heap.len() - 1)
    }

    pub(super) fn parser(&mut self, id: Id) -> Option<&mut ArgParser> {
        match self.heap.get_mut(id) {
            Some(Cell::Parser(parser)) => Some(parser),
            _ => None,
        }
    }

    pub(super) fn parser_method(&mut self, id: Id, name: &str, args: Args) -> V {
        match name {
            "add_argument" => self.add_argument(id, &args),
            "set_defaults" => {
                for (name, value) in args.named {
                    if let Some(parser) = self.parser(id) {
                        match parser.options.iter_mut().find(|option| option.name == name) {
                            Some(option) => option.default = Some(value),
                            None if parser.defaults.len() < MOST_OPTIONS => {
                                parser.defaults.push((name, value));
                            }
                            None => {}
                        }
                    }
                }
            }
            "add_arguments" => return self.add_class(id, &args),
            "parse_args" | "parse" if !self.has_classes(id) => return self.parsed(id, &args),
            "parse_known_args" => {
                let namespace = self.parsed(id, &args);
                let rest = self.list(Vec::new());
                return self.tuple(vec![namespace, rest]);
            }
            "parse_args_into_dataclasses"
            | "parse_args_and_config"
            | "parse"
            | "parse_args"
            | "parse_json_file"
            | "parse_yaml_file"
            | "parse_dict"
            | "parse_yaml_and_args" => {
                return self.parse_classes(id, name, &args);
            }
            "get_default" => {
                let name = args.text(0, "dest").cloned();
                let option = self.parser(id).and_then(|parser| {
                    let option = parser
                        .options
                        .iter()
                        .find(|own| Some(&own.name) == name.as_ref());
                    option.and_then(|option| option.default.clone())
                });
                return option.unwrap_or(V::None);
            }
            _ => {}
        }
        V::Parser(id)
    }

    fn has_classes(&mut self, id: Id) -> bool {
        self.parser(id)
            .is_some_and(|parser| matches!(parser.kind, ParserKind::Classes(_)))
    }

    /// simple_parsing's `parser.add_arguments(Config, dest="config")`.
    fn add_class(&mut self, id: Id, args: &Args) -> V {
        if let (Some(V::Class(class)), Some(dest)) = (args.plain.first(), args.text(1, "dest")) {
            let (class, dest) = (class.clone(), dest.clone());
            let instance = self.class_from_arguments(&class);
            if let Some(parser) = self.parser(id)
                && parser.defaults.len() < MOST_OPTIONS
            {
                parser.defaults.push((dest, instance));
            }
        }
        V::Parser(id)
    }

    fn add_argument(&mut self, id: Id, args: &Args) {
        let Some(option) = option(args) else { return };
        self.add_option(id, option);
    }

    pub(super) fn add_option(&mut self, id: Id, option: ArgOption) {
        let length = self.parser(id).map_or(0, |parser| parser.options.len());
        self.spend(2 + length / 8);
        let Some(parser) = self.parser(id) else {
            return;
        };
        if parser.options.len() >= MOST_OPTIONS {
            return;
        }
        parser
            .options
            .retain(|own| own.name != option.name || own.flags != option.flags);
        parser.options.push(option);
    }

    pub(super) fn add_deepspeed_options(&mut self, parser: &V) {
        let V::Parser(id) = parser else { return };
        for (flag, action) in [
            ("--deepspeed", Action::True),
            ("--deepspeed_config", Action::Store),
            ("--local_rank", Action::Store),
        ] {
            self.add_option(
                *id,
                ArgOption {
                    flags: vec![flag.into()],
                    name: flag.trim_start_matches('-').into(),
                    default: None,
                    convert: None,
                    hint: Hint::Any,
                    action,
                    number: Number::One,
                    required: false,
                    constant: None,
                },
            );
        }
    }

    /// The namespace of given arguments and defaults.
    fn parsed(&mut self, id: Id, args: &Args) -> V {
        let words = match args.get(0, "args") {
            Some(V::List(id)) => {
                let items = self.items(*id).to_vec();
                items.iter().filter_map(|item| self.shown(item)).collect()
            }
            _ => self.arguments.to_vec(),
        };
        let (options, defaults) = match self.parser(id) {
            Some(parser) => (parser.options.clone(), parser.defaults.clone()),
            None => return V::None,
        };
        let values = self.option_values(&options, &words);
        let mut attributes: Vec<(Name, V)> = defaults;
        for (name, value) in values {
            match attributes.iter_mut().find(|(own, _)| *own == name) {
                Some((_, old)) => *old = value,
                None => attributes.push((name, value)),
            }
        }
        self.new_instance(None, attributes)
    }

    /// Every option's value: as given, else its default.
    pub(super) fn option_values(
        &mut self,
        options: &[ArgOption],
        words: &[String],
    ) -> Vec<(Name, V)> {
        let given = self.given_words(options, words);
        let mut values: Vec<(Name, V)> = Vec::new();
        self.spend(options.len() * (1 + options.len() / 64));
        for (at, option) in options.iter().enumerate() {
            let value = match given.get(at).cloned().flatten() {
                Some(found) => self.given_value(option, &found),
                None => {
                    if values.iter().any(|(name, _)| *name == option.name) {
                        continue;
                    }
                    self.default_value(option)
                }
            };
            match values.iter_mut().find(|(name, _)| *name == option.name) {
                Some((_, old)) => *old = value,
                None => values.push((option.name.clone(), value)),
            }
        }
        values
    }

    fn default_value(&mut self, option: &ArgOption) -> V {
        match (&option.default, option.action) {
            (Some(V::Text(text)), Action::Store) => self.converted(option, &text.clone()),
            (Some(value), _) => match value {
                V::None => V::Absent(option.written()),
                value => value.clone(),
            },
            (None, Action::True) => V::Bool(false),
            (None, Action::False) => V::Bool(true),
            (None, _)
                if option.required
                    || (option.positional() && option.number != Number::Optional) =>
            {
                self.missing(&option.written());
                V::unknown(format!(
                    "{} is required and was not given",
                    option.written()
                ))
            }
            (None, _) => V::Absent(option.written()),
        }
    }

    /// The words that each option was given.
    fn given_words(&mut self, options: &[ArgOption], words: &[String]) -> Vec<Option<Vec<String>>> {
        let mut given: Vec<Option<Vec<String>>> = vec![None; options.len()];
        let mut positional = (0..options.len())
            .filter(|at| options.get(*at).is_some_and(ArgOption::positional))
            .collect::<Vec<_>>()
            .into_iter();
        let mut at = 0;
        while let Some(word) = words.get(at) {
            at += 1;
            self.spend(1 + options.len() / 16);
            if !is_flag(word) {
                if let Some(place) = positional.next()
                    && let Some(slot) = given.get_mut(place)
                {
                    let mut own = vec![word.clone()];
                    let many = options
                        .get(place)
                        .is_some_and(|option| option.number != Number::One);
                    while many && let Some(next) = words.get(at).filter(|word| !is_flag(word)) {
                        own.push(next.clone());
                        at += 1;
                    }
                    *slot = Some(own);
                }
                continue;
            }
            let (flag, value) = match word.split_once('=') {
                Some((flag, value)) => (flag, Some(value.to_string())),
                None => (word.as_str(), None),
            };
            let mut own: Vec<String> = value.into_iter().collect();
            let inline = !own.is_empty();
            while !inline && let Some(next) = words.get(at).filter(|word| !is_flag(word)) {
                own.push(next.clone());
                at += 1;
            }
            let Some((place, negative)) = find_option(options, flag) else {
                continue;
            };
            let Some(option) = options.get(place) else {
                continue;
            };
            if option.action != Action::Store && option.action != Action::Append && !inline {
                // Words behind a switch are positional.
                at -= own.len();
                own.clear();
            } else if option.number == Number::One && own.len() > 1 {
                at -= own.len() - 1;
                own.truncate(1);
            }
            if negative {
                own = vec!["false".into()];
            }
            if let Some(slot) = given.get_mut(place) {
                match slot {
                    Some(old) if option.action == Action::Append => old.extend(own),
                    slot => *slot = Some(own),
                }
            }
        }
        given
    }

    fn given_value(&mut self, option: &ArgOption, words: &[String]) -> V {
        match option.action {
            Action::True => return V::Bool(words.first().is_none_or(|word| truth_of(word))),
            Action::False => return V::Bool(false),
            Action::Boolean => return V::Bool(words.first().is_none_or(|word| truth_of(word))),
            Action::Constant | Action::Count => {
                return option.constant.clone().unwrap_or(V::Int(1));
            }
            Action::Nothing => return V::None,
            Action::Store | Action::Append => {}
        }
        let many = matches!(
            option.number,
            Number::Some | Number::Any | Number::Exactly(_)
        ) || option.action == Action::Append;
        if many {
            let mut values = Vec::new();
            for word in words {
                values.push(self.converted(option, &word.as_str().into()));
            }
            return self.list(values);
        }
        match words.first() {
            Some(word) => self.converted(option, &word.as_str().into()),
            None if option.hint == Hint::Bool => V::Bool(true),
            None => option
                .constant
                .clone()
                .unwrap_or(V::Absent(option.written())),
        }
    }

    /// A word as the option's type makes it.
    fn converted(&mut self, option: &ArgOption, word: &Name) -> V {
        if stands_for_something(word) {
            return V::unknown(format!("{} is {word}", option.written()));
        }
        if let Some(convert) = &option.convert {
            let convert = convert.clone();
            return match &convert {
                // `type=json.loads`, a class or an enumeration.
                V::Name(path) if &**path == "json.loads" => {
                    self.document(word, super::config::Format::Json)
                }
                V::Name(_) | V::Class(_) | V::Builtin("str") => V::Text(word.clone()),
                V::Builtin("bool") => V::Bool(!word.is_empty()),
                function => self.call(function, Args::of(vec![V::Text(word.clone())]), &|| {
                    option.written().to_string()
                }),
            };
        }
        self.hinted(option.hint, word)
    }

    /// A word as an annotation says.
    pub(super) fn hinted(&mut self, hint: Hint, word: &Name) -> V {
        if stands_for_something(word) {
            return V::unknown(word.to_string());
        }
        if matches!(&**word, "None" | "null") && hint != Hint::Text {
            return V::None;
        }
        match hint {
            Hint::Bool => V::Bool(truth_of(word)),
            Hint::Int => self.to_int(&V::Text(word.clone())),
            Hint::Float => self.to_float(&V::Text(word.clone())),
            Hint::Many if word.starts_with('[') => self.literal(word),
            Hint::Text | Hint::Any | Hint::Many => V::Text(word.clone()),
        }
    }

    /// A dataclass filled from the command line.
    pub(super) fn class_from_arguments(&mut self, class: &Rc<Class>) -> V {
        let words = self.arguments.to_vec();
        self.filled_class(class, "", &words, &[])
    }
}

/// Booleans as command lines write them.
pub fn truth_of(word: &str) -> bool {
    matches!(
        word.to_ascii_lowercase().as_str(),
        "true" | "t" | "1" | "yes" | "y" | "on"
    )
}

/// A part of a shell that was not replaced, such as `$1` or `${MODEL}`.
pub fn stands_for_something(word: &str) -> bool {
    word.split('$').skip(1).any(|after| {
        after
            .starts_with(|letter: char| letter.is_ascii_alphanumeric() || "_{(@*#".contains(letter))
    })
}
