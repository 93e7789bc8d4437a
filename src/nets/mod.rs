//! Networks as forward functions over symbolic tensors: each reads like the model's own code.

mod adapter;
mod albert;
mod attention;
mod bert;
mod bidirectional;
mod blocks;
mod clip;
mod cx;
mod deberta;
mod declared;
mod decoder;
mod distilbert;
mod dit;
mod equivariant;
mod esm;
mod gnn;
mod gpt2;
mod head;
mod inputs;
mod libraries;
mod litgpt;
mod losses;
mod mamba;
mod mmdit;
mod modernbert;
mod modules;
mod multi_head;
mod recurrent;
mod sam;
mod seq2seq;
mod siglip;
mod sizes;
mod swin;
mod systems;
mod t5;
mod unet;
mod vision;
mod vit;

pub use cx::{Cx, Env};
pub use declared::net as declared;
pub use libraries::{Libraries, Logits};
pub use sizes::Sizes;

use crate::scenario::Data;
use crate::tape::{DType, Tensor};

/// What a forward function returns.
#[derive(Debug)]
pub struct Output {
    pub loss: Tensor,
    /// What the output object holds besides, such as logits: alive as long as a script keeps it.
    pub held: Vec<Tensor>,
}

impl Output {
    /// What is left of a batch that lacks the tensors the model takes.
    pub(crate) fn nothing(cx: &Cx) -> Self {
        Self {
            loss: cx.tape.empty("loss", [0; 0], DType::F32),
            held: Vec::new(),
        }
    }
}

/// A model: what its batch is and how it runs.
pub trait Net {
    /// The tensors of one micro-batch, made before forward.
    fn batch(&self, cx: &Cx, data: &Data) -> Vec<Tensor>;
    fn forward(&self, cx: &Cx, batch: &[Tensor]) -> Output;
    /// Why batches of this kind are not gone through: where each place of a sequence is run by itself.
    fn refusal(&self, _data: &Data) -> Option<String> {
        None
    }
}

type Build = fn(&Sizes) -> Result<Box<dyn Net>, String>;

/// The architectures with a forward function, by the name the catalogue uses.
const ARCHITECTURES: &[(&str, Build)] = &[
    ("albert", albert::build),
    ("bart", seq2seq::bart),
    ("bert", bert::build),
    ("clip", clip::build),
    ("clip_text", clip::text),
    ("deberta", deberta::build),
    ("distilbert", distilbert::build),
    ("electra", bert::electra),
    ("esm", esm::build),
    ("gpt2", gpt2::build),
    ("mamba", mamba::build),
    ("modernbert", modernbert::build),
    ("litgpt", litgpt::build),
    ("roberta", bert::roberta),
    ("siglip", siglip::build),
    ("swin", swin::build),
    ("t5", t5::build),
    ("vit", vit::build),
    ("whisper", seq2seq::whisper),
];

fn find(architecture: &str) -> Option<Build> {
    let mut all = ARCHITECTURES
        .iter()
        .chain(decoder::FAMILIES)
        .chain(vision::FAMILIES)
        .chain(unet::FAMILIES)
        .chain(gnn::FAMILIES)
        .chain(equivariant::FAMILIES)
        .chain(recurrent::FAMILIES)
        .chain(dit::FAMILIES)
        .chain(mmdit::FAMILIES)
        .chain(sam::FAMILIES)
        .chain(systems::FAMILIES);
    all.find(|(name, _)| *name == architecture)
        .map(|(_, build)| *build)
}

/// Whether an architecture has a forward function.
pub fn has(architecture: &str) -> bool {
    find(architecture).is_some()
}

/// The network of an architecture with given sizes.
pub fn build(architecture: &str, sizes: &Sizes) -> Result<Box<dyn Net>, String> {
    let Some(build) = find(architecture) else {
        return Err(format!(
            "no forward function for the architecture `{architecture}`"
        ));
    };
    match sizes.too_large() {
        Some(problem) => Err(problem),
        None => build(sizes),
    }
}

#[cfg(test)]
mod tests;
