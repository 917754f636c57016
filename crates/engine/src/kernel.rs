//! Kernels that interpret: one handler for each shape of instruction a program uses, and records that
//! say which handler an instruction wants, with which parameters.
//!
//! The text of a kernel is its engine's business; which handlers it has and what a record holds is
//! the same for all.

mod chosen;
pub mod stop;

use std::collections::HashMap;
use std::sync::Arc;

use kvrm_a64::state::{PC, V};
use kvrm_a64::{Instruction, decode, shaped_form, supervised_form};
use kvrm_ir::cut::{Cut, SMALL_PARAMS, cut};
use kvrm_ir::eval::{Inputs, eval_results};
use kvrm_ir::{Op, Order, Routine, Terminator, Var};

pub use chosen::{Selection, Wanted};

use crate::translation::Means;

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
/// The bits of a record's first word that hold the handler's number.
pub const HANDLER_MASK: u32 = 0xffff;
/// Handler number of an instruction that the host has to execute: the kernel has no handler for it.
pub const ON_HOST: u32 = 4;
/// Handler number of an instruction with which a translated block begins; the second word is the block's number. Only
/// kernels with a [translation](crate::translation::Translation) have such records.
pub const BLOCK: u32 = 5;
/// Number of the first handler that is made from a row.
pub const FIRST_HANDLER: u32 = 6;

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

    /// A record of an instruction with which a translated block begins.
    pub fn block(number: u32) -> Record {
        Record([BLOCK, number, 0, 0])
    }

    /// Number of the handler.
    pub fn handler(&self) -> u32 {
        self.0[0] & HANDLER_MASK
    }

    /// The same with another handler.
    fn with_handler(mut self, handler: u32) -> Record {
        self.0[0] = self.0[0] & !HANDLER_MASK | handler;
        self
    }

    /// The parameter of 64 bits.
    pub fn wide(&self) -> u64 {
        u64::from(self.0[2]) | u64::from(self.0[3]) << 32
    }

    /// The same with another parameter of 64 bits.
    pub fn with_wide(self, wide: u64) -> Record {
        Record([self.0[0], self.0[1], wide as u32, (wide >> 32) as u32])
    }
}

/// Bit position of a small parameter in the words of a record: word, shift.
pub fn small_param_position(index: u8) -> (usize, u32) {
    let byte = usize::from(index) + 2;
    (byte / 4, byte as u32 % 4 * 8)
}

/// One handler.
pub struct Handler {
    /// The first row that wanted it; others may do the same.
    pub row: &'static Instruction,
    /// What it does; its parameters come from the record.
    pub routine: Routine,
    /// A word that wants it.
    word: u32,
    uses_vectors: bool,
    calls: bool,
    is_translatable: bool,
}

/// How the record of a word of one shape is made.
struct Maker {
    handler: u32,
    /// Computes the parameters.
    before: Routine,
    /// How many of them are small.
    small: usize,
}

/// The handlers that have been asked for.
#[derive(Default)]
pub struct Handlers {
    handlers: Vec<Handler>,
    /// Which of them kernels have; all, if none are chosen.
    chosen: Option<Arc<Selection>>,
    /// Those that lanes wanted and kernels lacked, and how often.
    met: Wanted,
    makers: HashMap<(usize, usize), Maker>,
    /// Numbers of handlers by what they do, written out.
    numbers: HashMap<String, u32>,
    diverts: bool,
    /// Lanes may have supervisors.
    supervised: bool,
    /// In all handlers together.
    statements: usize,
}

impl Handlers {
    /// No handlers.
    pub fn new() -> Handlers {
        Handlers::default()
    }

    /// No handlers, of which kernels will have those that are chosen.
    pub fn by_choice() -> Handlers {
        Handlers { chosen: Some(Arc::default()), ..Handlers::default() }
    }

    /// The same for lanes that may have [supervisors](supervised_form).
    pub fn supervised(self) -> Handlers {
        Handlers { supervised: true, ..self }
    }

