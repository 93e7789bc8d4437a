//! The families of decoders, one file each: a family is its differences from Llama.

mod bloom;
mod cohere;
mod deepseek;
mod falcon;
mod gemma;
mod glm;
mod gpt;
mod gpt_neox;
mod gpt_oss;
mod gptj;
mod granite;
pub(super) mod llama;
mod mistral;
mod mixtral;
mod mpt;
mod olmo;
mod opt;
mod phi;
pub(super) mod qwen;
mod smollm3;
mod stablelm;
mod starcoder2;

use super::family::Family;
use super::gemma_vision::{self, Projector};
use super::qwen_vision::Kind;
use super::{Decoder, idefics, internvl, llava, llava_tiles, pixtral, qwen_vl};
use crate::nets::net::Build;
use crate::nets::{ModelError, Net, Sizes};

/// Families by the name the catalogue uses.
pub(crate) const FAMILIES: &[(&str, Build)] = &[
    ("llama", |sizes| build(sizes, llama::LLAMA)),
    ("mistral", |sizes| build(sizes, mistral::MISTRAL)),
    ("mixtral", |sizes| build(sizes, mixtral::MIXTRAL)),
    ("qwen", |sizes| build(sizes, qwen::QWEN)),
    ("qwen2", |sizes| build(sizes, qwen::QWEN2)),
    ("qwen2_moe", |sizes| build(sizes, qwen::QWEN2_MOE)),
    ("qwen3", |sizes| build(sizes, qwen::QWEN3)),
    ("qwen3_moe", |sizes| build(sizes, qwen::QWEN3_MOE)),
    ("gemma", |sizes| build(sizes, gemma::GEMMA)),
    ("gemma2", |sizes| build(sizes, gemma::GEMMA2)),
    ("gemma3_text", |sizes| build(sizes, gemma::GEMMA3_TEXT)),
    ("granite", |sizes| build(sizes, granite::GRANITE)),
    ("smollm3", |sizes| build(sizes, smollm3::SMOLLM3)),
    ("olmo", |sizes| build(sizes, olmo::OLMO)),
    ("olmo2", |sizes| build(sizes, olmo::OLMO2)),
    ("olmoe", |sizes| build(sizes, olmo::OLMOE)),
    ("glm", |sizes| build(sizes, glm::GLM)),
    ("glm4", |sizes| build(sizes, glm::glm4(sizes))),
    ("glm4_moe", |sizes| build(sizes, glm::glm4_moe(sizes))),
    ("bloom", |sizes| build(sizes, bloom::BLOOM)),
    ("gptj", |sizes| build(sizes, gptj::GPTJ)),
    ("mpt", |sizes| build(sizes, mpt::MPT)),
    ("cohere", |sizes| build(sizes, cohere::COHERE)),
    ("stablelm", |sizes| build(sizes, stablelm::stablelm(sizes))),
    ("starcoder2", |sizes| build(sizes, starcoder2::STARCODER2)),
    ("phi", |sizes| build(sizes, phi::phi(sizes))),
    ("phi3", |sizes| build(sizes, phi::PHI3)),
    ("gpt_neox", |sizes| build(sizes, gpt_neox::GPT_NEOX)),
    ("falcon", |sizes| build(sizes, falcon::FALCON)),
    ("gpt_bigcode", |sizes| build(sizes, gpt::GPT_BIGCODE)),
    ("gpt_neo", |sizes| build(sizes, gpt::GPT_NEO)),
    ("opt", |sizes| build(sizes, opt::opt(sizes))),
    ("gpt_oss", |sizes| build(sizes, gpt_oss::GPT_OSS)),
    ("deepseek_v2", |sizes| build(sizes, deepseek::DEEPSEEK_V2)),
    ("deepseek_v3", |sizes| build(sizes, deepseek::DEEPSEEK_V3)),
    ("gemma3", |sizes| {
        gemma_vision::build(sizes, gemma::GEMMA3, Projector::Pooled)
    }),
    ("paligemma", |sizes| {
        gemma_vision::build(sizes, gemma::PALIGEMMA, Projector::Linear)
    }),
    ("paligemma_gemma2", |sizes| {
        gemma_vision::build(sizes, gemma::PALIGEMMA2, Projector::Linear)
    }),
    ("qwen2_vl", |sizes| {
        qwen_vl::build(sizes, qwen::QWEN2_VL, Kind::Plain)
    }),
    ("qwen2_5_vl", |sizes| {
        qwen_vl::build(sizes, qwen::QWEN2_VL, Kind::windowed(sizes)?)
    }),
    ("qwen3_vl", |sizes| {
        qwen_vl::build(sizes, qwen::QWEN3_VL, Kind::stacked(sizes)?)
    }),
    ("qwen3_vl_moe", |sizes| {
        qwen_vl::build(sizes, qwen::QWEN3_VL_MOE, Kind::stacked(sizes)?)
    }),
    ("llava", |sizes| llava::build(sizes, llama::LLAMA)),
    ("llava_next", |sizes| {
        llava_tiles::next(sizes, llama::INSIDE)
    }),
    ("llava_onevision", |sizes| {
        llava_tiles::one_vision(sizes, qwen::QWEN2_INSIDE)
    }),
    ("internvl", |sizes| {
        internvl::build(sizes, qwen::QWEN2_INSIDE)
    }),
    ("internvl_qwen3", |sizes| {
        internvl::build(sizes, qwen::QWEN3_INSIDE)
    }),
    ("internvl_qwen3_moe", |sizes| {
        internvl::build(sizes, qwen::QWEN3_MOE_INSIDE)
    }),
    ("mistral3", |sizes| {
        pixtral::build(sizes, mistral::MISTRAL_INSIDE)
    }),
    ("idefics3", |sizes| idefics::build(sizes, llama::TEXT_MODEL)),
    ("smolvlm", |sizes| idefics::build(sizes, llama::TEXT_MODEL)),
];

fn build(sizes: &Sizes, family: Family) -> Result<Box<dyn Net>, ModelError> {
    Ok(Box::new(Decoder::new(sizes, family)?))
}
