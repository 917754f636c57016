//! Random programs that end by construction.
//!
//! A program is a list of items: instructions, forward branches over items, loops counted down in a
//! reserved register, functions called and returned from, and accesses to the data window through a
//! reserved base. Nothing else can move the PC or touch memory, so every program reaches its end
//! (or, in one flavour, something that stops it).

use kvrm_a64::{Instruction, table};
use kvrm_oracles::{CODE_START, Case, OutcomeKind, WINDOW_LEN, WINDOW_START};
use kvrm_random::vectors::Element;

use crate::flat::Flat;
use crate::generate::{has_preferred_bits, random_state, random_window, random_word};
use crate::known::is_unreliable;
use crate::oracle::Which;
use crate::random::Random;
use crate::sequence::{row, with};
use crate::vectors::{self, touches};

/// Always holds [`BASE_ADDRESS`].
const BASE: u32 = 28;
/// Counters of loops, by depth.
const COUNTERS: [u32; 2] = [27, 25];
/// A base that is set for one access, which may change it.
const SCRATCH: u32 = 26;
/// Offsets and branch targets, set where they are used.
const OFFSET: u32 = 24;
/// The link register.
const LINK: u32 = 30;
/// The registers that other instructions leave alone.
const RESERVED: [u32; 6] = [24, 25, 26, 27, 28, 30];
/// The middle of the window: every 9-bit offset stays inside.
const BASE_ADDRESS: u64 = WINDOW_START + 256;
/// The most instructions a program executes: loops of 6 in loops of 6, and then some.
const MAX_EXECUTED: u32 = 100_000;

/// What a program consists of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Flavour {
    /// What both oracles execute as the manual says.
    Plain,
    /// Like `Plain`, but with instructions that stop it somewhere: faults, BRK, undefined words.
    Stopping,
    /// With what Unicorn lacks or gets wrong.
    BeyondUnicorn,
    /// With instructions that the program itself replaces while it runs. Cases for the oracles must not write code, so
    /// only our engines are compared.
    SelfModifying,
}

/// Makes programs.
pub struct Programmer {
    random: Random,
    flavour: Flavour,
    code: Vec<u32>,
    data_rows: Vec<&'static Instruction>,
    access_rows: Vec<&'static Instruction>,
    /// The same of rows that touch vectors.
    vector_rows: Vec<&'static Instruction>,
    vector_access_rows: Vec<&'static Instruction>,
    flat: Flat,
}

/// Groups of instructions that touch registers and flags alone.
const DATA_GROUPS: [&str; 15] = [
    "PC-relative addressing",
    "Add/subtract (immediate)",
    "Logical (immediate)",
    "Move wide (immediate)",
    "Bitfield",
    "Extract",
    "Data-processing (2 source)",
    "Data-processing (1 source)",
    "Logical (shifted register)",
    "Add/subtract (shifted register)",
    "Add/subtract (extended register)",
    "Add/subtract (with carry)",
    "Conditional compare",
    "Conditional select",
    "Data-processing (3 source)",
];
/// No hints: Unicorn stops at WFI and WFE.
const OTHER_DATA: [&str; 13] = [
    "RMIF",
    "SETF8",
    "SETF16",
    "CFINV",
    "XAFLAG",
    "AXFLAG",
    "MRS_NZCV",
    "MSR_NZCV",
    "MRS_TPIDR_EL0",
    "MSR_TPIDR_EL0",
    "DMB",
    "DSB",
    "ISB",
];
/// They write bits of FPCR and FPSR that only the oracles have.
const WRITES_RESERVED_BITS: [&str; 2] = ["MSR_FPCR", "MSR_FPSR"];
/// Of so many instructions that touch registers or memory, one touches vectors.
const VECTORS_ONCE_IN: u64 = 3;
const CONDITIONAL: [&str; 7] = ["B_cond", "CBZ_W", "CBNZ_W", "CBZ_X", "CBNZ_X", "TBZ", "TBNZ"];

fn is_access(row: &Instruction) -> bool {
    let group = row.group;
    let plain = group.starts_with("Load/store")
        || group == "Prefetch"
        || group == "Compare and swap"
        || group == "Atomic memory operations"
        || group == "LDAPR/STLR (unscaled immediate)";
    // LDXR and STXR come in pairs; see `exclusive_pair`.
    plain && !group.starts_with("Load/store exclusive")
}

