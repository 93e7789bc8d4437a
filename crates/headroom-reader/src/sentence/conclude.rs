//! What a sentence's words come to together.

use headroom_catalog::{ModelCategory, gpus, model};

use super::Said;
use super::cards::Cards;
use super::models::Model;
use super::vocabulary::{Number, Say, Switch};
use crate::fact::Fact;
use crate::facts::{Ask, Facts};
use crate::words::{
    Adapter, Compute, DataParallel, Offload, Strategy, Task, Trained, Wanted, Weights,
};

/// Whether a model's inputs are images, so that a bare number is their size.
pub(super) fn is_image(found: &Model) -> bool {
    let entry = found.named.catalogue.and_then(model);
    entry.is_some_and(|entry| {
        matches!(
            entry.category,
            ModelCategory::Diffusion | ModelCategory::Vision
        )
    })
}

pub(super) fn facts(model: Option<Model>, cards: Cards, said: Said) -> Facts {
    let mut facts = Facts::default();
    let diffusion = model.as_ref().is_some_and(|found| {
        let entry = found.named.catalogue.and_then(headroom_catalog::model);
        entry.is_some_and(|entry| entry.category == ModelCategory::Diffusion)
    });
    let vision = model.as_ref().is_some_and(|found| {
        let entry = found.named.catalogue.and_then(headroom_catalog::model);
        entry.is_some_and(|entry| {
            entry.category == ModelCategory::Vision && !entry.id.starts_with("mae")
        })
    });
    let stored = model.as_ref().and_then(|found| found.named.weights);
    named(&mut facts, model);
    machine(&mut facts, &cards, &said);
    each(&mut facts, &said);
    method(&mut facts, &said, stored);
    strategy(&mut facts, &said);
    sizes(&mut facts, &said);
    if diffusion && facts.compute.value() == Some(&Compute::Bf16Fp8) && facts.weights.is_unsaid() {
        // What programs for images call fp8 is how the frozen network is stored.
        facts.weights = std::mem::take(&mut facts.compute).map(|_| Weights::Fp8);
    }
    if vision && facts.task.value() == Some(&Task::Pretraining) {
        // From scratch, but on labels unless more is said.
        let words = facts
            .task
            .origin()
            .map(ToString::to_string)
            .unwrap_or_default();
        let other = said.phrases.iter().find_map(|(say, words)| match say {
            Say::Task(task) if *task != Task::Pretraining => Some((*task, words.clone())),
            _ => None,
        });
        facts.task = match other {
            Some((task, words)) => Fact::read(task, words),
            None => Fact::Unsaid,
        };
        facts.adapter = Fact::follows(None, words.clone());
        facts.trained = Fact::follows(Trained::All, words);
    }
    if diffusion {
        facts.task = std::mem::take(&mut facts.task).or_follows(Task::Diffusion, "the model");
    }
    one_gpu(&mut facts, &cards);
    facts
}

fn named(facts: &mut Facts, found: Option<Model>) {
    let Some(found) = found else { return };
    facts.refused = found.named.refused.map(String::from);
    facts.model = if found.usual {
        facts
            .notes
            .push(format!("`{}` is read as {}", found.said, found.name));
        Fact::follows(
            found.name.clone(),
            format!("`{}` leaves its version open", found.said),
        )
    } else {
        Fact::read(found.name, found.said)
    };
}

