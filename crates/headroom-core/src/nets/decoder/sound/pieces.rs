//! Towers of sounds of any length: chunks are convolved side by side, and the tokens of all sounds are attended in one row, piece
//! by piece (`Qwen2_5OmniAudioEncoder`, `Qwen3OmniMoeAudioEncoder`, `Qwen3ASREncoder`).

use super::layer::Layer;
use crate::nets::{Cx, ModelError, Sizes};
use crate::tape::ops::Conv;
use crate::tape::{DType, Tensor};

/// Beyond so many, pieces are attended in one: their bytes are the same.
const MOST_PIECES: u64 = 256;

#[derive(Clone, Copy, Debug)]
pub(in crate::nets::decoder) struct Tower {
    layers: u64,
    layer: Layer,
    mel: u64,
    /// Frames of a chunk (`2 * n_window`).
    chunk: u64,
    /// Rows of the table of places, which is no parameter.
    places: u64,
    /// The output width; zero where a projector of the model's follows.
    out: u64,
    form: Form,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Form {
    /// Two convolutions in one dimension, and pairs of tokens are averaged at the end (Qwen2.5-Omni).
    Halved,
    /// Three convolutions in two dimensions, a piece of the row for each so many frames (Qwen3-Omni, Qwen3-ASR).
    Convolved {
        channels: u64,
        window: u64,
        /// Chunks that are convolved at a time; zero for all.
        at_once: u64,
    },
}

impl Tower {
    pub(in crate::nets::decoder) fn halved(sizes: &Sizes, out: u64) -> Result<Self, ModelError> {
        let key_bias = false;
        Self::new(
            sizes,
            sizes.or("a_window", 100),
            out,
            key_bias,
            Form::Halved,
        )
    }

    pub(in crate::nets::decoder) fn convolved(sizes: &Sizes, out: u64) -> Result<Self, ModelError> {
        let form = Form::Convolved {
            channels: sizes.or("a_channels", 480),
            window: sizes.or("a_piece", 800),
            at_once: sizes.or("a_at_once", 0),
        };
        Self::new(sizes, sizes.or("a_window", 50), out, true, form)
    }

    fn new(
        sizes: &Sizes,
        half: u64,
        out: u64,
        key_bias: bool,
        form: Form,
    ) -> Result<Self, ModelError> {
        Ok(Self {
            layers: sizes.need("a_layers")?,
            layer: Layer::new(sizes, key_bias)?,
            mel: sizes.or("mel", 128),
            chunk: half.max(1).saturating_mul(2),
            places: sizes.or("audio_ctx", 1500),
            out,
            form,
        })
    }

    pub(super) fn hidden(&self) -> u64 {
        self.layer.hidden
    }

    /// Frames to which Qwen3-ASR pads its sounds.
    pub(super) fn padded(&self, frames: u64) -> u64 {
        frames.div_ceil(self.chunk) * self.chunk
    }

    pub(in crate::nets::decoder) fn features(&self, cx: &Cx, sounds: u64, frames: u64) -> Tensor {
        let shape = [sounds, self.mel, frames];
        cx.tape.empty("input_features", shape, cx.env.weights)
    }

    /// How many tokens a chunk of so many frames becomes before the layers.
    fn tokens_of(&self, frames: u64) -> u64 {
        let half = |n: u64| n.div_ceil(2);
        match self.form {
            Form::Halved => half(frames),
            Form::Convolved { .. } => half(half(half(frames))),
        }
    }

    /// The tokens of a sound that go through the layers.
    fn tokens(&self, frames: u64) -> u64 {
        let (whole, rest) = (frames / self.chunk, frames % self.chunk);
        whole
            .saturating_mul(self.tokens_of(self.chunk))
            .saturating_add(self.tokens_of(rest))
    }

