//! Flags that translated code has left to be computed.

use kvrm_a64::state::CpuState;
use kvrm_ir::Type;
use kvrm_translate::Kind;

/// An operation and its operands, from which the engine computes the flags: there are many exits, and few
/// are ever taken.
#[derive(Clone, Copy, Debug, Default)]
#[repr(C)]
pub(crate) struct LeftFlags {
    /// [`code`], or 0 if the flags are stored.
    pub(crate) code: u32,
    /// For 32-bit operations, the low half. With [`RESULT`], the result instead of the first operand.
    pub(crate) x: u64,
    /// As `x`.
    pub(crate) y: u64,
}

/// Added to [`code`] where the result is left instead of the first operand. Code that computed the operand again from
/// the result would be simplified to keep the operand, which is in the way of loops.
pub(crate) const RESULT: u32 = 1 << 4;

/// A number for an operation.
pub(crate) fn code(kind: Kind, ty: Type) -> u32 {
    let kind = match kind {
        Kind::Sub => 1,
        Kind::Add => 2,
        Kind::Logic => 3,
    };
    kind << 1 | u32::from(ty == Type::U64)
}

impl LeftFlags {
    /// Computes the flags, if that was left to do.
    pub(crate) fn settle(&mut self, state: &mut CpuState) {
        if self.code == 0 {
            return;
        }
        // A 32-bit operation is done on the upper halves, where its flags come out alike.
        let up = if self.code & 1 == 0 { 32 } else { 0 };
        let kind = (self.code & !RESULT) >> 1;
        let (x, y) = (self.x << up, self.y << up);
        let x = match (self.code & RESULT != 0, kind) {
            (false, _) => x,
            (true, 1) => x.wrapping_add(y),
            (true, _) => x.wrapping_sub(y),
        };
        let (result, c, v) = match kind {
            1 => (x.wrapping_sub(y), x >= y, (x as i64).overflowing_sub(y as i64).1),
            2 => {
                (x.wrapping_add(y), x.overflowing_add(y).1, (x as i64).overflowing_add(y as i64).1)
            }
            _ => (x, false, false),
        };
        state.flags = [(result as i64) < 0, result == 0, c, v].map(u8::from);
        self.code = 0;
    }
}