fn machine(facts: &mut Facts, cards: &Cards, said: &Said) {
    if let Some(card) = &cards.card {
        facts.gpu = if card.usual {
            facts
                .notes
                .push(format!("`{}` is read as {}", card.said, card.id));
            Fact::follows(card.id, format!("`{}` has several variants", card.said))
        } else {
            Fact::read(card.id, card.said.clone())
        };
    } else if let Some(unknown) = &cards.unknown {
        facts.gpu = Fact::Unknown(format!("`{unknown}` is no GPU of the catalogue"));
    }
    let colab = said
        .phrases
        .iter()
        .any(|(say, _)| matches!(say, Say::Colab));
    if facts.gpu.is_unsaid() && cards.gib.is_none() && colab {
        facts.gpu = Fact::follows("t4-16gb", "Colab's free GPU");
    }
    if let Some((gib, words)) = &cards.gib {
        let own = cards
            .card
            .as_ref()
            .and_then(|card| gpus().iter().find(|gpu| gpu.id == card.id));
        if own.is_none() {
            facts.card_gib = Fact::read(*gib, words.clone());
        }
    }
    let nodes = said
        .numbers
        .get(Number::Nodes)
        .map(|(nodes, words)| (nodes, words.to_string()));
    let nodes = nodes.or_else(|| cards.nodes.map(|nodes| (nodes, "nodes x GPUs".into())));
    if let Some((nodes, words)) = &nodes {
        facts.nodes = Fact::read(*nodes, words.clone());
    }
    let count = cards.count.clone();
    let counted = count.map(|(count, words)| (count, words, cards.at));
    let loose = said.numbers.get(Number::Gpus).map(|(count, words)| {
        (
            count,
            words.to_string(),
            said.numbers.place(Number::Gpus).unwrap_or_default(),
        )
    });
    let each = said.numbers.get(Number::PerNode);
    let nodes_count = nodes.as_ref().map_or(1, |(nodes, _)| *nodes);
    if let Some((each, words)) = each {
        let all = each.saturating_mul(nodes_count);
        facts.gpus = Fact::read(all, words);
    } else if let Some((count, words, at)) = counted.or(loose) {
        let place = said.numbers.place(Number::Nodes);
        // `8xH100, 2 nodes` and `2 nodes of 8` are eight each, `16 H100s across 2 nodes` are all.
        let own = cards.nodes.is_none() && nodes_count > 1;
        let spread = said
            .phrases
            .iter()
            .any(|(say, _)| matches!(say, Say::Across));
        let behind = place.is_some_and(|place| place < at);
        let all = own && !spread && (behind || count <= 8);
        let count = if all {
            count.saturating_mul(nodes_count)
        } else {
            count
        };
        facts.gpus = Fact::read(count, words);
    } else if let Some((_, words)) = said.phrases.iter().find(|(say, _)| matches!(say, Say::Dgx)) {
        facts.gpus = Fact::follows(8, format!("a {words} has eight"));
    }
}

/// Phrases that set one fact each.
fn each(facts: &mut Facts, said: &Said) {
    for (say, words) in &said.phrases {
        let words = words.clone();
        macro_rules! first {
            ($field:ident, $value:expr) => {
                facts.$field = std::mem::take(&mut facts.$field).or(Fact::read($value, words))
            };
        }
        match *say {
            Say::Task(task) => first!(task, task),
            Say::Trainer(trainer) => first!(trainer, trainer),
            Say::Optimizer(optimizer) => first!(optimizer, optimizer.to_string()),
            Say::Checkpointing(checkpointing) => first!(checkpointing, checkpointing),
            Say::Attention(attention) => first!(attention, attention),
            Say::Liger => first!(liger, true),
            Say::Ema => first!(ema, true),
            Say::SequenceParallel => first!(sequence_parallel, true),
            Say::InBackward => first!(optimizer_in_backward, true),
            Say::Compile => first!(compile, true),
            Say::Packing => first!(packing, true),
            Say::Denied(Switch::Liger) => first!(liger, false),
            Say::Denied(Switch::Compile) => first!(compile, false),
            Say::Denied(Switch::Packing) => first!(packing, false),
            Say::Compute(compute) => first!(compute, compute),
            Say::TextEncoder => first!(text_encoders_trained, true),
            Say::CachedLatents => first!(cached_latents, true),
            Say::Targets(targets) => {
                first!(targets, targets.split(' ').map(String::from).collect());
            }
            Say::Vllm => {
                facts.vllm = Fact::Unknown("vLLM's share of the memory is not said".into());
            }
            Say::Unmodelled(what) => facts.not_modelled.push(format!("{words}: {what}")),
            Say::Wanted(wanted) => {
                facts.wanted = facts.wanted.or(Some(wanted));
                if wanted == Wanted::Cards {
                    facts.ask(Ask::Gpus, "the sentence asks for their number");
                }
            }
            _ => {}
        }
    }
    let mixed = said
        .phrases
        .iter()
        .find(|(say, _)| matches!(say, Say::MixedPrecision));
    if let (Fact::Unsaid, Some((_, words))) = (&facts.compute, mixed) {
        let card = facts
            .gpu
            .value()
            .and_then(|id| gpus().iter().find(|gpu| gpu.id == *id));
        let compute = match card {
            Some(card) if !card.bf16 => Compute::Fp16Autocast,
            _ => Compute::Bf16Autocast,
        };
        facts.compute = Fact::follows(compute, format!("`{words}` on this GPU"));
    }
}

