//! A network that a scenario declares: its parts, run layer by layer.

use std::rc::Rc;

use super::attention::{Eager, attend, heads};
use super::{Cx, Net, Output, Region};
use crate::tape::ops::{AttentionMask, Conv, repeat_heads};
use crate::tape::{DType, Dims, Tensor};
use headroom_scenario::network::{
    Attention, ExtraTensor, Input, Lifetime, Loss, Mlp, Norm, Op, PartPlan, Plan,
};
use headroom_scenario::{self as scenario, Data};

/// The network of a plan.
pub(crate) fn net(plan: Plan) -> Box<dyn Net> {
    let Plan {
        input,
        parts,
        at_loss,
        loss,
        output,
    } = plan;
    Box::new(Declared {
        input,
        parts: parts.into_iter().map(Rc::new).collect(),
        at_loss,
        loss,
        output,
    })
}

#[derive(Debug)]
struct Declared {
    input: Input,
    parts: Vec<Rc<PartPlan>>,
    at_loss: Vec<ExtraTensor>,
    loss: Loss,
    output: Vec<u64>,
}

impl Net for Declared {
    fn batch(&self, cx: &Cx, _: &Data) -> Vec<Tensor> {
        let float = cx.env.weights;
        let dtype = if self.input.tokens { DType::I64 } else { float };
        let mut all = vec![cx.tape.empty("input", &self.input.shape[..], dtype)];
        match (self.loss, self.output.split_last()) {
            (Loss::CrossEntropy, Some((_, rows))) => {
                all.push(cx.tape.empty("target", rows, DType::I64));
            }
            (Loss::Mse, _) => all.push(cx.tape.empty("target", &self.output[..], float)),
            _ => {}
        }
        all
    }

    fn forward(&self, cx: &Cx, batch: &[Tensor]) -> Output {
        let Some(input) = batch.first() else {
            return Output::empty(cx);
        };
        let mut x = input.clone();
        for part in &self.parts {
            x = cx.module_named(&part.name, |cx| {
                let cx = if part.frozen { cx.frozen() } else { cx.clone() };
                run(&cx, part, x)
            });
        }
        let loss = cx.module_named("loss", |cx| {
            let x = with_declared_tensors(cx, &self.at_loss, x.clone());
            match (self.loss, batch.get(1)) {
                (Loss::CrossEntropy, Some(target)) => {
                    let rows = [target.numel(), x.size(-1)];
                    x.view(&rows).cross_entropy(&target.view(&rows[..1]))
                }
                (Loss::Mse, Some(target)) => x.mse_loss(target),
                _ => x.mean_all(),
            }
        });
        Output {
            loss,
            held: vec![x],
        }
    }
}

/// All passes of a part over its one set of weights.
fn run(cx: &Cx, part: &Rc<PartPlan>, mut x: Tensor) -> Tensor {
    // A part that is run once is no list of layers and is not checkpointed.
    let listed = part.repeat > 1 || part.passes > 1;
    for pass in 0..part.passes {
        x = if pass < part.without_gradient {
            let x = x.detach();
            cx.tape.clone().no_grad(|| one_pass(cx, part, x, false))
        } else if listed && part.whole_passes {
            let part = part.clone();
            let outputs = cx.block(Region::Block, vec![x], move |cx, inputs| {
                let passed = |x| one_pass(cx, &part, x, false);
                inputs.into_iter().map(passed).collect()
            });
            match outputs.into_iter().next() {
                Some(x) => x,
                None => return Output::empty(cx).loss,
            }
        } else {
            one_pass(cx, part, x, listed && !part.whole_passes)
        };
    }
    x
}

fn one_pass(cx: &Cx, part: &Rc<PartPlan>, mut x: Tensor, listed: bool) -> Tensor {
    if !listed {
        for i in 0..part.repeat {
            x = cx.list_item("layers", i as usize, |cx| layer(cx, part, x));
        }
        return x;
    }
    let inner = part.clone();
    let body = move |cx: &Cx, state: &[Tensor]| {
        let states = state.iter().cloned();
        states.map(|x| layer(cx, &inner, x)).collect()
    };
    let state = if part.passes > 1 {
        // The same weights come again, which a row that is run once for all would not show.
        cx.layers(
            "layers",
            part.repeat,
            vec![x.clone()],
            move |cx, state, _| body(cx, state),
        )
    } else {
        cx.equal_layers("layers", part.repeat, vec![x.clone()], body)
    };
    state.into_iter().next().unwrap_or(x)
}

fn layer(cx: &Cx, part: &PartPlan, mut x: Tensor) -> Tensor {
    for (at, op) in part.ops.iter().enumerate() {
        x = cx.list_item(name(op), at, |cx| apply(cx, op, &x));
    }
    with_declared_tensors(cx, &part.tensors, x)
}

/// `x` with the tensors that are declared to be alive here.
fn with_declared_tensors(cx: &Cx, tensors: &[ExtraTensor], mut x: Tensor) -> Tensor {
    for tensor in tensors {
        x = cx.module_named(&tensor.name, |cx| declared(cx, tensor, x));
    }
    x
}

