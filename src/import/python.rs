//! A training script in Python as far as it can be read without running it: calls, and what is said to them in plain values.

use super::{Imported, tools, unsloth};
use crate::document::Document;
use crate::order::Map;
use crate::scenario::{Objective, Scenario};

/// The longest script that is read.
const LONGEST: usize = 1 << 20;

/// Bytes that names may stand for altogether, each time they stand.
const ROOM: usize = 1 << 20;

/// Brackets within brackets.
const DEEPEST: usize = 32;

/// What a script trains: with Unsloth, or with transformers' or TRL's trainer.
pub fn script(text: &str, run: &Scenario) -> Option<Imported> {
    if text.len() > LONGEST || !text.contains(".from_pretrained(") {
        return None;
    }
    let calls = calls(text);
    // Later ones load what was trained.
    let first = |name: &str| calls.iter().find(|call| call.is(name));
    let arguments = calls
        .iter()
        .rev()
        .find(|call| call.ends_with("Config") || call.ends_with("Arguments"));
    let config = calls
        .iter()
        .rev()
        .find(|call| call.get("per_device_train_batch_size").is_some())
        .or(arguments);
    let trainer = calls.iter().rev().find(|call| call.ends_with("Trainer"));
    let fast = |name: &str| first(&format!("{name}.from_pretrained"));
    let model = fast("FastLanguageModel")
        .or_else(|| fast("FastModel"))
        .or_else(|| fast("FastVisionModel"));
    let mut imported = match model {
        Some(model) => {
            let adapters = calls
                .iter()
                .rev()
                .find(|call| call.ends_with("get_peft_model"));
            unsloth::read(&of_unsloth(model, adapters, config, trainer))
        }
        None => {
            let model = calls.iter().find(|call| call.makes_model())?;
            let trains = config.is_some_and(|config| config.get("output_dir").is_some());
            if !trains && trainer.is_none() {
                return None;
            }
            tools::read(&of_trainer(&calls, model, config, trainer), run)
        }
    };
    let task = trainer.map(Call::last_name);
    let taken = imported.scenario.training.task.objective != Objective::Pretraining;
    if let Some(task) = task.filter(|task| *task != "SFTTrainer" && *task != "Trainer")
        && model.is_some()
        && !taken
    {
        imported.not_taken.push(task.into());
    }
    Some(imported)
}

/// The code of a notebook, one cell after the other.
pub fn notebook(document: &Document) -> Option<String> {
    let Document::List(cells) = document.get("cells")? else {
        return None;
    };
    let mut code = String::new();
    for cell in cells {
        if cell.get("cell_type") != Some(&"code".into()) {
            continue;
        }
        match cell.get("source") {
            Some(Document::List(lines)) => {
                for line in lines {
                    if let Document::Text(line) = line {
                        code.push_str(line);
                    }
                }
            }
            Some(Document::Text(text)) => code.push_str(text),
            _ => {}
        }
        code.push('\n');
    }
    Some(code)
}