fn method(facts: &mut Facts, said: &Said, stored: Option<Weights>) {
    let full = said
        .phrases
        .iter()
        .find(|(say, _)| matches!(say, Say::Full));
    let adapter = said.phrases.iter().find_map(|(say, words)| match say {
        Say::Adapter(adapter) => Some((*adapter, words.clone())),
        _ => None,
    });
    // The more particular name of two, as in `lora (qlora)`.
    let qlora = said
        .phrases
        .iter()
        .find(|(say, _)| matches!(say, Say::Adapter(Adapter::Qlora)));
    let adapter = qlora
        .map(|(_, words)| (Adapter::Qlora, words.clone()))
        .or(adapter);
    let weights = said.phrases.iter().find_map(|(say, words)| match say {
        Say::Weights(weights) => Some((*weights, words.clone())),
        _ => None,
    });
    let weights = weights.or_else(|| stored.map(|stored| (stored, "the model's name".into())));
    let part = said.phrases.iter().find_map(|(say, words)| match say {
        Say::Part(part) => Some((*part, words.clone())),
        _ => None,
    });
    let rank = said.numbers.get(Number::Rank);
    let four = weights
        .as_ref()
        .filter(|(weights, _)| matches!(weights, Weights::Nf4 | Weights::Fp4 | Weights::Int4));
    let adapter = match (adapter, full, four) {
        (Some((Adapter::Lora, words)), _, Some(_)) => Some((Adapter::Qlora, words)),
        (Some(adapter), ..) => Some(adapter),
        // Weights of four bits are trained through adapters.
        (None, None, Some((_, words))) => Some((Adapter::Qlora, words.clone())),
        (None, None, None) => rank.map(|(_, words)| (Adapter::Lora, words.to_string())),
        (None, Some(_), _) => None,
    };
    if let Some((weights, words)) = weights {
        facts.weights = Fact::read(weights, words);
    } else if let Some((Adapter::Qlora, words)) = &adapter {
        facts.weights = Fact::follows(Weights::Nf4, words.clone());
    }
    if let Some((adapter, words)) = adapter {
        facts.trained = Fact::follows(Trained::Adapters, words.clone());
        facts.adapter = Fact::read(Some(adapter), words);
    } else if let Some((part, words)) = part {
        facts.adapter = Fact::follows(None, words.clone());
        facts.task =
            std::mem::take(&mut facts.task).or_follows(Task::Classification, words.clone());
        facts.trained = Fact::read(Trained::Part(part.into()), words);
    } else if let Some((_, words)) = full {
        facts.adapter = Fact::read(None, words.clone());
        facts.trained = Fact::read(Trained::All, words.clone());
    } else if matches!(facts.task.value(), Some(Task::Pretraining | Task::MaskedLm)) {
        facts.adapter = Fact::follows(None, "pre-training trains all weights");
        facts.trained = Fact::follows(Trained::All, "pre-training trains all weights");
    }
    if facts.adapter.value().is_some_and(Option::is_some)
        && let Some((rank, words)) = rank
    {
        facts.rank = Fact::read(rank, words);
    }
}

fn strategy(facts: &mut Facts, said: &Said) {
    let data = said.phrases.iter().find_map(|(say, words)| match say {
        Say::Data(data) => Some((*data, words.clone())),
        _ => None,
    });
    let deepspeed = said
        .phrases
        .iter()
        .find(|(say, _)| matches!(say, Say::DeepSpeed));
    let sizes = [
        Number::Tensor,
        Number::Pipeline,
        Number::Context,
        Number::Expert,
    ]
    .map(|kind| said.numbers.get(kind).map_or(1, |(size, _)| size));
    let [tp, pp, cp, ep] = sizes;
    let split = sizes.iter().any(|size| *size > 1);
    let of = |data| Strategy {
        data,
        tp,
        pp,
        cp,
        ep,
    };
    let infinity = said.phrases.iter().any(|(say, words)| {
        matches!(say, Say::Offload(_)) && words.eq_ignore_ascii_case("infinity")
    });
    let copies = said
        .numbers
        .get(Number::Data)
        .map_or(1, |(copies, _)| copies);
    if facts.gpus.is_unsaid() && (split || copies > 1) {
        let all = [tp, pp, cp, copies]
            .iter()
            .fold(1u64, |all, size| all.saturating_mul(*size));
        facts.gpus = Fact::follows(all, "its parallel sizes");
    }
    let data = if infinity {
        Some((DataParallel::Zero3, "ZeRO-Infinity".to_string()))
    } else {
        data
    };
    facts.strategy = match (data, deepspeed) {
        (Some((DataParallel::Fsdp, words)), _) => Fact::follows(
            of(DataParallel::Fsdp2),
            format!("`{words}` is read as PyTorch's present FSDP, version 2"),
        ),
        (Some((data, words)), _) => Fact::read(of(data), words),
        (None, Some((_, words))) => Fact::Unknown(format!("the stage of `{words}` is not said")),
        (None, None) if split => Fact::read(of(DataParallel::None), "its parallel sizes"),
        (None, None) => Fact::Unsaid,
    };
    let offload = said.phrases.iter().find_map(|(say, words)| match say {
        Say::Offload(offload) => Some((*offload, words.clone())),
        _ => None,
    });
    if let Some((offload, words)) = offload {
        let stage = facts.strategy.value().map(|strategy| strategy.data);
        let offload = match (offload, stage) {
            (Offload::Both, Some(DataParallel::Zero1 | DataParallel::Zero2)) => Offload::Optimizer,
            (offload, _) => offload,
        };
        facts.offload = Fact::read(offload, words);
    }
}

