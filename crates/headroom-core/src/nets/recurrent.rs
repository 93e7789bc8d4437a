//! Language models on recurrent layers: LSTM, GRU and plain RNN, run by PyTorch's own kernels.
//!
//! cuDNN fuses the steps and keeps less; what it reserves is not published, so this is the upper bound.

use super::sizes::MOST_RUNS;
use super::vision::index_name;
use super::{Build, Cx, ModelError, Net, Output, Sizes};
use crate::tape::Tensor;
use headroom_scenario::{Data, Training};

pub(super) const FAMILIES: &[(&str, Build)] = &[
    ("lstm", |sizes| build(sizes, Cell::Lstm)),
    ("gru", |sizes| build(sizes, Cell::Gru)),
    ("rnn", |sizes| build(sizes, Cell::Tanh)),
];

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Cell {
    Lstm,
    Gru,
    Tanh,
}

impl Cell {
    /// How many gates each unit has.
    fn gates(self) -> u64 {
        match self {
            Self::Lstm => 4,
            Self::Gru => 3,
            Self::Tanh => 1,
        }
    }
}

#[derive(Clone, Copy, Debug)]
struct Recurrent {
    cell: Cell,
    vocab: u64,
    embedding: u64,
    hidden: u64,
    layers: u64,
}

fn build(sizes: &Sizes, cell: Cell) -> Result<Box<dyn Net>, ModelError> {
    let hidden = sizes.need("hidden")?;
    Ok(Box::new(Recurrent {
        cell,
        vocab: sizes.need("vocab")?,
        embedding: sizes.or("embed", hidden),
        hidden,
        layers: sizes.or("layers", 1),
    }))
}

impl Net for Recurrent {
    fn supports(&self, data: &Data, _: &Training) -> Result<(), ModelError> {
        let layers = self.layers.max(1);
        let (sequence, most) = (data.sequence, MOST_RUNS / layers);
        if sequence <= most {
            return Ok(());
        }
        Err(ModelError::SequenceTooLong {
            sequence,
            layers,
            most,
        })
    }

    fn batch(&self, cx: &Cx, data: &Data) -> Vec<Tensor> {
        super::inputs::token_ids_and_labels(cx, data)
    }

    fn forward(&self, cx: &Cx, batch: &[Tensor]) -> Output {
        let [ids, labels, ..] = batch else {
            return Output::empty(cx);
        };
        let logits = cx
            .embedding("emb", ids, self.vocab, self.embedding)
            .pipe(|x| cx.module("rnn", |cx| self.layers(cx, x)))
            .pipe(|hidden| cx.linear("head", hidden, self.vocab, true));
        let loss = cx.module("loss", |_| {
            let rows = logits.numel() / self.vocab.max(1);
            let flat = logits.reshape(&[rows, self.vocab]);
            flat.cross_entropy(labels)
        });
        Output {
            loss,
            held: vec![logits],
        }
    }
}

impl Recurrent {
    /// `nn.LSTM(batch_first=True)` and its like.
    fn layers(&self, cx: &Cx, x: &Tensor) -> Tensor {
        let initial = [self.layers, x.size(0), self.hidden];
        let states = if self.cell == Cell::Lstm { 2 } else { 1 };
        let zeros: Vec<Tensor> = (0..states)
            .map(|_| cx.tape.empty("zeros", initial, x.dtype()))
            .collect();
        let mut first: Vec<Vec<Tensor>> = zeros.iter().map(|all| all.unbind_along(0)).collect();
        let mut x = x.transpose(0, 1);
        let mut last: Vec<Vec<Tensor>> = vec![Vec::new(); states];
        for layer in 0..self.layers as usize {
            let state: Vec<Tensor> = first
                .iter_mut()
                .filter_map(|all| all.get(layer).cloned())
                .collect();
            let (out, state) = cx.module(index_name(layer), |cx| self.layer(cx, &x, state));
            let Some(out) = out else { return x };
            x = out;
            for (all, state) in last.iter_mut().zip(state) {
                all.push(state);
            }
        }
        let ends: Vec<Option<Tensor>> = last.iter().map(|all| Tensor::stack(all, 0)).collect();
        drop(ends);
        x.transpose(0, 1)
    }

    fn layer(&self, cx: &Cx, x: &Tensor, mut state: Vec<Tensor>) -> (Option<Tensor>, Vec<Tensor>) {
        let rows = self.cell.gates() * self.hidden;
        let input_weight = cx.param("weight_ih", [rows, x.size(-1)]).tensor();
        let hidden_weight = cx.param("weight_hh", [rows, self.hidden]).tensor();
        let biases = ["bias_ih", "bias_hh"].map(|name| cx.param(name, [rows]).tensor());
        let [input_bias, hidden_bias] = &biases;
        let mut outputs = Vec::new();
        for step in x.unbind_along(0) {
            let Some(hidden) = state.first() else { break };
            state = match self.cell {
                Cell::Tanh => {
                    let from_hidden = hidden.linear(&hidden_weight, Some(hidden_bias));
                    let from_input = step.linear(&input_weight, Some(input_bias));
                    vec![from_hidden.add_(&from_input).tanh()]
                }
                Cell::Gru => {
                    let from_input = step.gates(&input_weight);
                    let from_hidden = hidden.gates(&hidden_weight);
                    vec![from_input.gru_cell(&from_hidden, [input_bias, hidden_bias], hidden)]
                }
                Cell::Lstm => {
                    let from_input = step.gates(&input_weight);
                    let from_hidden = hidden.gates(&hidden_weight);
                    let cell = state.get(1).unwrap_or(hidden);
                    let biases = [input_bias, hidden_bias];
                    from_input.lstm_cell(&from_hidden, biases, cell).to_vec()
                }
            };
            outputs.extend(state.first().cloned());
        }
        (Tensor::stack(&outputs, 0), state)
    }
}
