//! Types, operations and the containers that hold them.

use crate::function::Function;
pub use crate::numbers::{FloatOp, PackedOp};

/// The type of a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Type {
    /// True or false.
    Bool,
    /// 8 bits; memory contents only.
    U8,
    /// 16 bits; memory contents only.
    U16,
    /// 32 bits.
    U32,
    /// 64 bits.
    U64,
    /// 128 bits: packed elements, on targets that compute with [wholes](crate::legalise::Lacks::wholes).
    U128,
}

impl Type {
    /// Width in bits; a `bool` has one.
    ///
    /// ```
    /// assert_eq!(kvrm_ir::Type::U16.bits(), 16);
    /// ```
    pub const fn bits(self) -> u32 {
        match self {
            Type::Bool => 1,
            Type::U8 => 8,
            Type::U16 => 16,
            Type::U32 => 32,
            Type::U64 => 64,
            Type::U128 => 128,
        }
    }

    /// Width in bytes of a value of this type in guest memory.
    pub const fn bytes(self) -> u32 {
        self.bits().div_ceil(8)
    }

    /// All bits set. There are no constants of 128 bits.
    pub const fn mask(self) -> u64 {
        u64::MAX >> 64u32.saturating_sub(self.bits())
    }

    /// The unsigned integer type of that many bytes: 1, 2, 4 or 8.
    pub const fn from_bytes(bytes: u32) -> Type {
        match bytes {
            1 => Type::U8,
            2 => Type::U16,
            4 => Type::U32,
            8 => Type::U64,
            _ => panic!("no type of that many bytes"),
        }
    }
}

/// A value of a [`Routine`]: an index into its value table.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Value(pub u32);

/// What is known of a value without looking at the statement that defines it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ValueData {
    /// The value's type.
    pub ty: Type,
    /// The bits, if it is a constant.
    pub constant: Option<u64>,
}

/// A piece of guest memory that was checked: an index into a [`Routine`]'s table of places.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Place(pub u32);

/// What may be done with a place: it is `count` elements of type `ty`, one after the other.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct PlaceData {
    /// What was asked for.
    pub access: Access,
    /// What an element is.
    pub ty: Type,
    /// How many there are.
    pub count: u32,
}

impl PlaceData {
    /// Length in bytes.
    pub const fn len(&self) -> u32 {
        self.ty.bytes() * self.count
    }

    /// True if there is no element, which the verifier refuses.
    pub const fn is_empty(&self) -> bool {
        self.count == 0
    }
}

/// A register file: an array of slots.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct File {
    /// Which one, for engines that keep several.
    pub id: u8,
    /// For the printer.
    pub name: &'static str,
    /// Type of the slots: `u64` or `u128`.
    pub ty: Type,
    /// Number of slots.
    pub len: u32,
    /// A slot that always reads as zero and is never written.
    pub zero: Option<u32>,
    /// A slot whose contents nobody reads.
    pub sink: Option<u32>,
}

/// A state variable: one typed cell.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Var {
    /// Which one.
    pub id: u8,
    /// For the printer.
    pub name: &'static str,
    /// Type of the cell.
    pub ty: Type,
}

/// Operations of one operand.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum UnOp {
    /// Bitwise complement.
    Not,
    /// Two's complement negation.
    Neg,
    /// Leading zero bits.
    Clz,
    /// Bits in reverse order.
    Rbit,
    /// Bytes in reverse order.
    Bswap,
}

/// Operations of two operands of the result's type (shift amounts are `u32`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum BinOp {
    /// Sum.
    Add,
    /// Difference.
    Sub,
    /// Product, low half.
    Mul,
    /// Unsigned product, high half.
    UMulH,
    /// Signed product, high half.
    SMulH,
    /// Unsigned quotient.
    UDiv,
    /// Signed quotient.
    SDiv,
    /// Bitwise and.
    And,
    /// Bitwise or.
    Or,
    /// Bitwise exclusive or.
    Xor,
    /// Shift left.
    Shl,
    /// Logical shift right.
    Shr,
    /// Arithmetic shift right.
    Sar,
    /// Rotate right.
    Rotr,
}

impl BinOp {
    /// True for shifts and rotations, whose second operand is a `u32` amount.
    pub const fn is_shift(self) -> bool {
        matches!(self, BinOp::Shl | BinOp::Shr | BinOp::Sar | BinOp::Rotr)
    }
}

