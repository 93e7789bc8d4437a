//! Heads that make no logits: TRL projects tiles of tokens and vocabulary, and folds each into running sums.

use super::super::{DType, Saved, Tape, Tensor, borrowing, grads};

/// Tokens of a tile (`TOKEN_CHUNK_SIZE` in trl/kernels/chunked_logprob.py).
const TOKENS: u64 = 4096;
/// Columns of a tile (`_CHUNKED_LOGPROB_CHUNK_SIZE` in trl/trainer/utils.py, `VOCAB_CHUNK_SIZE` in chunked_divergence.py).
const COLUMNS: u64 = 32_768;

/// One of the two heads of a divergence, or the only one: its rows `[N, H]` and its matrix `[V, H]`.
#[derive(Clone, Copy, Debug)]
struct Side<'a> {
    rows: &'a Tensor,
    weight: &'a Tensor,
    /// The type in which it is projected.
    dtype: DType,
}

impl<'a> Side<'a> {
    fn new(rows: &'a Tensor, weight: &'a Tensor) -> Self {
        let dtype = rows.tape().autocast_dtype().unwrap_or(rows.dtype());
        Self {
            rows,
            weight,
            dtype,
        }
    }

    fn tape(&self) -> Tape {
        self.rows.tape()
    }

    /// Rows of one tile.
    fn height(&self) -> u64 {
        self.rows.size(0).min(TOKENS)
    }

    /// `hidden[start:end].to(compute_dtype)`.
    fn cast_rows(&self) -> Tensor {
        let whole = self.rows.detach();
        whole.narrow(0, self.height()).to(self.dtype)
    }

    /// `weight[start:end].to(compute_dtype)`.
    fn cast_columns(&self) -> Tensor {
        let whole = self.weight.detach();
        whole.narrow(0, COLUMNS.min(whole.size(0))).to(self.dtype)
    }

    fn tile(&self, dtype: DType) -> Tensor {
        self.tape()
            .empty("logits_tile", [self.height(), COLUMNS], dtype)
    }

    /// How often tiles of columns take their turn: two show every state of a loop's names.
    fn turns(&self) -> u64 {
        self.weight.size(0).div_ceil(COLUMNS).min(2)
    }

    /// The products of this many passes over all tiles, for the time they take.
    fn multiplied(&self, passes: f64) {
        let [n, h] = [self.rows.size(0), self.rows.size(1)].map(|size| size as f64);
        let vocabulary = self.weight.size(0) as f64;
        let work = 2.0 * n * h * vocabulary * passes;
        let moved = (self.weight.bytes() as f64 + n * vocabulary * 2.0) * passes;
        self.tape().kernel("linear", self.dtype, work, moved);
    }
}

/// A number a row, as the kernels keep them.
fn numbers(tape: &Tape, rows: u64) -> Tensor {
    tape.empty("row_statistics", [rows], DType::F32)
}

/// The gradients of rows and weights, summed in fp32 (`_addmm_fp32`) and cast at the end.
struct Sums {
    rows: Option<Tensor>,
    weight: Option<Tensor>,
}

impl Sums {
    fn zeros(side: &Side, needs: [bool; 2]) -> Self {
        let zeros = |like: &Tensor| like.empty_like("zeros", DType::F32);
        Self {
            rows: needs[0].then(|| zeros(side.rows)),
            weight: needs[1].then(|| zeros(side.weight)),
        }
    }

    fn products(&self, tape: &Tape) {
        for _ in self.rows.iter().chain(&self.weight) {
            tape.cublas_workspace();
        }
    }

    fn cast(self, side: &Side) -> [Option<Tensor>; 2] {
        let for_rows = self.rows.as_ref().map(|sum| sum.to(side.rows.dtype()));
        let for_weight = self.weight.as_ref().map(|sum| sum.to(side.weight.dtype()));
        [for_rows, for_weight]
    }
}

