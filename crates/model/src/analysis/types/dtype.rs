//! Number types of Triton, and the rules by which operands are promoted.

use std::fmt;

/// A number type of Triton.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[expect(missing_docs, reason = "the names are Triton's own")]
pub enum Dtype {
    Int1,
    Int8,
    Int16,
    Int32,
    Int64,
    UInt8,
    UInt16,
    UInt32,
    UInt64,
    Fp8e4b15,
    Fp8e4nv,
    Fp8e4b8,
    Fp8e5,
    Fp8e5b16,
    Fp16,
    Bf16,
    Fp32,
    Fp64,
}

/// Short name (as in signatures and error messages), name in `triton.language`, width in bits.
const NAMES: &[(Dtype, &str, &str, u32)] = &[
    (Dtype::Int1, "int1", "int1", 1),
    (Dtype::Int8, "int8", "int8", 8),
    (Dtype::Int16, "int16", "int16", 16),
    (Dtype::Int32, "int32", "int32", 32),
    (Dtype::Int64, "int64", "int64", 64),
    (Dtype::UInt8, "uint8", "uint8", 8),
    (Dtype::UInt16, "uint16", "uint16", 16),
    (Dtype::UInt32, "uint32", "uint32", 32),
    (Dtype::UInt64, "uint64", "uint64", 64),
    (Dtype::Fp8e4b15, "fp8e4b15", "float8e4b15", 8),
    (Dtype::Fp8e4nv, "fp8e4nv", "float8e4nv", 8),
    (Dtype::Fp8e4b8, "fp8e4b8", "float8e4b8", 8),
    (Dtype::Fp8e5, "fp8e5", "float8e5", 8),
    (Dtype::Fp8e5b16, "fp8e5b16", "float8e5b16", 8),
    (Dtype::Fp16, "fp16", "float16", 16),
    (Dtype::Bf16, "bf16", "bfloat16", 16),
    (Dtype::Fp32, "fp32", "float32", 32),
    (Dtype::Fp64, "fp64", "float64", 64),
];

/// The "kind" of a type in Triton's promotion rules, in their order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum DtypeKind {
    /// `int1`
    Boolean,
    /// Integers.
    Integral,
    /// Floats.
    Floating,
}