fn declared(cx: &Cx, tensor: &ExtraTensor, x: Tensor) -> Tensor {
    let shape = Dims::new(&tensor.shape);
    let allocate = || -> Vec<Tensor> {
        (0..tensor.count)
            .map(|_| cx.tape.empty("declared", shape, tensor.dtype))
            .collect()
    };
    match tensor.lifetime {
        Lifetime::Saved => x.keeping(&allocate()),
        Lifetime::Forward => {
            drop(allocate());
            x
        }
        Lifetime::Backward => x.with_scratch_in_backward(shape, tensor.dtype, tensor.count),
        Lifetime::Persistent => {
            // Every pass looks them all up.
            cx.tape.spend(tensor.count);
            let copies = (0..tensor.count).take_while(|_| !cx.tape.is_over_budget());
            for i in copies {
                cx.list_item("copy", i as usize, |cx| {
                    cx.buffer("tensor", shape, tensor.dtype)
                });
            }
            x
        }
    }
}

fn name(op: &Op) -> &'static str {
    match op {
        Op::Embedding { .. } => "embedding",
        Op::Linear { .. } => "linear",
        Op::Norm(_) => "norm",
        Op::Attention(_) => "attention",
        Op::Mlp(_) => "mlp",
        Op::Conv(_) => "conv",
        Op::Activation(_) => "activation",
        Op::Dropout(_) => "dropout",
    }
}

fn apply(cx: &Cx, op: &Op, x: &Tensor) -> Tensor {
    match op {
        Op::Embedding { rows, width } => cx.embedding("table", x, *rows, *width),
        Op::Linear { out, bias } => cx.linear("proj", x, *out, *bias),
        Op::Norm(norm) => normed(cx, *norm, x),
        Op::Attention(attention) => self_attention(cx, attention, x),
        Op::Mlp(declared) => mlp(cx, declared, x),
        Op::Conv(declared) => {
            let space = x.shape().len().saturating_sub(2).min(3);
            let kernel = [declared.kernel; 3];
            let conv = Conv::stride(declared.stride)
                .padded(declared.kernel / 2)
                .grouped(declared.groups);
            let kernel = &kernel[..space];
            cx.convolution("kernel", x, declared.out, kernel, conv, declared.bias)
        }
        Op::Activation(kind) => activation(kind, x),
        Op::Dropout(p) => cx.dropout(x, *p),
    }
}

fn normed(cx: &Cx, norm: Norm, x: &Tensor) -> Tensor {
    match norm {
        Norm::None => x.clone(),
        Norm::Layer => cx.layer_norm("norm", x),
        Norm::Rms => cx.rms_norm("norm", x),
        Norm::Batch => cx.batch_norm("norm", x),
    }
}

fn activation(kind: &str, x: &Tensor) -> Tensor {
    match kind {
        "gelu" => x.gelu(),
        "silu" => x.silu(),
        "tanh" => x.tanh(),
        "sigmoid" => x.sigmoid(),
        _ => x.relu(),
    }
}

fn self_attention(cx: &Cx, attention: &Attention, x: &Tensor) -> Tensor {
    let (b, n, width) = (x.size(0), x.size(1), x.size(-1));
    let d = width / attention.heads.max(1);
    let input = normed(cx, attention.norm, x);
    let query = heads(
        &cx.linear("q_proj", &input, width, attention.bias),
        attention.heads,
    );
    let grouped = |name| {
        let flat = cx.linear(name, &input, attention.kv * d, attention.bias);
        let few = heads(&flat, attention.kv);
        repeat_heads(&few, attention.heads / attention.kv.max(1))
    };
    let (key, value) = (grouped("k_proj"), grouped("v_proj"));
    drop(input);
    let eager = cx.env.training.attention == scenario::Attention::Eager;
    let mask = match (attention.causal, eager) {
        (false, _) => AttentionMask::None,
        (true, false) => AttentionMask::Causal,
        (true, true) => AttentionMask::Given(query.constant("mask", &[1, 1, n, n], query.dtype())),
    };
    let (out, _weights) = attend(
        cx,
        [&query, &key, &value],
        &mask,
        attention.dropout,
        Eager::default(),
    );
    let out = cx.linear("o_proj", &out.view(&[b, n, width]), width, attention.bias);
    add_residual(cx, x, &out, attention.residual, attention.dropout)
}

fn mlp(cx: &Cx, mlp: &Mlp, x: &Tensor) -> Tensor {
    let width = x.size(-1);
    let input = normed(cx, mlp.norm, x);
    let mut inner = cx.linear("up_proj", &input, mlp.width, mlp.bias);
    inner = if mlp.gated {
        let gate = cx.linear("gate_proj", &input, mlp.width, mlp.bias);
        let gate = activation(mlp.activation, &gate);
        gate.mul(&inner)
    } else {
        activation(mlp.activation, &inner)
    };
    drop(input);
    let out = cx.linear("down_proj", &inner, width, mlp.bias);
    drop(inner);
    add_residual(cx, x, &out, mlp.residual, mlp.dropout)
}

fn add_residual(cx: &Cx, x: &Tensor, out: &Tensor, residual: bool, dropout: f64) -> Tensor {
    let out = cx.dropout(out, dropout);
    if residual { x.add(&out) } else { out }
}
