//! How a vector register is divided into elements.

use kvrm_ir::Type;

use crate::row::Choice;

/// Size of an element.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Lane {
    B,
    H,
    S,
    D,
}

impl Lane {
    /// Number of bits.
    pub(crate) const fn bits(self) -> u32 {
        match self {
            Lane::B => 8,
            Lane::H => 16,
            Lane::S => 32,
            Lane::D => 64,
        }
    }

    /// All bits of an element.
    pub(crate) const fn mask(self) -> u64 {
        u64::MAX >> (64 - self.bits())
    }

    /// The type of an element in memory.
    pub(crate) const fn ty(self) -> Type {
        Type::from_bytes(self.bits() / 8)
    }

    /// The type of the values that semantics compute an element with.
    pub(crate) const fn value_type(self) -> Type {
        match self {
            Lane::B | Lane::H | Lane::S => Type::U32,
            Lane::D => Type::U64,
        }
    }

    /// Elements of twice the size.
    pub(crate) const fn doubled(self) -> Lane {
        match self {
            Lane::B => Lane::H,
            Lane::H => Lane::S,
            Lane::S | Lane::D => Lane::D,
        }
    }

    /// A number in every element of 64 bits.
    pub(crate) const fn repeated(self, element: u64) -> u64 {
        element * (u64::MAX / self.mask())
    }
}

/// Which elements an instruction works on.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) struct Arrangement {
    /// Their size.
    pub(crate) lane: Lane,
    /// How much of the register they take.
    pub(crate) part: Part,
}

/// Part of a register.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Part {
    /// The first element.
    Element,
    /// The lower 64 bits.
    Half,
    /// All of it.
    Whole,
}

impl Arrangement {
    /// How many elements there are.
    pub(crate) const fn count(self) -> usize {
        match self.part {
            Part::Element => 1,
            Part::Half => 64 / self.lane.bits() as usize,
            Part::Whole => 128 / self.lane.bits() as usize,
        }
    }
}

const fn half(lane: Lane) -> Arrangement {
    Arrangement { lane, part: Part::Half }
}

const fn whole(lane: Lane) -> Arrangement {
    Arrangement { lane, part: Part::Whole }
}

const fn element(lane: Lane) -> Arrangement {
    Arrangement { lane, part: Part::Element }
}

/// The bits of an arrangement are Q and `size`.
type Arrangements = &'static [Choice<Arrangement>];

/// Every arrangement.
pub(crate) const ALL: Arrangements = &[
    ("8B", "0|00", half(Lane::B)),
    ("16B", "1|00", whole(Lane::B)),
    ("4H", "0|01", half(Lane::H)),
    ("8H", "1|01", whole(Lane::H)),
    ("2S", "0|10", half(Lane::S)),
    ("4S", "1|10", whole(Lane::S)),
    ("2D", "1|11", whole(Lane::D)),
];

/// Without doublewords.
pub(crate) const BHS: Arrangements = &[
    ("8B", "0|00", half(Lane::B)),
    ("16B", "1|00", whole(Lane::B)),
    ("4H", "0|01", half(Lane::H)),
    ("8H", "1|01", whole(Lane::H)),
    ("2S", "0|10", half(Lane::S)),
    ("4S", "1|10", whole(Lane::S)),
];

/// Bytes and halfwords.
pub(crate) const BH: Arrangements = &[
    ("8B", "0|00", half(Lane::B)),
    ("16B", "1|00", whole(Lane::B)),
    ("4H", "0|01", half(Lane::H)),
    ("8H", "1|01", whole(Lane::H)),
];

/// Halfwords and words.
pub(crate) const HS: Arrangements = &[
    ("4H", "0|01", half(Lane::H)),
    ("8H", "1|01", whole(Lane::H)),
    ("2S", "0|10", half(Lane::S)),
    ("4S", "1|10", whole(Lane::S)),
];

/// Bytes; the bit is Q alone.
pub(crate) const BYTES: Arrangements = &[("8B", "0", half(Lane::B)), ("16B", "1", whole(Lane::B))];

