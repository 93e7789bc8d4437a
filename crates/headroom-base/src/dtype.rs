/// The number format of a tensor's elements.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum DType {
    Bool,
    U8,
    I32,
    I64,
    U64,
    F16,
    BF16,
    F32,
    F64,
}

impl DType {
    pub const fn bytes(self) -> u64 {
        match self {
            Self::Bool | Self::U8 => 1,
            Self::F16 | Self::BF16 => 2,
            Self::I32 | Self::F32 => 4,
            Self::I64 | Self::U64 | Self::F64 => 8,
        }
    }

    /// As PyTorch names it.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Bool => "bool",
            Self::U8 => "uint8",
            Self::I32 => "int32",
            Self::I64 => "int64",
            Self::U64 => "uint64",
            Self::F16 => "float16",
            Self::BF16 => "bfloat16",
            Self::F32 => "float32",
            Self::F64 => "float64",
        }
    }

    pub const fn is_floating(self) -> bool {
        matches!(self, Self::F16 | Self::BF16 | Self::F32 | Self::F64)
    }

    pub const fn is_half(self) -> bool {
        matches!(self, Self::F16 | Self::BF16)
    }

    /// The format kernels accumulate in (`at::acc_type`): halves in fp32.
    pub const fn accumulate(self) -> Self {
        match self {
            Self::F16 | Self::BF16 => Self::F32,
            other => other,
        }
    }

    /// Type promotion between two tensors with dimensions (`torch.promote_types`).
    pub fn promote(self, other: Self) -> Self {
        match (self, other) {
            (a, b) if a == b => a,
            (Self::F16, Self::BF16) | (Self::BF16, Self::F16) => Self::F32,
            (a, b) if a.is_floating() != b.is_floating() => {
                if a.is_floating() {
                    a
                } else {
                    b
                }
            }
            (a, b) => a.max(b),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::DType::{self, *};

    #[track_caller]
    fn check(a: DType, b: DType, expected: DType) {
        assert_eq!(a.promote(b), expected);
        assert_eq!(b.promote(a), expected);
    }

    #[test]
    fn promotion_follows_torch() {
        check(F32, BF16, F32);
        check(F16, BF16, F32);
        check(I64, BF16, BF16);
        check(Bool, I64, I64);
        check(F64, F32, F64);
    }
}
