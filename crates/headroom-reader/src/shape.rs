//! `Shape`: a network that a file writes out by its sizes instead of naming a model.

use headroom_catalog::models;

use super::fact::Fact;
use super::keys::Keys;

/// How the blocks of a network are built, which decides what entries of the catalogue may be the same.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Blocks {
    /// RMSNorm, rotary positions, gated SiLU, no biases.
    Llama,
    Gpt2,
    GptNeox,
    Mamba,
    Mpt,
    Mixtral,
    Olmo,
    Olmo2,
    Qwen2,
    Qwen3,
    /// None of the catalogue's, in the program's own word.
    Own(&'static str),
}

impl Blocks {
    const fn word(self) -> &'static str {
        match self {
            Self::Llama => "Llama",
            Self::Gpt2 => "GPT-2",
            Self::GptNeox => "GPT-NeoX",
            Self::Mamba => "Mamba",
            Self::Mpt => "MPT",
            Self::Mixtral => "Mixtral",
            Self::Olmo => "OLMo",
            Self::Olmo2 => "OLMo 2",
            Self::Qwen2 => "Qwen2",
            Self::Qwen3 => "Qwen3",
            Self::Own(word) => word,
        }
    }

    /// Forward functions of the catalogue that are this network.
    const fn architectures(self) -> &'static [&'static str] {
        match self {
            Self::Llama => &["llama", "mistral", "smollm3"],
            Self::Gpt2 => &["gpt2"],
            Self::GptNeox => &["gpt_neox"],
            Self::Mamba => &["mamba"],
            Self::Mpt => &["mpt"],
            Self::Mixtral => &["mixtral"],
            Self::Olmo => &["olmo"],
            Self::Olmo2 => &["olmo2"],
            Self::Qwen2 => &["qwen2"],
            Self::Qwen3 => &["qwen3"],
            Self::Own(_) => &[],
        }
    }
}

/// The sizes; `None` if nothing says them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shape {
    pub blocks: Blocks,
    pub layers: u64,
    pub hidden: u64,
    pub heads: u64,
    /// Heads of keys and values.
    pub kv: Option<u64>,
    pub ffn: Option<u64>,
    pub vocabulary: Option<u64>,
    pub tied: Option<bool>,
    /// Positions that it is made for; it tells models of equal sizes apart.
    pub positions: Option<u64>,
    pub experts: Option<u64>,
}

impl Shape {
    /// The sizes at these paths; `None` if layers or width are not there.
    pub fn of(blocks: Blocks, keys: &Keys, at: &Paths) -> Option<Self> {
        let whole = |path: &str| (!path.is_empty()).then(|| keys.whole(path).value().copied())?;
        Some(Self {
            blocks,
            layers: whole(at.layers)?,
            hidden: whole(at.hidden)?,
            heads: whole(at.heads).unwrap_or(0),
            kv: whole(at.kv),
            ffn: whole(at.ffn),
            vocabulary: whole(at.vocabulary),
            tied: None,
            positions: whole(at.positions),
            experts: None,
        })
    }