/// A single element, by `size`.
pub(crate) const SCALAR: Arrangements = &[
    ("B", "00", element(Lane::B)),
    ("H", "01", element(Lane::H)),
    ("S", "10", element(Lane::S)),
    ("D", "11", element(Lane::D)),
];

/// A single halfword or word, by `size`.
pub(crate) const SCALAR_HS: Arrangements =
    &[("H", "01", element(Lane::H)), ("S", "10", element(Lane::S))];

/// A single doubleword.
pub(crate) const SCALAR_D: Arrangements = &[("D", "11", element(Lane::D))];

/// The smaller elements of instructions that narrow or lengthen: the name says whether they are in the lower half of
/// their register or in the upper.
pub(crate) const NARROW: Arrangements = &[
    ("8B", "0|00", half(Lane::B)),
    ("16B", "1|00", whole(Lane::B)),
    ("4H", "0|01", half(Lane::H)),
    ("8H", "1|01", whole(Lane::H)),
    ("2S", "0|10", half(Lane::S)),
    ("4S", "1|10", whole(Lane::S)),
];

/// The same without bytes.
pub(crate) const NARROW_HS: Arrangements = HS;

/// Single elements that are narrowed, by `size`.
pub(crate) const NARROW_SCALAR: Arrangements =
    &[("B", "00", element(Lane::B)), ("H", "01", element(Lane::H)), ("S", "10", element(Lane::S))];

/// Registers of four elements or more.
pub(crate) const ACROSS: Arrangements = &[
    ("8B", "0|00", half(Lane::B)),
    ("16B", "1|00", whole(Lane::B)),
    ("4H", "0|01", half(Lane::H)),
    ("8H", "1|01", whole(Lane::H)),
    ("4S", "1|10", whole(Lane::S)),
];

/// Numbers in instructions on three registers: Q, then the bits after `a`, then those before the operation code.
pub(crate) const FLOATS: Arrangements = &[
    ("4H", "0|10|00", half(Lane::H)),
    ("8H", "1|10|00", whole(Lane::H)),
    ("2S", "0|01|11", half(Lane::S)),
    ("4S", "1|01|11", whole(Lane::S)),
    ("2D", "1|11|11", whole(Lane::D)),
];

/// Single numbers, by the same bits without Q.
pub(crate) const FLOAT_SCALAR: Arrangements = &[
    ("H", "10|00", element(Lane::H)),
    ("S", "01|11", element(Lane::S)),
    ("D", "11|11", element(Lane::D)),
];

/// Numbers in instructions on two registers: Q, then the bits between `a` and the operation code.
pub(crate) const FLOATS_MISC: Arrangements = &[
    ("4H", "0|1 11100", half(Lane::H)),
    ("8H", "1|1 11100", whole(Lane::H)),
    ("2S", "0|0 10000", half(Lane::S)),
    ("4S", "1|0 10000", whole(Lane::S)),
    ("2D", "1|1 10000", whole(Lane::D)),
];

/// The same without halves.
pub(crate) const FLOATS_MISC_SD: Arrangements = &[
    ("2S", "0|0 10000", half(Lane::S)),
    ("4S", "1|0 10000", whole(Lane::S)),
    ("2D", "1|1 10000", whole(Lane::D)),
];

/// Single numbers, by the same bits without Q.
pub(crate) const FLOAT_MISC_SCALAR: Arrangements = &[
    ("H", "1 11100", element(Lane::H)),
    ("S", "0 10000", element(Lane::S)),
    ("D", "1 10000", element(Lane::D)),
];

/// The smaller numbers of conversions between formats, by Q and `sz`.
pub(crate) const FLOATS_NARROW: Arrangements = &[
    ("4H", "0|0", half(Lane::H)),
    ("8H", "1|0", whole(Lane::H)),
    ("2S", "0|1", half(Lane::S)),
    ("4S", "1|1", whole(Lane::S)),
];

/// Halfwords; the bit is Q alone.
pub(crate) const HALFWORDS: Arrangements =
    &[("4H", "0", half(Lane::H)), ("8H", "1", whole(Lane::H))];

/// Words; the bit is Q alone.
pub(crate) const WORDS: Arrangements = &[("2S", "0", half(Lane::S)), ("4S", "1", whole(Lane::S))];