fn sizes(facts: &mut Facts, said: &Said) {
    let get = |kind| match said.numbers.get(kind) {
        Some((value, words)) => Fact::read(value, words),
        None => Fact::Unsaid,
    };
    facts.sequence = get(Number::Length);
    facts.prompt = get(Number::Prompt);
    facts.completion = get(Number::Completion);
    if let (Some(prompt), Some(completion)) = (facts.prompt.value(), facts.completion.value()) {
        let both = prompt.saturating_add(*completion);
        facts.sequence =
            std::mem::take(&mut facts.sequence).or_follows(both, "prompt and completion");
    }
    facts.micro_batch = get(Number::Batch);
    facts.accumulation = get(Number::Accumulation);
    facts.height = get(Number::Height);
    facts.width = get(Number::Width);
    facts.frames = get(Number::Frames);
    facts.samples = get(Number::Samples);
    facts.blocks_swapped = get(Number::BlocksSwapped);
    let Some((global, words)) = said.numbers.get(Number::GlobalBatch) else {
        return;
    };
    // GPUs that share one copy of the model take part of one batch.
    let copy = facts.strategy.value().map_or(1, |strategy| {
        strategy
            .tp
            .saturating_mul(strategy.pp)
            .saturating_mul(strategy.cp)
    });
    let gpus = (facts.gpus.value().copied().unwrap_or(1) / copy.max(1)).max(1);
    let why = format!("{words} over {gpus} copies of the model");
    let per = |part: u64| {
        (part > 0 && global % part == 0)
            .then(|| global / part)
            .filter(|value| *value > 0)
    };
    match (
        facts.micro_batch.value().copied(),
        facts.accumulation.value().copied(),
    ) {
        (Some(micro), None) => {
            if let Some(accumulation) = per(micro.saturating_mul(gpus)) {
                facts.accumulation = Fact::follows(accumulation, why);
            }
        }
        (None, Some(accumulation)) => {
            if let Some(micro) = per(accumulation.saturating_mul(gpus)) {
                facts.micro_batch = Fact::follows(micro, why);
            }
        }
        (None, None) => {
            facts.micro_batch =
                Fact::Unknown(format!("{words}: the part of one GPU's turn is not said"));
        }
        (Some(_), Some(_)) => {}
    }
}

/// A card that is named once is one card, unless what is said needs several.
fn one_gpu(facts: &mut Facts, cards: &Cards) {
    let shared = match &facts.strategy {
        Fact::Known { value, .. } => {
            value.data != DataParallel::None && value.data != DataParallel::Zero0 || value.shards()
        }
        Fact::Unknown(_) => true,
        Fact::Unsaid => false,
    };
    let named = facts.gpu.is_known() || cards.gib.is_some();
    let asked = facts.wanted == Some(Wanted::Cards);
    // One card with an offload is what offloading is for.
    let offloaded = facts
        .offload
        .value()
        .is_some_and(|offload| *offload != Offload::None);
    if facts.gpus.is_unsaid()
        && named
        && (!shared || offloaded)
        && !cards.several
        && !asked
        && facts.nodes.is_unsaid()
    {
        facts.gpus = Fact::follows(1, "one GPU is named");
    }
}