impl Tensor {
    /// `ChunkedLogProbFunction` of TRL (trl/kernels/chunked_logprob.py): of rows `[N, H]` and a head `[V, H]` the logarithm of
    /// each target's probability, and the entropy alongside it. Backward projects every tile again.
    pub fn linear_log_probs(&self, weight: &Tensor, targets: &Tensor) -> [Tensor; 2] {
        let tape = self.tape();
        let n = self.size(0);
        let side = Side::new(self, weight);
        let statistics = [(); 7].map(|()| numbers(&tape, n));
        let tile = side.tile(side.dtype);
        let rows = side.cast_rows();
        for _ in 0..side.turns() {
            let columns = side.cast_columns();
            tape.cublas_workspace();
            drop(columns);
        }
        side.multiplied(1.0);
        let log_z = {
            let log = numbers(&tape, n);
            let sum = numbers(&tape, n);
            drop(log);
            sum
        };
        let log_probs = numbers(&tape, n);
        let entropy = {
            let share = numbers(&tape, n);
            let entropy = numbers(&tape, n);
            drop(share);
            entropy
        };
        drop((rows, tile, statistics));
        let dtype = side.dtype;
        let result = log_probs.from_op(&[self, weight], |needs| {
            let needs = [needs.input(0), needs.input(1)];
            let kept = [
                self.save(),
                weight.save(),
                targets.save(),
                log_z.save(),
                entropy.save(),
            ];
            borrowing(move |_| {
                let [rows, weight, _targets, _log_z, _entropy] = kept.each_ref().map(Saved::unpack);
                let side = Side {
                    rows: &rows,
                    weight: &weight,
                    dtype,
                };
                let tape = side.tape();
                let sums = Sums::zeros(&side, needs);
                let tile = side.tile(dtype);
                let part = side.cast_rows();
                let mut columns = None;
                for _ in 0..side.turns() {
                    // The name holds the last tile's columns while those of the next are cast.
                    drop(columns.replace(side.cast_columns()));
                    tape.cublas_workspace();
                    sums.products(&tape);
                }
                side.multiplied(1.0 + needs.iter().filter(|needed| **needed).count() as f64);
                let [for_rows, for_weight] = sums.cast(&side);
                drop((tile, part, columns));
                grads([for_rows, for_weight])
            })
        });
        [result, entropy]
    }

    /// `ChunkedDivergenceFunction` of TRL (trl/kernels/chunked_divergence.py): the divergence of a student's rows from a
    /// teacher's, a number a row. The tiles are in fp32.
    pub fn linear_divergence(&self, weight: &Tensor, teacher: [&Tensor; 2]) -> Tensor {
        let tape = self.tape();
        let n = self.size(0);
        let student = Side::new(self, weight);
        let [teacher_rows, teacher_weight] = teacher;
        let other = Side::new(teacher_rows, teacher_weight);
        let statistics = [(); 9].map(|()| numbers(&tape, n));
        let tiles = [student.tile(DType::F32), other.tile(DType::F32)];
        let parts = [student.cast_rows(), other.cast_rows()];
        for side in [&student, &other] {
            drop(side.cast_columns());
            tape.cublas_workspace();
            side.multiplied(2.0);
        }
        let kept_numbers = [(); 3].map(|()| numbers(&tape, n));
        let divergence = numbers(&tape, n);
        drop((parts, tiles, statistics));
        let dtypes = [student.dtype, other.dtype];
        divergence.from_op(&[self, weight], |needs| {
            let needs = [needs.input(0), needs.input(1)];
            let kept = [self, weight, teacher_rows, teacher_weight].map(Tensor::save);
            let numbers = kept_numbers.map(|kept| kept.save());
            borrowing(move |_| {
                let [rows, weight, teacher_rows, teacher_weight] =
                    kept.each_ref().map(Saved::unpack);
                let _numbers = numbers.each_ref().map(Saved::unpack);
                let side = |rows, weight, dtype| Side {
                    rows,
                    weight,
                    dtype,
                };
                let student = side(&rows, &weight, dtypes[0]);
                let other = side(&teacher_rows, &teacher_weight, dtypes[1]);
                let tape = student.tape();
                let sums = Sums::zeros(&student, needs);
                let tiles = [student.tile(DType::F32), other.tile(DType::F32)];
                let parts = [student.cast_rows(), other.cast_rows()];
                let mut gradient = None;
                for _ in 0..student.turns() {
                    for side in [&student, &other] {
                        drop(side.cast_columns());
                        tape.cublas_workspace();
                    }
                    drop(gradient.replace(tiles[0].to(student.dtype)));
                    sums.products(&tape);
                }
                student.multiplied(3.0);
                other.multiplied(1.0);
                let [for_rows, for_weight] = sums.cast(&student);
                drop((tiles, parts, gradient));
                grads([for_rows, for_weight])
            })
        })
    }
}
