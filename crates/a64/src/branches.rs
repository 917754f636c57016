//! Branches (C4.1.94).

use kvrm_ir::Type;

use crate::context::Context;
use crate::row::{Row, rows};
use crate::{W, X};

/// Number of the link register.
const LR: u32 = 30;

pub(crate) const ROWS: &[&[Row]] = &[
    rows! { "Conditional branch (immediate)":
        "B_cond" "0101010 0 imm19:19 0 cond:4" => branch_cond();
    },
    rows! { "Unconditional branch (register)":
        "BR"  "1101011 0000 11111 000000 Rn:5 00000" => branch_reg(false);
        "BLR" "1101011 0001 11111 000000 Rn:5 00000" => branch_reg(true);
        "RET" "1101011 0010 11111 000000 Rn:5 00000" => branch_reg(false);
    },
    rows! { "Unconditional branch (immediate)":
        "B"  "0 00101 imm26:26" => branch_imm(false);
        "BL" "1 00101 imm26:26" => branch_imm(true);
    },
    rows! { "Compare and branch (immediate)":
        "CBZ_W"  "0 011010 0 imm19:19 Rt:5" => compare_branch(W, true);
        "CBNZ_W" "0 011010 1 imm19:19 Rt:5" => compare_branch(W, false);
        "CBZ_X"  "1 011010 0 imm19:19 Rt:5" => compare_branch(X, true);
        "CBNZ_X" "1 011010 1 imm19:19 Rt:5" => compare_branch(X, false);
    },
    rows! { "Test and branch (immediate)":
        "TBZ"  "b5:1 011011 0 b40:5 imm14:14 Rt:5" => test_branch(true);
        "TBNZ" "b5:1 011011 1 b40:5 imm14:14 Rt:5" => test_branch(false);
    },
];

fn branch_cond(cx: &Context<'_>) {
    let target = cx.pc() + cx.signed_field("imm19", 4);
    cx.branch_if(cx.condition_holds(cx.field("cond")), target);
}

/// BR, BLR, RET. The target is read before the link register is written.
fn branch_reg(cx: &Context<'_>, link: bool) {
    let target = cx.reg_of(X, "Rn");
    if link {
        cx.set_reg(cx.b.u32(LR), cx.next_pc());
    }
    cx.branch(target);
}

/// B, BL.
fn branch_imm(cx: &Context<'_>, link: bool) {
    if link {
        cx.set_reg(cx.b.u32(LR), cx.next_pc());
    }
    cx.branch(cx.pc() + cx.signed_field("imm26", 4));
}

/// CBZ, CBNZ.
fn compare_branch(cx: &Context<'_>, ty: Type, on_zero: bool) {
    let zero = cx.reg_of(ty, "Rt").eq(0u64);
    let target = cx.pc() + cx.signed_field("imm19", 4);
    cx.branch_if(if on_zero { zero } else { !zero }, target);
}

/// TBZ, TBNZ.
fn test_branch(cx: &Context<'_>, on_zero: bool) {
    let position = (cx.field("b5") << 5) | cx.field("b40");
    let zero = cx.reg_of(X, "Rt").shr_by(position).bit(0).eq(cx.b.bool(false));
    let target = cx.pc() + cx.signed_field("imm14", 4);
    cx.branch_if(if on_zero { zero } else { !zero }, target);
}