    /// The pieces of the row: chunks, or windows of several. None where there are too many to take one by one.
    fn pieces(&self, sounds: u64, frames: u64) -> Vec<u64> {
        let piece = match self.form {
            Form::Halved => self.tokens_of(self.chunk).max(1),
            Form::Convolved { window, .. } => {
                let widest = self.tokens_of(self.chunk.min(frames));
                (window / self.chunk).max(1).saturating_mul(widest.max(1))
            }
        };
        let all = self.tokens(frames);
        let (whole, rest) = (all / piece, all % piece);
        if sounds.saturating_mul(whole.saturating_add(1)) > MOST_PIECES {
            return Vec::new();
        }
        let of_one = || {
            let whole = std::iter::repeat_n(piece, whole as usize);
            whole.chain((rest > 0).then_some(rest))
        };
        (0..sounds).flat_map(|_| of_one()).collect()
    }

    /// `chunk_and_pad_features`: the frames that a mask leaves, in chunks `[chunks, mel, frames]`.
    pub(in crate::nets::decoder) fn chunked(&self, features: &Tensor, frames: u64) -> Tensor {
        let (sounds, mel) = (features.size(0), features.size(1));
        let rows = features.constant(
            "index",
            &[sounds.saturating_mul(frames), mel],
            features.dtype(),
        );
        let chunks = sounds.saturating_mul(frames.div_ceil(self.chunk));
        let longest = self.chunk.min(frames);
        let padded = features.constant("pad_sequence", &[chunks, longest, mel], rows.dtype());
        drop(rows);
        padded.transpose(1, 2)
    }

    /// What it makes of `sounds` sounds of so many frames, in chunks `[chunks, mel, frames]`.
    pub(in crate::nets::decoder) fn hear(
        &self,
        cx: &Cx,
        chunks: &Tensor,
        [sounds, frames]: [u64; 2],
    ) -> Tensor {
        let small = |count: u64, dtype| chunks.constant("lengths", &[count], dtype);
        let rows = sounds.saturating_mul(self.tokens(frames));
        let pieces = self.pieces(sounds, frames);
        let bounds = small(pieces.len() as u64 + 1, DType::I32);
        let lengths = small(chunks.size(0), DType::I64);
        let valid = small(rows, DType::I64);
        let (embedded, names) = match self.form {
            Form::Halved => self.halves(cx, chunks),
            Form::Convolved { at_once, .. } => self.planes(cx, chunks, at_once),
        };
        let flat = embedded.reshape(&[embedded.size(0) * embedded.size(1), self.layer.hidden]);
        let first = flat.index_select(&valid, rows);
        drop(flat);
        let layer = self.layer;
        let last = cx.equal_stack("layers", self.layers, first, move |cx, hidden| {
            layer.run(cx, hidden, |cx, x| layer.over_pieces(cx, x, &pieces))
        });
        let out = self.finished(cx, last, [sounds, frames]);
        drop((bounds, lengths, valid, embedded, names));
        out
    }

    fn table(&self, cx: &Cx, rows: u64, dtype: DType) -> Tensor {
        let table = cx.module("positional_embedding", |cx| {
            let shape = [self.places.max(rows), self.layer.hidden];
            cx.buffer("positional_embedding", shape, cx.env.weights)
        });
        table.narrow(0, rows).to(dtype)
    }

    /// Two convolutions, what is padding taken out between them; and the names that live on.
    fn halves(&self, cx: &Cx, chunks: &Tensor) -> (Tensor, Vec<Tensor>) {
        let hidden = self.layer.hidden;
        let conv = |stride| Conv::stride(stride).padded(1);
        let mask = {
            let visible = [chunks.size(0), 1, chunks.size(2)];
            let shorter = chunks.constant("lt", &visible, DType::Bool);
            shorter.constant("to", &visible, DType::I64)
        };
        let mut x = cx
            .convolution("conv1", chunks, hidden, &[3], conv(1), true)
            .pipe(|x| cx.asks_for_gradient(x.clone()))
            .pipe(Tensor::gelu)
            .pipe(|x| x.mul(&mask));
        x = cx
            .convolution("conv2", &x, hidden, &[3], conv(2), true)
            .pipe(Tensor::gelu);
        x = x.transpose(1, 2);
        let table = self.table(cx, x.size(1), x.dtype()).unsqueeze(0);
        x = x.add(&table);
        cx.module("audio_bos_eos_token", |cx| {
            cx.param("weight", [2, self.out]);
        });
        (x, vec![chunks.clone(), mask])
    }