impl Programmer {
    /// Makes programs with these random numbers.
    pub fn new(random: Random, flavour: Flavour) -> Programmer {
        let is_data =
            |row: &&Instruction| DATA_GROUPS.contains(&row.group) || OTHER_DATA.contains(&row.name);
        let beyond_unicorn = matches!(flavour, Flavour::BeyondUnicorn | Flavour::SelfModifying);
        let usable = |row: &&'static Instruction| {
            (beyond_unicorn || !is_unreliable(Which::Unicorn, row))
                && (flavour == Flavour::SelfModifying || !is_unreliable(Which::Qemu, row))
        };
        let (vector, integer): (Vec<_>, Vec<_>) =
            table().iter().filter(usable).partition(|row| touches(row).vectors);
        let (vector_access_rows, vector_rows): (Vec<_>, Vec<_>) = vector
            .into_iter()
            .filter(|row| !WRITES_RESERVED_BITS.contains(&row.name))
            .partition(|row| touches(row).more_than_registers);
        Programmer {
            random,
            flavour,
            code: Vec::new(),
            data_rows: integer.iter().copied().filter(is_data).collect(),
            access_rows: integer.iter().copied().filter(|row| is_access(row)).collect(),
            vector_rows,
            vector_access_rows: vector_access_rows
                .into_iter()
                .filter(|row| row.pattern.field("Rn").is_some())
                .collect(),
            flat: Flat::default(),
        }
    }

    /// Makes a program of 50 to 400 instructions, placed in the code area.
    pub fn program(&mut self) -> Case {
        self.code.clear();
        let words = 50 + self.random.below(350) as usize;
        while self.code.len() < words {
            self.item(0, true);
        }
        self.emit("HINT", &[]);
        let mut state = random_state(&mut self.random);
        state.x[BASE as usize] = BASE_ADDRESS;
        let element = self.random.pick(&Element::ALL);
        vectors::fill_all(&mut self.random, element, &mut state);
        Case {
            code: self.code.clone(),
            max_instructions: MAX_EXECUTED,
            code_address: CODE_START + 4 * self.random.below(1000),
            state,
            vectors: true,
            window: random_window(&mut self.random),
        }
    }

    fn emit(&mut self, name: &str, fields: &[(&str, u32)]) {
        let row = row(name);
        self.code.push(with(row, row.pattern.value | row.pattern.preferred, fields));
    }

    /// Emits one item inside `depth` loops; calls are possible where the link register is free.
    fn item(&mut self, depth: usize, may_call: bool) {
        match self.random.below(24) {
            0..=1 => self.forward_branch(depth, may_call),
            2 if depth < COUNTERS.len() => self.counted_loop(depth, may_call),
            3 if may_call => self.call(depth),
            4 => self.branch_to_register(depth),
            5 => self.exclusive_pair(),
            6 => self.literal(),
            7 if self.flavour == Flavour::SelfModifying => self.replace_instruction(),
            7 if self.flavour == Flavour::Stopping => self.stop(),
            7..=12 => self.access(),
            _ => self.data(),
        }
    }

    fn items(&mut self, most: u64, depth: usize, may_call: bool) {
        for _ in 0..1 + self.random.below(most) {
            self.item(depth, may_call);
        }
    }

    /// Picks a register that may be written, 31 included.
    fn free_register(&mut self) -> u32 {
        loop {
            let register = self.random.below(32) as u32;
            if !RESERVED.contains(&register) {
                return register;
            }
        }
    }

    /// Draws a word of the row that writes no reserved register and leaves nothing to the implementation.
    fn free_word(&mut self, row: &'static Instruction) -> u32 {
        loop {
            let word = random_word(&mut self.random, row);
            let get = |name| row.pattern.field(name).map(|f| f.get(word));
            let reserved = ["Rd", "Rt", "Rt2", "Rs"]
                .iter()
                .any(|f| get(f).is_some_and(|r| RESERVED.contains(&r)));
            let twice = get("Rt2").is_some() && get("Rt") == get("Rt2");
            if !reserved && !twice && has_preferred_bits(row, word) {
                return word;
            }
        }
    }

    fn data(&mut self) {
        let with_vectors = !self.vector_rows.is_empty() && self.random.once_in(VECTORS_ONCE_IN);
        let rows = if with_vectors { &self.vector_rows } else { &self.data_rows };
        let row = self.random.pick(rows);
        let word = self.free_word(row);
        self.code.push(word);
    }

    /// Emits items to be branched over; returns their number of words.
    fn body(&mut self, depth: usize, may_call: bool) -> u32 {
        let start = self.code.len();
        self.items(6, depth, may_call);
        (self.code.len() - start) as u32
    }

    fn forward_branch(&mut self, depth: usize, may_call: bool) {
        let name = if self.random.once_in(8) { "B" } else { self.random.pick(&CONDITIONAL) };
        let branch = row(name);
        let word = random_word(&mut self.random, branch);
        let at = self.code.len();
        self.code.push(0);
        let skipped = self.body(depth, may_call) + 1;
        let offset = ["imm14", "imm19", "imm26"].map(|field| (field, skipped));
        self.code[at] = with(branch, word, &offset);
    }

    fn counted_loop(&mut self, depth: usize, may_call: bool) {
        let counter = COUNTERS[depth];
        let times = 1 + self.random.below(6) as u32;
        self.emit("MOVZ_X", &[("imm16", times), ("Rd", counter)]);
        let words = self.body(depth + 1, may_call);
        self.emit("SUB_imm_X", &[("imm12", 1), ("Rn", counter), ("Rd", counter)]);
        self.emit("CBNZ_X", &[("imm19", (words + 1).wrapping_neg()), ("Rt", counter)]);
    }

    /// Emits a function that is jumped over and then called.
    fn call(&mut self, depth: usize) {
        let at = self.code.len();
        self.code.push(0);
        let words = self.body(depth, false) + 1;
        self.emit("RET", &[("Rn", LINK)]);
        self.code[at] = with(row("B"), row("B").pattern.value, &[("imm26", words + 1)]);
        if self.random.once_in(2) {
            self.emit("BL", &[("imm26", words.wrapping_neg())]);
        } else {
            self.adr(OFFSET, words.wrapping_neg());
            self.emit("BLR", &[("Rn", OFFSET)]);
        }
    }

    /// Emits an ADR of the address `words` words ahead.
    fn adr(&mut self, register: u32, words: u32) {
        self.emit("ADR", &[("immhi", words), ("Rd", register)]);
    }

    fn branch_to_register(&mut self, depth: usize) {
        let at = self.code.len();
        self.code.push(0);
        self.emit("BR", &[("Rn", OFFSET)]);
        let words = self.body(depth, false) + 2;
        self.code[at] =
            with(row("ADR"), row("ADR").pattern.value, &[("immhi", words), ("Rd", OFFSET)]);
    }

    /// Sets the scratch base to a multiple of 16 in the window, with room for any pair's offset; returns it.
    fn scratch_base(&mut self) -> u64 {
        let offset = 16 * self.random.below(11);
        let (name, base) = self
            .random
            .pick(&[("ADD_imm_X", BASE_ADDRESS + offset), ("SUB_imm_X", BASE_ADDRESS - offset)]);
        self.emit(name, &[("imm12", offset as u32), ("Rn", BASE), ("Rd", SCRATCH)]);
        base
    }

    /// Emits a load or a store of vector registers in the window, if one is found quickly.
    fn vector_access(&mut self) {
        let row = self.random.pick(&self.vector_access_rows);
        let offset = self.random.below(16) as u32;
        self.emit("MOVZ_X", &[("imm16", offset), ("Rd", OFFSET)]);
        let base = self.scratch_base();
        for _ in 0..100 {
            let small = self.random.below(16) as u32;
            let small = self.random.pick(&[small, small.wrapping_neg()]);
            let immediates = ["imm7", "imm9", "imm12"].map(|field| (field, small));
            let word = with(row, self.free_word(row), &[("Rn", SCRATCH), ("Rm", OFFSET)]);
            let word = with(row, word, &immediates);
            if self.stays_in_window(word, base, offset) {
                self.code.push(word);
                return;
            }
        }
    }

    /// True if an instruction completes and touches nothing but the window.
    fn stays_in_window(&mut self, word: u32, base: u64, offset: u32) -> bool {
        let mut case = Case {
            code: vec![word],
            max_instructions: 1,
            code_address: CODE_START,
            state: Default::default(),
            vectors: true,
            window: [0; WINDOW_LEN],
        };
        case.state.x[SCRATCH as usize] = base;
        case.state.x[OFFSET as usize] = offset.into();
        let (ran, touches) = self.flat.run(&case);
        ran.outcome.kind == OutcomeKind::Done && touches.iter().all(|t| t.addr >= WINDOW_START)
    }

    /// Emits a load, a store or an atomic operation in the window.
    fn access(&mut self) {
        if !self.vector_access_rows.is_empty() && self.random.once_in(VECTORS_ONCE_IN) {
            return self.vector_access();
        }
        let row = self.random.pick(&self.access_rows);
        let word = self.free_word(row);
        let field = |name| row.pattern.field(name).is_some();
        let small = self.random.below(8) as u32;
        if field("Rm") {
            let offset = self.random.below(16) as u32;
            self.emit("MOVZ_X", &[("imm16", offset), ("Rd", OFFSET)]);
            self.code.push(with(row, word, &[("Rn", BASE), ("Rm", OFFSET)]));
        } else if field("imm7") {
            self.scratch_base();
            let small = small.wrapping_sub(self.random.below(8) as u32);
            self.code.push(with(row, word, &[("Rn", SCRATCH), ("imm7", small)]));
        } else if row.group == "LDAPR/STLR (unscaled immediate)" {
            self.scratch_base();
            self.code.push(with(row, word, &[("Rn", SCRATCH), ("imm9", 8 * (small & 1))]));
        } else if row.name.ends_with("_post") || row.name.ends_with("_pre") {
            self.scratch_base();
            self.code.push(with(row, word, &[("Rn", SCRATCH), ("imm9", small)]));
        } else if field("imm9") {
            let offset = (self.random.below(480) as u32).wrapping_sub(240);
            self.code.push(with(row, word, &[("Rn", BASE), ("imm9", offset)]));
        } else if field("imm12") {
            self.code.push(with(
                row,
                word,
                &[("Rn", BASE), ("imm12", self.random.below(31) as u32)],
            ));
        } else {
            self.scratch_base();
            self.code.push(with(row, word, &[("Rn", SCRATCH)]));
        }
    }

    /// Emits a load-exclusive and a store-exclusive, sometimes with something in between.
    fn exclusive_pair(&mut self) {
        self.scratch_base();
        let size = self.random.pick(&["XRB", "XRH", "XR_W", "XR_X", "XP_W", "XP_X"]);
        let o0 = ("o0", self.random.below(2) as u32);
        let base = ("Rn", SCRATCH);
        self.emit(&format!("LD{size}"), &[base, o0, ("Rt", 0), ("Rt2", 1)]);
        match self.random.below(8) {
            0 => self.emit("CLREX", &[]),
            // Perhaps to the same place: then the store-exclusive sees a changed value.
            1 | 2 => {
                let offset = 8 * self.random.below(40) as u32;
                let fields = [("Rn", BASE), ("imm9", offset.wrapping_sub(160)), ("Rt", 3)];
                self.emit("STUR_X", &fields);
            }
            3 | 4 => self.data(),
            _ => {}
        }
        let [first, second] = [0, 1].map(|_| self.free_register());
        self.emit(&format!("ST{size}"), &[base, o0, ("Rt", first), ("Rt2", second), ("Rs", 2)]);
    }

    /// Emits a load of the program's own code before it.
    fn literal(&mut self) {
        let name = self.random.pick(&["LDR_lit_W", "LDR_lit_X", "LDRSW_lit", "PRFM_lit"]);
        let back = self.random.below(self.code.len() as u64 + 1) as u32;
        let register = self.free_register();
        if self.flavour != Flavour::SelfModifying {
            self.emit(name, &[("imm19", back.wrapping_neg()), ("Rt", register)]);
        }
    }

    /// Emits something that stops the program, if it gets there.
    fn stop(&mut self) {
        // 2^40 or more: outside memory, without a tag, and mostly unaligned.
        let [high, mut low] = [0, 1].map(|_| self.random.next() as u32);
        let kind = self.random.below(8);
        if kind == 2 {
            // Here, a misaligned PC is reported before a PC outside memory; not so on the oracles.
            low &= !3;
        }
        self.emit("MOVZ_X", &[("imm16", 0x100 | high & 0xff), ("hw", 2), ("Rd", OFFSET)]);
        self.emit("MOVK_X", &[("imm16", low), ("Rd", OFFSET)]);
        let base = ("Rn", OFFSET);
        let register = ("Rt", self.free_register());
        match kind {
            0 => self.emit("BRK", &[("imm16", low)]),
            1 => self.emit("UDF", &[("imm16", 1)]),
            2 => self.emit("BR", &[base]),
            3 => self.emit("STR_X_post", &[base, register, ("imm9", 8)]),
            4 => self.emit("STP_W_off", &[base, register, ("Rt2", 3)]),
            5 => {
                self.emit("ADD_imm_X", &[("imm12", 1), ("Rn", BASE), ("Rd", SCRATCH)]);
                self.emit("LDXR_X", &[("Rn", SCRATCH), register]);
            }
            6 => self.emit("LDADD_X", &[base, register]),
            _ => self.emit("LDP_X_pre", &[base, register, ("Rt2", 3), ("imm7", 1)]),
        }
    }

    /// Emits code that stores a new instruction over one that follows soon (in a loop, one that was executed before).
    fn replace_instruction(&mut self) {
        let data = self.random.pick(&self.data_rows);
        let new = self.free_word(data);
        let distance = 4 + self.random.below(4) as u32;
        // The word to store is in the code; a branch skips it.
        self.emit("B", &[("imm26", 2)]);
        self.code.push(new);
        self.emit("LDR_lit_W", &[("imm19", 1u32.wrapping_neg()), ("Rt", SCRATCH)]);
        self.adr(OFFSET, distance);
        self.emit("STR_W_uimm", &[("Rn", OFFSET), ("Rt", SCRATCH)]);
        // The instruction replaced must not be part of another item.
        for _ in 0..distance {
            self.data();
        }
    }
}