    /// The catalogue's entry of this very network.
    pub fn catalogue(&self) -> Option<&'static str> {
        let vocabulary = self.vocabulary?;
        let same = |own: Option<u64>, size: Option<u64>| match (own, size) {
            (Some(own), Some(size)) => own == size,
            _ => true,
        };
        let fits = models().iter().filter(|entry| {
            self.blocks.architectures().contains(&entry.arch)
                && entry.size("layers") == Some(self.layers)
                && entry.size("hidden") == Some(self.hidden)
                && (self.heads == 0 || same(Some(self.heads), entry.size("heads")))
                && same(
                    self.kv.or(Some(self.heads).filter(|heads| *heads > 0)),
                    entry.size("kv"),
                )
                && same(self.ffn, entry.size("ffn"))
                && entry.size("vocab") == Some(vocabulary)
                && same(self.tied.map(u64::from), entry.size("tied"))
                && same(self.experts, entry.size("experts"))
        });
        let fits: Vec<_> = fits.collect();
        let of_positions = fits
            .iter()
            .find(|entry| self.positions.is_some() && entry.size("ctx") == self.positions);
        of_positions.or_else(|| fits.first()).map(|entry| entry.id)
    }

    /// The kind of network in these sizes; `None` where a size is missing, or the catalogue has no such kind.
    pub fn sized(&self) -> Option<Sized> {
        let kind = self.blocks.architectures().first()?;
        let mut entries = models().iter().filter(|entry| entry.arch == *kind);
        let entry = entries.next()?;
        if self.experts.is_some() != entry.size("experts").is_some() || self.heads == 0 {
            return None;
        }
        let four = |hidden: u64| (self.blocks == Blocks::Gpt2).then(|| 4 * hidden);
        let ffn = self.ffn.or_else(|| four(self.hidden))?;
        let known = [
            ("layers", Some(self.layers)),
            ("hidden", Some(self.hidden)),
            ("heads", Some(self.heads)),
            ("kv", Some(self.kv.unwrap_or(self.heads))),
            ("head_dim", Some(self.hidden / self.heads)),
            ("ffn", Some(ffn)),
            ("vocab", Some(self.vocabulary?)),
            ("ctx", self.positions),
            ("experts", self.experts),
            // Two matrices where nothing says that they are one.
            ("tied", Some(self.tied.map_or(0, u64::from))),
        ];
        let has = |name: &str| entry.size(name).is_some();
        let sizes = known.into_iter().filter(|(name, _)| has(name));
        Some(Sized {
            model: entry.id,
            sizes: sizes
                .filter_map(|(name, size)| Some((name, size?)))
                .collect(),
        })
    }

    /// As `Llama 28 layers × 3072, 24/8 heads, vocabulary 128256`.
    pub fn words(&self) -> String {
        let mut words = format!(
            "{} {} layers × {}",
            self.blocks.word(),
            self.layers,
            self.hidden
        );
        if self.heads > 0 {
            words += &match self.kv.filter(|kv| *kv != self.heads) {
                Some(kv) => format!(", {}/{kv} heads", self.heads),
                None => format!(", {} heads", self.heads),
            };
        }
        if let Some(experts) = self.experts {
            words += &format!(", {experts} experts");
        }
        if let Some(vocabulary) = self.vocabulary {
            words += &format!(", vocabulary {vocabulary}");
        }
        words
    }

    pub fn fact(&self, key: &str) -> Fact<String> {
        Fact::read(self.words(), key)
    }
}

/// An entry of the catalogue in other sizes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sized {
    pub model: &'static str,
    pub sizes: Vec<(&'static str, u64)>,
}

impl Sized {
    /// As the setting of sizes is written.
    pub fn dims(&self) -> String {
        let all = self
            .sizes
            .iter()
            .map(|(name, size)| format!("{name}={size}"));
        all.collect::<Vec<_>>().join(",")
    }
}

/// Where a program writes each size; empty where it has none.
#[derive(Clone, Copy, Debug, Default)]
pub struct Paths {
    pub layers: &'static str,
    pub hidden: &'static str,
    pub heads: &'static str,
    pub kv: &'static str,
    pub ffn: &'static str,
    pub vocabulary: &'static str,
    pub positions: &'static str,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_that_a_catalogued_network_has_are_that_network() {
        #[track_caller]
        fn check(blocks: Blocks, sizes: [u64; 6], tied: bool, expected: Option<&str>) {
            let [layers, hidden, heads, kv, ffn, vocabulary] = sizes;
            let shape = Shape {
                blocks,
                layers,
                hidden,
                heads,
                kv: Some(kv),
                ffn: Some(ffn),
                vocabulary: Some(vocabulary),
                tied: Some(tied),
                positions: Some(8192),
                experts: None,
            };
            assert_eq!(shape.catalogue(), expected, "{}", shape.words());
        }
        let llama = [32, 4096, 32, 8, 14336, 128_256];
        check(Blocks::Llama, llama, false, Some("llama-3-8b"));
        check(Blocks::Llama, llama, true, None);
        check(Blocks::Qwen3, llama, false, None);
        let small = [30, 576, 9, 3, 1536, 49_152];
        check(Blocks::Llama, small, true, Some("smollm2-135m"));
        let other = [30, 576, 9, 3, 1536, 50_000];
        check(Blocks::Llama, other, true, None);
    }
}