    /// Three convolutions over planes of time and pitch.
    fn planes(&self, cx: &Cx, chunks: &Tensor, at_once: u64) -> (Tensor, Vec<Tensor>) {
        let Form::Convolved { channels, .. } = self.form else {
            return (chunks.clone(), Vec::new());
        };
        let planes = chunks.unsqueeze(1);
        let conv = Conv::stride(2).padded(1);
        let convolved = |planes: &Tensor| {
            let mut x = cx
                .conv2d("conv2d1", planes, channels, 3, conv, true)
                .pipe(|x| cx.asks_for_gradient(x.clone()))
                .pipe(Tensor::gelu);
            x = cx
                .conv2d("conv2d2", &x, channels, 3, conv, true)
                .pipe(Tensor::gelu);
            cx.conv2d("conv2d3", &x, channels, 3, conv, true)
                .pipe(Tensor::gelu)
        };
        let count = planes.size(0);
        let (mut x, parts) = if let Some(whole) = count.checked_div(at_once) {
            let rest = count % at_once;
            let sizes = std::iter::repeat_n(at_once, whole.min(MOST_PIECES) as usize);
            let sizes: Vec<u64> = sizes.chain((rest > 0).then_some(rest)).collect();
            let parts: Vec<Tensor> = planes.split(&sizes, 0).iter().map(convolved).collect();
            let others: Vec<&Tensor> = parts.iter().skip(1).collect();
            // `torch.cat` of one tensor copies it too.
            let joined = match parts.first() {
                Some(first) if others.is_empty() => first.cat_list(),
                Some(first) => Tensor::cat(first, &others, 0),
                None => planes.clone(),
            };
            (joined, parts)
        } else {
            (convolved(&planes), Vec::new())
        };
        let [count, c, f, t] = [0, 1, 2, 3].map(|at| x.size(at));
        let flat = x
            .permute(&[0, 3, 1, 2])
            .contiguous()
            .view(&[count, t, c * f]);
        x = flat.pipe(|flat| cx.linear("conv_out", flat, self.layer.hidden, false));
        let table = self.table(cx, t, x.dtype());
        // Qwen3-ASR, which convolves all chunks at once, adds in place.
        x = if at_once == 0 {
            x.add_(&table)
        } else {
            x.add(&table.unsqueeze(0))
        };
        (x, [vec![planes], parts].concat())
    }

    /// The norm behind the layers, and the way to the width of the text.
    fn finished(&self, cx: &Cx, last: Tensor, [sounds, frames]: [u64; 2]) -> Tensor {
        if self.form == Form::Halved {
            let pooled = sounds.saturating_mul(frames.div_ceil(2).saturating_sub(2) / 2 + 1);
            let places = last.constant("pool_indices", &[pooled], DType::I64);
            let mut halves = {
                let firsts = last.rows(&places);
                let next = places.add_scalar();
                let seconds = last.rows(&next);
                firsts.add(&seconds)
            };
            drop(last);
            halves = halves.pipe(Tensor::mul_scalar);
            let normed = cx.layer_norm("ln_post", &halves);
            return cx.linear("proj", &normed, self.out, true);
        }
        let mut x = cx.layer_norm("ln_post", &last);
        drop(last);
        if self.out == 0 {
            return x;
        }
        x = cx.linear("proj1", &x, self.layer.hidden, true);
        x = x.gelu();
        cx.linear("proj2", &x, self.out, true)
    }
}
