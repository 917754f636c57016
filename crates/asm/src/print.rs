//! Prints words: uses the forms of [`SYNTAX`](crate::syntax::SYNTAX) in the other direction.

use std::fmt::Write;

use kvrm_a64::{Field, Instruction, decode};

use crate::immediate::{bitmask_value, byte_mask_value, float8_value, wide};
use crate::names::{self, BARRIERS, CONDITIONS, Register, Width};
use crate::operand::{Count, Item, Special};
use crate::special::{EXTENSIONS, SHIFTS, SXTX, UXTW, UXTX};
use crate::template::{Form, field_of, printed};
use crate::vector::Arrangement;

/// Numbers from this on are written in hexadecimal.
const LARGE: u64 = 1024;

/// Returns the text of a word, in the best form that fits it.
pub(crate) fn word(word: u32, address: u64) -> Option<String> {
    let row = decode(word)?;
    let word = usual(row, word);
    printed(row).iter().find_map(|(mnemonic, form)| {
        let printer = Printer { form, word, address, out: mnemonic.to_string() };
        printer.print(mnemonic)
    })
}

/// Returns the word with the bits that the manual draws as (0) or (1) set to these values.
fn usual(row: &Instruction, word: u32) -> u32 {
    let pattern = &row.pattern;
    let fields = pattern.fields.iter().fold(0, |mask, field| field.set(mask, u32::MAX));
    word & (pattern.mask | fields) | pattern.preferred
}

/// Writes the operands of a form. Its methods give `None` where the form cannot stand for the word.
struct Printer<'a> {
    form: &'a Form,
    word: u32,
    address: u64,
    out: String,
}