impl Dtype {
    fn row(self) -> &'static (Self, &'static str, &'static str, u32) {
        NAMES.iter().find(|row| row.0 == self).unwrap_or(&NAMES[0])
    }

    /// The short name: `fp32`.
    #[must_use]
    pub fn name(self) -> &'static str {
        self.row().1
    }

    /// The name in `triton.language`: `float32`.
    #[must_use]
    pub fn member(self) -> &'static str {
        self.row().2
    }

    /// The type named `float32` in `triton.language`.
    #[must_use]
    pub fn of_member(name: &str) -> Option<Self> {
        NAMES.iter().find(|row| row.2 == name).map(|row| row.0)
    }

    /// The type that a signature denotes by `i32`, `u8`, `fp32`, `int32` or `B`.
    #[must_use]
    pub fn of_signature(text: &str) -> Option<Self> {
        let by_name = NAMES.iter().find(|row| row.1 == text || row.2 == text).map(|row| row.0);
        by_name.or_else(|| match text {
            "i1" | "u1" | "B" | "bool" => Some(Self::Int1),
            "f16" => Some(Self::Fp16),
            "f32" => Some(Self::Fp32),
            "f64" => Some(Self::Fp64),
            _ => {
                let bits = text.strip_prefix('i').map(|bits| format!("int{bits}"));
                let name = bits.or_else(|| text.strip_prefix('u').map(|bits| format!("uint{bits}")))?;
                NAMES.iter().find(|row| row.1 == name).map(|row| row.0)
            }
        })
    }

    /// The type as signatures denote it: `i32`, `u8`, `fp32`.
    #[must_use]
    pub fn signature(self) -> &'static str {
        match self {
            Self::Int1 => "i1",
            Self::Int8 => "i8",
            Self::Int16 => "i16",
            Self::Int32 => "i32",
            Self::Int64 => "i64",
            Self::UInt8 => "u8",
            Self::UInt16 => "u16",
            Self::UInt32 => "u32",
            Self::UInt64 => "u64",
            _ => self.name(),
        }
    }

    /// The type of the elements of a tensor with this dtype of torch, as Triton's launcher passes them.
    #[must_use]
    pub fn of_torch(name: &str) -> Option<Self> {
        Some(match name {
            "bool" => Self::Int1,
            "half" => Self::Fp16,
            "float" => Self::Fp32,
            "double" => Self::Fp64,
            "short" => Self::Int16,
            "int" => Self::Int32,
            "long" => Self::Int64,
            "float8_e4m3fn" => Self::Fp8e4nv,
            "float8_e4m3fnuz" => Self::Fp8e4b8,
            "float8_e5m2" => Self::Fp8e5,
            "float8_e5m2fnuz" => Self::Fp8e5b16,
            _ => return Self::of_member(name),
        })
    }

    /// Width in bits.
    #[must_use]
    pub fn bits(self) -> u32 {
        self.row().3
    }

    /// Size of an element in memory, in bytes: a boolean takes one.
    #[must_use]
    pub fn bytes(self) -> u32 {
        self.bits().div_ceil(8)
    }

    /// The kind in Triton's promotion rules.
    #[must_use]
    pub fn kind(self) -> DtypeKind {
        match self {
            Self::Int1 => DtypeKind::Boolean,
            _ if self >= Self::Fp8e4b15 => DtypeKind::Floating,
            _ => DtypeKind::Integral,
        }
    }

    /// Whether it is an integer type, `int1` included.
    #[must_use]
    pub fn is_int(self) -> bool {
        self.kind() != DtypeKind::Floating
    }

    /// Whether it is a float type.
    #[must_use]
    pub fn is_float(self) -> bool {
        self.kind() == DtypeKind::Floating
    }

    /// Whether it is a float type of eight bits.
    #[must_use]
    pub(crate) fn is_fp8(self) -> bool {
        self.is_float() && self.bits() == 8
    }

    /// Whether it is a signed integer type; `int1` is not.
    #[must_use]
    pub fn is_signed(self) -> bool {
        matches!(self, Self::Int8 | Self::Int16 | Self::Int32 | Self::Int64)
    }

    /// The least and the greatest value of an integer type.
    #[must_use]
    pub fn bounds(self) -> (i128, i128) {
        let bits = self.bits();
        if self.is_signed() { (-(1 << (bits - 1)), (1 << (bits - 1)) - 1) } else { (0, (1 << bits) - 1) }
    }

    /// The integer type of this width and signedness.
    #[must_use]
    pub fn int(bits: u32, signed: bool) -> Option<Self> {
        NAMES.iter().map(|row| row.0).find(|n| n.is_int() && n.bits() == bits && (bits == 1 || n.is_signed() == signed))
    }

    /// The type that an integer constant gets at run time; `None` when no type can represent it.
    #[must_use]
    pub(crate) fn of_int(value: i128) -> Option<Self> {
        [Self::Int32, Self::UInt32, Self::Int64, Self::UInt64].into_iter().find(|number| {
            let (low, high) = number.bounds();
            low <= value && value <= high
        })
    }

    /// The type that a float constant gets at run time.
    #[must_use]
    pub(crate) fn of_float(value: f64) -> Self {
        let size = value.abs();
        let fits =
            size == 0.0 || !size.is_finite() || (f64::from(f32::MIN_POSITIVE)..=f64::from(f32::MAX)).contains(&size);
        if fits { Self::Fp32 } else { Self::Fp64 }
    }

    /// The common type of two integers, by C's usual arithmetic conversions.
    #[must_use]
    pub fn promoted(self, other: Self) -> Self {
        match (self.is_signed(), other.is_signed()) {
            (a, b) if a == b => {
                if self.bits() > other.bits() {
                    self
                } else {
                    other
                }
            }
            (false, _) => {
                if self.bits() >= other.bits() {
                    self
                } else {
                    other
                }
            }
            _ => {
                if other.bits() >= self.bits() {
                    other
                } else {
                    self
                }
            }
        }
    }
}

impl fmt::Display for Dtype {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// The reason why two types cannot be operands of one operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mismatch {
    /// `/`, `//` or `%` with a signed and an unsigned integer.
    Signedness,
    /// An 8-bit float with another type.
    Unexpected,
}

