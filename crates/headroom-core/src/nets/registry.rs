//! The architectures that can be run, by the names the catalogue uses.

use std::sync::OnceLock;

use super::net::Build;
use super::{
    ModelError, Net, Sizes, albert, bert, blip, clip, deberta, deberta_first, decoder, depth,
    detection, distilbert, dit, equivariant, esm, esmc, eurobert, gnn, gpt2, gte, layoutlmv3,
    litgpt, longformer, mamba, megatron, mmdit, modernbert, mpnet, nomic_bert, parakeet, patchtst,
    pictures, recurrent, sam, segmentation, seq2seq, siglip, speecht5, swin, t5, text_to_image,
    torchtitan, unet, video, vision, vit, vit_mae, wav2vec2, xlnet,
};

/// An architecture's forward function, by the name that the catalogue uses.
type Family = (&'static str, Build);

/// The architectures of a plug-in.
static REGISTERED: OnceLock<&'static [Family]> = OnceLock::new();

/// Adds the architectures of a plug-in, once.
pub fn register(families: &'static [Family]) {
    REGISTERED.get_or_init(|| families);
}

/// The architectures with a forward function, by the name the catalogue uses.
const ARCHITECTURES: &[(&str, Build)] = &[
    ("albert", albert::build),
    ("bart", seq2seq::bart),
    ("bert", bert::build),
    ("clip", clip::build),
    ("clip_text", clip::text_alone),
    ("deberta", deberta::build),
    ("deberta_first", deberta_first::build),
    ("deit", vit::deit),
    ("dinov2_hf", vit::dinov2),
    ("distilbert", distilbert::build),
    ("electra", bert::electra),
    ("esm", esm::build),
    ("esmc", esmc::build),
    ("eurobert", eurobert::build),
    ("falcon_mamba", mamba::falcon),
    ("gpt2", gpt2::build),
    ("gte", gte::build),
    ("jina_embeddings_v3", gte::jina),
    ("mamba", mamba::build),
    ("marian", seq2seq::marian),
    ("blenderbot", seq2seq::blenderbot),
    ("m2m_100", seq2seq::m2m_100),
    ("mbart", seq2seq::mbart),
    ("pegasus", seq2seq::pegasus),
    ("megatron_gpt", megatron::build),
    ("modernbert", modernbert::build),
    ("mpnet", mpnet::build),
    ("nomic_bert", nomic_bert::build),
    ("litgpt", litgpt::build),
    ("parakeet_ctc", parakeet::build),
    ("patchtst", patchtst::build),
    ("ernie", bert::ernie),
    ("layoutlm", bert::layoutlm),
    ("layoutlmv3", layoutlmv3::build),
    ("longformer", longformer::build),
    ("led", seq2seq::led),
    ("roberta", bert::roberta),
    ("siglip", siglip::build),
    ("siglip2", siglip::second),
    ("speecht5", speecht5::build),
    ("blip", blip::build),
    ("swin", swin::build),
    ("swinv2", swin::second),
    ("t5", t5::build),
    ("torchtitan_llama3", torchtitan::build),
    ("vit", vit::build),
    ("vit_mae", vit_mae::build),
    ("hubert", wav2vec2::hubert),
    ("unispeech_sat", wav2vec2::unispeech_sat),
    ("wav2vec2", wav2vec2::wav2vec2),
    ("wavlm", wav2vec2::wavlm),
    ("wav2vec2_bert", wav2vec2::bert),
    ("whisper", seq2seq::whisper),
    ("xlnet", xlnet::build),
];

fn find(architecture: &str) -> Option<Build> {
    let mut all = ARCHITECTURES
        .iter()
        .chain(decoder::FAMILIES)
        .chain(vision::FAMILIES)
        .chain(pictures::FAMILIES)
        .chain(depth::FAMILIES)
        .chain(detection::FAMILIES)
        .chain(detection::CSP)
        .chain(detection::YOLO)
        .chain(detection::ZOO)
        .chain(segmentation::FAMILIES)
        .chain(unet::FAMILIES)
        .chain(gnn::FAMILIES)
        .chain(equivariant::FAMILIES)
        .chain(recurrent::FAMILIES)
        .chain(dit::FAMILIES)
        .chain(mmdit::FAMILIES)
        .chain(text_to_image::FAMILIES)
        .chain(video::FAMILIES)
        .chain(sam::FAMILIES)
        .chain(REGISTERED.get().copied().unwrap_or_default());
    all.find(|(name, _)| *name == architecture)
        .map(|(_, build)| *build)
}

/// Whether an architecture has a forward function.
pub fn has(architecture: &str) -> bool {
    find(architecture).is_some()
}

/// The network of an architecture with given sizes.
pub fn build(architecture: &str, sizes: &Sizes) -> Result<Box<dyn Net>, ModelError> {
    let build = find(architecture)
        .ok_or_else(|| ModelError::UnknownArchitecture(architecture.to_string()))?;
    sizes.check_limits()?;
    build(sizes)
}
