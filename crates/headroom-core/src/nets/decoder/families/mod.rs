//! The families of decoders, one file each: a family is its differences from Llama.

mod afmoe;
mod apertus;
mod arcee;
mod bamba;
mod bitnet;
mod bloom;
mod cohere;
mod deepseek;
mod dots;
mod ernie;
mod exaone;
mod falcon;
mod falcon_h1;
pub(super) mod gemma;
mod glm;
mod gpt;
mod gpt_neox;
mod gpt_oss;
mod gptj;
mod granite;
mod helium;
mod hunyuan;
mod jamba;
mod kimi;
mod lfm2;
pub(super) mod llama;
mod llama4;
mod minimax;
mod mistral;
mod mixtral;
mod mpt;
mod nemotron;
mod nemotron_h;
mod olmo;
mod opt;
mod phi;
pub(super) mod qwen;
mod qwen3_5;
mod seed;
mod smollm3;
mod stablelm;
mod starcoder2;

use super::family::Family;
use super::gemma_vision::{self, Projector};
use super::qwen_vision::Kind;
use super::{
    Decoder, aya, blip2, csm, deepseek_ocr, gemma3n, gemma4, idefics, internvl, lfm2_vl, llava,
    llava_tiles, mamba_model, mllama, moonshine, omni, pixtral, qwen_vl, sound, zamba2,
};
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
    ("qwen3_next", |sizes| {
        let sizes = sizes.with_defaults([("delta_fused", 1)]);
        build(&sizes, qwen3_5::QWEN3_NEXT)
    }),
    ("qwen3_5", |sizes| build(sizes, qwen3_5::QWEN3_5)),
    ("qwen3_5_moe", |sizes| build(sizes, qwen3_5::QWEN3_5_MOE)),
    ("granite", |sizes| build(sizes, granite::GRANITE)),
    ("granitemoe", |sizes| build(sizes, granite::GRANITE_MOE)),
    ("granitemoehybrid", |sizes| {
        build(sizes, granite::granite_hybrid(sizes))
    }),
    ("bamba", |sizes| build(sizes, bamba::BAMBA)),
    ("nemotron_h", |sizes| build(sizes, nemotron_h::NEMOTRON_H)),
    ("falcon_h1", |sizes| build(sizes, falcon_h1::FALCON_H1)),
    ("jamba", |sizes| build(sizes, jamba::JAMBA)),
    ("llama4", |sizes| {
        super::llama4::build(&llama4::sizes(sizes), llama4::inside(sizes))
    }),
    ("lfm2", |sizes| build(sizes, lfm2::LFM2)),
    ("lfm2_moe", |sizes| build(sizes, lfm2::LFM2_MOE)),
    ("ernie4_5", |sizes| build(sizes, ernie::ERNIE4_5)),
    ("ernie4_5_moe", |sizes| build(sizes, ernie::ERNIE4_5_MOE)),
    ("exaone4", |sizes| build(sizes, exaone::exaone4(sizes))),
    ("minimax_m2", |sizes| build(sizes, minimax::MINIMAX_M2)),
    ("seed_oss", |sizes| build(sizes, seed::seed_oss(sizes))),
    ("smollm3", |sizes| build(sizes, smollm3::SMOLLM3)),
    ("olmo", |sizes| build(sizes, olmo::OLMO)),
    ("olmo2", |sizes| build(sizes, olmo::OLMO2)),
    ("olmo3", |sizes| build(sizes, olmo::OLMO3)),
    ("olmoe", |sizes| build(sizes, olmo::OLMOE)),
    ("glm", |sizes| build(sizes, glm::GLM)),
    ("glm4", |sizes| build(sizes, glm::glm4(sizes))),
    ("glm4_moe", |sizes| build(sizes, glm::glm4_moe(sizes))),
    ("bloom", |sizes| build(sizes, bloom::BLOOM)),
    ("gptj", |sizes| build(sizes, gptj::GPTJ)),
    ("codegen", |sizes| build(sizes, gptj::CODEGEN)),
    ("mpt", |sizes| build(sizes, mpt::MPT)),
    ("cohere", |sizes| build(sizes, cohere::cohere(sizes))),
    ("cohere2", |sizes| build(sizes, cohere::cohere2(sizes))),
    ("afmoe", |sizes| build(sizes, afmoe::afmoe(sizes))),
    ("apertus", |sizes| build(sizes, apertus::APERTUS)),
    ("arcee", |sizes| build(sizes, arcee::ARCEE)),
    ("hunyuan_v1_dense", |sizes| {
        build(sizes, hunyuan::HUNYUAN_DENSE)
    }),
    ("bitnet", |sizes| build(sizes, bitnet::BITNET)),
    ("helium", |sizes| build(sizes, helium::HELIUM)),
    ("nemotron", |sizes| build(sizes, nemotron::NEMOTRON)),
    ("ministral3", |sizes| build(sizes, mistral::MINISTRAL3)),
    ("stablelm", |sizes| build(sizes, stablelm::stablelm(sizes))),
    ("starcoder2", |sizes| {
        build(sizes, starcoder2::starcoder2(sizes))
    }),
    ("phi", |sizes| build(sizes, phi::phi(sizes))),
    ("phi3", |sizes| build(sizes, phi::PHI3)),
    ("phimoe", |sizes| build(sizes, phi::phimoe(sizes))),
    ("gpt_neox", |sizes| build(sizes, gpt_neox::GPT_NEOX)),
    ("falcon", |sizes| build(sizes, falcon::FALCON)),
    ("gpt_bigcode", |sizes| build(sizes, gpt::GPT_BIGCODE)),
    ("gpt_neo", |sizes| build(sizes, gpt::GPT_NEO)),
    ("opt", |sizes| build(sizes, opt::opt(sizes))),
    ("gpt_oss", |sizes| build(sizes, gpt_oss::GPT_OSS)),
    ("deepseek_v2", |sizes| build(sizes, deepseek::DEEPSEEK_V2)),
    ("deepseek_v3", |sizes| build(sizes, deepseek::DEEPSEEK_V3)),
    ("deepseek_v32", |sizes| build(sizes, deepseek::DEEPSEEK_V32)),
    ("dots1", |sizes| build(sizes, dots::DOTS1)),
    ("glm_moe_dsa", |sizes| build(sizes, glm::GLM_MOE_DSA)),
    ("hunyuan_v1_moe", |sizes| build(sizes, hunyuan::HUNYUAN_MOE)),
    ("kimi_linear", |sizes| build(sizes, kimi::KIMI_LINEAR)),
    ("mistral4", |sizes| build(sizes, mistral::MISTRAL4)),
    ("zamba2", zamba2::build),
    ("glm4_moe_lite", |sizes| build(sizes, glm::GLM4_MOE_LITE)),
    ("gemma3n_text", gemma3n::build),
    ("gemma4", gemma4::with_pictures),
    ("gemma4_text", gemma4::build),
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
    ("qwen3_5_vl", |sizes| {
        qwen_vl::build(sizes, qwen3_5::QWEN3_5_INSIDE, Kind::placed(sizes))
    }),
    ("qwen3_5_vl_moe", |sizes| {
        qwen_vl::build(sizes, qwen3_5::QWEN3_5_MOE_INSIDE, Kind::placed(sizes))
    }),
    ("glm4v", |sizes| {
        qwen_vl::build(sizes, glm::GLM4V, Kind::joined(sizes)?)
    }),
    ("glm4v_moe", |sizes| {
        qwen_vl::build(sizes, glm::glm4v_moe(sizes), Kind::joined(sizes)?)
    }),
    ("lfm2_vl", |sizes| lfm2_vl::build(sizes, lfm2::INSIDE)),
    ("paddleocr_vl", |sizes| {
        let sizes = sizes.with_defaults([("temporal", 1)]);
        qwen_vl::build(&sizes, ernie::PADDLE_OCR, Kind::by_picture(&sizes)?)
    }),
    ("qwen2_5_omni", |sizes| {
        omni::second_and_half(sizes, qwen::QWEN2_VL)
    }),
    ("qwen3_omni_moe", |sizes| {
        omni::third(sizes, qwen::QWEN3_VL_MOE)
    }),
    ("qwen2_audio", |sizes| {
        sound::qwen2_audio(sizes, qwen::QWEN2_INSIDE)
    }),
    ("qwen3_asr", |sizes| {
        sound::qwen3_asr(sizes, qwen::QWEN3_INSIDE)
    }),
    ("voxtral", |sizes| sound::voxtral(sizes, llama::INSIDE)),
    ("llava", |sizes| llava::build(sizes, llama::LLAMA)),
    ("llava_pixtral", |sizes| {
        pixtral::unmerged(sizes, mistral::MISTRAL_INSIDE)
    }),
    ("llava_next", |sizes| {
        llava_tiles::next(sizes, llama::INSIDE)
    }),
    ("llava_onevision", |sizes| {
        llava_tiles::one_vision(sizes, qwen::QWEN2_INSIDE)
    }),
    ("internvl", |sizes| {
        internvl::build(sizes, qwen::QWEN2_INSIDE)
    }),
    ("internvl_llama", |sizes| {
        internvl::build(sizes, llama::INSIDE)
    }),
    ("internvl_qwen3", |sizes| {
        internvl::build(sizes, qwen::QWEN3_INSIDE)
    }),
    ("internvl_qwen3_moe", |sizes| {
        internvl::build(sizes, qwen::QWEN3_MOE_INSIDE)
    }),
    ("csm", csm::build),
    ("deepseek_ocr2", |sizes| {
        deepseek_ocr::build(sizes, deepseek::DEEPSEEK_OCR)
    }),
    ("mamba2", mamba_model::build),
    ("mllama", mllama::build),
    ("moonshine", moonshine::build),
    ("mistral3", |sizes| {
        pixtral::build(sizes, mistral::MISTRAL_INSIDE)
    }),
    ("mistral3_ministral3", |sizes| {
        pixtral::build(sizes, mistral::MINISTRAL3_INSIDE)
    }),
    ("blip_2", |sizes| blip2::build(sizes, opt::inside(sizes))),
    ("aya_vision", |sizes| {
        aya::build(sizes, cohere::inside(sizes))
    }),
    ("idefics3", |sizes| idefics::build(sizes, llama::TEXT_MODEL)),
    ("smolvlm", |sizes| idefics::build(sizes, llama::TEXT_MODEL)),
];

fn build(sizes: &Sizes, family: Family) -> Result<Box<dyn Net>, ModelError> {
    Ok(Box::new(Decoder::new(sizes, family)?))
}
