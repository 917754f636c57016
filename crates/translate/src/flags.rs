//! Where the flags are, and what they are the flags of.

use kvrm_ir::{BinOp, Flags, Type, Value, Var};

/// Operations whose flags can be computed later, from their operands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Kind {
    /// `x + y`.
    Add,
    /// `x - y`.
    Sub,
    /// A logical result `x`; carry and overflow are clear, and `y` is zero.
    Logic,
}

impl Kind {
    /// The operation on the operands that gives the result, if it is arithmetic.
    pub(crate) fn operation(self) -> Option<BinOp> {
        match self {
            Kind::Add => Some(BinOp::Add),
            Kind::Sub => Some(BinOp::Sub),
            Kind::Logic => None,
        }
    }

    /// The flags of this operation on two operands.
    pub fn of<V>(self, x: V, y: V) -> Flags<V> {
        match self {
            Kind::Add => Flags::Add(x, y),
            Kind::Sub => Flags::Sub(x, y),
            Kind::Logic => Flags::Logic(x),
        }
    }
}

/// How a block finds the flags.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Form {
    /// As four bits.
    Stored,
    /// As the operands of an operation.
    Lazy {
        /// The operation.
        kind: Kind,
        /// The operands' type.
        ty: Type,
        /// Where the operands are.
        operands: [Operand; 2],
    },
}

impl Form {
    /// The same with both operands in variables: what a block gets that is reached with many forms.
    pub(crate) fn kept(self) -> Form {
        match self {
            Form::Stored => Form::Stored,
            Form::Lazy { kind, ty, .. } => Form::Lazy { kind, ty, operands: [Operand::Kept; 2] },
        }
    }
}

/// Where an operand of the flags is, between blocks. One that a register holds needs no room of its own: in
/// the usual loop it costs nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Operand {
    /// In its variable of [`FLAG_OPERANDS`].
    Kept,
    /// A constant.
    Const(u64),
    /// In a register slot, less a constant.
    Reg {
        /// The slot.
        slot: u64,
        /// What is to be added.
        plus: u64,
    },
}

/// The flags at an instruction that may leave the region.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ExitFlags {
    /// As four bits.
    Stored,
    /// To be computed from operands.
    Lazy {
        /// The operation.
        kind: Kind,
        /// The operands' type.
        ty: Type,
        /// The operands.
        operands: [Source; 2],
    },
}

impl ExitFlags {
    /// Calls `f` with the values among the operands.
    pub(crate) fn for_each_value(&self, f: &mut impl FnMut(Value)) {
        if let ExitFlags::Lazy { operands, .. } = self {
            for operand in operands {
                match operand {
                    Source::Const(_) => {}
                    Source::Value(v) | Source::Result(v) => f(*v),
                }
            }
        }
    }
}

/// An operand of the flags within a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Source {
    /// A constant.
    Const(u64),
    /// A value.
    Value(Value),
    /// The result of the operation, for its first operand: that is not kept, because its register has changed.
    Result(Value),
}

/// Variables for operands of the flags that no register holds: of 32 bits, then of 64, the first operand and
/// the second. They exist only in translated code.
pub const FLAG_OPERANDS: [[Var; 2]; 2] = [
    [
        Var { id: 0x80, name: "flag_x32", ty: Type::U32 },
        Var { id: 0x81, name: "flag_y32", ty: Type::U32 },
    ],
    [
        Var { id: 0x82, name: "flag_x64", ty: Type::U64 },
        Var { id: 0x83, name: "flag_y64", ty: Type::U64 },
    ],
];

/// The variable for an operand of that type.
pub(crate) fn operand_var(ty: Type, index: usize) -> Var {
    FLAG_OPERANDS[usize::from(ty == Type::U64)][index]
}