/// Comparisons, giving a `bool`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum CmpOp {
    /// Equal.
    Eq,
    /// Not equal.
    Ne,
    /// Unsigned less.
    Ult,
    /// Unsigned less or equal.
    Ule,
    /// Signed less.
    Slt,
    /// Signed less or equal.
    Sle,
    /// Signed overflow of the sum.
    SAddO,
    /// Signed overflow of the difference.
    SSubO,
}

/// Conversions; the target is the result's type.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ConvOp {
    /// Keep the low bits.
    Trunc,
    /// Fill with zeros.
    Zext,
    /// Fill with the sign bit.
    Sext,
}

/// What a probe asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Access {
    /// Reading.
    Read,
    /// Writing.
    Write,
    /// Reading and writing by one atomic operation.
    ReadWrite,
}

impl Access {
    /// True if a probe for `self` also allows `other`.
    pub const fn allows(self, other: Access) -> bool {
        matches!(
            (self, other),
            (Access::ReadWrite, _) | (Access::Read, Access::Read) | (Access::Write, Access::Write)
        )
    }
}

/// How a load or store is ordered against the lane's other accesses.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Order {
    /// Not at all.
    Plain,
    /// A load before everything after it, a store after everything before it.
    AcquireRelease,
}

/// Atomic read-modify-write operations.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum RmwOp {
    /// Sum.
    Add,
    /// Bitwise and.
    And,
    /// Bitwise or.
    Or,
    /// Bitwise exclusive or.
    Xor,
    /// Replace.
    Swap,
    /// Signed maximum.
    SMax,
    /// Signed minimum.
    SMin,
    /// Unsigned maximum.
    UMax,
    /// Unsigned minimum.
    UMin,
}

/// Why and how an `exit` leaves.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Exit {
    /// The producer's reason code.
    pub reason: u8,
    /// Whether the instruction counts as executed.
    pub completes: bool,
}

/// What the flags N, Z, C and V are the flags of. Operands are of type `u32` or `u64`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Flags<V = Value> {
    /// The sum of two.
    Add(V, V),
    /// The first less the second; the carry is set if nothing was borrowed.
    Sub(V, V),
    /// The result of a logical operation: carry and overflow are clear.
    Logic(V),
    /// Given one by one, as `bool`s.
    Bits([V; 4]),
}

impl<V: Copy> Flags<V> {
    /// The same of other operands.
    pub fn map<W>(self, mut f: impl FnMut(V) -> W) -> Flags<W> {
        match self {
            Flags::Add(x, y) => Flags::Add(f(x), f(y)),
            Flags::Sub(x, y) => Flags::Sub(f(x), f(y)),
            Flags::Logic(x) => Flags::Logic(f(x)),
            Flags::Bits(bits) => Flags::Bits(bits.map(f)),
        }
    }
}

/// What a `test` asks of the flags, in the order of Arm's condition codes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Cond {
    /// Z: equal.
    Eq,
    /// Not Z.
    Ne,
    /// C: unsigned higher or same.
    Cs,
    /// Not C.
    Cc,
    /// N: negative.
    Mi,
    /// Not N.
    Pl,
    /// V: overflow.
    Vs,
    /// Not V.
    Vc,
    /// C and not Z: unsigned higher.
    Hi,
    /// Not C, or Z.
    Ls,
    /// N equals V: signed greater or equal.
    Ge,
    /// N differs from V.
    Lt,
    /// Not Z, and N equals V: signed greater.
    Gt,
    /// Z, or N differs from V.
    Le,
}

impl Cond {
    /// The conditions that test N, Z, C and V.
    pub const FLAGS: [Cond; 4] = [Cond::Mi, Cond::Eq, Cond::Cs, Cond::Vs];

    /// The condition with that code, or `None` for the codes 14 and 15, which always hold.
    ///
    /// ```
    /// assert_eq!(kvrm_ir::Cond::from_code(0b1010), Some(kvrm_ir::Cond::Ge));
    /// ```
    pub const fn from_code(code: u32) -> Option<Cond> {
        use Cond::*;
        const CODES: [Cond; 14] = [Eq, Ne, Cs, Cc, Mi, Pl, Vs, Vc, Hi, Ls, Ge, Lt, Gt, Le];
        if code < 14 { Some(CODES[code as usize]) } else { None }
    }
}