/// The file of `unsloth train` that says the same.
fn of_unsloth(
    model: &Call,
    adapters: Option<&Call>,
    config: Option<&Call>,
    trainer: Option<&Call>,
) -> Document {
    let said = |call: Option<&Call>, key: &str| call.and_then(|call| call.get(key)).cloned();
    let length = said(Some(model), "max_seq_length")
        .or_else(|| said(config, "max_length"))
        .or_else(|| said(config, "max_seq_length"))
        .or_else(|| said(trainer, "max_seq_length"));
    let full = said(Some(model), "full_finetuning") == Some(Document::Bool(true));
    // Weights are loaded in four bits unless the call says otherwise.
    let other = ["load_in_8bit", "load_in_16bit", "load_in_fp8"];
    let other = other.map(|key| said(Some(model), key) == Some(Document::Bool(true)));
    let four = said(Some(model), "load_in_4bit").unwrap_or(Document::Bool(!other.contains(&true)));
    let checkpointing = match said(adapters, "use_gradient_checkpointing") {
        Some(Document::Text(value)) if value == "unsloth" || value == "True" => "true".into(),
        Some(Document::Text(value)) => Document::Text(value),
        Some(Document::Bool(false)) => "none".into(),
        _ => "true".into(),
    };
    let mut training = Document::new()
        .with("training_type", if full { "full" } else { "lora" })
        .with("gradient_checkpointing", checkpointing);
    if !full {
        training = training.with("load_in_4bit", four);
    }
    for (key, value) in [
        ("max_seq_length", length),
        ("batch_size", said(config, "per_device_train_batch_size")),
        (
            "gradient_accumulation_steps",
            said(config, "gradient_accumulation_steps"),
        ),
        ("optim", said(config, "optim")),
        (
            "packing",
            said(config, "packing").or_else(|| said(trainer, "packing")),
        ),
    ] {
        if let Some(value) = value {
            training = training.with(key, value);
        }
    }
    let mut document = Document::new();
    let name = said(Some(model), "model_name").or_else(|| model.positional.first().cloned());
    document = document.with("model", name.unwrap_or_else(|| "".into()));
    if let Some(task) = trainer.and_then(Call::task) {
        document = document.with("task", task);
        for key in [
            "num_generations",
            "max_completion_length",
            "max_prompt_length",
            "num_iterations",
            "steps_per_generation",
            "generation_batch_size",
            "beta",
            "precompute_ref_log_probs",
        ] {
            if let Some(value) = said(config, key) {
                document = document.with(key, value);
            }
        }
        if said(Some(model), "fast_inference") == Some(Document::Bool(true)) {
            // vLLM in the same process, with half of the card where nothing is said (unsloth/models/loader.py).
            let share = said(Some(model), "gpu_memory_utilization");
            document = document
                .with("use_vllm", true)
                .with("vllm_mode", "colocate")
                .with(
                    "vllm_gpu_memory_utilization",
                    share.unwrap_or(Document::Number(0.5)),
                );
        }
    }
    document = document.with("training", training);
    if full {
        return document;
    }
    let mut lora = Document::new();
    for (to, from, usual) in [
        // What get_peft_model takes where nothing is said (unsloth/models/llama.py).
        ("lora_r", "r", Some(Document::Int(16))),
        ("lora_dropout", "lora_dropout", None),
        ("target_modules", "target_modules", None),
    ] {
        let usual = usual.filter(|_| adapters.is_some());
        if let Some(value) = said(adapters, from).or(usual) {
            lora = lora.with(to, value);
        }
    }
    if lora == Document::new() {
        return document;
    }
    document.with("lora", lora)
}

/// The file of keys that says the same as the calls of a script around transformers' trainer.
fn of_trainer(
    calls: &[Call],
    model: &Call,
    config: Option<&Call>,
    trainer: Option<&Call>,
) -> Document {
    const OF_THE_MODEL: &[&str] = &[
        "torch_dtype",
        "dtype",
        "attn_implementation",
        "load_in_4bit",
    ];
    let mut document = Document::new();
    let named = model.get("pretrained_model_name_or_path");
    let named = named.or_else(|| model.get("model_name"));
    // A name that only running the script would tell is asked for.
    let unknown = Document::from("");
    let name = named.or(model.positional.first()).unwrap_or(&unknown);
    document = document.with("model_name_or_path", name.clone());
    let mut add = |key: &str, value: &Document| {
        if document.get(key).is_none() {
            document = std::mem::take(&mut document).with(key, value.clone());
        }
    };
    for key in OF_THE_MODEL {
        if let Some(value) = model.get(key) {
            add(key, value);
        }
    }
    for (key, value) in config.into_iter().flat_map(|config| &config.named) {
        add(key, value);
    }
    for key in ["max_seq_length", "packing"] {
        if let Some(value) = trainer.and_then(|trainer| trainer.get(key)) {
            add(key, value);
        }
    }
    if let Some(lora) = calls.iter().rev().find(|call| call.is("LoraConfig")) {
        add("use_peft", &Document::Bool(true));
        for (to, from) in [
            ("lora_r", "r"),
            ("lora_dropout", "lora_dropout"),
            ("lora_target_modules", "target_modules"),
            ("lora_exclude_modules", "exclude_modules"),
            ("lora_modules_to_save", "modules_to_save"),
        ] {
            if let Some(value) = lora.get(from) {
                add(to, value);
            }
        }
    }
    if let Some(bits) = calls
        .iter()
        .rev()
        .find(|call| call.is("BitsAndBytesConfig"))
    {
        for key in [
            "load_in_4bit",
            "bnb_4bit_use_double_quant",
            "bnb_4bit_quant_type",
        ] {
            if let Some(value) = bits.get(key) {
                add(key, value);
            }
        }
    }
    document
}

