//! Kernels that interpret: one handler for each shape of instruction a program uses, and records that
//! say which handler an instruction wants, with which parameters.
//!
//! The text of a kernel is its engine's business; which handlers it has and what a record holds is
//! the same for all.

pub mod stop;

use std::collections::HashMap;

use kvrm_a64::state::PC;
use kvrm_a64::{Instruction, decode, shape_bits, shaped_form};
use kvrm_ir::cut::{Cut, SMALL_PARAMS, WIDE_PARAM, cut};
use kvrm_ir::eval::{Machine, eval_results};
use kvrm_ir::{Access, BinOp, File, Op, Order, Routine, Type, Value, Var};

/// A decoded instruction, as a kernel reads it: the handler's number in the low half of the first word,
/// then six parameters of a byte each, then one of 64 bits (or eight more bytes).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, bytemuck::Pod, bytemuck::Zeroable)]
#[repr(C, align(16))]
pub struct Record(pub [u32; 4]);

/// Handler number of a record that has not been filled in.
pub const NOT_DECODED: u32 = 0;
/// Handler number of a word that is not an instruction; the wide parameter is the word.
pub const UNDEFINED: u32 = 1;
/// Handler number of an address with a breakpoint.
pub const BREAKPOINT: u32 = 2;
/// Handler number of an address whose code is not the same for all lanes: which record a lane has there, its
/// [directory](crate::code::Layout) says.
pub const DIVERTED: u32 = 3;
/// Number of the first handler that is made from a row.
pub const FIRST_HANDLER: u32 = 4;

impl Record {
    /// A record without parameters.
    pub fn special(handler: u32, wide: u64) -> Record {
        Record([handler, 0, wide as u32, (wide >> 32) as u32])
    }

    /// A record of a granule that some lanes have changed: the granule's number, and where the records of all other
    /// lanes are.
    pub fn diverted(granule: u32, place: u64) -> Record {
        Record([DIVERTED, granule, place as u32, (place >> 32) as u32])
    }

    /// Number of the handler.
    pub fn handler(&self) -> u32 {
        self.0[0] & 0xffff
    }
}

/// Bit position of a small parameter in the words of a record: word, shift.
pub fn small_param_position(index: u8) -> (usize, u32) {
    let byte = usize::from(index) + 2;
    (byte / 4, byte as u32 % 4 * 8)
}

/// One handler.
pub struct Handler {
    /// The row it was made from.
    pub row: &'static Instruction,
    cut: Cut,
}

impl Handler {
    /// What the handler does; its parameters come from the record.
    pub fn routine(&self) -> &Routine {
        &self.cut.after
    }
}

/// Where a handler that writes PC takes the lane.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Branch {
    /// To the record's wide parameter, which is within reach of a 32-bit distance.
    Near,
    /// There, if the value is true, and otherwise to the instruction that follows.
    NearIf(Value),
    /// To any address.
    Far,
}

impl Branch {
    /// What kind of branch it is to write `target` to PC.
    pub fn of(routine: &Routine, target: Value) -> Branch {
        let definition = |v: Value| {
            let stmt = routine.body.stmts.iter().find(|stmt| stmt.results.contains(&v));
            stmt.map(|stmt| &stmt.op)
        };
        let is_wide_param = |v| matches!(definition(v), Some(Op::Param(WIDE_PARAM)));
        let is_pc = |v| matches!(definition(v), Some(Op::ReadVar(var)) if var.id == PC.id);
        let is_next_pc = |v| match definition(v) {
            Some(Op::Binary(BinOp::Add, pc, four)) => {
                is_pc(*pc) && routine.constant(*four) == Some(4)
            }
            _ => false,
        };
        match definition(target) {
            Some(Op::Param(WIDE_PARAM)) => Branch::Near,
            Some(Op::Select(cond, to, otherwise))
                if is_wide_param(*to) && is_next_pc(*otherwise) =>
            {
                Branch::NearIf(*cond)
            }
            _ => Branch::Far,
        }
    }
}

/// The handlers that have been asked for.
#[derive(Default)]
pub struct Handlers {
    handlers: Vec<Handler>,
    numbers: HashMap<(usize, u32), u32>,
}