/// One operation. See the [crate] documentation for what each means.
#[derive(Clone, Debug, PartialEq)]
#[expect(missing_docs, reason = "the operands are described in the crate documentation")]
pub enum Op {
    Word,
    Param(u8),
    Count,
    Unary(UnOp, Value),
    Binary(BinOp, Value, Value),
    Compare(CmpOp, Value, Value),
    Select(Value, Value, Value),
    Convert(ConvOp, Value),
    Float(FloatOp, Vec<Value>),
    Packed(PackedOp, Type, Vec<Value>),
    Pair(Value, Value),
    Half(Value, usize),
    Call(&'static Function, Vec<Value>),
    ReadReg(File, Value),
    WriteReg(File, Value, Value),
    ReadVar(Var),
    WriteVar(Var, Value),
    Test(Cond),
    SetFlags(Flags),
    Probe { place: Place, addr: Value },
    Load { order: Order, place: Place, index: u32 },
    Store { order: Order, place: Place, index: u32, value: Value },
    Rmw { op: RmwOp, place: Place, value: Value },
    Cas { place: Place, expected: Value, new: Value },
    Cas128 { place: Place, expected: [Value; 2], new: [Value; 2] },
    Fence,
    Exit { exit: Exit, cond: Value, detail: Value },
    If { cond: Value, then: Block, otherwise: Block },
}

/// Where control goes after a routine.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub enum Terminator {
    /// To the instruction that follows.
    #[default]
    Next,
    /// To an address that the word and its own address give.
    Jump {
        /// Where to.
        target: Value,
        /// It is a call: the link register has been set.
        call: bool,
    },
    /// To such an address if a condition holds, and otherwise to the instruction that follows.
    Branch {
        /// A `bool`.
        cond: Value,
        /// Where to if it is true.
        target: Value,
    },
    /// To a computed address.
    Indirect {
        /// Where to.
        target: Value,
        /// What the program says it is for.
        hint: Hint,
    },
    /// Nowhere: the lane stops, whatever its state.
    Stop {
        /// Why and how.
        exit: Exit,
        /// The detail of the stop.
        detail: Value,
    },
}

/// What an indirect branch is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Hint {
    /// Nothing in particular.
    Jump,
    /// A call: the link register has been set.
    Call,
    /// A return from a call.
    Return,
}

impl Op {
    /// True if removing the operation changes nothing but its result.
    pub fn is_removable(&self) -> bool {
        match self {
            Op::Word
            | Op::Param(_)
            | Op::Count
            | Op::Unary(..)
            | Op::Binary(..)
            | Op::Compare(..)
            | Op::Select(..)
            | Op::Convert(..)
            | Op::Float(..)
            | Op::Packed(..)
            | Op::Pair(..)
            | Op::Half(..)
            | Op::Call(..)
            | Op::ReadReg(..)
            | Op::ReadVar(..)
            | Op::Test(_)
            | Op::Load { order: Order::Plain, .. } => true,
            Op::WriteReg(..)
            | Op::WriteVar(..)
            | Op::SetFlags(_)
            | Op::Probe { .. }
            | Op::Load { order: Order::AcquireRelease, .. }
            | Op::Store { .. }
            | Op::Rmw { .. }
            | Op::Cas { .. }
            | Op::Cas128 { .. }
            | Op::Fence
            | Op::Exit { .. } => false,
            Op::If { then, otherwise, .. } => {
                let mut stmts = then.stmts.iter().chain(&otherwise.stmts);
                stmts.all(|stmt| stmt.op.is_removable())
            }
        }
    }

    /// True if the operation changes the lane's registers, flags, variables or memory.
    pub fn is_write(&self) -> bool {
        matches!(
            self,
            Op::WriteReg(..)
                | Op::WriteVar(..)
                | Op::SetFlags(_)
                | Op::Store { .. }
                | Op::Rmw { .. }
                | Op::Cas { .. }
                | Op::Cas128 { .. }
        )
    }
}

