//! Adapters as PEFT inserts them: LoRA itself here (peft/tuners/lora/layer.py), its relatives in a file each.

mod bases;
mod butterfly;
mod dora;
mod entries;
mod kronecker;
mod params;
mod rebuilt;
mod rotation;
mod sparse;
mod subspace;
mod tokens;
mod turned;
mod variants;
mod vectors;

use super::Cx;
use crate::tape::Tensor;
use headroom_scenario::{AdapterMethod, Lora, Quantization};
use params::{adapter_type, adapter_weight, updated, vector};
pub(crate) use tokens::with_trained_rows;

/// The input of a linear layer `name`, which some adapters change before the layer's own product.
pub(crate) fn input(cx: &Cx, name: &str, x: &Tensor) -> Tensor {
    match target(cx, name) {
        Some(lora) if lora.method == AdapterMethod::Oft => rotation::rotated(cx, name, x, lora),
        Some(lora) if lora.method == AdapterMethod::Boft => butterfly::turned(cx, x, lora),
        Some(lora) if lora.method == AdapterMethod::Ia3 && vectors::is_feed_forward(name, lora) => {
            vectors::scaled_input(cx, x, lora)
        }
        _ => x.clone(),
    }
}

/// The output `y` of a linear layer `name`, with its adapter's update added where it is a target (`Linear.forward`).
pub(crate) fn adapted(cx: &Cx, name: &str, x: &Tensor, y: Tensor) -> Tensor {
    let Some(lora) = target(cx, name) else {
        return y;
    };
    match lora.method {
        AdapterMethod::Lora | AdapterMethod::LoraFa => low_rank(cx, name, x, y, lora),
        AdapterMethod::Dora => dora::magnified(cx, name, x, y, lora),
        AdapterMethod::Vera => vectors::vera(cx, name, x, y, lora),
        AdapterMethod::Ia3 if vectors::is_feed_forward(name, lora) => y,
        AdapterMethod::Ia3 => vectors::scaled_output(cx, y, lora),
        AdapterMethod::LoHa => kronecker::hadamard(cx, x, y, lora),
        AdapterMethod::LoKr => kronecker::kronecker(cx, x, y, lora),
        AdapterMethod::AdaLora => dora::adaptive(cx, name, x, y, lora),
        AdapterMethod::RandLora => bases::random(cx, x, y, lora),
        AdapterMethod::Miss => vectors::shards(cx, x, y, lora),
        AdapterMethod::MissBat => vectors::blocks(cx, x, y, lora),
        AdapterMethod::Road => turned::pairs(cx, y, lora),
        AdapterMethod::Boft => butterfly::scaled(cx, y, lora),
        AdapterMethod::C3a => butterfly::circulant(cx, x, y, lora).to(x.dtype()),
        AdapterMethod::Shira => sparse::entries(cx, x, y, lora),
        AdapterMethod::FourierFt => entries::frequencies(cx, x, y, lora),
        AdapterMethod::WaveFt => entries::wavelets(cx, x, y, lora),
        AdapterMethod::DeLora => variants::decoupled(cx, x, y, lora),
        AdapterMethod::HiRa => variants::entrywise(cx, x, y, lora),
        AdapterMethod::GraLora => variants::by_blocks(cx, x, y, lora),
        AdapterMethod::PVera => variants::drawn(cx, x, y, lora),
        AdapterMethod::Osf => variants::decomposed(cx, x, y, lora),
        AdapterMethod::Deft => subspace::projected(cx, x, y, lora, true),
        AdapterMethod::DeftPara => subspace::projected(cx, x, y, lora, false),
        AdapterMethod::Psoft => subspace::rotated_subspace(cx, x, y, lora),
        AdapterMethod::GLora => rebuilt::scaled_and_shifted(cx, x, y, lora),
        AdapterMethod::Peanut => rebuilt::from_weight(cx, x, y, lora),
        AdapterMethod::Frod => rebuilt::decomposed_in_name(cx, name, x, y, lora),
        AdapterMethod::VbLora => variants::from_bank(cx, x, y, lora),
        // It changed the input, and gives back what it was given.
        AdapterMethod::Oft => y.to(x.dtype()),
        // They stand elsewhere in the model.
        AdapterMethod::Prefix | AdapterMethod::TrainedTokens | AdapterMethod::LnTuning => y,
    }
}

/// Two matrices of a low rank between them.
fn low_rank(cx: &Cx, name: &str, x: &Tensor, y: Tensor, lora: &Lora) -> Tensor {
    // LoRA-FA freezes the first.
    let trains = lora.method != AdapterMethod::LoraFa;
    let a = params::matrix(cx, name, "lora_A", [lora.rank, x.size(-1)], lora, trains);
    let b = adapter_weight(cx, name, "lora_B", [y.size(-1), lora.rank], lora);
    // Adapters of quantised layers leave casts to autocast where there is one (peft/tuners/lora/bnb.py, awq.py, aqlm.py), but for
    // GPTQ's (gptq.py).
    let leaves_casts = cx.quantised(name) && cx.env.training.quantization != Quantization::Gptq;
    let cast = if leaves_casts && cx.tape.autocast_dtype().is_some() {
        x.clone()
    } else {
        x.to(a.dtype())
    };
    let update = cast
        .dropout(lora.dropout)
        .pipe(|x| x.linear(&a.tensor(), None))
        .pipe(|low| low.linear(&b.tensor(), None))
        .pipe(Tensor::mul_scalar);
    let dtype = y.dtype();
    let sum = y.pipe(|y| y.add(&update));
    drop(update);
    sum.to(dtype)
}

/// The output of an embedding `name` for `ids`, with its adapter's update added where it is a target: rows of the first
/// matrix's transpose, times the second (`Embedding.forward`). The module may itself multiply by a factor.
pub(crate) fn adapted_embedding(
    cx: &Cx,
    name: &str,
    [ids, y]: [&Tensor; 2],
    rows: u64,
    factor: Option<&Tensor>,
) -> Tensor {
    let mut result = y.clone();
    let Some(lora) = target(cx, name).filter(|lora| lora.method == AdapterMethod::Lora) else {
        return result;
    };
    let a = adapter_weight(cx, name, "lora_embedding_A", [lora.rank, rows], lora);
    let b = adapter_weight(cx, name, "lora_embedding_B", [y.size(-1), lora.rank], lora);
    // Variables of PEFT's forward, which live to its end.
    let low = a.tensor().transpose(0, 1).embedding(ids);
    let mut update = low.linear(&b.tensor(), None).pipe(Tensor::mul_scalar);
    if let Some(factor) = factor {
        let factor = factor.to(update.dtype());
        update = update.mul(&factor);
    }
    result = result.add(&update);
    result = result.to(y.dtype());
    drop((low, update));
    result
}

/// The run's LoRA configuration, where the layer `name` is one of its targets.
fn target<'a>(cx: &'a Cx, name: &str) -> Option<&'a Lora> {
    let lora = cx.env.training.lora.as_ref()?;
    // The whole path is made only for a target of several parts that ends so.
    let is_target = |target: &String| {
        Lora::names(target, name) || Lora::names(name, target) && Lora::names(target, &cx.path())
    };
    if !lora.targets.iter().any(is_target) {
        return None;
    }
    if !lora.exclude.is_empty() {
        let path = cx.path();
        if lora.exclude.iter().any(|part| path.contains(part.as_str())) {
            return None;
        }
    }
    Some(lora)
}