    /// The handlers of every shape of every row, in parts that are as large as those of large programs, which kernels
    /// are tested with.
    ///
    /// ```
    /// let parts = kvrm_engine::kernel::Handlers::of_all_rows();
    /// let handlers: usize = parts.iter().map(|part| part.len()).sum();
    /// assert!(handlers > kvrm_a64::table().len());
    /// ```
    pub fn of_all_rows() -> Vec<Handlers> {
        /// Statements in a part.
        const ENOUGH: usize = 20_000;
        let part = || Handlers { diverts: true, ..Handlers::new() };
        let mut parts = vec![part()];
        for row in kvrm_a64::table() {
            let word = row.pattern.value | row.pattern.preferred;
            let words = (0..row.shapes()).map(|shape| row.with_shape(word, shape));
            for word in words.filter(|word| row.matches(*word)) {
                let last = parts.last_mut().expect("there is one");
                last.record(0x1000, word);
                if last.statements > ENOUGH {
                    parts.push(part());
                }
            }
        }
        parts
    }

    /// The handlers of a kernel; their numbers there count up from [`FIRST_HANDLER`].
    pub fn iter(&self) -> impl Iterator<Item = &Handler> {
        let number = |index: usize| match &self.chosen {
            Some(chosen) => chosen.handlers()[index] as usize,
            None => index,
        };
        (0..self.len()).map(move |index| &self.handlers[number(index)])
    }

    /// How many a kernel has.
    pub fn len(&self) -> usize {
        self.chosen.as_ref().map_or(self.handlers.len(), |chosen| chosen.handlers().len())
    }

    /// True if a kernel has none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The record as a kernel has it, which may lack the handler.
    pub fn in_kernel(&self, record: Record) -> Record {
        let (Some(chosen), Some(handler)) =
            (&self.chosen, record.handler().checked_sub(FIRST_HANDLER))
        else {
            return record;
        };
        match chosen.number(handler) {
            Some(number) => record.with_handler(FIRST_HANDLER + number),
            None => Record::special(ON_HOST, 0),
        }
    }

    /// True if the instruction of a record, which wants a handler, can be part of a device's translated code.
    pub fn is_translatable(&self, record: Record, means: Means) -> bool {
        let handler = &self.handlers[(record.handler() - FIRST_HANDLER) as usize];
        handler.is_translatable && (means.calls || !handler.calls)
    }

    /// Notes that a lane wants the handler of a record.
    pub fn meet(&mut self, record: Record) {
        if let (Some(chosen), Some(handler)) =
            (&self.chosen, record.handler().checked_sub(FIRST_HANDLER))
            && !chosen.has(handler)
        {
            self.met.add(handler, 1);
        }
    }

    /// Notes that lanes want all of some handlers.
    pub(crate) fn meet_all(&mut self, wanted: Wanted) {
        let lacking = wanted.without(&self.selection());
        self.met.add_all(&lacking);
    }

    /// What lanes wanted and kernels lack.
    pub(crate) fn met(&self) -> &Wanted {
        &self.met
    }

    /// Those that were chosen; all, if none are.
    pub(crate) fn selection(&self) -> Arc<Selection> {
        let all = || Arc::new(Selection::new(0..self.handlers.len() as u32));
        self.chosen.clone().unwrap_or_else(all)
    }

    /// Chooses the handlers that kernels have from now on.
    pub(crate) fn choose(&mut self, selection: Arc<Selection>) {
        self.met = std::mem::take(&mut self.met).without(&selection);
        self.chosen = Some(selection);
    }

    /// Makes others the chosen ones, without anything else. Those that were.
    pub(crate) fn replace_choice(&mut self, selection: Arc<Selection>) -> Arc<Selection> {
        let before = self.selection();
        self.chosen = Some(selection);
        before
    }

    /// The handlers that some words want, in this order.
    pub(crate) fn of_words(&mut self, words: &[u32]) -> Selection {
        let records = words.iter().map(|word| self.record(0, *word));
        Selection::new(records.filter_map(|record| record.handler().checked_sub(FIRST_HANDLER)))
    }