impl Printer<'_> {
    fn print(mut self, mnemonic: &str) -> Option<String> {
        let free = self.form.operands.iter().fold(0, |bits, item| bits | self.bits(item));
        if (self.word ^ self.form.word) & !free != 0 || !self.is_usual(mnemonic) {
            return None;
        }
        if !self.form.operands.is_empty() {
            self.push(' ');
        }
        self.items(&self.form.operands)?;
        Some(self.out)
    }

    /// False for aliases that apply only to some words, beyond what their operands say.
    fn is_usual(&self, mnemonic: &str) -> bool {
        let copies_sp = || self.get("Rd") == 31 || self.get("Rn") == 31;
        mnemonic != "mov" || !self.form.row.name.starts_with("ADD") || copies_sp()
    }

    /// Returns the bits of a word that an operand determines.
    fn bits(&self, item: &Item) -> u32 {
        let mask = |field: &Field| field.set(0, u32::MAX);
        match item {
            Item::Punct(_) | Item::Word(_) | Item::NextRegister { .. } => 0,
            Item::Register { fields, .. }
            | Item::Vector { fields, .. }
            | Item::Scalar { fields, .. }
            | Item::Index { fields, .. }
            | Item::Number { fields, .. } => {
                fields.iter().fold(0, |bits, field| bits | mask(field))
            }
            Item::List { first, count: Count::Fixed(_), .. } => mask(first),
            Item::List { first, count: Count::Field(count), .. } => mask(first) | mask(count),
            Item::Distance { field } => mask(field),
            // System registers are not fields.
            Item::Special(Special::Numbered) => 0xffff << 5,
            Item::Special(special) => self.masks(special.fields()),
            Item::Optional(items) => items.iter().fold(0, |bits, item| bits | self.bits(item)),
        }
    }

    fn masks(&self, names: &[&str]) -> u32 {
        let fields = names.iter().filter_map(|name| self.form.row.pattern.field(name));
        fields.fold(0, |bits, field| field.set(bits, u32::MAX))
    }

    fn get(&self, field: &str) -> u32 {
        field_of(self.form.row, field).get(self.word)
    }

    /// Returns the value of several fields; the first has the upper bits.
    fn joined(&self, fields: &[Field]) -> (u32, u32) {
        fields.iter().fold((0, 0), |(value, bits), field| {
            (value << field.len | field.get(self.word), bits + field.len)
        })
    }

    fn width(&self) -> Width {
        if self.form.word >> 31 == 1 { Width::X } else { Width::W }
    }

    fn push(&mut self, text: impl std::fmt::Display) {
        let _ = write!(self.out, "{text}");
    }

    /// Prints `#` and a number.
    fn number(&mut self, value: i64) {
        let sign = if value < 0 { "-" } else { "" };
        match value.unsigned_abs() {
            small @ ..LARGE => self.push(format_args!("#{sign}{small}")),
            large => self.push(format_args!("#{sign}{large:#x}")),
        }
    }

    fn register(&mut self, width: Width, number: u32, sp: bool) {
        self.push(Register { width, number, is_sp: sp && number == 31 });
    }

    fn items(&mut self, items: &[Item]) -> Option<()> {
        for (index, item) in items.iter().enumerate() {
            if index > 0
                && matches!(items[index - 1], Item::Word(_))
                && !matches!(item, Item::Punct(_))
            {
                self.push(' ');
            }
            self.item(item)?;
        }
        Some(())
    }

    /// Returns the number of a register that is in all of these fields.
    fn same(&self, fields: &[Field]) -> Option<u32> {
        let number = fields[0].get(self.word);
        fields.iter().all(|field| field.get(self.word) == number).then_some(number)
    }

    fn item(&mut self, item: &Item) -> Option<()> {
        match item {
            Item::Punct(",") => self.push(", "),
            Item::Punct(punct) => self.push(punct),
            Item::Word(word) => self.push(word),
            Item::Register { width, fields, sp } => {
                let number = self.same(fields)?;
                self.register(*width, number, *sp);
            }
            Item::NextRegister { width, field } => {
                let first = field.get(self.word);
                self.register(*width, first.is_multiple_of(2).then_some(first + 1)?, false);
            }
            Item::Vector { arrangement, fields } => {
                let number = self.same(fields)?;
                self.push(format_args!("v{number}.{arrangement}"));
            }
            Item::Scalar { lane, fields } => {
                let number = self.same(fields)?;
                self.push(format_args!("{}{number}", lane.letter()));
            }
            Item::List { arrangement, first, count } => self.list(*arrangement, *first, *count),
            Item::Index { fields, fixed } => {
                let (index, _) = self.joined(fields);
                self.push(format_args!("[{}]", index + fixed));
            }
            Item::Number { fields, signed, scale, offset } => {
                let (value, bits) = self.joined(fields);
                let value = if *signed { extended(value, bits) } else { value.into() };
                self.number(value * i64::from(*scale) + i64::from(*offset));
            }
            Item::Distance { field } => self.distance(&[*field], 4),
            Item::Special(special) => self.special(*special)?,
            Item::Optional(items) if self.is_default(items) => {}
            Item::Optional(items) => self.items(items)?,
        }
        Some(())
    }

    /// Prints consecutive registers, as a range if there are three or more.
    fn list(&mut self, arrangement: Arrangement, first: Field, count: Count) {
        let first = first.get(self.word);
        let count = match count {
            Count::Fixed(count) => count,
            Count::Field(field) => field.get(self.word) + 1,
        };
        let last = first + count - 1;
        let register = |number: u32| format!("v{}.{arrangement}", number % 32);
        let registers: Vec<String> = match count > 2 && last < 32 {
            true => vec![format!("{}-{}", register(first), register(last))],
            false => (first..=last).map(register).collect(),
        };
        self.push(format_args!("{{{}}}", registers.join(", ")));
    }

    /// True if an optional part has its default value, so that it need not be printed.
    fn is_default(&self, items: &[Item]) -> bool {
        items.iter().all(|item| match item {
            Item::Number { fields, .. } => self.joined(fields).0 == 0,
            Item::Special(Special::Shift | Special::Rotation) => {
                (self.get("shift"), self.get("imm6")) == (0, 0)
            }
            _ => true,
        })
    }

    /// Prints the address at a distance.
    fn distance(&mut self, fields: &[Field], scale: i64) {
        let (value, bits) = self.joined(fields);
        let target = self.address.wrapping_add_signed(extended(value, bits) * scale);
        self.push(format_args!("{target:#x}"));
    }

    fn special(&mut self, special: Special) -> Option<()> {
        match special {
            Special::Near => self.distance(&self.fields(["immhi", "immlo"]), 1),
            Special::Page => {
                let (pages, bits) = self.joined(&self.fields(["immhi", "immlo"]));
                let from = self.address & !0xfff;
                let target = from.wrapping_add_signed(extended(pages, bits) << 12);
                self.push(format_args!("{target:#x}"));
            }
            Special::Arithmetic => self.shifted(self.get("imm12"), 12 * self.get("sh")),
            Special::Bitmask => match self.bitmask()? {
                small @ ..LARGE => self.number(small as i64),
                large => self.push(format_args!("#{large:#x}")),
            },
            Special::Wide => self.shifted(self.get("imm16"), 16 * self.get("hw")),
            Special::MovZ | Special::MovN | Special::MovMask => self.mov(special)?,
            Special::Lsl | Special::Extract | Special::Insert => self.bitfield(special)?,
            Special::Shift | Special::Rotation => {
                self.push(SHIFTS[self.get("shift") as usize]);
                self.push(format_args!(" #{}", self.get("imm6")));
            }
            Special::Extended => self.extended(),
            Special::Index(scale) => self.index(scale),
            Special::Step(bytes) => match self.get("Rm") {
                31 => self.number(bytes.into()),
                register => self.register(Width::X, register, false),
            },
            Special::Zero => self.number(0),
            Special::FloatZero => self.push("#0.0"),
            Special::Byte => self.number(self.imm8().into()),
            Special::ByteMask => self.push(format_args!("#{:#x}", byte_mask_value(self.imm8()))),
            Special::Float(_) => self.push(format_args!("#{:?}", float8_value(self.imm8()))),
            Special::Cond => self.push(CONDITIONS[self.get("cond") as usize][0]),
            Special::NotCond => {
                let number = Some(self.get("cond") ^ 1).filter(|number| *number < 14)?;
                self.push(CONDITIONS[number as usize][0]);
            }
            Special::Literal => self.distance(&self.fields(["imm19"]), 4),
            Special::Prefetch => match names::prefetch_name(self.get("Rt")) {
                Some(name) => self.push(name),
                None => self.number(self.get("Rt").into()),
            },
            Special::Barrier => self.barrier(),
            Special::Identification => {
                self.push(names::id_register_name(self.get("CRm"), self.get("op2"))?);
            }
            Special::Numbered => self.numbered(),
            // These are in forms that are not printed.
            Special::Negated | Special::Inverted | Special::Range | Special::Operation => {
                return None;
            }
        }
        Some(())
    }

    /// Returns the 8 bits of a modified immediate.
    fn imm8(&self) -> u32 {
        match self.form.row.pattern.field("imm8") {
            Some(field) => field.get(self.word),
            None => self.joined(&self.fields(["abc", "defgh"])).0,
        }
    }

    fn fields<const N: usize>(&self, names: [&str; N]) -> [Field; N] {
        names.map(|name| field_of(self.form.row, name))
    }

    /// Prints a number and its shift.
    fn shifted(&mut self, value: u32, shift: u32) {
        self.number(value.into());
        if shift != 0 {
            self.push(format_args!(", lsl #{shift}"));
        }
    }

    /// Returns the number of a logical immediate.
    fn bitmask(&self) -> Option<u64> {
        let n = self.form.row.pattern.field("N").map_or(0, |field| field.get(self.word));
        bitmask_value(n, self.get("immr"), self.get("imms"), self.width())
    }

    /// Prints a number for a register; with a sign, if it is just below zero.
    fn bits_of_register(&mut self, bits: u64) {
        let signed = match self.width() {
            Width::W => i64::from(bits as u32 as i32),
            Width::X => bits as i64,
        };
        match signed {
            small if small.unsigned_abs() < LARGE => self.number(small),
            _ => self.push(format_args!("#{bits:#x}")),
        }
    }

    /// Prints a number that `mov` loads with this instruction. If several instructions can load it, MOVZ comes
    /// first, then MOVN.
    fn mov(&mut self, special: Special) -> Option<()> {
        let width = self.width();
        let all = u64::MAX >> (64 - width.bits());
        if special == Special::MovMask {
            let bits = self.bitmask()?;
            let is_wide = wide(bits, width).is_some() || wide(!bits & all, width).is_some();
            // Only this one can write the stack pointer.
            let is_right = !is_wide || self.get("Rd") == 31;
            return is_right.then(|| self.bits_of_register(bits));
        }
        let (imm16, hw) = (self.get("imm16"), self.get("hw"));
        let bits = u64::from(imm16) << (16 * hw);
        // Zero has a shorter form, and MOVZ loads what MOVN would load here.
        let is_zero = imm16 == 0 && hw != 0;
        let is_movz = width == Width::W && imm16 == 0xffff;
        match special {
            Special::MovZ if !is_zero => self.bits_of_register(bits),
            Special::MovN if !is_zero && !is_movz => self.bits_of_register(!bits & all),
            _ => return None,
        }
        Some(())
    }

    fn bitfield(&mut self, special: Special) -> Option<()> {
        let (bits, immr, imms) = (self.width().bits(), self.get("immr"), self.get("imms"));
        match special {
            Special::Lsl if imms + 1 == immr => self.number((bits - immr).into()),
            Special::Extract if imms >= immr => {
                self.push(format_args!("#{immr}, #{}", imms - immr + 1));
            }
            Special::Insert if imms < immr => {
                self.push(format_args!("#{}, #{}", bits - immr, imms + 1));
            }
            _ => return None,
        }
        Some(())
    }

    fn extended(&mut self) {
        let width = self.width();
        let (option, amount) = (self.get("option"), self.get("imm3"));
        let plain = if width == Width::X { UXTX } else { UXTW };
        let whole = width == Width::X && matches!(option, UXTX | SXTX);
        let given = if whole { Width::X } else { Width::W };
        self.register(given, self.get("Rm"), false);
        // Instructions with the stack pointer have no other form.
        let sets_flags = self.form.row.name.contains("S_ext");
        let has_sp = self.get("Rn") == 31 || self.get("Rd") == 31 && !sets_flags;
        match (has_sp && option == plain, amount) {
            (true, 0) => {}
            (true, _) => self.push(format_args!(", lsl #{amount}")),
            (false, 0) => self.push(format_args!(", {}", EXTENSIONS[option as usize])),
            (false, _) => {
                self.push(format_args!(", {} #{amount}", EXTENSIONS[option as usize]));
            }
        }
    }

    fn index(&mut self, scale: u32) {
        // The bit in between is set: an index has at least 32 bits.
        let option = self.get("option") << 2 | UXTW | self.get("size") & 1;
        let (scaled, shift) = (self.get("S") != 0, scale.trailing_zeros());
        let given = if option & 1 != 0 { Width::X } else { Width::W };
        self.register(given, self.get("Rm"), false);
        match (option, scaled) {
            (UXTX, false) => {}
            (UXTX, true) => self.push(format_args!(", lsl #{shift}")),
            (_, false) => self.push(format_args!(", {}", EXTENSIONS[option as usize])),
            (_, true) => self.push(format_args!(", {} #{shift}", EXTENSIONS[option as usize])),
        }
    }

    fn barrier(&mut self) {
        let number = self.get("CRm");
        match BARRIERS[number as usize].first().filter(|_| self.form.row.name != "ISB") {
            Some(name) => self.push(name),
            None => self.number(number.into()),
        }
    }

    fn numbered(&mut self) {
        let n = self.word >> 5;
        let (op0, op1, op2) = (2 | n >> 14 & 1, n >> 11 & 7, n & 7);
        self.push(format_args!("s{op0}_{op1}_c{}_c{}_{op2}", n >> 7 & 15, n >> 3 & 15));
    }
}

