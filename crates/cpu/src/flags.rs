//! Flags that are computed only when somebody reads them.
//!
//! Most flag-setting instructions are overtaken by the next before anything looks at their flags.
//! The translator therefore recognises, in a routine, the four flag writes of a subtraction, an
//! addition or a logical operation, keeps the operands instead, and computes a flag where one is read
//! or where the lane leaves translated code.

use kvrm_a64::state::{C, N, V, Z};
use kvrm_ir::{BinOp, CmpOp, Op, Routine, Stmt, Type, Value, Var};

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
    /// To be computed from two kept operands of that type.
    Known(FlagKind, Type),
}

/// All four flags of one operation.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct FlagWrite {
    pub(crate) kind: FlagKind,
    pub(crate) x: Value,
    /// The second operand; none for a logical result.
    pub(crate) y: Option<Value>,
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
        self.compare(value, CmpOp::Slt)
            .filter(|(_, zero)| self.is_zero(*zero))
            .map(|(r, _)| r)
    }

    /// `r` in `r == 0`.
    fn zero_test_of(&self, value: Value) -> Option<Value> {
        self.compare(value, CmpOp::Eq)
            .filter(|(_, zero)| self.is_zero(*zero))
            .map(|(r, _)| r)
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
        matches.then_some(FlagWrite {
            kind: FlagKind::Sub,
            x,
            y: Some(y),
        })
    }

    fn add(&self, result: Value, c: Value, v: Value) -> Option<FlagWrite> {
        let (x, y) = self.compare(v, CmpOp::SAddO)?;
        let matches = self.compare(c, CmpOp::Ult) == Some((result, x))
            && self.is_result(result, BinOp::Add, x, y);
        matches.then_some(FlagWrite {
            kind: FlagKind::Add,
            x,
            y: Some(y),
        })
    }

    fn logic(&self, result: Value, c: Value, v: Value) -> Option<FlagWrite> {
        let clear = self.is_zero(c) && self.is_zero(v);
        clear.then_some(FlagWrite {
            kind: FlagKind::Logic,
            x: result,
            y: None,
        })
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
