//! The programs that are read, one file each.

mod ai_toolkit;
mod axolotl;
mod calls;
mod common;
mod deepspeed_chat;
pub mod diffusers;
mod diffusion;
pub mod diffusion_pipe;
mod dinov2;
mod gpt_neox;
mod halos;
mod hf;
mod kohya;
pub mod launched;
mod levanter;
mod lightning;
mod lit_gpt;
mod litgpt;
mod llamafactory;
mod llm_foundry;
mod megatron;
mod megatron_bridge;
mod mmengine;
mod ms_swift;
mod nanochat;
mod nanogpt;
mod nanotron;
mod nemo_rl;
mod olmo;
mod olmo_core;
mod onetrainer;
mod open_clip;
mod open_instruct;
mod openrlhf;
mod prime_rl;
mod qlora_pipe;
mod sentence_transformers;
pub mod simpletuner;
mod skyrl;
#[cfg(test)]
mod testing;
mod timm;
mod tokenizers;
mod torch_loop;
mod torchtitan;
mod torchtune;
mod ultralytics;
mod unknown_script;
mod verl;
mod xtuner;

use super::program::Program;

/// The most distinctive first: a source belongs to the first that reads it.
pub const PROGRAMS: &[Program] = &[
    ai_toolkit::PROGRAM,
    diffusion_pipe::PROGRAM,
    qlora_pipe::PROGRAM,
    simpletuner::PROGRAM,
    ultralytics::PROGRAM,
    onetrainer::PROGRAM,
    timm::PROGRAM,
    open_clip::PROGRAM,
    sentence_transformers::PROGRAM,
    dinov2::PROGRAM,
    kohya::PROGRAM,
    diffusers::PROGRAM,
    xtuner::PROGRAM,
    mmengine::PROGRAM,
    axolotl::PROGRAM,
    llamafactory::PROGRAM,
    ms_swift::PROGRAM,
    open_instruct::PROGRAM,
    openrlhf::PROGRAM,
    skyrl::PROGRAM,
    halos::PROGRAM,
    verl::PROGRAM,
    deepspeed_chat::PROGRAM,
    megatron::PROGRAM,
    nanochat::PROGRAM,
    nanogpt::PROGRAM,
    lit_gpt::PROGRAM,
    litgpt::PROGRAM,
    lightning::PROGRAM,
    torchtune::PROGRAM,
    torchtitan::PROGRAM,
    nanotron::PROGRAM,
    nemo_rl::PROGRAM,
    prime_rl::PROGRAM,
    gpt_neox::PROGRAM,
    olmo::PROGRAM,
    olmo_core::PROGRAM,
    megatron_bridge::PROGRAM,
    llm_foundry::PROGRAM,
    levanter::PROGRAM,
    // Whatever has the arguments of transformers' `Trainer`.
    hf::PROGRAM,
    torch_loop::PROGRAM,
];

/// What is asked about a script that none of them knows and that is not here.
pub const LAST: Program = unknown_script::PROGRAM;
