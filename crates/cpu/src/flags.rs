//! Flags that are computed only when somebody reads them.
//!
//! Most flag-setting instructions are overtaken by the next before anything looks at their flags.
//! The translator therefore recognises, in a routine, the four flag writes of a subtraction, an
//! addition or a logical operation, keeps the operands instead, and computes a flag where one is read
//! or where the lane leaves translated code.

use kvrm_a64::state::{C, N, V, Z};
use kvrm_ir::{BinOp, CmpOp, ConvOp, Op, Routine, Stmt, Type, Value, Var};

/// The flag variables, in the order in which the translator keeps them.
pub(crate) const FLAGS: [Var; 4] = [N, Z, C, V];

/// Position of a variable in [`FLAGS`].
pub(crate) fn flag_index(var: Var) -> Option<usize> {
    FLAGS.iter().position(|flag| flag.id == var.id)
}

/// What the flags are the flags of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum FlagKind {
    /// `x - y`.
    Sub,
    /// `x + y`.
    Add,
    /// A logical result `x`; carry and overflow are clear.
    Logic,
}

/// Where the flags are at some point of the code.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum FlagState {
    /// In their own variables.
    Stored,
    /// To be computed from two operands.
    Known(Known),
}

/// An operation and where its operands are.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Known {
    pub(crate) kind: FlagKind,
    pub(crate) ty: Type,
    pub(crate) operands: [Operand; 2],
}

impl Known {
    /// The same with both operands kept.
    pub(crate) fn kept(self) -> Known {
        Known { operands: [Operand::Kept; 2], ..self }
    }
}

/// Where an operand of the flags is. Operands that a guest register still holds need no room of
/// their own: in the usual loop they cost nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Operand {
    /// In a variable of its own.
    Kept,
    /// A constant.
    Const(u64),
    /// The contents of a guest register plus a constant.
    Reg(u64, u64),
}

/// All four flags of one operation.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct FlagWrite {
    pub(crate) kind: FlagKind,
    pub(crate) x: Value,
    /// The second operand; none for a logical result.
    pub(crate) y: Option<Value>,
    /// `x op y`.
    result: Value,
}

impl FlagWrite {
    /// Recognises the flag writes of a routine.
    pub(crate) fn of(routine: &Routine) -> Option<FlagWrite> {
        let look = Look { routine };
        let [n, z, c, v] = look.written()?;
        let result = look.sign_of(n)?;
        if look.zero_test_of(z)? != result {
            return None;
        }
        look.sub(result, c, v)
            .or_else(|| look.add(result, c, v))
            .or_else(|| look.logic(result, c, v))
    }
}

impl FlagWrite {
    /// Where the operands will be after the routine.
    pub(crate) fn known(&self, routine: &Routine) -> Known {
        let look = Look { routine };
        let y = match self.y {
            Some(y) => look.operand(y),
            None => Operand::Const(0),
        };
        let x = match (look.operand(self.x), look.register_set_to(self.result), y) {
            (Operand::Kept, Some(slot), Operand::Const(y)) => match self.kind {
                FlagKind::Sub => Operand::Reg(slot, y),
                FlagKind::Add => Operand::Reg(slot, y.wrapping_neg()),
                FlagKind::Logic => Operand::Reg(slot, 0),
            },
            (x, _, _) => x,
        };
        Known { kind: self.kind, ty: routine.value(self.x).ty, operands: [x, y] }
    }
}

/// A routine whose definitions are being looked up.
struct Look<'a> {
    routine: &'a Routine,
}

