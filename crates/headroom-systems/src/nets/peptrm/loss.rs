//! The losses of pepTRM (`src/training/losses_old_gaussian_only.py`).

use super::PepTrm;
use headroom_base::DType;
use headroom_core::network::Cx;
use headroom_core::network::Tensor;

/// `CombinedLoss`: deep supervision, the rendered spectrum, the peptide's mass.
impl PepTrm {
    pub(super) fn loss(
        &self,
        cx: &Cx,
        stacked: &Tensor,
        steps: usize,
        [masses, intensities]: [&Tensor; 2],
        target: &Tensor,
    ) -> Tensor {
        let flat = target.view(&[target.numel()]);
        let mut total: Option<Tensor> = None;
        for _ in 0..steps {
            let rows = stacked.select(0).view(&[target.numel(), self.vocab]);
            let one = rows.cross_entropy(&flat).pipe(Tensor::mul_scalar);
            total = Some(match total {
                Some(sum) => sum.add(&one),
                None => one,
            });
        }
        let probable = stacked.select(0).softmax(None);
        let Some(total) = total else {
            return probable.mean_all();
        };
        cx.tape.clone().without_autocast(|| {
            let probable = probable.to(DType::F32);
            let table = cx.buffer("aa_masses", [self.vocab, 1], DType::F32);
            let expected = || probable.linear(&table.transpose(0, 1), None).squeeze(-1);
            let mut total = total;
            if self.bins > 0 {
                let spectrum = self.spectrum_loss(cx, &expected(), masses, intensities);
                total = total.add(&spectrum.mul_scalar());
            }
            if self.precursor {
                let mass = expected().sum(&[-1]);
                let scale = mass.add_scalar().pipe(Tensor::mul_scalar);
                total = total.add(&scale.mean_all().mul_scalar());
            }
            total
        })
    }

    /// `SpectrumMatchingLoss.forward`.
    fn spectrum_loss(
        &self,
        cx: &Cx,
        residues: &Tensor,
        masses: &Tensor,
        intensities: &Tensor,
    ) -> Tensor {
        let b = residues.size(0);
        let grid = cx.buffer("mz_grid", [1, 1, self.bins], DType::F32);
        let per_type = self.places.saturating_sub(3);
        let types = self.rendered.checked_div(per_type).unwrap_or(0);
        // A running sum over the residues for each ion type.
        let fragments: Vec<Tensor> = (0..types)
            .map(|_| residues.narrow(1, per_type).pipe(Tensor::mul_scalar))
            .collect();
        let Some((first, rest)) = fragments.split_first() else {
            return residues.mean_all();
        };
        let predicted = Tensor::cat(first, &rest.iter().collect::<Vec<_>>(), 1);
        let mut rendered = rendered_on(&predicted, &grid, None);
        let target = cx.tape.clone().no_grad(|| {
            let all = rendered_on(masses, &grid, Some(intensities));
            let highest = all.constant("max", &[b, 1], all.dtype());
            all.div(&highest)
        });
        let highest = rendered.constant("max", &[b, 1], rendered.dtype());
        rendered = rendered.div(&highest);
        super::super::cosine_similarity(&rendered, &target)
            .pipe(Tensor::mean_all)
            .pipe(Tensor::neg)
            .pipe(Tensor::add_scalar)
    }
}

/// `_gaussian_render`: every peak on every bin, summed over the peaks.
fn rendered_on(masses: &Tensor, grid: &Tensor, intensities: Option<&Tensor>) -> Tensor {
    let difference = masses.unsqueeze(-1).sub(grid);
    let squares = difference.mul_scalar().pipe(Tensor::pow);
    let exponent = squares.mul_scalar();
    drop(squares);
    let mut bell = exponent.exp();
    drop(exponent);
    if let Some(intensities) = intensities {
        bell = bell.mul(&intensities.unsqueeze(-1));
    }
    bell.sum(&[1]).squeeze(1)
}
