//! The commands and the laws of every prediction, in one program.

mod accuracy;
mod advice;
mod allocator_files;
mod catalog;
mod checkpointing;
mod ci;
mod cli;
mod configurations;
mod conversations;
mod docs;
mod doors;
mod exports;
mod hardening;
mod imports;
mod judgement;
mod laws;
mod links;
mod moves;
mod networks;
mod presets;
mod reading;
mod recipes;
mod snapshots;
mod strategy;
mod systems;
