//! A task of a model that reads pictures: each row of its batches has some, which all passes over these rows read.

use crate::nets::{Cx, LanguageModel, Net, Output, Shown};
use crate::tape::Tensor;
use headroom_scenario::Data;

pub(crate) struct WithPictures<'a> {
    pub task: Box<dyn Net + 'a>,
    pub model: &'a dyn LanguageModel,
    pub data: &'a Data,
}

impl Net for WithPictures<'_> {
    fn wraps_models_itself(&self) -> bool {
        self.task.wraps_models_itself()
    }

    /// The pictures are the last tensors.
    fn batch(&self, cx: &Cx, data: &Data) -> Vec<Tensor> {
        let mut all = self.task.batch(cx, data);
        let pictures = all.first().map(|ids| self.of_rows(cx, ids));
        all.extend(pictures.into_iter().flatten());
        all
    }

    fn forward(&self, cx: &Cx, batch: &[Tensor]) -> Output {
        let Some(rows) = batch.first().map(|ids| ids.size(0)) else {
            return Output::empty(cx);
        };
        let own = batch.iter().position(|tensor| tensor.dtype().is_floating());
        let (tokens, tensors) = batch.split_at(own.unwrap_or(batch.len()));
        let tensors = tensors.to_vec();
        showing(cx, Shown { rows, tensors }, || {
            self.task.forward(cx, tokens)
        })
    }

    fn before_step(&self, cx: &Cx, data: &Data) {
        let rows = data.micro_batch;
        let tensors = self.model.pictures(cx, data);
        showing(cx, Shown { rows, tensors }, || {
            self.task.before_step(cx, data);
        });
    }
}

impl WithPictures<'_> {
    fn of_rows(&self, cx: &Cx, ids: &Tensor) -> Vec<Tensor> {
        let data = Data {
            micro_batch: ids.size(0),
            sequence: ids.size(1),
            ..self.data.clone()
        };
        self.model.pictures(cx, &data)
    }
}

fn showing<T>(cx: &Cx, shown: Shown, run: impl FnOnce() -> T) -> T {
    cx.env.shared.pictures.replace(Some(shown));
    let out = run();
    cx.env.shared.pictures.take();
    out
}