    /// Words that want some handlers, one for each.
    pub(crate) fn words(&self, selection: &Selection) -> Vec<u32> {
        selection.handlers().iter().map(|handler| self.handlers[*handler as usize].word).collect()
    }

    /// True if one of some handlers uses the vector registers.
    pub(crate) fn use_vectors_of(&self, selection: &Selection) -> bool {
        let uses = |handler: &u32| self.handlers[*handler as usize].uses_vectors;
        selection.handlers().iter().any(uses)
    }

    /// True once some code was not the same for all lanes: kernels must know [`DIVERTED`].
    pub fn divert(&self) -> bool {
        self.diverts
    }

    /// True if some handler of a kernel uses the vector registers: the kernel must have them.
    pub fn use_vectors(&self) -> bool {
        self.iter().any(|handler| handler.uses_vectors)
    }

    /// Notes that some code is not the same for all lanes.
    pub(crate) fn note_diversion(&mut self) {
        self.diverts = true;
    }

    /// The record of a word at an address. Adds the handler it wants, if it is new.
    pub fn record(&mut self, pc: u64, word: u32) -> Record {
        let Some(row) = decode(word) else {
            return Record::special(UNDEFINED, word.into());
        };
        let shape = (row.index, row.shape(word));
        if !self.makers.contains_key(&shape) {
            let maker = self.maker(row, word);
            self.makers.insert(shape, maker);
        }
        let maker = &self.makers[&shape];
        let params = eval_results(&maker.before, &Decoding { pc, word });
        pack(maker.handler, &params[..maker.small], params.get(maker.small).copied())
    }

    fn maker(&mut self, row: &'static Instruction, word: u32) -> Maker {
        let Cut { before, small, after } = match self.supervised {
            true => cut_form(&supervised_form(row, word)),
            false => cut_shape(row, word),
        };
        // Values are numbered as they occur, so routines that do the same read the same.
        let next = FIRST_HANDLER + self.handlers.len() as u32;
        let handler = *self.numbers.entry(after.to_string()).or_insert(next);
        if handler == next {
            assert!(handler <= HANDLER_MASK, "a record has no room for so many handlers");
            let uses_vectors = uses_vectors(&after);
            let calls = calls(&after);
            let is_translatable = is_translatable(&after);
            after.body.for_each_stmt(&mut |_| self.statements += 1);
            self.handlers.push(Handler {
                row,
                routine: after,
                word,
                uses_vectors,
                calls,
                is_translatable,
            });
        }
        Maker { handler, before, small }
    }
}

/// True if instructions that want a handler can be part of translated code: they go on after what they do, can be
/// started again where they leave, and are not so large that their handler is as good.
fn is_translatable(routine: &Routine) -> bool {
    /// Statements at the most.
    const MOST: usize = 160;
    let mut fits = !matches!(routine.end, Terminator::Stop { .. });
    let mut statements = 0;
    routine.body.for_each_stmt(&mut |stmt| {
        statements += 1;
        fits &= match &stmt.op {
            Op::Exit { exit, .. } => !exit.completes,
            Op::Rmw { .. } | Op::Cas { .. } | Op::Cas128 { .. } | Op::Fence => false,
            Op::Load { order, .. } | Op::Store { order, .. } => *order == Order::Plain,
            _ => true,
        };
    });
    fits && statements <= MOST
}

/// The routine of a word's shape, cut between what a record has and what a handler does.
pub fn cut_shape(row: &'static Instruction, word: u32) -> Cut {
    cut_form(&shaped_form(row, word))
}

fn cut_form(routine: &Routine) -> Cut {
    cut(routine, &[PC]).expect("every row fits a record")
}

fn uses_vectors(routine: &Routine) -> bool {
    let mut uses = false;
    routine.body.for_each_stmt(&mut |stmt| {
        uses |= matches!(stmt.op, Op::ReadReg(V, _) | Op::WriteReg(V, ..));
    });
    uses
}