/// The type in which a binary operation is computed. The operands are types, each with whether it is a constant: a
/// constant of a lower or equal kind takes the type of the other operand. `divides` is true for `/`, `//` and `%`.
///
/// # Errors
/// Returns an error when Triton does not define the operation for these types.
pub(crate) fn computation(a: (Dtype, bool), b: (Dtype, bool), divides: bool) -> Result<Dtype, Mismatch> {
    let ((a, a_is_constant), (b, b_is_constant)) = (a, b);
    let half = |number| matches!(number, Dtype::Fp16 | Dtype::Bf16);
    if a_is_constant != b_is_constant {
        let (constant, value) = if a_is_constant { (a, b) } else { (b, a) };
        if constant.kind() <= value.kind() {
            return Ok(if divides && half(value) { Dtype::Fp32 } else { value });
        }
    }
    for wide in [Dtype::Fp64, Dtype::Fp32] {
        if a == wide || b == wide {
            return Ok(wide);
        }
    }
    if a == Dtype::Fp16 || b == Dtype::Fp16 {
        return Ok(if divides { Dtype::Fp32 } else { Dtype::Fp16 });
    }
    if a == Dtype::Bf16 || b == Dtype::Bf16 {
        return Ok(if a == b && !divides { Dtype::Bf16 } else { Dtype::Fp32 });
    }
    if a.is_fp8() && b.is_fp8() {
        return Ok(if a == b { a } else { Dtype::Fp16 });
    }
    if !a.is_int() || !b.is_int() {
        return Err(Mismatch::Unexpected);
    }
    if divides && a.is_signed() != b.is_signed() {
        return Err(Mismatch::Signedness);
    }
    Ok(a.promoted(b))
}

#[cfg(test)]
mod tests {
    use super::*;
    use Dtype::{Bf16, Fp8e5, Fp16, Fp32, Fp64, Int1, Int8, Int32, Int64, UInt8, UInt32};

    #[test]
    fn binary_operations_promote_types_like_triton() {
        for (a, b, divides, expected) in [
            (Int32, Int64, false, Ok(Int64)),
            (Int32, UInt32, false, Ok(UInt32)),
            (UInt8, Int32, false, Ok(Int32)),
            (Int1, Int1, false, Ok(Int1)),
            (Int32, Fp16, false, Ok(Fp16)),
            (Fp16, Bf16, false, Ok(Fp16)),
            (Bf16, Int32, false, Ok(Fp32)),
            (Bf16, Bf16, false, Ok(Bf16)),
            (Bf16, Bf16, true, Ok(Fp32)),
            (Fp16, Fp16, true, Ok(Fp32)),
            (Fp16, Fp64, false, Ok(Fp64)),
            (Fp8e5, Fp8e5, false, Ok(Fp8e5)),
            (Fp8e5, Int8, false, Err(Mismatch::Unexpected)),
            (Int32, UInt32, true, Err(Mismatch::Signedness)),
        ] {
            assert_eq!(computation((a, false), (b, false), divides), expected, "{a} and {b}");
        }
    }

    #[test]
    fn a_constant_takes_the_type_of_the_value_unless_it_is_of_a_higher_kind() {
        assert_eq!(computation((Fp16, false), (Int32, true), false), Ok(Fp16));
        assert_eq!(computation((Fp16, false), (Fp32, true), false), Ok(Fp16));
        assert_eq!(computation((Fp16, false), (Fp32, true), true), Ok(Fp32));
        assert_eq!(computation((Int32, false), (Fp32, true), false), Ok(Fp32));
        assert_eq!(computation((Int8, false), (Int32, true), false), Ok(Int8));
    }

    #[test]
    fn torch_dtype_names_are_parsed() {
        let torch = ["float16", "half", "bool", "float8_e4m3fn", "uint8", "complex64"].map(Dtype::of_torch);
        assert_eq!(torch, [Some(Fp16), Some(Fp16), Some(Int1), Some(Dtype::Fp8e4nv), Some(UInt8), None]);
    }

    #[test]
    fn signature_dtype_names_are_parsed() {
        for (text, number) in [("i32", Int32), ("fp32", Fp32), ("bf16", Bf16), ("u8", UInt8), ("B", Int1), ("i1", Int1)]
        {
            assert_eq!(Dtype::of_signature(text), Some(number), "{text}");
        }
        for (number, ..) in NAMES {
            assert_eq!(Dtype::of_signature(number.signature()), Some(*number));
        }
        assert_eq!(Dtype::of_signature("int33"), None);
        assert_eq!(
            (Dtype::of_int(5), Dtype::of_int(1 << 31), Dtype::of_int(1 << 70)),
            (Some(Int32), Some(UInt32), None)
        );
    }
}