impl Handlers {
    /// No handlers.
    pub fn new() -> Handlers {
        Handlers::default()
    }

    /// Handlers for several shapes of every row, which a kernel is tested with.
    ///
    /// ```
    /// let handlers = kvrm_engine::kernel::Handlers::of_all_rows();
    /// assert!(handlers.len() > kvrm_a64::table().len());
    /// ```
    pub fn of_all_rows() -> Handlers {
        let mut handlers = Handlers::new();
        let mut random = 1u32;
        for row in kvrm_a64::table() {
            for _ in 0..8 {
                random = random.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
                let word = random & !row.pattern.mask | row.pattern.value;
                if row.matches(word) {
                    handlers.record(0x1000, word);
                }
            }
        }
        handlers
    }

    /// All handlers; their numbers count up from [`FIRST_HANDLER`].
    pub fn iter(&self) -> impl ExactSizeIterator<Item = &Handler> {
        self.handlers.iter()
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.handlers.len()
    }

    /// True if there are none.
    pub fn is_empty(&self) -> bool {
        self.handlers.is_empty()
    }

    /// The record of a word at an address. Adds the handler it wants, if it is new.
    pub fn record(&mut self, pc: u64, word: u32) -> Record {
        let Some(row) = decode(word) else {
            return Record::special(UNDEFINED, word.into());
        };
        let number = self.number(row, word);
        let cut = &self.handlers[(number - FIRST_HANDLER) as usize].cut;
        let params = eval_results(&cut.before, &mut Decoding { pc, word });
        pack(number, &params[..cut.small], params.get(cut.small).copied())
    }

    fn number(&mut self, row: &'static Instruction, word: u32) -> u32 {
        let shape = word & shape_bits(row);
        let next = FIRST_HANDLER + self.handlers.len() as u32;
        let number = *self.numbers.entry((row.index, shape)).or_insert(next);
        if number == next {
            let cut = cut(&shaped_form(row, word), &[PC]).expect("every row fits a record");
            self.handlers.push(Handler { row, cut });
        }
        number
    }
}

fn pack(number: u32, small: &[u64], wide: Option<u64>) -> Record {
    let wide = wide.unwrap_or(0);
    let mut words = [number, 0, wide as u32, (wide >> 32) as u32];
    for (index, value) in small.iter().enumerate() {
        let (word, shift) = small_param_position(index as u8);
        assert!(index < SMALL_PARAMS || wide == 0, "the wide parameter's place is taken");
        words[word] |= (*value as u32 & 0xff) << shift;
    }
    Record(words)
}

/// The machine that the part before a cut sees: a word at an address.
struct Decoding {
    pc: u64,
    word: u32,
}

impl Machine for Decoding {
    fn word(&self) -> u32 {
        self.word
    }

    fn read_var(&self, var: Var) -> u64 {
        assert_eq!(var.id, PC.id, "only the address is known beforehand");
        self.pc
    }

    fn param(&self, _: u8) -> u64 {
        unreachable!("computed here")
    }

    fn count(&self) -> u64 {
        unreachable!("known only at run time")
    }

    fn read_reg(&self, _: File, _: u32) -> u64 {
        unreachable!("known only at run time")
    }

    fn write_reg(&mut self, _: File, _: u32, _: u64) {
        unreachable!("done at run time")
    }

    fn write_var(&mut self, _: Var, _: u64) {
        unreachable!("done at run time")
    }

    fn probe(&mut self, _: Access, _: u64, _: u32) -> Result<(), u64> {
        unreachable!("done at run time")
    }

    fn load(&mut self, _: Type, _: Order, _: u64) -> u64 {
        unreachable!("done at run time")
    }

    fn store(&mut self, _: Type, _: Order, _: u64, _: u64) {
        unreachable!("done at run time")
    }

    fn cas(&mut self, _: Type, _: u64, _: u64, _: u64) -> u64 {
        unreachable!("done at run time")
    }

    fn cas128(&mut self, _: u64, _: [u64; 2], _: [u64; 2]) -> [u64; 2] {
        unreachable!("done at run time")
    }

    fn fence(&mut self) {
        unreachable!("done at run time")
    }
}
