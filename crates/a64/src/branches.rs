//! Branches (C4.1.94).

use kvrm_ir::{Hint, Type};

use crate::context::Context;
use crate::row::{Choice, Row, rows};
use crate::{SF, X};

/// Number of the link register.
const LR: u32 = 30;

/// Branches on zero and on anything else.
const ZERO: &[Choice<bool>] = &[("Z", "0", true), ("NZ", "1", false)];

pub(crate) const ROWS: &[&[Row]] = &[
    rows! { "Conditional branch (immediate)":
        "B_cond" "0101010 0 imm19:19 0 cond#4" => branch_cond();
    },
    rows! { "Unconditional branch (register)":
        "BR"  "1101011 0000 11111 000000 Rn:5 00000" => branch_reg(Hint::Jump);
        "BLR" "1101011 0001 11111 000000 Rn:5 00000" => branch_reg(Hint::Call);
        "RET" "1101011 0010 11111 000000 Rn:5 00000" => branch_reg(Hint::Return);
    },
    rows! { "Unconditional branch (immediate)":
        "B"  "0 00101 imm26:26" => branch_imm(false);
        "BL" "1 00101 imm26:26" => branch_imm(true);
    },
    rows! { "Compare and branch (immediate)" for (sf in SF, zero in ZERO):
        "CB{zero}_{sf}" "{sf} 011010 {zero} imm19:19 Rt:5" => compare_branch(sf, zero);
    },
    rows! { "Test and branch (immediate)" for (zero in ZERO):
        "TB{zero}" "b5:1 011011 {zero} b40:5 imm14:14 Rt:5" => test_branch(zero);
    },
];

fn branch_cond(cx: &Context<'_>) {
    cx.branch_if(cx.condition_holds(), cx.pc() + cx.signed_field("imm19", 4));
}

/// BR, BLR, RET. The target is read before the link register is written.
fn branch_reg(cx: &Context<'_>, hint: Hint) {
    let target = cx.reg_of(X, "Rn");
    if hint == Hint::Call {
        cx.set_reg(cx.b.u32(LR), cx.next_pc());
    }
    cx.branch_to(target, hint);
}

/// B, BL.
fn branch_imm(cx: &Context<'_>, call: bool) {
    if call {
        cx.set_reg(cx.b.u32(LR), cx.next_pc());
    }
    cx.jump(cx.pc() + cx.signed_field("imm26", 4), call);
}

/// CBZ, CBNZ.
fn compare_branch(cx: &Context<'_>, ty: Type, on_zero: bool) {
    let value = cx.reg_of(ty, "Rt");
    let holds = if on_zero { value.eq(0u64) } else { value.ne(0u64) };
    cx.branch_if(holds, cx.pc() + cx.signed_field("imm19", 4));
}

/// TBZ, TBNZ.
fn test_branch(cx: &Context<'_>, on_zero: bool) {
    let position = (cx.field("b5") << 5) | cx.field("b40");
    let bit = cx.reg_of(X, "Rt").shr_by(position) & 1u64;
    let holds = if on_zero { bit.eq(0u64) } else { bit.ne(0u64) };
    cx.branch_if(holds, cx.pc() + cx.signed_field("imm14", 4));
}
