//! Types, operations and the containers that hold them.

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
        }
    }

    /// Width in bytes of a value of this type in guest memory.
    pub const fn bytes(self) -> u32 {
        self.bits().div_ceil(8)
    }

    /// All bits set.
    pub const fn mask(self) -> u64 {
        u64::MAX >> (64 - self.bits())
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

/// A register file: an array of `u64` slots.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct File {
    /// Which one, for engines that keep several.
    pub id: u8,
    /// For the printer.
    pub name: &'static str,
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
    ReadReg(File, Value),
    WriteReg(File, Value, Value),
    ReadVar(Var),
    WriteVar(Var, Value),
    Probe { access: Access, addr: Value, len: u32 },
    Load { order: Order, addr: Value },
    Store { order: Order, addr: Value, value: Value },
    Rmw { op: RmwOp, addr: Value, value: Value },
    Cas { addr: Value, expected: Value, new: Value },
    Cas128 { addr: Value, expected: [Value; 2], new: [Value; 2] },
    Fence,
    Exit { exit: Exit, cond: Value, detail: Value },
    If { cond: Value, then: Block, otherwise: Block },
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
            | Op::ReadReg(..)
            | Op::ReadVar(..)
            | Op::Load { order: Order::Plain, .. } => true,
            Op::WriteReg(..)
            | Op::WriteVar(..)
            | Op::Probe { .. }
            | Op::Load { order: Order::AcquireRelease, .. }
            | Op::Store { .. }
            | Op::Rmw { .. }
            | Op::Cas { .. }
            | Op::Cas128 { .. }
            | Op::Fence
            | Op::Exit { .. }
            | Op::If { .. } => false,
        }
    }

    /// Calls `f` with every operand, those of nested blocks included.
    pub fn for_each_operand(&self, f: &mut impl FnMut(Value)) {
        match self {
            Op::Word | Op::Param(_) | Op::Count | Op::ReadVar(_) | Op::Fence => {}
            Op::Unary(_, a) | Op::Convert(_, a) | Op::ReadReg(_, a) | Op::WriteVar(_, a) => f(*a),
            Op::Probe { addr, .. } | Op::Load { addr, .. } => f(*addr),
            Op::Binary(_, a, b) | Op::Compare(_, a, b) | Op::WriteReg(_, a, b) => {
                f(*a);
                f(*b);
            }
            Op::Store { addr, value, .. } | Op::Rmw { addr, value, .. } => {
                f(*addr);
                f(*value);
            }
            Op::Select(a, b, c) => [a, b, c].into_iter().for_each(|v| f(*v)),
            Op::Cas { addr, expected, new } => {
                [addr, expected, new].into_iter().for_each(|v| f(*v));
            }
            Op::Cas128 { addr, expected, new } => {
                f(*addr);
                expected.iter().chain(new).for_each(|v| f(*v));
            }
            Op::Exit { cond, detail, .. } => {
                f(*cond);
                f(*detail);
            }
            Op::If { cond, then, otherwise } => {
                f(*cond);
                for block in [then, otherwise] {
                    block.stmts.iter().for_each(|s| s.op.for_each_operand(f));
                    block.yields.iter().for_each(|v| f(*v));
                }
            }
        }
    }
}

/// An operation and the values it defines.
#[derive(Clone, Debug, PartialEq)]
pub struct Stmt {
    /// What to do.
    pub op: Op,
    /// The results, in order: none, one, two (`cas128`), or as many as an `if` yields.
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

/// What one guest instruction does.
#[derive(Clone, Debug, PartialEq)]
pub struct Routine {
    /// The outermost block; what it yields are the routine's results, if it has any.
    pub body: Block,
    /// Type and constant of every value, by index.
    pub values: Vec<ValueData>,
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

    /// True if some path writes the variable.
    pub fn writes_var(&self, var: Var) -> bool {
        fn block_writes(block: &Block, var: Var) -> bool {
            block.stmts.iter().any(|s| match &s.op {
                Op::WriteVar(v, _) => v.id == var.id,
                Op::If { then, otherwise, .. } => {
                    block_writes(then, var) || block_writes(otherwise, var)
                }
                _ => false,
            })
        }
        block_writes(&self.body, var)
    }
}
