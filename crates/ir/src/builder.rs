//! Building routines.

use std::cell::{Cell, RefCell};
use std::collections::HashMap;

use crate::arith;
use crate::dce;
use crate::flags;
use crate::fold::{self, Folded};
use crate::function::Function;
use crate::legalise::{self, Calls, Lacks};
use crate::op::*;
use crate::val::{Checked, Val};

/// Builds one [`Routine`], simplifying as it goes.
///
/// Values are [`Val`] handles with operators, so that semantics read like formulas:
///
/// ```
/// use kvrm_ir::{Builder, File, Type};
/// let x = File { id: 0, name: "x", ty: Type::U64, len: 34, zero: Some(31), sink: Some(33) };
/// let b = Builder::new(None);
/// let word = b.word();
/// let (rn, rd) = (word.bits(5, 5), word.bits(0, 5));
/// b.write_reg(x, rd, b.read_reg(x, rn) + 1u64);
/// let routine = b.finish();
/// assert_eq!(routine.body.stmts.len(), 7);
///
/// // The same with the word known: field extraction has folded away.
/// let b = Builder::new(Some(0b00010_00001));
/// let word = b.word();
/// let (rn, rd) = (word.bits(5, 5), word.bits(0, 5));
/// b.write_reg(x, rd, b.read_reg(x, rn) + 1u64);
/// assert_eq!(b.finish().body.stmts.len(), 3);
/// ```
pub struct Builder {
    inner: RefCell<Inner>,
    /// Bits of the word that are known, and their values.
    known: Cell<(u32, u32)>,
    /// What must not be built.
    lacks: Lacks,
}

#[derive(Default)]
struct Inner {
    values: Vec<ValueData>,
    places: Vec<PlaceData>,
    constants: HashMap<(Type, u64), Value>,
    /// The block being filled is the last one; those before it are the `if`s around it.
    open: Vec<Vec<Stmt>>,
    end: Terminator,
    /// The word, once read.
    word: Option<Value>,
    facts: Facts,
    /// What a value is the zero extension of.
    extended: HashMap<Value, Value>,
    /// A wide value whose low bits a narrow one is.
    wide: HashMap<Value, Value>,
    /// The halves of a pair.
    pairs: HashMap<Value, [Value; 2]>,
    /// Sums and differences that were computed outside every `if`.
    sums: HashMap<(BinOp, Value, Value), Value>,
}

/// What is known of the lane's state at this point of the routine.
#[derive(Clone, Default)]
struct Facts {
    /// Contents of register slots, by file and number.
    slots: HashMap<(u8, u64), Value>,
    flags: Option<Flags>,
    /// What the producer has noted, by its own numbers.
    notes: HashMap<u8, Value>,
}

impl Facts {
    /// Keeps what is also known after another way here.
    fn meet(&mut self, other: &Facts) {
        self.slots.retain(|slot, value| other.slots.get(slot) == Some(value));
        self.notes.retain(|number, value| other.notes.get(number) == Some(value));
        if self.flags != other.flags {
            self.flags = None;
        }
    }
}

impl Builder {
    /// Starts a routine for an instruction word that is known (everything that depends on it folds)
    /// or not.
    pub fn new(word: Option<u32>) -> Builder {
        Builder::with_known_bits(word.map_or((0, 0), |word| (u32::MAX, word)))
    }

    /// Starts a routine for words of which some bits are known: a mask, and the values under it.
    pub fn with_known_bits(known: (u32, u32)) -> Builder {
        Builder { known: Cell::new(known), ..Builder::for_target(Lacks::default()) }
    }

    /// Starts a routine without operations that a target lacks. No bit of the word is known, until
    /// [`set_word`](Self::set_word) says what it is.
    pub fn for_target(lacks: Lacks) -> Builder {
        let inner = Inner { open: vec![Vec::new()], ..Inner::default() };
        Builder { inner: RefCell::new(inner), known: Cell::new((0, 0)), lacks }
    }

    /// Ends the routine and removes what nothing needs.
    pub fn finish(self) -> Routine {
        self.finish_with(&[])
    }

    /// The same for a routine with results.
    pub(crate) fn finish_with(self, results: &[Value]) -> Routine {
        let (stmts, end) = self.take();
        let Inner { values, places, .. } = self.inner.into_inner();
        let body = Block { stmts, yields: results.to_vec() };
        let mut routine = Routine { body, end, values, places };
        dce::remove_dead(&mut routine);
        routine
    }