impl Look<'_> {
    /// The values written to N, Z, C and V, if all are, outside any `if`.
    fn written(&self) -> Option<[Value; 4]> {
        let mut written = [None; 4];
        for stmt in &self.routine.body.stmts {
            if let Op::WriteVar(var, value) = stmt.op
                && let Some(index) = flag_index(var)
            {
                written[index] = Some(value);
            }
        }
        let [n, z, c, v] = written;
        Some([n?, z?, c?, v?])
    }

    fn definition(&self, value: Value) -> Option<&Op> {
        let defines = |s: &&Stmt| s.results.first() == Some(&value);
        self.routine.body.stmts.iter().find(defines).map(|s| &s.op)
    }

    /// The register slot that is set to a value, extended or not.
    fn register_set_to(&self, value: Value) -> Option<u64> {
        self.routine.body.stmts.iter().find_map(|stmt| match stmt.op {
            Op::WriteReg(_, slot, written) => {
                let extended = match self.definition(written) {
                    Some(Op::Convert(ConvOp::Zext, narrow)) => *narrow == value,
                    _ => false,
                };
                let slot = self.routine.constant(slot)?;
                (written == value || extended).then_some(slot)
            }
            _ => None,
        })
    }

    fn sets_register(&self, slot: u64) -> bool {
        self.routine.body.stmts.iter().any(|stmt| match stmt.op {
            Op::WriteReg(_, written, _) => self.routine.constant(written) == Some(slot),
            _ => false,
        })
    }

    /// Where a value can be found after the routine.
    fn operand(&self, value: Value) -> Operand {
        if let Some(bits) = self.routine.constant(value) {
            return Operand::Const(bits);
        }
        let read = match self.definition(value) {
            Some(Op::Convert(ConvOp::Trunc, wide)) => self.definition(*wide),
            definition => definition,
        };
        let slot = match read {
            Some(Op::ReadReg(_, slot)) => self.routine.constant(*slot),
            _ => None,
        };
        match slot {
            Some(slot) if !self.sets_register(slot) => Operand::Reg(slot, 0),
            _ => Operand::Kept,
        }
    }

    fn is_zero(&self, value: Value) -> bool {
        self.routine.constant(value) == Some(0)
    }

    fn compare(&self, value: Value, op: CmpOp) -> Option<(Value, Value)> {
        match self.definition(value)? {
            Op::Compare(found, a, b) if *found == op => Some((*a, *b)),
            _ => None,
        }
    }

    /// `r` in `r < 0`.
    fn sign_of(&self, value: Value) -> Option<Value> {
        self.compare(value, CmpOp::Slt).filter(|(_, zero)| self.is_zero(*zero)).map(|(r, _)| r)
    }

    /// `r` in `r == 0`.
    fn zero_test_of(&self, value: Value) -> Option<Value> {
        self.compare(value, CmpOp::Eq).filter(|(_, zero)| self.is_zero(*zero)).map(|(r, _)| r)
    }

    /// True if `result` is `x op y`; adding or subtracting zero has folded to `x`.
    fn is_result(&self, result: Value, op: BinOp, x: Value, y: Value) -> bool {
        match self.definition(result) {
            Some(Op::Binary(found, a, b)) if *found == op && (*a, *b) == (x, y) => true,
            _ => result == x && self.is_zero(y),
        }
    }

    fn sub(&self, result: Value, c: Value, v: Value) -> Option<FlagWrite> {
        let (y, x) = self.compare(c, CmpOp::Ule)?;
        let overflow =
            self.compare(v, CmpOp::SSubO) == Some((x, y)) || self.is_zero(v) && self.is_zero(y);
        let matches = overflow && self.is_result(result, BinOp::Sub, x, y);
        matches.then_some(FlagWrite { kind: FlagKind::Sub, x, y: Some(y), result })
    }

    fn add(&self, result: Value, c: Value, v: Value) -> Option<FlagWrite> {
        let (x, y) = self.compare(v, CmpOp::SAddO)?;
        let matches = self.compare(c, CmpOp::Ult) == Some((result, x))
            && self.is_result(result, BinOp::Add, x, y);
        matches.then_some(FlagWrite { kind: FlagKind::Add, x, y: Some(y), result })
    }

    fn logic(&self, result: Value, c: Value, v: Value) -> Option<FlagWrite> {
        let clear = self.is_zero(c) && self.is_zero(v);
        clear.then_some(FlagWrite { kind: FlagKind::Logic, x: result, y: None, result })
    }
}

#[cfg(test)]
mod tests {
    use kvrm_a64::{decode, translated_form};

    use super::*;

    fn kind_of(word: u32) -> Option<FlagKind> {
        let routine = translated_form(decode(word).unwrap(), word, 0);
        FlagWrite::of(&routine).map(|write| write.kind)
    }

    fn operands_of(word: u32) -> [Operand; 2] {
        let routine = translated_form(decode(word).unwrap(), word, 0);
        FlagWrite::of(&routine).unwrap().known(&routine).operands
    }

    #[test]
    fn finds_operands_in_registers() {
        use Operand::{Const, Kept, Reg};
        assert_eq!(operands_of(0xf1000420), [Reg(1, 0), Const(1)], "subs x0, x1, #1");
        assert_eq!(operands_of(0xf1000421), [Reg(1, 1), Const(1)], "subs x1, x1, #1");
        assert_eq!(operands_of(0x71000421), [Reg(1, 1), Const(1)], "subs w1, w1, #1");
        assert_eq!(operands_of(0xeb02003f), [Reg(1, 0), Reg(2, 0)], "cmp x1, x2");
        assert_eq!(operands_of(0xeb020021), [Kept, Reg(2, 0)], "subs x1, x1, x2");
        assert_eq!(operands_of(0xea020020), [Reg(0, 0), Const(0)], "ands x0, x1, x2");
        assert_eq!(operands_of(0xea02003f), [Kept, Const(0)], "tst x1, x2");
    }

    #[test]
    fn recognises_the_flag_setting_instructions() {
        assert_eq!(kind_of(0xf1000420), Some(FlagKind::Sub), "subs x0, x1, #1");
        assert_eq!(kind_of(0x7100003f), Some(FlagKind::Sub), "cmp w1, #0");
        assert_eq!(kind_of(0xeb02003f), Some(FlagKind::Sub), "cmp x1, x2");
        assert_eq!(kind_of(0xb1000420), Some(FlagKind::Add), "adds x0, x1, #1");
        assert_eq!(kind_of(0xea02003f), Some(FlagKind::Logic), "tst x1, x2");
        assert_eq!(kind_of(0xba020020), None, "adcs x0, x1, x2");
        assert_eq!(kind_of(0xfa420020), None, "ccmp x1, x2, #0, eq");
        assert_eq!(kind_of(0x91000420), None, "add x0, x1, #1");
    }
}
