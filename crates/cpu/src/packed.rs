//! Numbers and packed elements: operations whose values are in vector registers of the host.
//!
//! A value of the IR has an integer type of the host, or is a vector of bytes. Where a number is computed from numbers,
//! it would go back and forth between two kinds of registers; so what else a value is, is kept in mind ([`Forms`]).

use cranelift::codegen::ir::{ConstantData, Endianness, MemFlagsData};
use cranelift::prelude::*;
use kvrm_ir::{ConvOp, FloatOp, Op, PackedOp, Stmt, Type as IrType, Value as IrValue};
use kvrm_translate::Region;

use crate::hashing::{NumberMap, NumberSet};
use crate::memory::guest_flags;
use crate::translate::{Translator, host_type};

/// What is known of values of the IR beside the host's values for them.
#[derive(Default)]
pub(crate) struct Forms {
    /// The host's number whose bit pattern a value is.
    numbers: NumberMap<IrValue, Value>,
    /// The host's vector that a value has the lowest bits of.
    lowest: NumberMap<IrValue, Value>,
    /// The host's single that a `u64` has in its lower half, below zeros.
    extended: NumberMap<IrValue, Value>,
    /// Values that go to vector registers, below zeros: if they are loaded, then as numbers.
    wanted: NumberSet<IrValue>,
    /// Parameters of handlers as `u64`.
    parameters: NumberMap<IrValue, Value>,
    /// Two conditions that both must hold for one to hold.
    conjunctions: NumberMap<IrValue, [IrValue; 2]>,
}

impl Forms {
    /// The number that a value is known to be.
    pub(crate) fn number(&self, v: IrValue) -> Option<Value> {
        self.numbers.get(&v).copied()
    }

    /// Notes which values of some statements go to vector registers.
    pub(crate) fn note_wanted(&mut self, stmts: &[Stmt], region: &Region) {
        let is_zero = |v: &IrValue| region.values[v.0 as usize].constant == Some(0);
        for stmt in stmts.iter().rev() {
            match &stmt.op {
                Op::Pair(low, high) if is_zero(high) => {
                    self.wanted.insert(*low);
                }
                Op::Convert(ConvOp::Zext, narrow) if self.wanted.contains(&stmt.results[0]) => {
                    self.wanted.insert(*narrow);
                }
                _ => {}
            }
        }
    }

    /// Notes a parameter, as a `u64`.
    pub(crate) fn parameter(&mut self, v: IrValue, number: Value) {
        self.parameters.insert(v, number);
    }

    /// What is known to be a value as a `u64`.
    pub(crate) fn zero_extended(&self, v: IrValue) -> Option<Value> {
        self.parameters.get(&v).copied()
    }

    /// Notes that a condition is two.
    pub(crate) fn conjoined(&mut self, cond: IrValue, both: [IrValue; 2]) {
        self.conjunctions.insert(cond, both);
    }

    /// The two conditions that one is.
    pub(crate) fn conjunction(&self, cond: IrValue) -> Option<[IrValue; 2]> {
        self.conjunctions.get(&cond).copied()
    }

    /// Notes what a conversion leaves of what is known.
    pub(crate) fn converted(&mut self, op: ConvOp, from: IrValue, to: IrValue) {
        match op {
            ConvOp::Trunc => {
                if let Some(whole) = self.lowest.get(&from).copied() {
                    self.lowest.insert(to, whole);
                }
            }
            ConvOp::Zext => {
                if let Some(number) = self.numbers.get(&from).copied() {
                    self.extended.insert(to, number);
                }
            }
            ConvOp::Sext => {}
        }
    }
}

/// Bytes of a vector come in the order that they have in memory.
const BYTES_IN_ORDER: MemFlagsData = MemFlagsData::new().with_endianness(Endianness::Little);

/// The host's type of a number whose bit pattern has a type of the IR.
fn float_type(ty: IrType) -> Type {
    if ty == IrType::U32 { types::F32 } else { types::F64 }
}

/// The host's type of a vector of such elements.
fn vector_type(element: Type) -> Type {
    element.by(128 / element.bits()).expect("the host has vectors of 128 bits")
}

