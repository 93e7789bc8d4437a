//! One call of a script.

use headroom_base::document::Document;

/// A call, and what is said to it in plain values.
#[derive(Debug)]
pub struct Call {
    /// With its dots: `FastLanguageModel.from_pretrained`.
    pub name: String,
    pub positional: Vec<Document>,
    pub named: Vec<(String, Document)>,
}

impl Call {
    pub fn get(&self, key: &str) -> Option<&Document> {
        let (_, value) = self.named.iter().find(|(name, _)| name == key)?;
        Some(value)
    }

    /// What one of TRL's trainers trains for, as scenarios call it.
    pub fn task(&self) -> Option<&'static str> {
        Some(match self.last_name() {
            "GRPOTrainer" => "grpo",
            "DPOTrainer" => "dpo",
            "KTOTrainer" => "kto",
            "ORPOTrainer" => "orpo",
            "CPOTrainer" => "cpo",
            _ => return None,
        })
    }

    pub fn last_name(&self) -> &str {
        self.name.rsplit('.').next().unwrap_or(&self.name)
    }

    /// Whether it is of this name, whichever module that is of.
    pub fn is(&self, name: &str) -> bool {
        let rest = self.name.strip_suffix(name);
        rest.is_some_and(|rest| rest.is_empty() || rest.ends_with('.'))
    }

    pub fn ends_with(&self, name: &str) -> bool {
        self.last_name().ends_with(name)
    }

    pub fn makes_model(&self) -> bool {
        const OTHERS: &[&str] = &["Tokenizer", "Processor", "Config", "Peft", "Extractor"];
        let class = self.name.strip_suffix(".from_pretrained");
        class.is_some_and(|class| !OTHERS.iter().any(|other| class.contains(other)))
    }
}
