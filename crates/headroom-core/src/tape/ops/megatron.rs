//! What Megatron-Core computes in functions of its own (megatron/core/tensor_parallel, megatron/core/fusions).

use std::cell::RefCell;
use std::rc::Rc;

use smallvec::SmallVec;

use super::super::{Category, DType, Saved, Tape, Tensor, borrowing, grads};

/// `GlobalMemoryBuffer`: memory that is used over and over, as large as the largest tensor that was asked of it.
#[derive(Clone, Debug, Default)]
pub struct MemoryBuffer(Rc<RefCell<Option<Tensor>>>);

impl MemoryBuffer {
    pub fn ask(&self, tape: &Tape, numel: u64, dtype: DType) {
        if tape.declaring() {
            // A network may be run again, on another tape.
            self.0.take();
            return;
        }
        let fits = |held: &Tensor| held.numel() >= numel;
        if self.0.borrow().as_ref().is_some_and(fits) {
            return;
        }
        let larger = tape.empty("global_memory_buffer", [numel], dtype);
        larger.set_category(Category::Buffers);
        drop(self.0.replace(Some(larger)));
    }
}

/// How a linear layer's group of GPUs shares tokens.
#[derive(Clone, Debug)]
pub enum Tokens {
    /// Each has all of them; gradients of the input are summed in place.
    All,
    /// Each has a part (sequence parallelism): they are gathered in forward and again in backward, into a buffer or, where there
    /// is none, into memory of their own.
    Parts {
        group: u64,
        buffer: Option<MemoryBuffer>,
    },
}

/// Where the gradient of a linear layer's weight goes.
#[derive(Clone, Debug)]
pub enum WeightGradient {
    /// Along the graph (`--no-gradient-accumulation-fusion`).
    Returned,
    /// To `main_grad`, to which the kernel that computes it adds it; an empty tensor of its size goes along the graph.
    Accumulated,
    /// The same, with one empty tensor for all weights of a shape.
    Shared(EmptyGradients),
}

/// `get_dummy_wgrad` of Transformer Engine: an empty gradient for each shape of weights, kept for ever.
#[derive(Clone, Debug, Default)]
pub struct EmptyGradients(Rc<RefCell<Vec<Tensor>>>);

impl EmptyGradients {
    /// Those of a weight are made in its first forward, before the first backward needs them, so that equal layers do the same.
    fn ask(&self, weight: &Tensor, dtype: DType) {
        let tape = weight.tape();
        if tape.declaring() {
            self.0.take();
            return;
        }
        let is_there = |made: &Tensor| made.shape() == weight.shape();
        if self.0.borrow().iter().any(is_there) {
            return;
        }
        let empty = tape.empty("get_dummy_wgrad", *weight.shape(), dtype);
        empty.set_category(Category::Buffers);
        self.0.borrow_mut().push(empty);
    }
}

impl Tensor {
    /// `LinearWithGradAccumulationAndAsyncCommunication` of `[S, B, K]`, and Transformer Engine's `Linear`.
    pub fn linear_accumulating(
        &self,
        weight: &Tensor,
        bias: Option<&Tensor>,
        tokens: &Tokens,
        gradient: &WeightGradient,
    ) -> Tensor {
        let tape = self.tape();
        if let WeightGradient::Shared(made) = gradient {
            made.ask(weight, self.dtype());
        }
        let dtype = self.dtype();
        let own = *self.shape();
        let (k, out) = (self.size(-1), weight.size(0));
        let group = match tokens {
            Tokens::All => 1,
            Tokens::Parts { group, .. } => *group,
        };
        let rows = self.numel() / k.max(1);
        let all_rows = rows.saturating_mul(group);
        let gathers = move |tape: &Tape, tokens: &Tokens| {
            let Tokens::Parts { buffer, .. } = tokens else {
                return None;
            };
            let numel = all_rows.saturating_mul(k);
            tape.kernel("all_gather", dtype, 0.0, (all_rows * k) as f64);
            match buffer {
                Some(buffer) => {
                    buffer.ask(tape, numel, dtype);
                    None
                }
                None => Some(tape.empty("all_gather", [numel], dtype)),
            }
        };
        let gathered = gathers(&tape, tokens);
        let whole = own.with(0, self.size(0).saturating_mul(group));
        let last = whole.len().saturating_sub(1);
        let mut y = self
            .product_of("linear", all_rows, k, out, false)
            .view(&whole.with(last, out));
        drop(gathered);
        if let Some(bias) = bias {
            y = y.zip(bias, "add");
        }
        let bias_meta = bias.map(Tensor::meta);
        let mut inputs: SmallVec<[&Tensor; 3]> = SmallVec::from_slice(&[self, weight]);
        inputs.extend(bias);
        let (tokens, gradient) = (tokens.clone(), gradient.clone());
        y.from_op(&inputs, move |needs| {
            let needs_bias = needs.input(2);
            let kept = [self, weight].map(Tensor::save);
            let table = *weight.shape();
            borrowing(move |g| {
                let [input, weight] = kept.each_ref().map(Saved::unpack);
                let tape = g.tape();
                let gathered = gathers(&tape, &tokens);
                let for_input = g.product_of("linear", all_rows, out, k, false).view(&whole);
                let dense = g.contiguous();
                let part = matches!(tokens, Tokens::Parts { .. })
                    .then(|| tape.empty("reduce_scatter", own, dtype));
                let accumulates = || {
                    let (n, k, m) = (
                        out as f64,
                        all_rows as f64,
                        table.last().map_or(0.0, |m| *m as f64),
                    );
                    tape.kernel("wgrad_gemm_accum", dtype, 2.0 * n * k * m, 0.0);
                };
                let for_weight = match &gradient {
                    WeightGradient::Returned => dense.product_of("linear", out, all_rows, k, false),
                    WeightGradient::Accumulated => {
                        accumulates();
                        tape.empty("grad_weight", table, dtype)
                    }
                    WeightGradient::Shared(_) => {
                        accumulates();
                        weight.without_memory(dtype)
                    }
                };
                drop(gathered);
                let for_bias = bias_meta
                    .filter(|_| needs_bias)
                    .map(|meta| dense.clone().conform(meta));
                drop((input, weight));
                let for_input = match part {
                    Some(part) => {
                        drop(for_input);
                        part
                    }
                    None => for_input,
                };
                grads([Some(for_input), Some(for_weight), for_bias])
            })
        })
    }