impl Translator<'_> {
    fn cast(&mut self, to: Type, value: Value) -> Value {
        self.b.ins().bitcast(to, BYTES_IN_ORDER, value)
    }

    /// The number whose bit pattern a value is.
    fn number(&mut self, v: IrValue) -> Value {
        if let Some(number) = self.forms.number(v) {
            return number;
        }
        let ty = float_type(self.ty(v));
        match self.forms.lowest.get(&v).copied() {
            Some(whole) => {
                let numbers = self.cast(vector_type(ty), whole);
                self.b.ins().extractlane(numbers, 0)
            }
            None => {
                let bits = self.value(v);
                self.cast(ty, bits)
            }
        }
    }

    /// Notes that a number with its sign inverted is a number, too.
    pub(crate) fn note_negated(&mut self, number: IrValue, mask: IrValue, result: IrValue) {
        let sign = match self.ty(number) {
            IrType::U32 => 1 << 31,
            IrType::U64 => 1 << 63,
            _ => return,
        };
        let inverts_sign = self.region.values[mask.0 as usize].constant == Some(sign);
        if let (true, Some(number)) = (inverts_sign, self.forms.number(number)) {
            let negated = self.b.ins().fneg(number);
            self.forms.numbers.insert(result, negated);
        }
    }

    /// What is stored for a value: the number, if it is in a vector register.
    pub(crate) fn value_or_number(&mut self, v: IrValue) -> Value {
        let is_wide = matches!(self.ty(v), IrType::U32 | IrType::U64);
        let is_number = self.forms.number(v).is_some() || self.forms.lowest.contains_key(&v);
        if is_wide && is_number { self.number(v) } else { self.value(v) }
    }

    /// Loads a value, as a number if it goes to a vector register.
    pub(crate) fn load(&mut self, result: IrValue, at: Value, offset: i32) -> Value {
        let ty = self.ty(result);
        let is_number =
            matches!(ty, IrType::U32 | IrType::U64) && self.forms.wanted.contains(&result);
        if !is_number {
            return self.b.ins().load(host_type(ty), guest_flags(), at, offset);
        }
        let number = self.b.ins().load(float_type(ty), guest_flags(), at, offset);
        self.forms.numbers.insert(result, number);
        self.cast(host_type(ty), number)
    }

    /// What an arm of an `if` yields: a number, where that is wanted.
    pub(crate) fn yielded(&mut self, v: IrValue, as_number: bool) -> Value {
        if as_number { self.number(v) } else { self.value(v) }
    }

    /// What an `if` yields after its arms have met, in the block where they do.
    pub(crate) fn merged(
        &mut self,
        merge: Block,
        results: &[IrValue],
        numbers: &[bool],
    ) -> Vec<Value> {
        let params: Vec<_> = results
            .iter()
            .zip(numbers)
            .map(|(v, is_number)| {
                let ty = self.ty(*v);
                let ty = if *is_number { float_type(ty) } else { host_type(ty) };
                self.b.append_block_param(merge, ty)
            })
            .collect();
        let mut values = Vec::with_capacity(params.len());
        for ((v, is_number), param) in results.iter().zip(numbers).zip(params) {
            values.push(match is_number {
                true => {
                    self.forms.numbers.insert(*v, param);
                    self.cast(host_type(self.ty(*v)), param)
                }
                false => param,
            });
        }
        values
    }

    pub(crate) fn float(&mut self, op: FloatOp, args: &[IrValue], result: IrValue) -> Value {
        let from_integer = matches!(op, FloatOp::FromSigned | FloatOp::FromUnsigned);
        let args: Vec<Value> = args
            .iter()
            .map(|v| if from_integer { self.value(*v) } else { self.number(*v) })
            .collect();
        let ty = self.ty(result);
        let (bits, to) = (host_type(ty), float_type(ty));
        let ins = self.b.ins();
        let number = match op {
            FloatOp::Convert if ty == IrType::U32 => ins.fdemote(to, args[0]),
            FloatOp::Convert => ins.fpromote(to, args[0]),
            FloatOp::FromSigned => ins.fcvt_from_sint(to, args[0]),
            FloatOp::FromUnsigned => ins.fcvt_from_uint(to, args[0]),
            FloatOp::ToSigned => return ins.fcvt_to_sint_sat(bits, args[0]),
            FloatOp::ToUnsigned => return ins.fcvt_to_uint_sat(bits, args[0]),
            FloatOp::Equal => return ins.fcmp(FloatCC::Equal, args[0], args[1]),
            FloatOp::Less => return ins.fcmp(FloatCC::LessThan, args[0], args[1]),
            // Not a number, which no shortcut is content with.
            FloatOp::MulAdd if !self.target.has_fma => return ins.iconst(bits, -1),
            _ => self.arithmetic(op, &args),
        };
        self.forms.numbers.insert(result, number);
        self.cast(bits, number)
    }

    /// Operations on numbers, or on vectors of numbers.
    fn arithmetic(&mut self, op: FloatOp, args: &[Value]) -> Value {
        let ins = self.b.ins();
        match op {
            FloatOp::Add => ins.fadd(args[0], args[1]),
            FloatOp::Sub => ins.fsub(args[0], args[1]),
            FloatOp::Mul => ins.fmul(args[0], args[1]),
            FloatOp::Div => ins.fdiv(args[0], args[1]),
            FloatOp::Sqrt => ins.sqrt(args[0]),
            FloatOp::MulAdd => ins.fma(args[0], args[1], args[2]),
            FloatOp::Equal => ins.fcmp(FloatCC::Equal, args[0], args[1]),
            FloatOp::Less => ins.fcmp(FloatCC::LessThan, args[0], args[1]),
            FloatOp::Convert
            | FloatOp::FromSigned
            | FloatOp::FromUnsigned
            | FloatOp::ToSigned
            | FloatOp::ToUnsigned => unreachable!("conversions are of single numbers"),
        }
    }

    /// A vector of constant bytes.
    fn constant_vector(&mut self, bytes: [u8; 16]) -> Value {
        let bytes = self.b.func.dfg.constants.insert(ConstantData::from(&bytes[..]));
        self.b.ins().vconst(types::I8X16, bytes)
    }

    pub(crate) fn pair(&mut self, low: IrValue, high: IrValue) -> Value {
        let constant = |v: IrValue| self.region.values[v.0 as usize].constant;
        match (constant(low), constant(high)) {
            (Some(low), Some(high)) => {
                let bits = u128::from(low) | u128::from(high) << 64;
                self.constant_vector(bits.to_le_bytes())
            }
            (None, Some(0)) => self.below_zeros(low),
            _ => self.joined(low, high),
        }
    }

    /// A vector of two halves that are not both constant.
    fn joined(&mut self, low: IrValue, high: IrValue) -> Value {
        let wholes = [low, high].map(|v| self.forms.lowest.get(&v).copied());
        if let [Some(a), Some(b)] = wholes {
            // The lower halves of both.
            let order = std::array::from_fn(|i| (i % 8 + i / 8 * 16) as u8);
            return self.rearranged(PackedOp::Shuffle(order), &[a, b]);
        }
        let [low, high] = [low, high].map(|v| self.value(v));
        let pair = self.b.ins().scalar_to_vector(types::I64X2, low);
        let pair = self.b.ins().insertlane(pair, high, 1);
        self.cast(types::I8X16, pair)
    }

    /// A vector with a `u64` in its lower half and zeros in the upper one.
    fn below_zeros(&mut self, low: IrValue) -> Value {
        let numbers = [self.forms.number(low), self.forms.extended.get(&low).copied()];
        if let Some(number) = numbers.into_iter().flatten().next() {
            let ty = vector_type(self.b.func.dfg.value_type(number));
            let zeros = self.constant_vector([0; 16]);
            let zeros = self.cast(ty, zeros);
            let vector = self.b.ins().insertlane(zeros, number, 0);
            return self.cast(types::I8X16, vector);
        }
        if let Some(whole) = self.forms.lowest.get(&low).copied() {
            let lower = self.constant_vector(u128::from(u64::MAX).to_le_bytes());
            return self.b.ins().band(whole, lower);
        }
        let low = self.value(low);
        let vector = self.b.ins().scalar_to_vector(types::I64X2, low);
        self.cast(types::I8X16, vector)
    }

    pub(crate) fn half(&mut self, whole: IrValue, half: usize, result: IrValue) -> Value {
        let whole = self.value(whole);
        if half == 0 {
            self.forms.lowest.insert(result, whole);
        }
        let halves = self.cast(types::I64X2, whole);
        self.b.ins().extractlane(halves, half as u8)
    }

    pub(crate) fn packed(&mut self, op: PackedOp, element: IrType, args: &[IrValue]) -> Value {
        let element = host_type(element);
        let result = match op {
            PackedOp::Splat => {
                let number = self.scalar(element, args[0]);
                self.b.ins().splat(vector_type(element), number)
            }
            PackedOp::Insert(index) => {
                let vector = self.vector(element, args[0]);
                let number = self.scalar(element, args[1]);
                self.b.ins().insertlane(vector, number, index)
            }
            PackedOp::Shl | PackedOp::Shr | PackedOp::Sar => {
                let (vector, amount) = (self.vector(element, args[0]), self.value(args[1]));
                match op {
                    PackedOp::Shl => self.b.ins().ishl(vector, amount),
                    PackedOp::Shr => self.b.ins().ushr(vector, amount),
                    _ => self.b.ins().sshr(vector, amount),
                }
            }
            PackedOp::Float(op) => {
                let number = if element == types::I32 { types::F32 } else { types::F64 };
                self.packed_float(op, number, args)
            }
            PackedOp::AllOnes => {
                let vector = self.vector(element, args[0]);
                let signs = self.b.ins().vhigh_bits(types::I32, vector);
                let all = (1i64 << (128 / element.bits())) - 1;
                return self.b.ins().icmp_imm_u(IntCC::Equal, signs, all);
            }
            PackedOp::Shuffle(_) | PackedOp::Lookup | PackedOp::LookupSmall => {
                let args: Vec<_> = args.iter().map(|v| self.value(*v)).collect();
                return self.rearranged(op, &args);
            }
            _ => {
                let args: Vec<_> = args.iter().map(|v| self.vector(element, *v)).collect();
                self.on_elements(op, element, &args)
            }
        };
        self.cast(types::I8X16, result)
    }

    /// A whole as a vector of elements.
    fn vector(&mut self, element: Type, v: IrValue) -> Value {
        let whole = self.value(v);
        self.cast(vector_type(element), whole)
    }

    /// The low bits of a number, as many as an element has.
    fn scalar(&mut self, element: Type, v: IrValue) -> Value {
        let number = self.value(v);
        match self.b.func.dfg.value_type(number) == element {
            true => number,
            false => self.b.ins().ireduce(element, number),
        }
    }

    fn rearranged(&mut self, op: PackedOp, args: &[Value]) -> Value {
        match op {
            PackedOp::Shuffle(order) => {
                let order = self.b.func.dfg.immediates.push(ConstantData::from(&order[..]));
                self.b.ins().shuffle(args[0], args[1], order)
            }
            PackedOp::LookupSmall if self.target.has_pshufb => {
                self.b.ins().x86_pshufb(args[0], args[1])
            }
            _ => self.b.ins().swizzle(args[0], args[1]),
        }
    }

    fn packed_float(&mut self, op: FloatOp, number: Type, args: &[IrValue]) -> Value {
        if op == FloatOp::MulAdd && !self.target.has_fma {
            return self.constant_vector([0xff; 16]);
        }
        let args: Vec<_> = args
            .iter()
            .map(|v| {
                let whole = self.value(*v);
                self.cast(vector_type(number), whole)
            })
            .collect();
        self.arithmetic(op, &args)
    }

    /// Operations on vectors of elements.
    fn on_elements(&mut self, op: PackedOp, element: Type, args: &[Value]) -> Value {
        let ins = self.b.ins();
        match op {
            PackedOp::Add => ins.iadd(args[0], args[1]),
            PackedOp::Sub => ins.isub(args[0], args[1]),
            PackedOp::Mul => ins.imul(args[0], args[1]),
            PackedOp::UMax => ins.umax(args[0], args[1]),
            PackedOp::UMin => ins.umin(args[0], args[1]),
            PackedOp::SMax => ins.smax(args[0], args[1]),
            PackedOp::SMin => ins.smin(args[0], args[1]),
            PackedOp::Equal => ins.icmp(IntCC::Equal, args[0], args[1]),
            PackedOp::UGreater => ins.icmp(IntCC::UnsignedGreaterThan, args[0], args[1]),
            PackedOp::SGreater => ins.icmp(IntCC::SignedGreaterThan, args[0], args[1]),
            PackedOp::UWidenLow => ins.uwiden_low(args[0]),
            PackedOp::UWidenHigh => ins.uwiden_high(args[0]),
            PackedOp::SWidenLow => ins.swiden_low(args[0]),
            PackedOp::SWidenHigh => ins.swiden_high(args[0]),
            _ => unreachable!("{op:?} of {element} is not done by elements"),
        }
    }
}