/// A call, and what is said to it in plain values.
#[derive(Debug)]
struct Call {
    /// With its dots: `FastLanguageModel.from_pretrained`.
    name: String,
    positional: Vec<Document>,
    named: Vec<(String, Document)>,
}

impl Call {
    fn get(&self, key: &str) -> Option<&Document> {
        let (_, value) = self.named.iter().find(|(name, _)| name == key)?;
        Some(value)
    }

    /// What one of TRL's trainers trains for, as scenarios call it.
    fn task(&self) -> Option<&'static str> {
        Some(match self.last_name() {
            "GRPOTrainer" => "grpo",
            "DPOTrainer" => "dpo",
            "KTOTrainer" => "kto",
            "ORPOTrainer" => "orpo",
            "CPOTrainer" => "cpo",
            _ => return None,
        })
    }

    fn last_name(&self) -> &str {
        self.name.rsplit('.').next().unwrap_or(&self.name)
    }

    /// Whether it is of this name, whichever module that is of.
    fn is(&self, name: &str) -> bool {
        let rest = self.name.strip_suffix(name);
        rest.is_some_and(|rest| rest.is_empty() || rest.ends_with('.'))
    }

    fn ends_with(&self, name: &str) -> bool {
        self.last_name().ends_with(name)
    }

    fn makes_model(&self) -> bool {
        const OTHERS: &[&str] = &["Tokenizer", "Processor", "Config", "Peft", "Extractor"];
        let class = self.name.strip_suffix(".from_pretrained");
        class.is_some_and(|class| !OTHERS.iter().any(|other| class.contains(other)))
    }
}

/// The calls of a script in the order in which they end.
fn calls(text: &str) -> Vec<Call> {
    let mut reader = Reader {
        tokens: tokens(text),
        at: 0,
        known: Map::new(),
        room: ROOM,
        calls: Vec::new(),
    };
    while reader.at < reader.tokens.len() {
        reader.statement();
    }
    reader.calls
}

#[derive(Clone, Debug, PartialEq)]
enum Token {
    /// A name with its dots.
    Name(String),
    Value(Document),
    Sign(char),
    Line,
}

/// Names, plain values and signs; comments and what is formatted are left out.
fn tokens(text: &str) -> Vec<Token> {
    let mut all = Vec::new();
    let mut letters = text.chars().peekable();
    while let Some(&letter) = letters.peek() {
        if letter == '\n' {
            letters.next();
            all.push(Token::Line);
        } else if letter.is_whitespace() {
            letters.next();
        } else if letter == '#' {
            while letters.next_if(|letter| *letter != '\n').is_some() {}
        } else if letter == '"' || letter == '\'' {
            letters.next();
            let found = quoted(&mut letters, letter, false);
            all.push(Token::Value(Document::Text(found)));
        } else if letter.is_ascii_digit() {
            all.push(number(&mut letters));
        } else if letter.is_alphabetic() || letter == '_' {
            let mut name = String::new();
            let part = |letter: &char| letter.is_alphanumeric() || matches!(letter, '_' | '.');
            while let Some(letter) = letters.next_if(part) {
                name.push(letter);
            }
            let quote = letters
                .peek()
                .copied()
                .filter(|quote| matches!(quote, '"' | '\''));
            let prefix = name.len() <= 2 && name.chars().all(|c| "rRbBfFuU".contains(c));
            if let Some(quote) = quote.filter(|_| prefix) {
                letters.next();
                let raw = name.contains(['r', 'R']);
                let found = quoted(&mut letters, quote, raw);
                // What is put in only when it runs is not known.
                let formatted = name.contains(['f', 'F']) && found.contains('{');
                all.push(if formatted {
                    Token::Sign('?')
                } else {
                    Token::Value(Document::Text(found))
                });
            } else {
                all.push(named(name));
            }
        } else {
            letters.next();
            all.push(Token::Sign(letter));
        }
    }
    all
}

