//! Loads and stores, near the ends of pages with all kinds of permissions.

use kvrm::{FaultKind, Stop};

use super::*;
use crate::support::HALT;

for_mapped_engines! { accesses_at_the_ends_of_pages, a_hot_loop_faults_where_memory_ends, pages_change_while_code_is_hot }

for_mapped_devices! { accesses_at_the_ends_of_pages, a_hot_loop_faults_where_memory_ends, pages_change_while_code_is_hot }

for_evicting_engines! { accesses_at_the_ends_of_pages, a_hot_loop_faults_where_memory_ends, pages_change_while_code_is_hot }

/// Two pages that accesses go to.
const FIRST: u64 = 0x10_0000;
const SECOND: u64 = FIRST + PAGE;

/// An instruction that accesses what X1 points to.
struct Instruction {
    name: &'static str,
    code: Vec<u8>,
    len: u64,
    /// What it needs, in the order in which that is looked at.
    needs: &'static [(Permissions, FaultKind)],
    /// What its address must be a multiple of.
    align: u64,
}

const LOADS: &[(Permissions, FaultKind)] = &[(READ, FaultKind::Read)];
const STORES: &[(Permissions, FaultKind)] = &[(WRITE, FaultKind::Write)];
/// Atomic instructions need both at once, and count as writes.
const CHANGES: &[(Permissions, FaultKind)] = &[(BOTH, FaultKind::Write)];
/// A load-exclusive and a store-exclusive.
const EXCLUSIVES: &[(Permissions, FaultKind)] =
    &[(READ, FaultKind::Read), (BOTH, FaultKind::Write)];
const BOTH: Permissions = READ.union(WRITE);

fn instructions() -> Vec<Instruction> {
    let instruction = |name, code, len, needs, align| Instruction { name, code, len, needs, align };
    vec![
        instruction("ldrb", asm!(; ldrb w2, [x1] ; hlt 0), 1, LOADS, 1),
        instruction("ldrh", asm!(; ldrh w2, [x1] ; hlt 0), 2, LOADS, 1),
        instruction("ldrsw", asm!(; ldrsw x2, [x1] ; hlt 0), 4, LOADS, 1),
        instruction("ldr", asm!(; ldr x2, [x1] ; hlt 0), 8, LOADS, 1),
        instruction("ldp", asm!(; ldp x2, x3, [x1] ; hlt 0), 16, LOADS, 1),
        instruction("ldr q", asm!(; ldr q2, [x1] ; hlt 0), 16, LOADS, 1),
        instruction("ldp q", asm!(; ldp q2, q3, [x1] ; hlt 0), 32, LOADS, 1),
        instruction("ld3", asm!(; ld3 {v2.b16, v3.b16, v4.b16}, [x1] ; hlt 0), 48, LOADS, 1),
        instruction(
            "ld4",
            asm!(; ld4 {v2.b16, v3.b16, v4.b16, v5.b16}, [x1] ; hlt 0),
            64,
            LOADS,
            1,
        ),
        instruction("ldar", asm!(; ldar x2, [x1] ; hlt 0), 8, LOADS, 8),
        instruction("ldxp", asm!(; ldxp x2, x3, [x1] ; hlt 0), 16, LOADS, 16),
        instruction("strb", asm!(; strb w2, [x1] ; hlt 0), 1, STORES, 1),
        instruction("strh", asm!(; strh w2, [x1] ; hlt 0), 2, STORES, 1),
        instruction("str", asm!(; str x2, [x1] ; hlt 0), 8, STORES, 1),
        instruction("stp", asm!(; stp w2, w3, [x1] ; hlt 0), 8, STORES, 1),
        instruction("str q", asm!(; str q2, [x1] ; hlt 0), 16, STORES, 1),
        instruction("st3", asm!(; st3 {v2.b16, v3.b16, v4.b16}, [x1] ; hlt 0), 48, STORES, 1),
        instruction(
            "st4",
            asm!(; st4 {v2.b16, v3.b16, v4.b16, v5.b16}, [x1] ; hlt 0),
            64,
            STORES,
            1,
        ),
        instruction("stlr", asm!(; stlr x2, [x1] ; hlt 0), 8, STORES, 8),
        instruction("ldadd", asm!(; ldadd x2, x3, [x1] ; hlt 0), 8, CHANGES, 8),
        instruction("swpb", asm!(; swpb w2, w3, [x1] ; hlt 0), 1, CHANGES, 1),
        instruction("cas", asm!(; cas w2, w3, [x1] ; hlt 0), 4, CHANGES, 4),
        instruction("casp", asm!(; casp x2, x3, x4, x5, [x1] ; hlt 0), 16, CHANGES, 16),
        instruction("stxr", asm!(; ldxr x4, [x1] ; stxr w3, x2, [x1] ; hlt 0), 8, EXCLUSIVES, 8),
    ]
}

