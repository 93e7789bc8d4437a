//! `SpeechT5SpectrogramLoss`: distances to the spectrogram, where it stops, and how far what is read is from a diagonal.

use super::SpeechT5;
use crate::tape::{DType, Tensor};

impl SpeechT5 {
    pub(super) fn loss(
        &self,
        [before, after, stops]: [&Tensor; 3],
        labels: &Tensor,
        seen: &[Tensor],
    ) -> Tensor {
        let mask = labels.constant("ne", labels.shape(), DType::Bool);
        let target = labels.constant("masked_select", &[labels.numel()], labels.dtype());
        let before = before.masked_select(&mask, before.numel());
        let after = after.masked_select(&mask, after.numel());
        let distance = |found: &Tensor| found.sub(&target).pipe(Tensor::mean_all);
        let spectrogram = {
            let (last, first) = (distance(&after), distance(&before));
            last.add(&first)
        };
        let steps = [stops.size(0), stops.size(1)];
        let heard = mask.constant("select", &steps, DType::Bool);
        let ends = labels.constant("cat", &[steps[0], steps[1].saturating_add(1)], DType::F32);
        let ends = ends.constant("masked_select", &[stops.numel()], DType::F32);
        let stops = stops.masked_select(&heard, stops.numel());
        let mut loss = {
            let stop = stops.bce_with_logits(&ends);
            spectrogram.add(&stop)
        };
        if self.guided > 0 {
            let guided = self.guided_attention(labels, seen);
            loss = loss.add(&guided.unwrap_or_else(|| loss.clone()));
        }
        drop((target, before, after, mask, heard, ends, stops));
        loss
    }

    /// `SpeechT5GuidedMultiheadAttentionLoss.forward`, over the first heads of each layer.
    fn guided_attention(&self, labels: &Tensor, seen: &[Tensor]) -> Option<Tensor> {
        let parts: Vec<Tensor> = seen
            .iter()
            .map(|weights| weights.narrow(1, self.guided.min(weights.size(1))))
            .collect();
        let (first, rest) = parts.split_first()?;
        let all = Tensor::cat(first, &rest.iter().collect::<Vec<_>>(), 1);
        let shape = [all.size(0), 1, all.size(2), all.size(3)];
        let diagonal = labels.constant("zeros", &shape, DType::F32);
        let mask = labels.constant("and", &shape, DType::Bool);
        let losses = all.mul(&diagonal);
        let loss = losses
            .masked_select(&mask, losses.numel())
            .pipe(Tensor::mean_all);
        drop((losses, all));
        Some(loss.mul_scalar())
    }
}
