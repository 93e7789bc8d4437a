//! A module's parameters and buffers, made at their first use.

use std::rc::Rc;

use super::Cx;
use super::env::Named;
use crate::tape::{Category, DType, Dims, Layout, Param, Tape, Tensor};
use headroom_scenario::{AdapterMethod, Quantization, Training};

/// A weight that is tied to another when this is dropped.
#[derive(Debug)]
pub struct UntiedWeight {
    tape: Tape,
    weight: Option<Tensor>,
}

impl Drop for UntiedWeight {
    fn drop(&mut self) {
        self.tape.setting_up(|| drop(self.weight.take()));
    }
}

impl Cx {
    /// Whether the weights of a linear layer are stored in four bits: all but the head, where the run requests it.
    pub fn quantised(&self, name: &str) -> bool {
        self.env.training.quantization != Quantization::None && name != "lm_head"
    }

    /// A frozen parameter of `count` elements in `bytes` bytes, made at its first use.
    pub fn packed(&self, name: &'static str, count: u64, bytes: u64) -> Tensor {
        if let Some(found) = self.made(name) {
            return found.data.clone();
        }
        let outer = self.tape.enter(self.scope);
        let layout = Layout::contiguous([bytes]);
        let here = if self.is_on_host() { 0 } else { bytes };
        let param = self
            .tape
            .packed_param(name, layout, DType::U8, here, count, false);
        self.waits(&param, bytes - here);
        self.tape.enter(outer);
        let data = param.data.clone();
        self.keep(name, param);
        data
    }

    /// A frozen parameter that waits on the host: it has a shape here and no memory.
    pub fn waiting(&self, name: &'static str, shape: impl Into<Dims>, dtype: DType) -> Tensor {
        if let Some(found) = self.made(name) {
            return found.data.clone();
        }
        let outer = self.tape.enter(self.scope);
        let layout = Layout::contiguous(shape);
        let count = layout.numel();
        let param = self.tape.packed_param(name, layout, dtype, 0, count, false);
        self.waits(&param, count.saturating_mul(dtype.bytes()));
        self.tape.enter(outer);
        let data = param.data.clone();
        self.keep(name, param);
        data
    }

    /// Notes that so many bytes of a parameter are on the host.
    fn waits(&self, param: &Rc<Param>, bytes: u64) {
        if bytes > 0 {
            let mut waiting = self.env.shared.waiting.borrow_mut();
            waiting.push((param.clone(), bytes));
        }
    }

    /// A parameter of this module, made at its first use.
    pub fn param(&self, name: &'static str, shape: impl Into<Dims>) -> Rc<Param> {
        self.made_param(name, shape.into(), self.env.weights, None)
    }

    /// A parameter with a type and a training rule of its own.
    pub fn param_as(
        &self,
        name: &'static str,
        shape: impl Into<Dims>,
        dtype: DType,
        trains: impl Fn(&str) -> bool,
    ) -> Rc<Param> {
        self.made_param(name, shape.into(), dtype, Some(&trains))
    }

    /// A parameter of a type of its own.
    pub fn param_of(&self, name: &'static str, shape: impl Into<Dims>, dtype: DType) -> Rc<Param> {
        self.made_param(name, shape.into(), dtype, None)
    }

    fn made_param(
        &self,
        name: &'static str,
        shape: Dims,
        dtype: DType,
        trains: Option<&dyn Fn(&str) -> bool>,
    ) -> Rc<Param> {
        if let Some(found) = self.made(name) {
            return found;
        }
        let copied = trains.is_none() && self.is_copied();
        let trainable = copied
            || trains.map_or_else(|| self.trains(name), |trains| trains(&self.path_of(name)));
        let outer = self.tape.enter(self.scope);
        if copied {
            self.tape.param("original_module", shape, dtype, false);
        }
        let dtype = if copied {
            self.env.copies_of(dtype)
        } else {
            dtype
        };
        let param = if self.env.training.channels_last && shape.len() == 4 {
            // `model.to(memory_format=torch.channels_last)` lays out every four-dimensional parameter.
            self.tape
                .param_with_layout(name, Layout::channels_last(shape), dtype, trainable)
        } else {
            self.tape.param(name, shape, dtype, trainable)
        };
        self.tape.enter(outer);
        self.keep(name, param.clone());
        param
    }