/// What an access to bytes must give, with the permissions of the two pages.
fn expected(instruction: &Instruction, addr: u64, pages: [Permissions; 2]) -> Stop {
    let permissions = |byte| match byte / PAGE {
        page if page == FIRST / PAGE => pages[0],
        page if page == SECOND / PAGE => pages[1],
        _ => NONE,
    };
    for (needed, kind) in instruction.needs {
        let mut bytes = addr..addr + instruction.len;
        if let Some(address) = bytes.find(|byte| !permissions(*byte).contains(*needed)) {
            return Stop::Fault { kind: *kind, address };
        }
    }
    HALT
}

fn accesses_at_the_ends_of_pages(subject: Subject) {
    let mut guest = Guest::empty(subject);
    let instructions = instructions();
    for (number, instruction) in instructions.iter().enumerate() {
        guest.write(CODE + 16 * number as u64, &instruction.code);
    }
    guest.protect(CODE, PAGE, EXECUTE);
    let all = [NONE, READ, BOTH, WRITE, EXECUTE, READ | EXECUTE, BOTH | EXECUTE];
    // A software driver takes milliseconds for each.
    let all = if subject.setup.engine == EngineKind::Wgpu { &all[..3] } else { &all };
    for pages in all.iter().flat_map(|first| all.iter().map(|second| [*first, *second])) {
        guest.protect(FIRST, PAGE, pages[0]);
        guest.protect(SECOND, PAGE, pages[1]);
        for (number, instruction) in instructions.iter().enumerate() {
            let len = instruction.len;
            let starts = [
                FIRST - len,
                FIRST + 1 - len,
                FIRST,
                FIRST + 3,
                SECOND - len,
                SECOND + 1 - len,
                SECOND - len / 2,
                SECOND - 1,
                SECOND,
                SECOND + PAGE - len,
                SECOND + PAGE - 1,
            ];
            for addr in starts.into_iter().filter(|addr| addr.is_multiple_of(instruction.align)) {
                check(&mut guest, instruction, CODE + 16 * number as u64, addr, pages);
            }
        }
    }
}

fn check(
    guest: &mut Guest,
    instruction: &Instruction,
    pc: u64,
    addr: u64,
    pages: [Permissions; 2],
) {
    let stop = expected(instruction, addr, pages);
    let text = format!("{} at {addr:#x}, {pages:?}", instruction.name);
    let value = addr ^ 0x0123_4567_89ab_cdef;
    guest.write(addr, &[0x55; 64]);
    guest.set_x(1, addr);
    guest.set_x(2, value);
    guest.set_x(3, 0);
    guest.change(|state| state.pc = pc);
    let before = guest.status().count;
    assert_eq!(guest.run(), stop, "{text}");
    let [done, steps] = [guest.status().count - before, (guest.pc() - pc) / 4];
    assert_eq!(done, steps, "{text}");
    if stop == HALT {
        assert_eq!(steps, instruction.code.len() as u64 / 4 - 1, "{text}");
    } else {
        assert_eq!(guest.read(addr), 0x5555_5555_5555_5555, "{text}");
        assert_eq!(guest.x(1), addr, "{text}");
    }
}

/// Loads, or stores, eight bytes after the other; three instructions each. And whether addresses may be unaligned.
fn loops() -> [(Vec<u8>, FaultKind, bool); 3] {
    [
        (asm!(; ->up: ; ldr x2, [x1], 8 ; add x3, x3, x2 ; b ->up), FaultKind::Read, true),
        (asm!(; ->up: ; str x1, [x1], 8 ; add x3, x3, 1 ; b ->up), FaultKind::Write, true),
        (asm!(; ->up: ; ldadd x1, x2, [x1] ; add x1, x1, 8 ; b ->up), FaultKind::Write, false),
    ]
}

fn a_hot_loop_faults_where_memory_ends(subject: Subject) {
    const LEN: u64 = 80 * PAGE;
    for (code, kind, _) in loops() {
        let mut guest = Guest::new(subject, &code);
        guest.protect(FIRST, LEN, READ | WRITE);
        guest.set_x(1, FIRST);
        let stop = guest.run();
        assert_eq!(stop, Stop::Fault { kind, address: FIRST + LEN });
        assert_eq!((guest.pc(), guest.x(1)), (CODE, FIRST + LEN));
        assert_eq!(guest.status().count, 3 * LEN / 8);
    }
}

fn pages_change_while_code_is_hot(subject: Subject) {
    const LEN: u64 = 80 * PAGE;
    for (code, kind, may_be_unaligned) in loops() {
        let mut guest = Guest::new(subject, &code);
        guest.protect(FIRST, LEN, READ | WRITE);
        for (page, permissions) in [(70, NONE), (60, EXECUTE), (50, NONE), (40, EXECUTE)] {
            let address = FIRST + page * PAGE;
            guest.set_x(1, FIRST);
            guest.protect(address, PAGE, permissions);
            assert_eq!(guest.run_at(CODE), Stop::Fault { kind, address });
            if may_be_unaligned {
                guest.set_x(1, address - 4);
                assert_eq!(guest.run_at(CODE), Stop::Fault { kind, address });
            }
        }
        guest.protect(FIRST, LEN, READ);
        guest.set_x(1, FIRST);
        let address = if kind == FaultKind::Read { FIRST + LEN } else { FIRST };
        assert_eq!(guest.run_at(CODE), Stop::Fault { kind, address });
    }
}