/// Visits the operands of operations and terminators, by reference or by mutable reference.
macro_rules! operand_visitors {
    ($each:ident $(, $mutable:tt)?) => {
        impl Op {
            /// Calls `f` with every operand, those of nested blocks included.
            pub fn $each(& $($mutable)? self, f: &mut impl FnMut(& $($mutable)? Value)) {
                match self {
                    Op::Word | Op::Param(_) | Op::Count | Op::ReadVar(_) | Op::Test(_) => {}
                    Op::Fence | Op::Load { .. } => {}
                    Op::Unary(_, a) | Op::Convert(_, a) | Op::ReadReg(_, a) => f(a),
                    Op::Half(a, _) => f(a),
                    Op::WriteVar(_, a) | Op::Probe { addr: a, .. } => f(a),
                    Op::Store { value: a, .. } | Op::Rmw { value: a, .. } => f(a),
                    Op::Binary(_, a, b) | Op::Compare(_, a, b) | Op::WriteReg(_, a, b) => {
                        [a, b].into_iter().for_each(f);
                    }
                    Op::Pair(a, b) => [a, b].into_iter().for_each(f),
                    Op::Cas { expected: a, new: b, .. } | Op::Exit { cond: a, detail: b, .. } => {
                        [a, b].into_iter().for_each(f);
                    }
                    Op::Float(_, args) | Op::Packed(_, _, args) | Op::Call(_, args) => args.into_iter().for_each(f),
                    Op::Select(a, b, c) => [a, b, c].into_iter().for_each(f),
                    Op::SetFlags(flags) => flags.$each(f),
                    Op::Cas128 { expected: [a, b], new: [c, d], .. } => {
                        [a, b, c, d].into_iter().for_each(f);
                    }
                    Op::If { cond, then, otherwise } => {
                        f(cond);
                        for block in [then, otherwise] {
                            for stmt in & $($mutable)? block.stmts {
                                stmt.op.$each(f);
                            }
                            for v in & $($mutable)? block.yields {
                                f(v);
                            }
                        }
                    }
                }
            }
        }

        impl Flags {
            /// Calls `f` with every operand.
            pub fn $each(& $($mutable)? self, f: &mut impl FnMut(& $($mutable)? Value)) {
                match self {
                    Flags::Add(x, y) | Flags::Sub(x, y) => [x, y].into_iter().for_each(f),
                    Flags::Logic(x) => f(x),
                    Flags::Bits([n, z, c, v]) => [n, z, c, v].into_iter().for_each(f),
                }
            }
        }

        impl Terminator {
            /// Calls `f` with every operand.
            pub fn $each(& $($mutable)? self, f: &mut impl FnMut(& $($mutable)? Value)) {
                match self {
                    Terminator::Next => {}
                    Terminator::Jump { target: a, .. } => f(a),
                    Terminator::Indirect { target: a, .. } | Terminator::Stop { detail: a, .. } => {
                        f(a);
                    }
                    Terminator::Branch { cond, target } => [cond, target].into_iter().for_each(f),
                }
            }
        }
    };
}

operand_visitors!(for_each_operand);
operand_visitors!(for_each_operand_mut, mut);

/// An operation and the values it defines.
#[derive(Clone, Debug, PartialEq)]
pub struct Stmt {
    /// What to do.
    pub op: Op,
    /// The results, in order: none, one, two (`cas128`), or as many as the calls of a function return or an `if` yields.
    pub results: Vec<Value>,
}

/// A list of statements, with the values it hands to the `if` around it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Block {
    /// In order of execution.
    pub stmts: Vec<Stmt>,
    /// Results for the enclosing `if`.
    pub yields: Vec<Value>,
}

impl Block {
    /// Calls `f` with every statement, those of nested blocks included.
    pub fn for_each_stmt<'a>(&'a self, f: &mut impl FnMut(&'a Stmt)) {
        for stmt in &self.stmts {
            f(stmt);
            if let Op::If { then, otherwise, .. } = &stmt.op {
                then.for_each_stmt(f);
                otherwise.for_each_stmt(f);
            }
        }
    }
}

/// What one guest instruction does.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Routine {
    /// The outermost block; what it yields are the routine's results, if it has any.
    pub body: Block,
    /// Where control goes after it.
    pub end: Terminator,
    /// Type and constant of every value, by index.
    pub values: Vec<ValueData>,
    /// What may be done with every place, by index.
    pub places: Vec<PlaceData>,
}

impl Routine {
    /// Type and constant of a value.
    pub fn value(&self, v: Value) -> ValueData {
        self.values[v.0 as usize]
    }

    /// The bits of a value, if it is a constant.
    pub fn constant(&self, v: Value) -> Option<u64> {
        self.value(v).constant
    }

    /// What may be done with a place.
    pub fn place(&self, place: Place) -> PlaceData {
        self.places[place.0 as usize]
    }
}
