//! LoRA's variants that change how its two matrices meet: DeLoRA, HiRA, GraLoRA, PVeRA, OSF and VB-LoRA (a directory of
//! peft/tuners each).

use super::{adapter_type, updated, vector};
use crate::nets::Cx;
use crate::tape::Tensor;
use headroom_scenario::Lora;

/// `DeloraLinear.forward`: the input is scaled by the weight's norms, and the low product by those of both matrices.
pub(crate) fn decoupled(cx: &Cx, x: &Tensor, y: Tensor, lora: &Lora) -> Tensor {
    let (inputs, outputs) = (x.size(-1), y.size(-1));
    let a = vector(cx, "delora_A", &[lora.rank, inputs], lora);
    let b = vector(cx, "delora_B", &[outputs, lora.rank], lora);
    let strength = vector(cx, "delora_lambda", &[1], lora);
    let norms = cx.buffer("delora_w_norm", [inputs], adapter_type(cx, lora));
    let added = y.empty_like("zeros_like", y.dtype());
    let low = x.mul(&norms).pipe(|x| x.linear(&a, None));
    // The norms of rows and columns: a number for each of the rank.
    let of_rows = a.constant("norm", &[lora.rank], a.dtype());
    let scaling = strength.div(&of_rows);
    let scaled = low.pipe(|low| low.mul(&scaling));
    let update = scaled.pipe(|low| low.linear(&b, None));
    let added = added.add_(&update);
    drop((update, scaling, of_rows));
    let dtype = y.dtype();
    let added = added.to(dtype);
    updated(y, added, x.dtype())
}

/// `HiraLinear.forward`: the base weight times the product of both matrices, entry by entry.
pub(crate) fn entrywise(cx: &Cx, x: &Tensor, y: Tensor, lora: &Lora) -> Tensor {
    let (inputs, outputs) = (x.size(-1), y.size(-1));
    let a = vector(cx, "hira_A", &[lora.rank, inputs], lora);
    let b = vector(cx, "hira_B", &[outputs, lora.rank], lora);
    let base = cx.param("weight", [outputs, inputs]).data.clone();
    let both = a.transpose(0, 1).matmul_by(&b.transpose(0, 1));
    let weight = base.mul(&both.transpose(0, 1));
    let wide = x.to(a.dtype());
    let update = wide
        .dropout(cx.rate(lora.dropout))
        .pipe(|x| x.linear(&weight, None));
    drop((wide, weight, both));
    let dtype = y.dtype();
    updated(y, update, dtype)
}

/// The default of `gralora_k`.
const PARTS: u64 = 2;

/// `GraloraLayer`'s forward: each of two by two blocks of the weight has matrices of its own.
pub(crate) fn by_blocks(cx: &Cx, x: &Tensor, y: Tensor, lora: &Lora) -> Tensor {
    let (inputs, outputs) = (x.size(-1), y.size(-1));
    let given = x.dtype();
    let part = |size: u64| (size / PARTS).max(1);
    let a = vector(cx, "gralora_A", &[PARTS, part(inputs), lora.rank], lora);
    let b = vector(cx, "gralora_B", &[PARTS, lora.rank, part(outputs)], lora);
    let rows = x.numel() / inputs.max(1);
    let wide = x.to(a.dtype()).dropout(cx.rate(lora.dropout));
    // `einsum` multiplies by batches: one of each part.
    let parts = wide.view(&[rows, PARTS, part(inputs)]).transpose(0, 1);
    drop(wide);
    let low = parts.bmm(&a).transpose(0, 1);
    drop(parts);
    let mixed = low
        .view(&[rows, PARTS, PARTS, part(lora.rank)])
        .permute(&[0, 2, 1, 3])
        .reshape(&[rows, PARTS, part(lora.rank).saturating_mul(PARTS)]);
    drop(low);
    let update = mixed.transpose(0, 1).bmm(&b).transpose(0, 1);
    drop(mixed);
    let update = update.pipe(|update| update.reshape(&[rows, outputs]));
    let dtype = y.dtype();
    let scaled = update.view(y.shape()).to(dtype).pipe(Tensor::mul_scalar);
    drop(update);
    y.add_(&scaled).to(given)
}