    /// A tensor of this module that is no parameter, such as a table of frequencies.
    pub fn buffer(&self, name: &'static str, shape: impl Into<Dims>, dtype: DType) -> Tensor {
        if let Some(found) = self.made(name) {
            return found.data.clone();
        }
        let layout = Layout::contiguous(shape);
        let bytes = layout.numel().saturating_mul(dtype.bytes());
        let outer = self.tape.enter(self.scope);
        let buffer = self.tape.packed_param(name, layout, dtype, bytes, 0, false);
        self.tape.enter(outer);
        buffer.data.set_category(Category::Buffers);
        self.keep(name, buffer.clone());
        buffer.data.clone()
    }

    /// A weight that the constructor makes here before it is tied to another: its memory is freed before the
    /// first step, and what the allocator took for it stays.
    pub fn weight_until_tied(&self, shape: impl Into<Dims>) -> Option<UntiedWeight> {
        let mut tied = self.env.shared.tied.borrow_mut();
        if tied.contains(&self.scope) {
            return None;
        }
        tied.push(self.scope);
        let tape = self.tape.clone();
        let weight = tape.setting_up(|| tape.empty("tied", shape, self.env.weights));
        weight.set_category(Category::Parameters);
        let weight = Some(weight);
        Some(UntiedWeight { tape, weight })
    }

    /// What this module already has by that name.
    fn made(&self, name: &str) -> Option<Rc<Param>> {
        let all = self.env.shared.params.borrow();
        let mine = all.get(self.scope.index())?;
        let (_, found) = mine.iter().find(|(known, _)| *known == name)?;
        self.env.wrapper.uses(found);
        Some(found.clone())
    }

    fn keep(&self, name: &'static str, param: Rc<Param>) {
        // What another rank has is no parameter here.
        if self.tape.shapes_only() {
            return;
        }
        let mut all = self.env.shared.params.borrow_mut();
        let place = self.scope.index();
        if all.len() <= place {
            all.resize_with(place + 1, Named::new);
        }
        if let Some(mine) = all.get_mut(place) {
            mine.push((name, param));
        }
    }

    /// Whether PEFT keeps this module and trains a copy of it (`ModulesToSaveWrapper`, `LNTuningLayer`).
    pub fn is_copied(&self) -> bool {
        let Some(lora) = self.env.training.lora.as_ref().filter(|_| !self.frozen) else {
            return false;
        };
        let norms = lora.method == AdapterMethod::LnTuning;
        if lora.modules_to_save.is_empty() && !norms {
            return false;
        }
        let path = self.path();
        let last = path.rsplit('.').next().unwrap_or_default();
        lora.modules_to_save
            .iter()
            .any(|end| path.ends_with(end.as_str()))
            || norms && (last.contains("norm") || last.starts_with("ln_"))
    }

    fn path_of(&self, name: &str) -> String {
        format!("{}.{name}", self.path())
    }

    /// Whether its parameter `name` is trained. A path is built only if a pattern needs it.
    fn trains(&self, name: &str) -> bool {
        let Training {
            lora,
            prompt_tokens,
            freeze,
            train_only,
            ..
        } = &self.env.training;
        if self.frozen || lora.is_some() || *prompt_tokens > 0 {
            return false;
        }
        if freeze.is_empty() && train_only.is_empty() {
            return true;
        }
        let path = self.path_of(name);
        let named = |patterns: &[String]| patterns.iter().any(|part| path.contains(part.as_str()));
        !named(freeze) && (train_only.is_empty() || named(train_only))
    }
}