    /// `SwiGLUFunction`: gate and up side by side in the last dimension, computed by plain operations.
    pub fn swiglu_saving_input(&self) -> Tensor {
        let out = self.tape().no_grad(|| self.swiglu());
        out.from_op(&[self], |_| {
            let kept = self.save();
            borrowing(move |g| {
                let input = kept.unpack();
                let (gate, up) = input.halves();
                let for_input = swiglu_backward(g, &gate, &up);
                drop((input, gate, up));
                grads([Some(for_input)])
            })
        })
    }

    /// The same, computed by one kernel (`--bias-swiglu-fusion`, which is on by default).
    pub fn swiglu_fused(&self) -> Tensor {
        let half = {
            let (gate, _) = self.halves();
            *gate.shape()
        };
        self.map_to_shape("swiglu", &half).from_op(&[self], |_| {
            let kept = self.save();
            borrowing(move |g| {
                let input = kept.unpack();
                let for_input = g.map_to_shape("swiglu_back", input.shape());
                drop(input);
                grads([Some(for_input)])
            })
        })
    }

    /// `fused_apply_rotary_pos_emb`: one kernel, in forward and in backward, which keeps the angles alone.
    pub fn rotary_fused(&self, freqs: &Tensor) -> Tensor {
        self.map("apply_rotary_pos_emb").from_op(&[self], |_| {
            let kept = freqs.save();
            borrowing(move |g| {
                let _freqs = kept.unpack();
                grads([Some(g.contiguous().map("apply_rotary_pos_emb"))])
            })
        })
    }

    /// `WeightedSwiGLUFunction`: the same, each row times its expert's weight `[R, 1]`, whose gradient is summed.
    pub fn weighted_swiglu_saving_input(&self, weights: &Tensor) -> Tensor {
        let tape = self.tape();
        let out = tape.no_grad(|| self.swiglu().pipe(|product| product.zip(weights, "mul")));
        out.from_op(&[self, weights], |_| {
            let kept = [self, weights].map(Tensor::save);
            borrowing(move |g| {
                let [input, weights] = kept.each_ref().map(Saved::unpack);
                let (gate, up) = input.halves();
                let weighted = g.zip(&weights, "mul");
                let for_input = swiglu_backward(&weighted, &gate, &up);
                drop(weighted);
                let product = input.swiglu().pipe(|product| product.zip(g, "mul"));
                let sum = product.pipe(|product| product.map_to_shape("sum", weights.shape()));
                drop((gate, up, input, weights));
                grads([Some(for_input), Some(sum)])
            })
        })
    }

    /// Gate and up.
    fn halves(&self) -> (Tensor, Tensor) {
        let half = || self.narrow(-1, self.size(-1) / 2);
        (half(), half())
    }

    fn swiglu(&self) -> Tensor {
        let (gate, up) = self.halves();
        gate.map("silu").pipe(|gate| gate.zip(&up, "mul"))
    }

    /// A result of another shape, such as sums over rows.
    fn map_to_shape(&self, op: &'static str, shape: &[u64]) -> Tensor {
        let tape = self.tape();
        tape.kernel(op, self.dtype(), 0.0, self.bytes() as f64);
        tape.empty(op, shape, self.dtype())
    }

    /// `index_add_` of rows into zeros with this many rows: the gradient is picked by the same index.
    pub fn rows_added_into(&self, index: &Tensor, rows: u64) -> Tensor {
        let own = *self.shape();
        let whole = own.with(0, rows);
        self.map_to_shape("scatter_add", &whole)
            .from_op(&[self], |_| {
                let kept = index.save();
                borrowing(move |g| {
                    let _index = kept.unpack();
                    grads([Some(g.map_to_shape("index_select", &own))])
                })
            })
    }