    // Several instructions, one after the other.

    /// Goes on with the next instruction, whose word is known.
    pub fn set_word(&self, word: u32) {
        self.known.set((u32::MAX, word));
    }

    /// Takes what was built since the last call: the statements of an instruction, and where control goes
    /// after it. What the builder knows of the lane's state stays.
    pub fn take(&self) -> (Vec<Stmt>, Terminator) {
        let inner = &mut *self.inner.borrow_mut();
        assert_eq!(inner.open.len(), 1, "an if is still open");
        (std::mem::take(&mut inner.open[0]), std::mem::take(&mut inner.end))
    }

    /// The values and places of everything built so far.
    pub fn into_tables(self) -> (Vec<ValueData>, Vec<PlaceData>) {
        let Inner { values, places, .. } = self.inner.into_inner();
        (values, places)
    }

    /// Says what the flags are, without changing them.
    pub fn assume_flags(&self, flags: Flags<Val<'_>>) {
        self.inner.borrow_mut().facts.flags = Some(flags.map(|v| v.value));
    }

    /// Says that a sum or difference is known already.
    pub fn assume<'b>(&'b self, op: BinOp, x: Val<'b>, y: Val<'b>, result: Val<'b>) {
        self.inner.borrow_mut().sums.insert((op, x.value, y.value), result.value);
    }

    /// Forgets what is known of the lane's state: control may come from elsewhere.
    pub fn forget(&self) {
        let inner = &mut *self.inner.borrow_mut();
        inner.facts = Facts::default();
        inner.sums.clear();
    }

    /// The sum or difference of two values, if it was computed.
    pub fn computed(&self, op: BinOp, x: Value, y: Value) -> Option<Value> {
        self.inner.borrow().sums.get(&(op, x, y)).copied()
    }

    /// What is known of the flags.
    pub fn known_flags(&self) -> Option<Flags> {
        self.inner.borrow().facts.flags
    }

    /// The constant slot of a file that is known to hold a value, in its low bits if it is narrower.
    pub fn slot_with(&self, file: File, value: Value) -> Option<u64> {
        let inner = self.inner.borrow();
        let value = inner.wide.get(&value).copied().unwrap_or(value);
        let holds = |((id, slot), held): (&(u8, u64), &Value)| {
            (*id == file.id && *held == value).then_some(*slot)
        };
        inner.facts.slots.iter().filter_map(holds).min()
    }

    /// The handle of a value of this routine.
    pub fn val(&self, value: Value) -> Val<'_> {
        self.handle(value, self.data(value).ty)
    }

    // Values.

    pub(crate) fn handle(&self, value: Value, ty: Type) -> Val<'_> {
        Val { builder: self, value, ty }
    }

    /// A constant.
    pub fn konst(&self, ty: Type, bits: u64) -> Val<'_> {
        let bits = bits & ty.mask();
        let inner = &mut *self.inner.borrow_mut();
        let value = *inner.constants.entry((ty, bits)).or_insert_with(|| {
            inner.values.push(ValueData { ty, constant: Some(bits) });
            Value(inner.values.len() as u32 - 1)
        });
        self.handle(value, ty)
    }

    /// A `bool` constant.
    pub fn bool(&self, value: bool) -> Val<'_> {
        self.konst(Type::Bool, value.into())
    }

    /// A `u32` constant.
    pub fn u32(&self, value: u32) -> Val<'_> {
        self.konst(Type::U32, value.into())
    }

    /// A `u64` constant.
    pub fn u64(&self, value: u64) -> Val<'_> {
        self.konst(Type::U64, value)
    }

    pub(crate) fn data(&self, v: Value) -> ValueData {
        self.inner.borrow().values[v.0 as usize]
    }

    pub(crate) fn new_value(&self, ty: Type) -> Value {
        let mut inner = self.inner.borrow_mut();
        inner.values.push(ValueData { ty, constant: None });
        Value(inner.values.len() as u32 - 1)
    }

    pub(crate) fn push(&self, op: Op, results: Vec<Value>) {
        let mut inner = self.inner.borrow_mut();
        inner.open.last_mut().expect("a block is open").push(Stmt { op, results });
    }

    pub(crate) fn define(&self, op: Op, ty: Type) -> Val<'_> {
        let value = self.new_value(ty);
        self.push(op, vec![value]);
        self.handle(value, ty)
    }

    pub(crate) fn fold_or(
        &self,
        folded: Option<Folded>,
        ty: Type,
        op: impl FnOnce() -> Op,
    ) -> Val<'_> {
        match folded {
            Some(Folded::Const(bits)) => self.konst(ty, bits),
            Some(Folded::Same(value)) => self.handle(value, ty),
            None => self.define(op(), ty),
        }
    }

    /// The instruction word.
    pub fn word(&self) -> Val<'_> {
        if let (u32::MAX, word) = self.known.get() {
            return self.u32(word);
        }
        let known = self.inner.borrow().word;
        match known {
            Some(value) => self.handle(value, Type::U32),
            None => {
                let word = self.define(Op::Word, Type::U32);
                self.inner.borrow_mut().word = Some(word.value);
                word
            }
        }
    }

    /// The `len` bits of the word from `low` on, if they are known.
    pub fn known_bits(&self, low: u32, len: u32) -> Option<u32> {
        let (mask, value) = self.known.get();
        let field = u32::MAX >> (32 - len);
        (mask >> low & field == field).then_some(value >> low & field)
    }

    /// The `len` bits of the word from `low` on: a constant, if they are known.
    pub fn word_bits(&self, low: u32, len: u32) -> Val<'_> {
        match self.known_bits(low, len) {
            Some(bits) => self.u32(bits),
            None => self.word().bits(low, len),
        }
    }

    /// A parameter of a routine that was cut.
    pub(crate) fn param(&self, ty: Type, index: u8) -> Val<'_> {
        self.define(Op::Param(index), ty)
    }

    /// Instructions the lane has completed before this one.
    pub fn count(&self) -> Val<'_> {
        self.define(Op::Count, Type::U64)
    }

    pub(crate) fn unary<'b>(&'b self, op: UnOp, a: Val<'b>) -> Val<'b> {
        let folded = fold::unary(op, self.data(a.value));
        if folded.is_none()
            && let Some(legal) = legalise::unary(&self.lacks, op, a)
        {
            return legal;
        }
        self.fold_or(folded, a.ty, || Op::Unary(op, a.value))
    }

    pub(crate) fn binary<'b>(&'b self, op: BinOp, a: Val<'b>, b: Val<'b>) -> Val<'b> {
        let (da, db) = (self.data(a.value), self.data(b.value));
        let folded = fold::binary(op, (a.value, da), (b.value, db));
        if folded.is_none() {
            let raw = |op, a, b| self.plain_binary(op, a, b);
            if let Some(legal) = legalise::binary(&self.lacks, op, a, b, &raw) {
                return legal;
            }
        }
        self.plain_binary(op, a, b)
    }

    /// A binary operation that the target has.
    fn plain_binary<'b>(&'b self, op: BinOp, a: Val<'b>, b: Val<'b>) -> Val<'b> {
        let (da, db) = (self.data(a.value), self.data(b.value));
        let folded = fold::binary(op, (a.value, da), (b.value, db))
            .or_else(|| self.computed(op, a.value, b.value).map(Folded::Same));
        let result = self.fold_or(folded, a.ty, || Op::Binary(op, a.value, b.value));
        if matches!(op, BinOp::Add | BinOp::Sub) && self.inner.borrow().open.len() == 1 {
            self.assume(op, a, b, result);
        }
        result
    }

    pub(crate) fn compare<'b>(&'b self, op: CmpOp, a: Val<'b>, b: Val<'b>) -> Val<'b> {
        let (da, db) = (self.data(a.value), self.data(b.value));
        let folded = fold::compare(op, (a.value, da), (b.value, db));
        if folded.is_none()
            && let Some(legal) = legalise::compare(&self.lacks, op, a, b)
        {
            return legal;
        }
        self.fold_or(folded, Type::Bool, || Op::Compare(op, a.value, b.value))
    }

    pub(crate) fn convert<'b>(&'b self, op: ConvOp, a: Val<'b>, to: Type) -> Val<'b> {
        if a.ty == to {
            return a;
        }
        if let Some(bits) = self.data(a.value).constant {
            return self.konst(to, arith::convert(op, a.ty, to, bits));
        }
        let narrow = self.inner.borrow().extended.get(&a.value).copied();
        if let (ConvOp::Trunc, Some(narrow)) = (op, narrow)
            && self.data(narrow).ty == to
        {
            return self.handle(narrow, to);
        }
        let result = self.define(Op::Convert(op, a.value), to);
        let inner = &mut *self.inner.borrow_mut();
        match op {
            ConvOp::Trunc => _ = inner.wide.insert(result.value, a.value),
            ConvOp::Zext => {
                inner.extended.insert(result.value, a.value);
                inner.wide.insert(a.value, result.value);
            }
            ConvOp::Sext => {}
        }
        result
    }

    /// Arithmetic on numbers that are bit patterns; the result has that type.
    pub fn float<'b>(&'b self, op: FloatOp, args: &[Val<'b>], to: Type) -> Val<'b> {
        let constants: Option<Vec<u64>> = args.iter().map(|v| v.constant()).collect();
        match constants {
            Some(bits) => self.konst(to, arith::float(op, args[0].ty, to, &bits)),
            None => self.define(Op::Float(op, args.iter().map(|v| v.value).collect()), to),
        }
    }

    // Packed elements.

    /// True if packed elements are wholes rather than halves.
    pub fn has_wholes(&self) -> bool {
        self.lacks.wholes
    }

    /// A whole of two halves.
    pub fn pair<'b>(&'b self, [low, high]: [Val<'b>; 2]) -> Val<'b> {
        let whole = self.define(Op::Pair(low.value, high.value), Type::U128);
        self.inner.borrow_mut().pairs.insert(whole.value, [low.value, high.value]);
        whole
    }

    /// The lower (0) or upper (1) half of a whole.
    pub fn half<'b>(&'b self, whole: Val<'b>, half: usize) -> Val<'b> {
        let known = self.inner.borrow().pairs.get(&whole.value).copied();
        match known {
            Some(halves) => self.handle(halves[half], Type::U64),
            None => self.define(Op::Half(whole.value, half), Type::U64),
        }
    }

    /// An operation on packed elements of a type.
    pub fn packed<'b>(&'b self, op: PackedOp, element: Type, args: &[Val<'b>]) -> Val<'b> {
        let ty = if op == PackedOp::AllOnes { Type::Bool } else { Type::U128 };
        self.define(Op::Packed(op, element, args.iter().map(|v| v.value).collect()), ty)
    }

    /// The results of a function, one set of them for each set of arguments: `args` are these one after the other.
    pub fn call<'b>(&'b self, function: &'static Function, args: &[Val<'b>]) -> Vec<Val<'b>> {
        self.call_and(function, args, |_| {})
    }

    /// The same, with something that is done with results that no shortcut gave.
    pub fn call_and<'b>(
        &'b self,
        function: &'static Function,
        args: &[Val<'b>],
        and: impl FnOnce(&[Val<'b>]),
    ) -> Vec<Val<'b>> {
        let called = || match self.lacks.calls {
            Calls::Plain | Calls::Shortened => self.plain_call(function, args),
            Calls::Single => {
                let calls = args.chunks(function.params.len());
                calls.flat_map(|args| self.plain_call(function, args)).collect()
            }
            Calls::Inlined => {
                let calls = args.chunks(function.params.len());
                calls.flat_map(|args| function.inlined(self, args)).collect()
            }
        };
        let long_way = || {
            let results = called();
            and(&results);
            results
        };
        let shortcut = self.shortens_calls().then(|| function.shortcut(self, args)).flatten();
        let Some(shortcut) = shortcut else { return long_way() };
        let second_look = || {
            let does = function.detour(self, args, &shortcut);
            self.choose(does, || shortcut.results.clone(), long_way)
        };
        self.choose(shortcut.does, || shortcut.results.clone(), second_look)
    }

    /// True if functions are called only where their shortcuts do not do.
    pub fn shortens_calls(&self) -> bool {
        self.lacks.calls == Calls::Shortened
    }

    /// Notes something about the lane's state here, under a number of the producer's own.
    pub fn note(&self, number: u8, value: Val<'_>) {
        self.inner.borrow_mut().facts.notes.insert(number, value.value);
    }

    /// What was noted, unless control may have come from elsewhere since.
    pub fn noted(&self, number: u8) -> Option<Val<'_>> {
        let noted = self.inner.borrow().facts.notes.get(&number).copied();
        noted.map(|value| self.val(value))
    }

    /// Forgets what was noted.
    pub fn forget_note(&self, number: u8) {
        self.inner.borrow_mut().facts.notes.remove(&number);
    }

    /// The same without shortcuts.
    pub fn plain_call<'b>(&'b self, function: &'static Function, args: &[Val<'b>]) -> Vec<Val<'b>> {
        let calls = args.len() / function.params.len();
        let types = function.results.iter().cycle().take(calls * function.results.len());
        let results: Vec<Value> = types.map(|ty| self.new_value(*ty)).collect();
        let args = args.iter().map(|v| v.value).collect();
        self.push(Op::Call(function, args), results.clone());
        results.into_iter().map(|v| self.val(v)).collect()
    }

    // State.

    /// Reads a slot of a register file.
    pub fn read_reg<'b>(&'b self, file: File, index: Val<'b>) -> Val<'b> {
        let Some(slot) = self.data(index.value).constant else {
            return self.define(Op::ReadReg(file, index.value), file.ty);
        };
        if file.zero.map(u64::from) == Some(slot) {
            return self.u64(0);
        }
        let known = self.inner.borrow().facts.slots.get(&(file.id, slot)).copied();
        if let Some(value) = known {
            return self.handle(value, file.ty);
        }
        let read = self.define(Op::ReadReg(file, index.value), file.ty);
        self.inner.borrow_mut().facts.slots.insert((file.id, slot), read.value);
        read
    }

    /// Writes a slot of a register file.
    pub fn write_reg<'b>(&'b self, file: File, index: Val<'b>, value: Val<'b>) {
        let slot = self.data(index.value).constant;
        if slot.is_some() && slot == file.sink.map(u64::from) {
            return;
        }
        self.push(Op::WriteReg(file, index.value, value.value), vec![]);
        let slots = &mut self.inner.borrow_mut().facts.slots;
        match slot {
            Some(slot) => _ = slots.insert((file.id, slot), value.value),
            None => slots.retain(|(id, _), _| *id != file.id),
        }
    }

    /// Reads a variable.
    pub fn read_var(&self, var: Var) -> Val<'_> {
        self.define(Op::ReadVar(var), var.ty)
    }

    /// Writes a variable.
    pub fn write_var<'b>(&'b self, var: Var, value: Val<'b>) {
        self.push(Op::WriteVar(var, value.value), vec![]);
    }

    /// Whether a condition holds.
    pub fn test(&self, cond: Cond) -> Val<'_> {
        let Some(known) = self.known_flags() else {
            return match self.lacks.flag_operands && !Cond::FLAGS.contains(&cond) {
                true => flags::of_bits(Cond::FLAGS.map(|flag| self.test(flag)), cond),
                false => self.define(Op::Test(cond), Type::Bool),
            };
        };
        if let (Cond::Eq | Cond::Ne, Flags::Sub(x, y)) = (cond, known)
            && let Some(difference) = self.computed(BinOp::Sub, x, y)
            && !self.is_held(x)
            && self.is_held(difference)
        {
            // The minuend would have to be kept for this alone.
            return flags::test(self, Flags::Logic(self.val(difference)), cond);
        }
        flags::test(self, known.map(|v| self.val(v)), cond)
    }

    /// True if a register is known to hold the value.
    fn is_held(&self, value: Value) -> bool {
        let inner = self.inner.borrow();
        let wide = inner.wide.get(&value).copied();
        inner.facts.slots.values().any(|held| *held == value || Some(*held) == wide)
    }

    /// Sets the flags.
    pub fn set_flags(&self, flags: Flags<Val<'_>>) {
        let flags = match self.lacks.flag_operands {
            true => Flags::Bits(self.flag_bits(flags)),
            false => flags,
        };
        let flags = flags.map(|v| v.value);
        self.push(Op::SetFlags(flags), vec![]);
        self.inner.borrow_mut().facts.flags = Some(flags);
    }

    /// N, Z, C and V of an operation, as `bool`s.
    pub fn flag_bits<'b>(&'b self, flags: Flags<Val<'b>>) -> [Val<'b>; 4] {
        flags::bits(self, flags)
    }

    // Memory.

    /// Ends the routine with a fault unless `count` elements of type `ty` from `addr` on may be accessed so.
    pub fn probe<'b>(&'b self, access: Access, addr: Val<'b>, ty: Type, count: u32) -> Checked<'b> {
        let place = {
            let places = &mut self.inner.borrow_mut().places;
            places.push(PlaceData { access, ty, count });
            Place(places.len() as u32 - 1)
        };
        self.push(Op::Probe { place, addr: addr.value }, vec![]);
        Checked { builder: self, place, ty }
    }

    /// Orders all of the lane's accesses.
    pub fn fence(&self) {
        self.push(Op::Fence, vec![]);
    }

    // Control.

    /// Stops the lane if `cond` holds.
    pub fn exit_if<'b>(&'b self, cond: Val<'b>, exit: Exit, detail: Val<'b>) {
        if self.data(cond.value).constant == Some(0) {
            return;
        }
        self.push(Op::Exit { exit, cond: cond.value, detail: detail.value }, vec![]);
    }

    /// Ends the routine by stopping the lane.
    pub fn stop<'b>(&'b self, exit: Exit, detail: Val<'b>) {
        self.end(Terminator::Stop { exit, detail: detail.value });
    }

    /// Ends the routine by going to a known address.
    pub fn jump<'b>(&'b self, target: Val<'b>, call: bool) {
        self.end(Terminator::Jump { target: target.value, call });
    }

    /// Ends the routine by going to a known address if `cond` holds.
    pub fn branch_if<'b>(&'b self, cond: Val<'b>, target: Val<'b>) {
        match self.data(cond.value).constant {
            Some(0) => {}
            Some(_) => self.jump(target, false),
            None => self.end(Terminator::Branch { cond: cond.value, target: target.value }),
        }
    }

    /// Ends the routine by going to a computed address.
    pub fn indirect<'b>(&'b self, target: Val<'b>, hint: Hint) {
        self.end(Terminator::Indirect { target: target.value, hint });
    }

    pub(crate) fn end(&self, end: Terminator) {
        let inner = &mut *self.inner.borrow_mut();
        assert_eq!(inner.open.len(), 1, "a routine ends outside every if");
        assert_eq!(inner.end, Terminator::Next, "a routine ends once");
        inner.end = end;
    }

    /// Runs `then` if `cond` holds and `otherwise` if not; both give the same number of values.
    pub fn if_else<'b, const N: usize>(
        &'b self,
        cond: Val<'b>,
        then: impl FnOnce() -> [Val<'b>; N],
        otherwise: impl FnOnce() -> [Val<'b>; N],
    ) -> [Val<'b>; N] {
        let results = self.choose(cond, || then().to_vec(), || otherwise().to_vec());
        std::array::from_fn(|i| results[i])
    }

    /// [`if_else`](Self::if_else) for any number of values.
    pub(crate) fn choose<'b>(
        &'b self,
        cond: Val<'b>,
        then: impl FnOnce() -> Vec<Val<'b>>,
        otherwise: impl FnOnce() -> Vec<Val<'b>>,
    ) -> Vec<Val<'b>> {
        match self.data(cond.value).constant {
            Some(0) => return otherwise(),
            Some(_) => return then(),
            None => {}
        }
        let before = self.inner.borrow().facts.clone();
        let (then, a) = self.nested(then);
        let after_then = std::mem::replace(&mut self.inner.borrow_mut().facts, before.clone());
        let (otherwise, b) = self.nested(otherwise);
        {
            // What an arm has found out holds only there.
            let facts = &mut self.inner.borrow_mut().facts;
            facts.meet(&after_then);
            facts.meet(&before);
        }
        assert_eq!(a.len(), b.len(), "both arms of an if yield as many values");
        let result = |(a, b): (&Val<'b>, &Val<'b>)| {
            assert_eq!(a.ty, b.ty, "both arms of an if yield the same types");
            self.handle(self.new_value(a.ty), a.ty)
        };
        let results: Vec<Val<'b>> = a.iter().zip(&b).map(result).collect();
        let op = Op::If { cond: cond.value, then, otherwise };
        self.push(op, results.iter().map(|v| v.value).collect());
        results
    }

    fn nested<'b>(&'b self, fill: impl FnOnce() -> Vec<Val<'b>>) -> (Block, Vec<Val<'b>>) {
        // Read before the block opens, so that the one `word` value is visible everywhere.
        self.word();
        self.inner.borrow_mut().open.push(Vec::new());
        let yields = fill();
        let stmts = self.inner.borrow_mut().open.pop().expect("pushed above");
        (Block { stmts, yields: yields.iter().map(|v| v.value).collect() }, yields)
    }
}