fn named(name: String) -> Token {
    match name.as_str() {
        "True" => Token::Value(Document::Bool(true)),
        "False" => Token::Value(Document::Bool(false)),
        "None" => Token::Value(Document::Null),
        _ => Token::Name(name),
    }
}

type Letters<'a> = std::iter::Peekable<std::str::Chars<'a>>;

/// The text up to the closing quotes, one or three.
fn quoted(letters: &mut Letters, quote: char, raw: bool) -> String {
    let mut text = String::new();
    let mut opened = 1;
    while opened < 3 && letters.next_if_eq(&quote).is_some() {
        opened += 1;
    }
    if opened == 2 {
        return text;
    }
    let mut closing = 0;
    while let Some(letter) = letters.next() {
        if letter == quote {
            closing += 1;
            if closing == opened {
                return text;
            }
            continue;
        }
        text.extend(std::iter::repeat_n(quote, closing));
        closing = 0;
        match letter {
            '\n' if opened == 1 => return text,
            '\\' if !raw => match letters.next() {
                Some('n') => text.push('\n'),
                Some('\n') | None => {}
                Some(plain) => text.push(plain),
            },
            plain => text.push(plain),
        }
    }
    text
}

fn number(letters: &mut Letters) -> Token {
    let mut digits = String::new();
    let part = |letter: &char| letter.is_ascii_alphanumeric() || matches!(letter, '_' | '.');
    while let Some(letter) = letters.next_if(part) {
        digits.push(letter);
        // The sign of an exponent.
        if matches!(letter, 'e' | 'E')
            && let Some(sign) = letters.next_if(|letter| matches!(letter, '-' | '+'))
        {
            digits.push(sign);
        }
    }
    digits.retain(|letter| letter != '_');
    if let Ok(whole) = digits.parse::<i128>() {
        return Token::Value(Document::Int(whole));
    }
    match digits.parse::<f64>() {
        Ok(number) if number.is_finite() => Token::Value(Document::Number(number)),
        _ => Token::Sign('?'),
    }
}

/// About the memory that a value takes.
fn size(value: &Document) -> usize {
    let inside = match value {
        Document::Text(text) => text.len(),
        Document::List(items) => items.iter().map(size).sum(),
        _ => 0,
    };
    inside + size_of::<Document>()
}

struct Reader {
    tokens: Vec<Token>,
    at: usize,
    /// Names that were given a plain value.
    known: Map<String, Document>,
    room: usize,
    calls: Vec<Call>,
}

impl Reader {
    fn peek(&self) -> Option<&Token> {
        self.tokens.get(self.at)
    }

    fn next_is(&self, sign: char) -> bool {
        self.peek() == Some(&Token::Sign(sign))
    }

    fn skip(&mut self, sign: char) -> bool {
        let is = self.next_is(sign);
        self.at += usize::from(is);
        is
    }