/// True if it calls a function.
fn calls(routine: &Routine) -> bool {
    let mut calls = false;
    routine.body.for_each_stmt(&mut |stmt| calls |= matches!(stmt.op, Op::Call(..)));
    calls
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

/// What the part before a cut is computed from: a word at an address.
struct Decoding {
    pc: u64,
    word: u32,
}

impl Inputs for Decoding {
    fn word(&self) -> u32 {
        self.word
    }

    fn param(&self, _: u8) -> u64 {
        unreachable!("computed here")
    }

    fn read_var(&self, var: Var) -> u64 {
        assert_eq!(var.id, PC.id, "only the address is known beforehand");
        self.pc
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn handlers_with_the_same_code_are_one() {
        let mut handlers = Handlers::new();
        // ldur x0, [x1]; ldtr x0, [x1]: no privileges are told apart. nop; yield; bti: nothing is done.
        let [ldur, ldtr] = [0xf840_0020, 0xf840_0820].map(|word| handlers.record(0, word));
        assert_eq!(ldur, ldtr);
        let hints = [0xd503_201f, 0xd503_203f, 0xd503_241f].map(|word| handlers.record(0, word));
        assert_eq!((hints[0], hints[0]), (hints[1], hints[2]));
        assert_eq!(handlers.len(), 2);
    }

    #[test]
    fn kernels_have_the_handlers_that_were_chosen() {
        let mut handlers = Handlers::by_choice();
        // nop; add x0, x1, #1; ldr x0, [x1]
        let words = [0xd503_201f, 0x9100_0420, 0xf940_0020];
        let records = words.map(|word| handlers.record(0, word));
        assert_eq!(records.map(|record| handlers.in_kernel(record).handler()), [ON_HOST; 3]);
        assert!(handlers.is_empty() && handlers.met().is_empty());
        handlers.meet(records[2]);
        let numbers = |handlers: &Handlers| records.map(|r| handlers.in_kernel(r).handler());
        let load = Arc::new(handlers.of_words(&[words[2], words[2]]));
        handlers.choose(load);
        assert_eq!(numbers(&handlers), [ON_HOST, ON_HOST, FIRST_HANDLER]);
        assert_eq!(handlers.in_kernel(records[2]).wide(), records[2].wide());
        handlers.meet(records[2]);
        assert!(handlers.met().is_empty());
        [records[1], records[0], records[0]].into_iter().for_each(|record| handlers.meet(record));
        assert_eq!(handlers.met().by_frequency(), [0, 1]);
        let other = Arc::new(handlers.of_words(&[words[1], words[2]]));
        handlers.choose(other.clone());
        assert_eq!(numbers(&handlers), [ON_HOST, FIRST_HANDLER, FIRST_HANDLER + 1]);
        assert_eq!((handlers.len(), handlers.words(&other)), (2, vec![words[1], words[2]]));
        assert_eq!(handlers.met().by_frequency(), [0]);
        let undefined = handlers.record(0, 0xffff_ffff);
        assert_eq!(handlers.in_kernel(undefined), undefined);
    }

    #[test]
    fn what_is_wanted_is_covered_by_frequency() {
        let mut wanted = Wanted::default();
        assert_eq!(wanted.covered_by(&Selection::default()), 1.0);
        [(7, 1), (3, 2), (7, 5), (1, 2)]
            .into_iter()
            .for_each(|(handler, times)| wanted.add(handler, times));
        assert_eq!(wanted.by_frequency(), [7, 1, 3]);
        let some = Selection::new([7, 3]);
        assert!(!wanted.are_in(&some) && wanted.are_in(&Selection::new([0, 1, 7, 3])));
        assert_eq!(wanted.covered_by(&some), 0.8);
        assert_eq!(wanted.without(&some).by_frequency(), [1]);
    }

    #[test]
    fn all_handlers_fit_a_record_with_room_for_many_more() {
        let handlers: usize = Handlers::of_all_rows().iter().map(Handlers::len).sum();
        assert!(handlers < HANDLER_MASK as usize / 4);
    }
}
