//! The programs that are read, one file each.

mod axolotl;
mod common;
mod gpt_neox;
mod halos;
mod hf;
pub mod launched;
mod levanter;
mod litgpt;
mod llamafactory;
mod llm_foundry;
mod nanotron;
mod nemo_rl;
mod olmo;
mod open_instruct;
mod openrlhf;
mod prime_rl;
mod skyrl;
mod tokenizers;
mod verl;

use super::program::Program;

/// The most distinctive first: a source belongs to the first that reads it.
pub const PROGRAMS: &[Program] = &[
    axolotl::PROGRAM,
    llamafactory::PROGRAM,
    open_instruct::PROGRAM,
    openrlhf::PROGRAM,
    skyrl::PROGRAM,
    halos::PROGRAM,
    verl::PROGRAM,
    litgpt::PROGRAM,
    nanotron::PROGRAM,
    nemo_rl::PROGRAM,
    prime_rl::PROGRAM,
    gpt_neox::PROGRAM,
    olmo::PROGRAM,
    llm_foundry::PROGRAM,
    levanter::PROGRAM,
    // Whatever has the arguments of transformers' `Trainer`.
    hf::PROGRAM,
];