/// Sign-extends a number of this many bits.
fn extended(value: u32, bits: u32) -> i64 {
    i64::from(value) << (64 - bits) >> (64 - bits)
}

impl Special {
    /// Returns the fields that it uses, if a row has them.
    fn fields(self) -> &'static [&'static str] {
        match self {
            Special::Near | Special::Page => &["immhi", "immlo"],
            Special::Arithmetic => &["sh", "imm12"],
            Special::Bitmask | Special::MovMask => &["N", "immr", "imms"],
            Special::Wide | Special::MovZ | Special::MovN => &["imm16", "hw"],
            Special::Lsl | Special::Extract | Special::Insert => &["immr", "imms"],
            Special::Shift | Special::Rotation => &["shift", "imm6"],
            Special::Extended => &["Rm", "option", "imm3"],
            Special::Index(_) => &["Rm", "option", "size", "S"],
            Special::Step(_) => &["Rm"],
            Special::Byte | Special::ByteMask | Special::Float(_) => &["abc", "defgh", "imm8"],
            Special::Cond | Special::NotCond => &["cond"],
            Special::Literal => &["imm19"],
            Special::Prefetch => &["Rt"],
            Special::Barrier => &["CRm"],
            Special::Identification => &["CRm", "op2"],
            Special::Numbered
            | Special::Negated
            | Special::Inverted
            | Special::Range
            | Special::Zero
            | Special::FloatZero
            | Special::Operation => &[],
        }
    }
}
