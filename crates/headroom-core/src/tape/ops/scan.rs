//! The selective scan of state-space models, a step at a time
//! (`mamba_selective_scan` in transformers/models/mamba/modeling_mamba.py, without kernels of its own).

use super::super::trace::rounded;
use super::super::{DType, Grads, Layout, Saved, Tape, Tensor, consuming, grads};

/// Steps that are told one by one; of longer sequences several stand together.
const GRAIN: u64 = 256;

/// The sizes of a scan.
#[derive(Clone, Copy)]
struct Scan {
    batch: u64,
    width: u64,
    steps: u64,
    state: u64,
    dtype: DType,
}

impl Scan {
    /// How many steps stand together, and how many such groups there are.
    fn groups(&self) -> (u64, u64) {
        let each = self.steps.div_ceil(GRAIN).max(1);
        (each, self.steps.div_ceil(each))
    }

    /// What each of `count` steps keeps in a block of its own.
    fn kept(tape: &Tape, count: u64, numel: u64, dtype: DType) -> Tensor {
        let bytes = numel.saturating_mul(dtype.bytes());
        let all = if count == 1 {
            bytes
        } else {
            count.saturating_mul(rounded(bytes))
        };
        tape.empty("selective_scan", [all], DType::U8)
    }

    fn states(&self) -> u64 {
        self.batch
            .saturating_mul(self.width)
            .saturating_mul(self.state)
    }
}

impl Tensor {
    /// `state = self[:, :, i] * state + input[:, :, i]; out[i] = state @ c[:, i]` for every step, stacked, with what the
    /// function's names keep. `self` and `input` are `[B, D, S, N]` in fp32, `c` is `[B, S, N]`.
    pub fn selective_scan(&self, input: &Tensor, c: &Tensor) -> (Tensor, Vec<Tensor>) {
        let tape = self.tape();
        let scan = Scan {
            batch: self.size(0),
            width: self.size(1),
            steps: self.size(2),
            state: self.size(3),
            dtype: c.dtype(),
        };
        let (each, groups) = scan.groups();
        let rows = scan.batch.saturating_mul(scan.width);
        let mut state = tape.empty("zeros", [scan.states()], scan.dtype);
        let mut kept = Vec::new();
        let mut outputs = Vec::new();
        for _ in 0..groups {
            let product = tape.empty("mul", [scan.states()], DType::F32);
            let next = Scan::kept(&tape, each, scan.states(), DType::F32);
            drop(product);
            let narrow = (scan.dtype != DType::F32)
                .then(|| Scan::kept(&tape, each, scan.states(), scan.dtype));
            outputs.push(Scan::kept(&tape, each, rows, scan.dtype));
            tape.cublas_workspace();
            let before = std::mem::replace(&mut state, next);
            kept.push([Some(before), narrow]);
        }
        if scan.dtype == DType::F32
            && let Some(last) = kept.last_mut()
        {
            // Nothing was cast: the product saves the state itself.
            last[1] = Some(state.clone());
        }
        let flops = 6.0 * scan.states() as f64 * scan.steps as f64;
        let bytes = 2.0 * self.bytes() as f64 + c.bytes() as f64;
        tape.kernel("selective_scan", DType::F32, flops, bytes);
        let shape = [scan.batch, scan.width, scan.steps];
        let out = tape.empty_as("stack", Layout::contiguous(shape), scan.dtype);
        let out = out.from_op(&[self, input, c], |needs| {
            let needs = [needs.input(0), needs.input(1), needs.input(2)];
            let kept: Vec<[Option<Saved>; 2]> = kept
                .iter()
                .map(|pair| {
                    pair.each_ref()
                        .map(|saved| saved.as_ref().map(Tensor::save))
                })
                .collect();
            let inputs = [self.save(), c.save()];
            consuming(move |g| {
                let inputs = inputs.map(|saved| saved.unpack());
                scan.backward(g, kept, needs, &inputs)
            })
        });
        outputs.push(state);
        (out, outputs)
    }
}

impl Scan {
    fn backward(
        &self,
        g: Tensor,
        mut kept: Vec<[Option<Saved>; 2]>,
        needs: [bool; 3],
        inputs: &[Tensor; 2],
    ) -> Grads {
        let tape = g.tape();
        let [factors, _] = inputs;
        let whole = |t: &Tensor| tape.empty_as("select_backward", *t.layout(), DType::F32);
        let sums = Layout::contiguous([self.batch, self.steps, self.state]);
        let mut totals: [Option<Tensor>; 3] = [None, None, None];
        let mut flowing: Option<Tensor> = None;
        // Each step holds a slice of it.
        let mut whole_gradient = Some(g);
        while let Some(pair) = kept.pop() {
            let [before, narrow] = pair.map(|saved| saved.map(|saved| saved.unpack()));
            let selected = tape.empty(
                "select_backward",
                [self.batch.saturating_mul(self.width)],
                self.dtype,
            );
            let for_c = tape.empty("bmm", [self.batch.saturating_mul(self.state)], self.dtype);
            tape.cublas_workspace();
            let mut for_state = tape.empty("bmm", [self.states()], self.dtype);
            tape.cublas_workspace();
            if kept.is_empty() {
                whole_gradient.take();
            }
            drop((selected, narrow));
            let piece = tape.empty_as("select_backward", sums, self.dtype);
            drop(for_c);
            // Sums are made in place: the first piece is the sum, the others go.
            totals[2].get_or_insert(piece);
            if self.dtype != DType::F32 {
                for_state = for_state.to(DType::F32);
            }
            drop(flowing.take());
            let for_input = whole(factors);
            totals[1].get_or_insert(for_input);
            // The very first state has no history.
            let next = (!kept.is_empty()).then(|| for_state.map("mul"));
            let for_factor = for_state.map("mul");
            drop((for_state, before));
            let piece = whole(factors);
            drop(for_factor);
            totals[0].get_or_insert(piece);
            flowing = next;
        }
        tape.kernel(
            "selective_scan",
            DType::F32,
            0.0,
            4.0 * factors.bytes() as f64,
        );
        let [for_factors, for_input, for_c] = totals;
        grads([
            for_factors.filter(|_| needs[0]),
            for_input.filter(|_| needs[1]),
            for_c.filter(|_| needs[2]),
        ])
    }
}
