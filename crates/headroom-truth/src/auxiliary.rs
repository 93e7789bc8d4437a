//! A loss that recorders add from some step on.

use headroom_base::DType;
use headroom_core::network::Tensor;
use headroom_core::network::{Cx, Net, Output};
use headroom_scenario::Data;

/// A network whose loop adds the mean square of its logits to the loss.
pub struct WithAuxiliary(pub Box<dyn Net>);

impl Net for WithAuxiliary {
    fn batch(&self, cx: &Cx, data: &Data) -> Vec<Tensor> {
        self.0.batch(cx, data)
    }

    fn forward(&self, cx: &Cx, batch: &[Tensor]) -> Output {
        let Output { mut loss, held } = self.0.forward(cx, batch);
        if let Some(logits) = held.first() {
            let squares = logits.to(DType::F32).pipe(Tensor::pow);
            let mean = squares.pipe(Tensor::mean_all);
            loss = loss.add(&mean.mul_scalar());
            // They have a name until backward is over.
            cx.tape.keep_with_graph(logits);
        }
        Output { loss, held }
    }
}