    /// `index_select` of rows: the gradient is added into zeros.
    pub fn rows_selected(&self, index: &Tensor, rows: u64) -> Tensor {
        let own = *self.shape();
        let picked = own.with(0, rows);
        self.map_to_shape("index_select", &picked)
            .from_op(&[self], |_| {
                let kept = index.save();
                borrowing(move |g| {
                    let _index = kept.unpack();
                    grads([Some(g.map_to_shape("index_add", &own))])
                })
            })
    }

    /// Rows of this GPU's part of a table, zero where a token is another's (`VocabParallelEmbedding`).
    pub fn embedding_of_part(&self, indices: &Tensor) -> Tensor {
        let [own, outside] = Self::masked_indices(indices);
        let found = self.embedding(&own);
        drop(own);
        found.detached_edge().from_op(&[&found], |_| {
            let kept = outside.save();
            borrowing(move |g| {
                let outside = kept.unpack();
                let cleared = g.map("index_put");
                drop(outside);
                grads([Some(cleared)])
            })
        })
    }

    /// `parallel_cross_entropy` of Transformer Engine, of `[S, B, V]`: the gradient is written over the logits, in forward already.
    pub fn cross_entropy_in_place(&self, target: &Tensor, group: u64) -> Tensor {
        let tape = self.tape();
        let tokens = *target.shape();
        let loss = tape.empty("cross_entropy", tokens, DType::F32);
        {
            let rows = target.numel().saturating_mul(3);
            let _sums = tape.empty("online_softmax", [rows], DType::F32);
            let _gathered = (group > 1)
                .then(|| tape.empty("all_gather", [rows.saturating_mul(group)], DType::F32));
            tape.kernel(
                "cross_entropy",
                self.dtype(),
                0.0,
                3.0 * self.bytes() as f64,
            );
        }
        loss.from_op(&[self], |_| {
            let kept = self.save();
            borrowing(move |_| {
                let gradient = kept.unpack();
                let tape = gradient.tape();
                tape.kernel("mul", gradient.dtype(), 0.0, 2.0 * gradient.bytes() as f64);
                drop(kept);
                grads([Some(gradient.detach())])
            })
        })
    }

    /// `vocab_parallel_cross_entropy` of `[S, B, V]`: the logits in fp32 become the softmax in place, and in backward the gradient.
    pub fn vocab_parallel_cross_entropy(&self, target: &Tensor) -> Tensor {
        let tape = self.tape();
        let tokens = *target.shape();
        let row = |dtype: DType| tape.empty("cross_entropy", tokens, dtype);
        let softmax = tape.no_grad(|| self.to(DType::F32)).detach();
        let (greatest, places) = (row(DType::F32), row(DType::I64));
        drop(places);
        let (below, above) = (row(DType::Bool), row(DType::Bool));
        let mask = row(DType::Bool);
        drop((below, above));
        let copied = row(DType::I64);
        let masked = row(DType::I64);
        drop(copied);
        let range = row(DType::I64);
        let picked = row(DType::F32);
        let predicted = row(DType::F32);
        drop((picked, range));
        let sum = row(DType::F32);
        tape.kernel("exp", DType::F32, 0.0, 4.0 * softmax.bytes() as f64);
        let log = row(DType::F32);
        let loss = row(DType::F32);
        drop((log, sum, predicted, greatest));
        let meta = self.meta();
        loss.from_op(&[self], |_| {
            let kept = [&softmax, &mask, &masked].map(Tensor::save);
            drop(softmax);
            borrowing(move |g| {
                let [softmax, mask, masked] = kept.each_ref().map(Saved::unpack);
                let tape = g.tape();
                let range = tape.empty("arange", [masked.numel()], DType::I64);
                let update = tape.empty("cross_entropy", [masked.numel()], DType::F32);
                tape.kernel("mul", DType::F32, 0.0, 2.0 * softmax.bytes() as f64);
                drop((range, update, mask, masked));
                drop(kept);
                grads([Some(softmax.conform(meta))])
            })
        })
    }
}

/// `swiglu_back`: the gradients of gate and up, side by side.
fn swiglu_backward(g: &Tensor, gate: &Tensor, up: &Tensor) -> Tensor {
    let mut first = gate.map("sigmoid").pipe(|sigmoid| g.zip(sigmoid, "mul"));
    let mut factor = gate.map("sigmoid").pipe(|sigmoid| sigmoid.map("rsub"));
    factor = gate.zip(&factor, "mul");
    factor = factor.map("add");
    first = first.zip(&factor, "mul");
    drop(factor);
    first = first.zip(up, "mul");
    let second = gate.map("silu").pipe(|gate| g.zip(gate, "mul"));
    let both = Tensor::cat(&first, &[&second], -1);
    drop((first, second));
    both
}
