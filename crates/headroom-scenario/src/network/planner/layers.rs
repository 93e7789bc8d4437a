//! What each kind of layer makes of the shape that flows into it, and what it refuses.

use super::super::items::Item;
use super::super::plan::{Attention, Conv, Mlp, Norm, Op};
use super::Planner;
use crate::Problem;
use headroom_base::decimal::decimal;

impl Planner {
    pub(super) fn op(&mut self, at: &str, item: &Item) -> Result<Op, Problem> {
        let refuse = |field: &str, expected: String| {
            Err(Problem::new(
                format!("{at}.{field}"),
                item.get(field),
                expected,
            ))
        };
        if self.tokens != (item.kind.name == "embedding") {
            let expected = if self.tokens {
                "an embedding before it: it is given token ids"
            } else {
                "token ids, which this is not given"
            };
            return Err(Problem::new(at, item.kind.name, expected));
        }
        let width = self.shape.last().copied().unwrap_or(1);
        let op = match item.kind.name {
            "embedding" => {
                let (rows, width) = (self.some(at, item, "rows")?, self.some(at, item, "width")?);
                self.tokens = false;
                self.shape.push(width);
                Op::Embedding { rows, width }
            }
            "linear" => {
                let out = self.some(at, item, "out")?;
                self.set_last(out);
                Op::Linear {
                    out,
                    bias: item.is_on("bias"),
                }
            }
            "norm" => match norm(item.get("kind")) {
                Norm::Batch if self.shape.len() < 3 => {
                    return refuse(
                        "kind",
                        "layer or rms: batch needs [batch, channels, ...]".into(),
                    );
                }
                norm => Op::Norm(norm),
            },
            "attention" => {
                let heads = self.some(at, item, "heads")?;
                let kv = match self.size(at, item, "kv")? {
                    0 => heads,
                    kv => kv,
                };
                if self.shape.len() != 3 {
                    let expected = format!("[batch, places, width], not {:?}", self.shape);
                    return Err(Problem::new(at, "attention", expected));
                }
                if !width.is_multiple_of(heads) {
                    return refuse("heads", format!("a divisor of the width, which is {width}"));
                }
                if !heads.is_multiple_of(kv) {
                    return refuse("kv", format!("a divisor of the heads, which are {heads}"));
                }
                let places = self.shape.get(1).copied().unwrap_or(1);
                let batch = self.shape.first().copied().unwrap_or(1);
                Self::countable(at, &[batch, heads, places, places])?;
                Op::Attention(Attention {
                    heads,
                    kv,
                    causal: item.is_on("causal"),
                    bias: item.is_on("bias"),
                    norm: norm(item.get("norm")),
                    residual: item.is_on("residual"),
                    dropout: share(item, "dropout"),
                })
            }
            "mlp" => {
                let inner = self.some(at, item, "width")?;
                let mut widened = self.shape.clone();
                if let Some(last) = widened.last_mut() {
                    *last = inner;
                }
                Self::countable(at, &widened)?;
                Self::countable(at, &[width, inner])?;
                Op::Mlp(Mlp {
                    width: inner,
                    gated: item.is_on("gated"),
                    activation: activation(item.get("activation")),
                    bias: item.is_on("bias"),
                    norm: norm(item.get("norm")),
                    residual: item.is_on("residual"),
                    dropout: share(item, "dropout"),
                })
            }
            "conv" => Op::Conv(self.conv(at, item)?),
            "activation" => Op::Activation(activation(item.get("kind"))),
            _ => Op::Dropout(share(item, "p")),
        };
        let shape = self.shape.clone();
        Self::countable(at, &shape)?;
        Self::countable(at, &[width, self.shape.last().copied().unwrap_or(1)])?;
        Ok(op)
    }

    fn conv(&mut self, at: &str, item: &Item) -> Result<Conv, Problem> {
        let conv = Conv {
            out: self.some(at, item, "out")?,
            kernel: self.within(at, item, "kernel", 1, 1_000)?,
            stride: self.within(at, item, "stride", 1, 1_000)?,
            groups: self.some(at, item, "groups")?,
            bias: item.is_on("bias"),
        };
        if !(3..=5).contains(&self.shape.len()) {
            let expected = format!("[batch, channels, space ...], not {:?}", self.shape);
            return Err(Problem::new(at, "conv", expected));
        }
        let channels = self.shape.get(1).copied().unwrap_or(1);
        if !channels.is_multiple_of(conv.groups) || !conv.out.is_multiple_of(conv.groups) {
            let expected = format!("a divisor of {channels} and {}", conv.out);
            return Err(Problem::new(
                format!("{at}.groups"),
                item.get("groups"),
                expected,
            ));
        }
        for (i, size) in self.shape.iter_mut().enumerate() {
            match i {
                0 => {}
                1 => *size = conv.out,
                _ => {
                    let padded = *size + 2 * (conv.kernel / 2);
                    if padded < conv.kernel {
                        let expected = format!("at most {padded}, the padded space");
                        let value = item.get("kernel");
                        return Err(Problem::new(format!("{at}.kernel"), value, expected));
                    }
                    *size = (padded - conv.kernel) / conv.stride + 1;
                }
            }
        }
        Ok(conv)
    }
}

fn norm(text: &str) -> Norm {
    match text {
        "layer" => Norm::Layer,
        "rms" => Norm::Rms,
        "batch" => Norm::Batch,
        _ => Norm::None,
    }
}

fn activation(text: &str) -> &'static str {
    ["gelu", "silu", "tanh", "sigmoid"]
        .into_iter()
        .find(|name| *name == text)
        .unwrap_or("relu")
}

fn share(item: &Item, field: &str) -> f64 {
    decimal(item.get(field)).unwrap_or(0.0)
}
