//! Operands with special rules: [`Special`].

use crate::encode::{Encoder, Number, list};
use crate::error::{ErrorKind, Result};
use crate::expression::decimal;
use crate::immediate::{bitmask, byte_mask, float8, register_bits, wide};
use crate::lexer::Kind;
use crate::names::{self, Width};
use crate::operand::Special;
use crate::vector::Lane;

const ARITHMETIC: &str = "0 to 4095, or a multiple of 4096 up to 16773120";
pub(crate) const SHIFTS: [&str; 4] = ["lsl", "lsr", "asr", "ror"];
pub(crate) const EXTENSIONS: [&str; 8] =
    ["uxtb", "uxth", "uxtw", "uxtx", "sxtb", "sxth", "sxtw", "sxtx"];
/// UXTW, UXTX and SXTX in [`EXTENSIONS`].
pub(crate) const UXTW: u32 = 2;
pub(crate) const UXTX: u32 = 3;
pub(crate) const SXTX: u32 = 7;

impl Encoder<'_> {
    pub(crate) fn special(&mut self, special: Special) -> Result<()> {
        match special {
            Special::Near => self.distance(&[self.field("immhi"), self.field("immlo")], 1),
            Special::Page => self.page(),
            Special::Arithmetic => self.arithmetic(1),
            Special::Negated => self.arithmetic(-1),
            Special::Bitmask => self.bitmask(0),
            Special::Inverted => self.bitmask(u64::MAX),
            Special::Wide => self.wide(),
            Special::MovZ => self.mov(wide),
            Special::MovN => {
                self.mov(|bits, width| wide(!bits & (u64::MAX >> (64 - width.bits())), width))
            }
            Special::MovMask => self.mov_mask(),
            Special::Lsl => self.lsl(),
            Special::Extract => self.bitfield(false),
            Special::Insert => self.bitfield(true),
            Special::Shift => self.shift(&SHIFTS[..3], "a shift (lsl, lsr, asr)"),
            Special::Rotation => self.shift(&SHIFTS, "a shift (lsl, lsr, asr, ror)"),
            Special::Extended => self.extended(),
            Special::Index(scale) => self.index(scale),
            Special::Step(bytes) => self.step(bytes),
            Special::Cond => self.condition(false),
            Special::NotCond => self.condition(true),
            Special::Literal => self.literal(),
            Special::Prefetch => {
                let what = "a prefetch operation (pldl1keep) or its number";
                let number = self.named(what, names::prefetch, 31)?;
                self.put_named("Rt", number);
                Ok(())
            }
            Special::Range => self.range(),
            Special::Barrier => {
                let what = "what the barrier is for (sy, ish, ishld …) or its number";
                let number = self.named(what, names::barrier, 15)?;
                self.put_named("CRm", number);
                Ok(())
            }
            Special::Zero => self.number_in(0, 0).map(|_| ()),
            Special::FloatZero => self.float_zero(),
            Special::Byte => self.byte(),
            Special::ByteMask => self.byte_mask(),
            Special::Float(lane) => self.float8(lane),
            Special::Identification => self.identification(),
            Special::Numbered => self.numbered(),
            Special::Operation => self.operation(),
        }
    }

    /// RPRFM: PRFM with certain extensions and upper operations.
    fn range(&mut self) -> Result<()> {
        let what = "a prefetch operation (pldkeep) or its number";
        let number = self.named(what, names::range_prefetch, 63)?;
        self.put_split(&["option", "size", "S"].map(|name| self.field(name)), number >> 3);
        self.put_named("Rt", 0b11000 | number & 7);
        Ok(())
    }

    fn page(&mut self) -> Result<()> {
        let target = self.number()?;
        let from = self.place.here() & !0xfff;
        let pages = ((target.value as u64 & !0xfff).wrapping_sub(from)).cast_signed() >> 12;
        if !(-(1 << 20)..1 << 20).contains(&pages) {
            let allowed = "adrp reaches 4 GiB either way".to_string();
            let (target_value, from) = (target.value, self.place.here());
            return self
                .wrong(target, ErrorKind::Unreachable { target: target_value, from, allowed });
        }
        self.put_split(&[self.field("immhi"), self.field("immlo")], pages as u32);
        Ok(())
    }

    fn arithmetic(&mut self, sign: i128) -> Result<()> {
        let number = self.number()?;
        let value = number.value * sign;
        let after = self.cursor;
        if self.cursor.eat(",") {
            let shift = self.lsl_of(&[0, 12])?;
            if !(0..=0xfff).contains(&value) {
                self.cursor = after;
                return self.does_not_fit(number, "0 to 4095 with a shift");
            }
            self.put_named("sh", u32::from(shift == 12));
            self.put_named("imm12", value as u32);
            return Ok(());
        }
        let (sh, imm12) = match value {
            0..=0xfff => (0, value),
            _ if value & 0xfff == 0 && (0..1 << 24).contains(&value) => (1, value >> 12),
            _ => return self.does_not_fit(number, ARITHMETIC),
        };
        self.put_named("sh", sh);
        self.put_named("imm12", imm12 as u32);
        Ok(())
    }

    /// Takes `lsl #…` with one of these distances.
    fn lsl_of(&mut self, allowed: &[u32]) -> Result<u32> {
        match self.cursor.name() {
            Some(name) if name.eq_ignore_ascii_case("lsl") => self.cursor.next(),
            _ => return self.cursor.expected("lsl"),
        };
        let number = self.number()?;
        let shift = allowed.iter().find(|a| i128::from(**a) == number.value);
        match shift {
            Some(shift) => Ok(*shift),
            None => {
                let allowed: Vec<String> = allowed.iter().map(u32::to_string).collect();
                self.does_not_fit(number, list(&allowed))
            }
        }
    }

    fn bitmask(&mut self, invert: u64) -> Result<()> {
        let number = self.number()?;
        let width = self.width();
        let bits = register_bits(number.value, width).map(|bits| bits ^ invert);
        let all = u64::MAX >> (64 - width.bits());
        match bits.and_then(|bits| bitmask(bits & all, width)) {
            Some(fields) => {
                self.put_bitmask(fields);
                Ok(())
            }
            None => self.wrong(number, ErrorKind::Bitmask(number.value)),
        }
    }

    fn put_bitmask(&mut self, (n, immr, imms): (u32, u32, u32)) {
        if self.has_field("N") {
            self.put_named("N", n);
        }
        self.put_named("immr", immr);
        self.put_named("imms", imms);
    }

    fn wide(&mut self) -> Result<()> {
        let quarters = &[0, 16, 32, 48][..self.width().bits() as usize / 16];
        let relocation = (self.cursor, self.cursor.eat("#"));
        if self.cursor.peek().is(":") {
            return self.address_part(quarters.len() as u32);
        }
        self.cursor = relocation.0;
        let value = self.number_in(0, 0xffff)?;
        let shift = if self.cursor.eat(",") { self.lsl_of(quarters)? } else { 0 };
        self.put_named("imm16", value);
        self.put_named("hw", shift / 16);
        Ok(())
    }

    /// Takes `:abs_g1:symbol`: 16 bits of an address. Without `_nc`, the bits above them must be zero.
    fn address_part(&mut self, parts: u32) -> Result<()> {
        self.cursor.next();
        let name = self.cursor.name().unwrap_or_default();
        let (part, unchecked) = name.strip_suffix("_nc").map_or((name, false), |name| (name, true));
        let part = part.strip_prefix("abs_g").and_then(|n| n.parse().ok()).filter(|n| *n < parts);
        let Some(part) = part else {
            return self.cursor.expected("abs_g0, abs_g0_nc and so on to abs_g3");
        };
        self.cursor.next();
        self.cursor.expect(":")?;
        let address = self.number()?;
        let bits = address.value as u64 >> (16 * part);
        if bits > 0xffff && !unchecked {
            return self.does_not_fit(address, format!("at most {} bits", 16 * (part + 1)));
        }
        self.put_named("imm16", bits as u32);
        self.put_named("hw", part);
        Ok(())
    }

    fn mov(&mut self, encode: impl Fn(u64, Width) -> Option<(u32, u32)>) -> Result<()> {
        let number = self.number()?;
        let width = self.width();
        let Some((imm16, hw)) = register_bits(number.value, width).and_then(|b| encode(b, width))
        else {
            return self.cannot_move(number);
        };
        self.put_named("imm16", imm16);
        self.put_named("hw", hw);
        Ok(())
    }

    fn mov_mask(&mut self) -> Result<()> {
        let number = self.number()?;
        let width = self.width();
        match register_bits(number.value, width).and_then(|bits| bitmask(bits, width)) {
            Some(fields) => {
                self.put_bitmask(fields);
                Ok(())
            }
            None => self.cannot_move(number),
        }
    }

    fn cannot_move<T>(&mut self, number: Number<'_>) -> Result<T> {
        let width = self.width();
        if register_bits(number.value, width).is_none() {
            return self.does_not_fit(number, format!("at most {} bits", width.bits()));
        }
        let value = i128::from(number.value as u64);
        let letter = if width == Width::W { 'w' } else { 'x' };
        let register = match self.get_named("Rd") {
            31 => format!("{letter}0"),
            rd => format!("{letter}{rd}"),
        };
        self.wrong(number, ErrorKind::Move { value, register })
    }

    fn lsl(&mut self) -> Result<()> {
        let bits = self.width().bits();
        let shift = self.number_in(0, bits - 1)?;
        self.put_named("immr", bits - shift);
        self.put_named("imms", bits - 1 - shift);
        Ok(())
    }

    fn bitfield(&mut self, insert: bool) -> Result<()> {
        let bits = self.width().bits();
        let low = self.number_in(0, bits - 1)?;
        self.cursor.expect(",")?;
        let len = self.number_in(1, bits - low)?;
        let (immr, imms) = if insert { (bits - low, len - 1) } else { (low, low + len - 1) };
        self.put_named("immr", immr);
        self.put_named("imms", imms);
        Ok(())
    }

    fn shift(&mut self, kinds: &[&str], what: &str) -> Result<()> {
        let kind = self.keyword(kinds, what)?;
        let amount = self.number_in(0, self.width().bits() - 1)?;
        self.put_named("shift", kind);
        self.put_named("imm6", amount);
        Ok(())
    }

    /// Takes one of the words; returns its index.
    fn keyword(&mut self, words: &[&str], what: &str) -> Result<u32> {
        let name = self.cursor.name().unwrap_or_default();
        match words.iter().position(|word| name.eq_ignore_ascii_case(word)) {
            Some(position) => {
                self.cursor.next();
                Ok(position as u32)
            }
            None => self.cursor.expected(what),
        }
    }

    fn is_lsl(&self) -> bool {
        self.cursor.name().is_some_and(|name| name.eq_ignore_ascii_case("lsl"))
    }

    fn extended(&mut self) -> Result<()> {
        let width = self.width();
        let start = self.cursor;
        let given = self.cursor.name().and_then(names::register).map_or(width, |r| r.width);
        let given = if width == Width::W { Width::W } else { given };
        let rm = self.register(given, false)?;
        self.put_named("Rm", rm.number);
        let plain = if width == Width::X { UXTX } else { UXTW };
        let mut option = plain;
        let mut amount = 0;
        let explicit = self.cursor.eat(",");
        if explicit && self.is_lsl() {
            self.cursor.next();
            amount = self.number_in(0, 4)?;
        } else if explicit {
            option = self.keyword(&EXTENSIONS, "an extension (uxtb, uxth, uxtw, uxtx, sxtb …)")?;
            amount = if self.cursor.is_end() { 0 } else { self.number_in(0, 4)? };
        }
        let whole = matches!(option, UXTX | SXTX) && width == Width::X;
        if whole != (given == Width::X) {
            let wanted = match (whole, explicit) {
                (true, true) => "a 64-bit register with this extension",
                (true, false) => "a 64-bit register, or an extension (uxtw, sxtw …)",
                (false, _) => "a 32-bit register with this extension",
            };
            return start.expected(wanted);
        }
        self.put_named("option", option);
        self.put_named("imm3", amount);
        Ok(())
    }

    fn index(&mut self, scale: u32) -> Result<()> {
        let start = self.cursor;
        let given = self.cursor.name().and_then(names::register).map_or(Width::X, |r| r.width);
        let rm = self.register(given, false)?;
        self.put_named("Rm", rm.number);
        let (mut option, mut scaled) = (UXTX, false);
        if self.cursor.eat(",") {
            if self.is_lsl() {
                self.cursor.next();
                scaled = self.scaling(scale)?;
            } else {
                option = self.keyword(&EXTENSIONS, "lsl, uxtw, sxtw or sxtx")?;
                scaled = !self.cursor.peek().is("]") && self.scaling(scale)?;
            }
        }
        let right = if given == Width::X { [UXTX, SXTX] } else { [UXTW, UXTW | 4] };
        if !right.contains(&option) {
            return start.expected(match given {
                Width::X => "a 64-bit register with lsl or sxtx, or a 32-bit one with uxtw or sxtw",
                Width::W => "a 32-bit register with uxtw or sxtw, or a 64-bit one",
            });
        }
        self.put_named("option", option >> 2);
        self.put_named("size", option);
        self.put_named("S", scaled.into());
        Ok(())
    }

    /// Takes the shift of an index: none, or the size of the access. For bytes, a written shift is 0.
    fn scaling(&mut self, scale: u32) -> Result<bool> {
        let number = self.number()?;
        let shift = scale.trailing_zeros();
        match number.value {
            value if value == shift.into() => Ok(true),
            0 => Ok(false),
            _ if shift == 0 => self.does_not_fit(number, "only 0"),
            _ => self.does_not_fit(number, format!("0 or {shift}")),
        }
    }

    fn step(&mut self, bytes: u32) -> Result<()> {
        let Some(register) = self.cursor.name().and_then(names::register) else {
            self.number_in(bytes, bytes)?;
            self.put_named("Rm", 31);
            return Ok(());
        };
        if register.width != Width::X || register.number == 31 {
            return self.cursor.expected("a 64-bit register (x0 to x30)");
        }
        self.cursor.next();
        self.put_named("Rm", register.number);
        Ok(())
    }

    fn condition(&mut self, inverted: bool) -> Result<()> {
        let name = self.cursor.name().unwrap_or_default();
        let Some(number) = names::condition(name) else {
            return self.cursor.expected("a condition (eq, ne, lo …)");
        };
        if inverted && number >= 14 {
            return self.cursor.expected("a condition that has an opposite (not al or nv)");
        }
        self.cursor.next();
        self.put_named("cond", number ^ u32::from(inverted));
        Ok(())
    }

    fn literal(&mut self) -> Result<()> {
        let start = self.cursor;
        let target = match self.cursor.eat("=") {
            false => self.target()?,
            true => {
                // The value is checked where it is written.
                while !self.cursor.is_end() {
                    self.cursor.next();
                }
                let address = self.place.literal().expect("a pool has every constant");
                Number { value: address.into(), start }
            }
        };
        self.distance_to(target, &[self.field("imm19")], 4)
    }

    /// Inserts the 8 bits of a modified immediate.
    fn put_imm8(&mut self, value: u32) {
        match self.has_field("abc") {
            true => self.put_split(&[self.field("abc"), self.field("defgh")], value),
            false => self.put_named("imm8", value),
        }
    }

    fn byte(&mut self) -> Result<()> {
        let number = self.number()?;
        if !(-128..256).contains(&number.value) {
            return self.does_not_fit(number, "-128 to 255");
        }
        self.put_imm8(number.value as u32);
        Ok(())
    }

    fn byte_mask(&mut self) -> Result<()> {
        let number = self.number()?;
        match byte_mask(number.value as u64) {
            Some(imm8) => {
                self.put_imm8(imm8);
                Ok(())
            }
            None => self.does_not_fit(number, "each of its 8 bytes must be 0 or 0xff"),
        }
    }

    /// Takes a floating-point number; `0x` begins the bits of one, of 64 bits for doublewords and else of 32.
    fn float(&mut self, lane: Lane) -> Result<f64> {
        self.cursor.eat("#");
        let token = self.cursor.peek();
        let Kind::Number(bits) = token.kind else { return self.decimal() };
        let value = match lane {
            _ if !token.text.to_ascii_lowercase().starts_with("0x") => return self.decimal(),
            Lane::D => Some(f64::from_bits(bits as u64)),
            _ => u32::try_from(bits).ok().map(|bits| f32::from_bits(bits).into()),
        };
        let Some(value) = value else { return self.cursor.expected("the bits of a float") };
        self.cursor.next();
        Ok(value)
    }

    fn decimal(&mut self) -> Result<f64> {
        Ok(decimal(&mut self.cursor)?.parse().expect("a decimal number"))
    }

    fn float8(&mut self, lane: Lane) -> Result<()> {
        let start = self.cursor;
        let value = self.float(lane)?;
        match float8(value) {
            Some(imm8) => {
                self.put_imm8(imm8);
                Ok(())
            }
            None => {
                self.cursor = start;
                self.cursor.eat("#");
                self.cursor.fail(ErrorKind::Float(value.to_string()))
            }
        }
    }

    fn float_zero(&mut self) -> Result<()> {
        let start = self.cursor;
        match self.float(Lane::S) {
            Ok(zero) if zero.to_bits() == 0 => Ok(()),
            _ => {
                self.cursor = start;
                self.cursor.expected("0.0")
            }
        }
    }

    fn identification(&mut self) -> Result<()> {
        let name = self.cursor.name().unwrap_or_default();
        let Some((crm, op2)) = names::id_register(name) else {
            return self.cursor.expected("a register about features (id_aa64pfr0_el1 …)");
        };
        self.cursor.next();
        self.put_named("CRm", crm);
        self.put_named("op2", op2);
        Ok(())
    }

    fn numbered(&mut self) -> Result<()> {
        let start = self.cursor;
        let name = self.cursor.name().unwrap_or_default();
        let Some(number) = names::numbered_system_register(name) else {
            return self.cursor.expected("a register by its numbers (s3_3_c13_c0_2)");
        };
        self.cursor.next();
        match self.put_bits(0xffff << 5, number << 5) {
            true => Ok(()),
            false => start.expected("a system register that programs may use"),
        }
    }

    fn operation(&mut self) -> Result<()> {
        let start = self.cursor;
        let op1 = self.number_in(0, 7)?;
        self.cursor.expect(",")?;
        let crn = self.control_register()?;
        self.cursor.expect(",")?;
        let crm = self.control_register()?;
        self.cursor.expect(",")?;
        let op2 = self.number_in(0, 7)?;
        match self.put_bits(0x3fff << 5, op1 << 16 | crn << 12 | crm << 8 | op2 << 5) {
            true => Ok(()),
            false => start.expected("the numbers of IC IVAU, DC ZVA, CVAC, CVAU or CIVAC"),
        }
    }

    fn control_register(&mut self) -> Result<u32> {
        match self.cursor.name().and_then(names::control_register) {
            Some(number) => {
                self.cursor.next();
                Ok(number)
            }
            None => self.cursor.expected("c0 to c15"),
        }
    }
}
