//! Element-wise functions of one tensor.

use super::super::{DType, Tensor, borrowing, grads};

impl Tensor {
    /// `self.pow(n)` for a Python number.
    pub fn pow(&self) -> Tensor {
        let input = self.autocast_to_fp32();
        input.map("pow").from_op(&[&input], |_| {
            let kept = input.save();
            borrowing(move |g| {
                // grad * (exponent * self.pow(exponent - 1))
                let input = kept.unpack();
                // The parts of a C++ expression live to its end.
                let power = input.map("pow");
                let factor = power.map("mul");
                let product = g.zip(&factor, "mul");
                drop((factor, power, input));
                grads([Some(product)])
            })
        })
    }

    /// `self.rsqrt()`: saves its result; autocast runs it in fp32.
    pub fn rsqrt(&self) -> Tensor {
        let input = self.autocast_to_fp32();
        // -0.5 * grad * result.pow(3)
        input.from_result("rsqrt", |g, result| {
            let power = result.map("pow");
            let half = g.map("mul");
            half.zip(&power, "mul")
        })
    }

    /// `self.sqrt()`: saves its result.
    pub fn sqrt(&self) -> Tensor {
        self.from_result("sqrt", |g, result| {
            let twice = result.map("mul");
            g.zip(&twice, "div")
        })
    }

    /// `self.exp()`: saves its result; autocast runs it in fp32.
    pub fn exp(&self) -> Tensor {
        self.autocast_to_fp32()
            .from_result("exp", |g, result| g.zip(result, "mul"))
    }

    /// `self.expm1()`: saves its result; autocast runs it in fp32.
    pub fn expm1(&self) -> Tensor {
        // grad * (result + 1)
        self.autocast_to_fp32().from_result("expm1", |g, result| {
            let power = result.map("add");
            g.zip(&power, "mul")
        })
    }

    /// `self.log()`: saves its input; autocast runs it in fp32.
    pub fn log(&self) -> Tensor {
        self.autocast_to_fp32()
            .from_input("log", |g, input| g.zip(input, "div"))
    }

    /// `self.erf()`: saves its input.
    pub fn erf(&self) -> Tensor {
        // 2 / sqrt(pi) * exp(-self²) * grad
        self.from_input("erf", |g, input| {
            let square = input.map("pow");
            let negative = square.map("neg");
            let bell = negative.map("exp");
            let scaled = bell.map("mul");
            scaled.zip(g, "mul")
        })
    }

    /// `self.abs()`: saves its input.
    pub fn abs(&self) -> Tensor {
        self.from_input("abs", |g, input| {
            let sign = input.map("sgn");
            g.zip(&sign, "mul")
        })
    }

    /// `self.atan()`: saves its input.
    pub fn atan(&self) -> Tensor {
        // grad / (self * self + 1)
        self.from_input("atan", |g, input| {
            let square = input.zip(input, "mul");
            let sum = square.map("add");
            g.zip(&sum, "div")
        })
    }

    /// `self.cos()`: saves its input.
    pub fn cos(&self) -> Tensor {
        self.from_input("cos", |g, input| {
            let sine = input.map("sin");
            let negative = sine.map("neg");
            g.zip(&negative, "mul")
        })
    }

    /// `self.sin()`: saves its input.
    pub fn sin(&self) -> Tensor {
        self.from_input("sin", |g, input| {
            let cosine = input.map("cos");
            g.zip(&cosine, "mul")
        })
    }

    /// `clamp` with Python numbers: the input is saved for its mask.
    pub fn clamp(&self) -> Tensor {
        self.from_input("clamp", |g, input| {
            let mask = input.map_to("clamp_mask", DType::Bool);
            g.zip_to(&mask, "where", g.dtype())
        })
    }

    /// The same with a bound on either side.
    pub fn clamp_between(&self) -> Tensor {
        self.from_input("clamp", |g, input| {
            let masks = [0; 2].map(|_| input.map_to("clamp_mask", DType::Bool));
            let [mask, _] = &masks;
            g.zip_to(mask, "where", g.dtype())
        })
    }
}