/// `PveraLayer`'s forward: VeRA whose low product is a mean and a variance, from which it is drawn.
pub(crate) fn drawn(cx: &Cx, x: &Tensor, y: Tensor, lora: &Lora) -> Tensor {
    let (inputs, outputs) = (x.size(-1), y.size(-1));
    let dtype = adapter_type(cx, lora);
    let [widest_out, widest_in] = cx.widest([outputs, inputs]);
    let root = cx.root();
    let twice = lora.rank.saturating_mul(2);
    let shared_a = root.buffer("pvera_A", [twice, widest_in], dtype);
    let shared_b = root.buffer("pvera_B", [widest_out, lora.rank], dtype);
    let b = vector(cx, "pvera_lambda_b", &[outputs], lora);
    let d = vector(cx, "pvera_lambda_d", &[twice], lora);
    let given = x.dtype();
    let x = x.to(dtype).dropout(cx.rate(lora.dropout));
    let low = x.linear(&shared_a.narrow(1, inputs), None);
    drop(x);
    let scaled = d.mul(&low);
    drop(low);
    let halves = scaled.chunk(2, -1);
    let [mean, variance] = &halves[..] else {
        return y;
    };
    let deviation = variance.mul_scalar().pipe(Tensor::exp);
    let noise = deviation.empty_like("randn_like", dtype);
    let sample = noise.mul(&deviation).pipe(|spread| mean.add(spread));
    drop((noise, deviation, scaled));
    let wide = sample.pipe(|low| low.linear(&shared_b.narrow(0, outputs), None));
    drop(halves);
    let update = b.mul(&wide);
    drop(wide);
    updated(y, update, given)
}

/// `OSFLinear.forward`: the low part of a decomposition is trained, and its first value, which is kept, is taken off.
pub(crate) fn decomposed(cx: &Cx, x: &Tensor, y: Tensor, lora: &Lora) -> Tensor {
    let (inputs, outputs) = (x.size(-1), y.size(-1));
    // What is low is all that the effective rank leaves.
    let low = inputs.min(outputs).saturating_sub(lora.rank).max(1);
    let u = vector(cx, "U_low", &[outputs, low], lora);
    let s = vector(cx, "S_low", &[low], lora);
    let v = vector(cx, "V_low", &[low, inputs], lora);
    let dtype = u.dtype();
    let u_first = cx.buffer("U_low_init", [outputs, low], dtype);
    let s_first = cx.buffer("S_low_init", [low], dtype);
    let v_first = cx.buffer("V_low_init", [low, inputs], dtype);
    let now = u.mul(&s.unsqueeze(0));
    let first = u_first.mul(&s_first.unsqueeze(0)).pipe(Tensor::neg);
    let a = Tensor::cat(&now, &[&first], 1);
    drop((now, first));
    let b = Tensor::cat(&v, &[&v_first], 0);
    let wide = x.to(dtype);
    let hidden = wide.linear(&b, None);
    drop(wide);
    let update = hidden.linear(&a, None);
    drop((hidden, a, b));
    let given = x.dtype();
    let update = update.pipe(|update| update.to(given));
    let sum = y.pipe(|y| y.add(&update));
    drop(update);
    sum
}

/// `VBLoRALayer`'s forward: rows of both matrices are mixed from two vectors each of a bank that all layers share.
pub(crate) fn from_bank(cx: &Cx, x: &Tensor, y: Tensor, lora: &Lora) -> Tensor {
    // The defaults of `vector_length`, `num_vectors` and `topk`.
    const LENGTH: u64 = 256;
    const VECTORS: u64 = 256;
    const CHOSEN: u64 = 2;
    let (inputs, outputs) = (x.size(-1), y.size(-1));
    let given = x.dtype();
    let pieces = |size: u64| (size / LENGTH).max(1);
    let logits_a = vector(
        cx,
        "vblora_logits_A",
        &[lora.rank, pieces(inputs), VECTORS],
        lora,
    );
    let logits_b = vector(
        cx,
        "vblora_logits_B",
        &[pieces(outputs), lora.rank, VECTORS],
        lora,
    );
    let bank = vector(&cx.root(), "vblora_vector_bank", &[VECTORS, LENGTH], lora);
    let mixed = |logits: &Tensor| {
        let (chosen, places) = logits.topk(CHOSEN);
        let shares = chosen.pipe(|chosen| chosen.softmax(None));
        let rows = logits.numel() / VECTORS;
        let vectors = bank
            .embedding(&places)
            .pipe(|found| found.view(&[rows, CHOSEN, LENGTH]));
        let weighted = shares.view(&[rows, CHOSEN, 1]).mul(&vectors);
        drop((shares, vectors, places));
        weighted
            .pipe(|all| all.sum(&[-2]))
            .pipe(|sum| sum.squeeze(-2))
    };
    let a = mixed(&logits_a).pipe(|a| a.reshape(&[lora.rank, inputs]));
    let b = mixed(&logits_b)
        .pipe(|b| {
            b.view(&[pieces(outputs), lora.rank, LENGTH])
                .transpose(1, 2)
        })
        .pipe(|b| b.reshape(&[outputs, lora.rank]));
    let wide = x.to(bank.dtype()).dropout(cx.rate(lora.dropout));
    let update = wide.linear(&a, None).pipe(|low| low.linear(&b, None));
    drop((wide, a, b));
    updated(y, update, given)
}