    /// Takes a name that is given a plain value, or passes over a token; calls are noted wherever they stand.
    fn statement(&mut self) {
        let (name, assigned) = (self.tokens.get(self.at), self.tokens.get(self.at + 1));
        if let (Some(Token::Name(name)), Some(Token::Sign('='))) = (name, assigned)
            && self.tokens.get(self.at + 2) != Some(&Token::Sign('='))
        {
            let name = name.clone();
            self.at += 2;
            match self.expression(0) {
                Some(value) if self.known.len() < 1_000 => {
                    self.known.insert(name, value);
                }
                _ => drop(self.known.remove(&name)),
            }
            return;
        }
        let before = self.at;
        self.expression(0);
        if self.at == before {
            self.at += 1;
        }
    }

    /// A value, where it is plain; what is not is passed over to the end of the expression.
    fn expression(&mut self, depth: usize) -> Option<Document> {
        let mut value = self.operand(depth);
        loop {
            let line = self.peek() == Some(&Token::Line) && depth > 0;
            if line {
                self.at += 1;
                continue;
            }
            match self.peek() {
                None | Some(Token::Line | Token::Sign(',' | ')' | ']' | '}' | ':' | '=')) => {
                    return value;
                }
                Some(Token::Sign('*')) => value = self.times(value, depth),
                Some(Token::Sign(sign @ ('+' | '-'))) => {
                    let minus = *sign == '-';
                    self.at += 1;
                    let mut other = self.operand(depth);
                    while self.peek() == Some(&Token::Sign('*')) {
                        other = self.times(other, depth);
                    }
                    value = match (value, other) {
                        (Some(Document::Int(a)), Some(Document::Int(b))) if minus => {
                            a.checked_sub(b).map(Document::Int)
                        }
                        (Some(Document::Int(a)), Some(Document::Int(b))) => {
                            a.checked_add(b).map(Document::Int)
                        }
                        _ => None,
                    };
                }
                Some(_) => {
                    let before = self.at;
                    self.operand(depth);
                    if self.at == before {
                        self.at += 1;
                    }
                    value = None;
                }
            }
        }
    }

    /// A product of whole numbers, from its sign on.
    fn times(&mut self, value: Option<Document>, depth: usize) -> Option<Document> {
        self.at += 1;
        match (value, self.operand(depth)) {
            (Some(Document::Int(a)), Some(Document::Int(b))) => a.checked_mul(b).map(Document::Int),
            _ => None,
        }
    }

    fn operand(&mut self, depth: usize) -> Option<Document> {
        while depth > 0 && self.peek() == Some(&Token::Line) {
            self.at += 1;
        }
        if depth >= DEEPEST {
            return None;
        }
        match self.peek()?.clone() {
            Token::Value(Document::Text(mut text)) => {
                self.at += 1;
                // Texts that follow each other are one.
                while let Some(Token::Value(Document::Text(more))) = self.peek() {
                    text.push_str(more);
                    self.at += 1;
                }
                Some(Document::Text(text))
            }
            Token::Value(value) => {
                self.at += 1;
                Some(value)
            }
            Token::Name(name) => {
                self.at += 1;
                if self.skip('(') {
                    self.call(name, depth + 1);
                    return None;
                }
                let number_format = name.strip_prefix("torch.").map(Document::from);
                number_format.or_else(|| self.value_of(&name))
            }
            Token::Sign(open @ ('[' | '(')) => {
                self.at += 1;
                let close = if open == '[' { ']' } else { ')' };
                self.list(close, depth + 1)
            }
            Token::Sign('{') => {
                self.at += 1;
                self.list('}', depth + 1);
                None
            }
            Token::Sign(_) | Token::Line => None,
        }
    }

    /// What a name was given, while there is room: names that stand for lists of names grow without end.
    fn value_of(&mut self, name: &str) -> Option<Document> {
        let value = self.known.get(name)?;
        self.room = self.room.checked_sub(size(value))?;
        Some(value.clone())
    }

