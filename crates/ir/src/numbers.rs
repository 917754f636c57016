//! Operations on floating-point numbers and on packed elements.

/// Arithmetic on floating-point numbers of IEEE 754, given as bit patterns: a `u32` is a single, a `u64` a double. Results
/// are rounded to the nearest number, to the even one of two; integers towards zero.
///
/// A NaN is not equal to or less than anything. What else becomes of NaNs is left open, and so is an integer that does
/// not fit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum FloatOp {
    /// Sum.
    Add,
    /// Difference.
    Sub,
    /// Product.
    Mul,
    /// Quotient.
    Div,
    /// Square root.
    Sqrt,
    /// The product of the first two operands plus the third, rounded once.
    MulAdd,
    /// Whether the operands are equal, as a `bool`.
    Equal,
    /// Whether the first operand is less than the second, as a `bool`.
    Less,
    /// The number in the other format.
    Convert,
    /// The number that is a signed integer.
    FromSigned,
    /// The number that is an unsigned integer.
    FromUnsigned,
    /// The signed integer that is the whole part of the number.
    ToSigned,
    /// The unsigned integer that is the whole part of the number.
    ToUnsigned,
}

/// Operations on packed elements of one size, which fill 128 bits. Elements have the type that the operation is given.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum PackedOp {
    /// Sums.
    Add,
    /// Differences.
    Sub,
    /// Products, low halves.
    Mul,
    /// The larger, unsigned.
    UMax,
    /// The lesser, unsigned.
    UMin,
    /// The larger, signed.
    SMax,
    /// The lesser, signed.
    SMin,
    /// Elements of ones where the operands are equal.
    Equal,
    /// Elements of ones where the first operand is greater, unsigned.
    UGreater,
    /// Elements of ones where the first operand is greater, signed.
    SGreater,
    /// Shift left by a `u32` that is less than the width of an element.
    Shl,
    /// Logical shift right by such an amount.
    Shr,
    /// Arithmetic shift right by such an amount.
    Sar,
    /// The elements in the lower half of the operand, extended to twice the size with zeros.
    UWidenLow,
    /// Those in the upper half.
    UWidenHigh,
    /// The elements in the lower half of the operand, extended to twice the size with the sign.
    SWidenLow,
    /// Those in the upper half.
    SWidenHigh,
    /// The low bits of a `u32` or `u64` in every element.
    Splat,
    /// The first operand with one element replaced by the low bits of a `u32` or `u64`.
    Insert(u8),
    /// Bytes of the first operand, by numbers in those of the second; zeros for numbers that are too large.
    Lookup,
    /// The same by numbers that are below sixteen or have their top bit set, which is less work for some hosts. What
    /// other numbers give is not defined.
    LookupSmall,
    /// Bytes of two operands, by number: those of the second come after the first sixteen.
    Shuffle([u8; 16]),
    /// Arithmetic on numbers; comparisons give elements of ones where they hold.
    Float(FloatOp),
    /// A `bool`: whether all elements are ones, where each is ones or zeros as comparisons give them.
    AllOnes,
}