    /// The items up to the closing bracket, where all of them are plain; one in round brackets is itself.
    fn list(&mut self, close: char, depth: usize) -> Option<Document> {
        let mut items = Some(Vec::new());
        let mut commas = false;
        loop {
            while self.peek() == Some(&Token::Line) {
                self.at += 1;
            }
            if self.skip(close) || self.peek().is_none() {
                break;
            }
            if self.skip(',') {
                commas = true;
                continue;
            }
            let before = self.at;
            match (self.expression(depth), &mut items) {
                (Some(item), Some(items)) => items.push(item),
                _ => items = None,
            }
            if self.at == before {
                self.at += 1;
            }
        }
        let mut items = items?;
        if close == ')' && !commas && items.len() == 1 {
            return items.pop();
        }
        Some(Document::List(items))
    }

    /// What is said to a call, up to its closing bracket.
    fn call(&mut self, name: String, depth: usize) {
        let mut call = Call {
            name,
            positional: Vec::new(),
            named: Vec::new(),
        };
        loop {
            while self.peek() == Some(&Token::Line) {
                self.at += 1;
            }
            if self.skip(')') || self.peek().is_none() {
                break;
            }
            if self.skip(',') {
                continue;
            }
            let before = self.at;
            let assigned = self.tokens.get(self.at + 1) == Some(&Token::Sign('='));
            match self.peek().cloned() {
                Some(Token::Name(key)) if assigned => {
                    self.at += 2;
                    if let Some(value) = self.expression(depth) {
                        call.named.push((key, value));
                    }
                }
                _ => call.positional.extend(self.expression(depth)),
            }
            if self.at == before {
                self.at += 1;
            }
        }
        self.calls.push(call);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scenario::settings;

    #[track_caller]
    fn check(text: &str, expected: &[(&str, &str)], not_taken: &[&str]) {
        let imported = script(text, &Scenario::default()).unwrap();
        assert_eq!((&imported.problems, &imported.question), (&vec![], &None));
        for (key, value) in expected {
            let setting = settings::named(key).unwrap();
            assert_eq!(setting.get(&imported.scenario), *value, "{key}");
        }
        assert_eq!(imported.not_taken, not_taken);
    }

    #[test]
    fn unsloth_trains_for_tasks_with_vllm_beside_it() {
        let script = |trainer: &str, arguments: &str| {
            let beside = match trainer {
                "GRPO" => "fast_inference = True, max_lora_rank = 32, gpu_memory_utilization = 0.7",
                _ => "",
            };
            format!(
                "from unsloth import FastLanguageModel\nlength = 2048\nprompt = 202\n\
                 model, tokenizer = FastLanguageModel.from_pretrained(model_name = \"unsloth/Qwen3-4B-Base\",\n    \
                 max_seq_length = length, load_in_4bit = False, {beside})\n\
                 model = FastLanguageModel.get_peft_model(model, r = 32, target_modules = [\"q_proj\"],\n    \
                 use_gradient_checkpointing = \"unsloth\")\n\
                 args = {trainer}Config(per_device_train_batch_size = 1, optim = \"adamw_8bit\", {arguments})\n\
                 trainer = {trainer}Trainer(model = model, args = args, train_dataset = data)\ntrainer.train()"
            )
        };
        let grpo = "gradient_accumulation_steps = 2, num_generations = 4, max_prompt_length = prompt,\n    \
                    max_completion_length = length - prompt * 1";
        check(
            &script("GRPO", grpo),
            &[
                ("model", "qwen3-4b"),
                ("trainer", "unsloth"),
                ("task", "grpo"),
                ("sampler", "vllm"),
                ("vllm_share", "0.7"),
                ("generations", "4"),
                ("prompt", "202"),
                ("completion", "1846"),
                // A group is kept together.
                ("mb", "4"),
                ("accum", "2"),
                ("quant", "none"),
                ("lora_rank", "32"),
            ],
            &[],
        );
        check(
            &script("DPO", "gradient_accumulation_steps = 2"),
            &[("task", "dpo"), ("mb", "1")],
            &[],
        );
        check(
            &script("Nash", "beta = 0.1"),
            &[("task", "pretraining")],
            &["NashTrainer"],
        );
    }

    #[test]
    fn scripts_say_what_they_train() {
        check(
            "# A comment with \"quotes\nmax_seq_length = 1024 * 2 # any\nfrom unsloth import FastLanguageModel\n\
             names = [\"unsloth/gemma-2-9b\", # more\n]\n\
             model, tokenizer = FastLanguageModel.from_pretrained(\n    model_name = \"unsloth/Llama-3.1-8B\",\n    \
             max_seq_length = max_seq_length, load_in_4bit = True, token = os.environ[\"X\"],\n)\n\
             model = FastLanguageModel.get_peft_model(model, r = 32, target_modules = [\"q_proj\",\n  \"v_proj\",],\n    \
             lora_dropout = 0, use_gradient_checkpointing = \"unsloth\")\nprompt = \"\"\"one ' two \" three\n{}\"\"\"\n\
             trainer = SFTTrainer(model = model, train_dataset = dataset.map(f, batched = True,), packing = False,\n    \
             args = SFTConfig(per_device_train_batch_size = 4, gradient_accumulation_steps = 2,\n    optim = \"adamw_torch\",\n    \
             learning_rate = 2e-4, fp16 = not is_bfloat16_supported()),\n)\ntrainer.train()",
            &[
                ("model", "llama-3.1-8b"),
                ("trainer", "unsloth"),
                ("seq", "2048"),
                ("mb", "4"),
                ("accum", "2"),
                ("optim", "adamw"),
                ("ckpt", "layers"),
                ("lora_rank", "32"),
                ("lora_targets", "q_proj,v_proj"),
                ("quant", "nf4-double"),
            ],
            &[],
        );
        check(
            "model = AutoModelForCausalLM.from_pretrained('meta-llama/Llama-3.2-1B', torch_dtype=torch.bfloat16,\n  \
             attn_implementation=\"eager\", quantization_config=BitsAndBytesConfig(load_in_4bit=True))\n\
             peft_config = LoraConfig(r=(8), target_modules=['q_proj'], task_type=TaskType.CAUSAL_LM)\n\
             args = TrainingArguments(output_dir=f'out/{name}', output=1, per_device_train_batch_size=2, bf16=True,\n  \
             gradient_checkpointing=True, max_grad_norm=1.0)\nTrainer(model, args).train()",
            &[
                ("model", "llama-3.2-1b"),
                ("trainer", "trl"),
                ("mb", "2"),
                ("attn", "eager"),
                ("ckpt", "layers"),
                ("lora_rank", "8"),
                ("lora_targets", "q_proj"),
                ("quant", "nf4"),
                ("precision", "amp-bf16-on-bf16"),
            ],
            &["output"],
        );
    }

    #[test]
    fn other_scripts_are_left_to_others() {
        for text in [
            "",
            "python train.py --model_name_or_path x",
            "print('AutoModel.from_pretrained(')",
            "model = AutoModel.from_pretrained('x')",
        ] {
            assert!(script(text, &Scenario::default()).is_none(), "{text}");
        }
    }

    #[test]
    fn no_text_makes_it_panic_or_last() {
        let script_of =
            |text: &str| script(&format!("X.from_pretrained({text}"), &Scenario::default());
        for piece in [
            "(", "[", "{", "a(", "\"", "'''", "a=", "1e", "*", "f'{", "\\", "\n", ",", ")",
        ] {
            script_of(&piece.repeat(20_000));
        }
        let doubled: Vec<String> = (1..60)
            .map(|at| format!("a{at}=[a{0},a{0}]\n", at - 1))
            .collect();
        let doubled = doubled.concat();
        script_of(&format!("\na0=1\n{doubled}"));
        for text in [
            "r=9999999999999999999999999999999999999999",
            "a=1*1*",
            "a=170141183460469231731687303715884105727*2",
        ] {
            script_of(text);
        }
    }
}
