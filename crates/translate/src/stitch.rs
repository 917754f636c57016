//! From words to a region: instructions of a block are built one after the other by one builder, which
//! forwards what it knows of registers and flags from each to the next.

use std::collections::{HashMap, HashSet};

use kvrm_a64::state::X;
use kvrm_a64::{build, decode};
use kvrm_ir::legalise::Lacks;
use kvrm_ir::{Builder, Cond, Flags, Op, Stmt, Terminator, Type, Val, Value};

use crate::checks::merge;
use crate::flags::operand_var;
use crate::trim::trim;
use crate::{
    Block, End, ExitFlags, Form, Goto, GuestCode, Insn, Kind, Limits, Operand, Region, Slots,
    Source, slot_number,
};

/// Versions of one block of guest code, by the form in which it finds the flags.
const VERSIONS: usize = 3;
/// Instructions in a small region, at the most.
const SMALL: usize = 40;
/// Known return addresses that a return is compared with.
const RETURN_SITES: usize = 4;

impl Region {
    /// Makes one routine of the code, without operations that the target lacks.
    ///
    /// ```
    /// use kvrm_translate::{GuestCode, Goto, End, Region};
    /// // loop: subs x0, x0, #1; b.ne loop
    /// let fetch = |pc: u64| [0xf1000400, 0x54ffffe1].get(pc as usize / 4).copied();
    /// let region = Region::new(&GuestCode::find(0, fetch, |_, _| true), kvrm_ir::legalise::Lacks::default());
    /// let End::Branch { taken, .. } = &region.blocks[0].end else { panic!() };
    /// // The second time round, the flags are those of the subtraction.
    /// assert_eq!(*taken, Goto::Block(1));
    /// ```
    pub fn new(code: &GuestCode, lacks: Lacks) -> Region {
        Region::merged(code, lacks, Limits::default())
    }

    /// The same; checks of accesses near each other are merged within limits.
    pub fn merged(code: &GuestCode, lacks: Lacks, limits: Limits) -> Region {
        let b = Builder::for_target(lacks);
        let is_small = code.words.len() <= SMALL;
        let mut stitcher = Stitcher {
            b: &b,
            code,
            blind: if is_small { HashSet::new() } else { blind_blocks(code, lacks) },
            blocks: Vec::new(),
            versions: HashMap::new(),
            pending: Vec::new(),
        };
        stitcher.version(code.entry, Form::Stored);
        while let Some(number) = stitcher.pending.pop() {
            stitcher.fill(number);
        }
        let mut blocks = stitcher.blocks;
        find_dirty_registers(&mut blocks, &b);
        let (values, places) = b.into_tables();
        let checks = merge(&blocks, &values, &places, limits);
        blocks.iter_mut().for_each(|block| trim(block, &values, &checks));
        let loops = has_loop(&blocks);
        Region { blocks, values, places, checks, loops, is_small }
    }
}

struct Stitcher<'a> {
    b: &'a Builder,
    code: &'a GuestCode,
    /// Beginnings of blocks that do not look at the flags they find, if those may be left in the lane's state.
    blind: HashSet<u64>,
    blocks: Vec<Block>,
    /// Blocks with instructions, by address and form of the flags.
    versions: HashMap<(u64, Form), usize>,
    /// Blocks that have still to be filled.
    pending: Vec<usize>,
}

impl<'a> Stitcher<'a> {
    // Blocks.

    /// The block at an address for flags in that form.
    fn version(&mut self, pc: u64, form: Form) -> usize {
        if let Some(number) = self.versions.get(&(pc, form)) {
            return *number;
        }
        let number = self.add(pc, form);
        self.versions.insert((pc, form), number);
        self.pending.push(number);
        number
    }

    /// An empty block.
    fn add(&mut self, pc: u64, flags: Form) -> usize {
        self.blocks.push(Block {
            pc,
            flags,
            dirty: 0,
            head: Vec::new(),
            insns: Vec::new(),
            tail: Vec::new(),
            flags_after: ExitFlags::Stored,
            leaves_flags: false,
            end: End::Done(pc),
        });
        self.blocks.len() - 1
    }

    fn fill(&mut self, number: usize) {
        let (pc, form) = (self.blocks[number].pc, self.blocks[number].flags);
        self.begin(form);
        let (head, _) = self.b.take();
        let mut insns = Vec::new();
        let mut end = Terminator::Next;
        let mut undefined = None;
        for (pc, word) in self.code.block(pc) {
            let flags = self.exit_flags();
            match decode(word) {
                Some(instruction) => build(self.b, instruction, word, pc),
                None => undefined = Some(word),
            }
            let (mut stmts, after) = self.b.take();
            // What they are the flags of is known; only bits have to be put somewhere.
            stmts.retain(|stmt| !sets_lazily(stmt));
            insns.push(Insn { pc, flags, stmts });
            end = after;
        }
        let next = insns.last().map_or(pc, |insn| insn.pc.wrapping_add(4));
        let flags_after = self.exit_flags();
        let leaves_flags = flags_after != ExitFlags::Stored && self.all_are_blind(&end, next);
        let form = if leaves_flags { Form::Stored } else { self.form() };
        let (tail, _) = self.b.take();
        let end = match undefined {
            Some(word) => End::Undefined(word),
            None => self.end(end, next, form),
        };
        let block = &mut self.blocks[number];
        (block.head, block.leaves_flags) = (head, leaves_flags);
        (block.insns, block.tail, block.flags_after, block.end) = (insns, tail, flags_after, end);
    }

    fn end(&mut self, end: Terminator, next: u64, form: Form) -> End {
        match end {
            Terminator::Next if self.code.is_straight => End::Done(next),
            Terminator::Next => End::Jump(self.goto(next, form)),
            Terminator::Jump { target, .. } => {
                let target = self.known(target);
                End::Jump(self.goto(target, form))
            }
            Terminator::Branch { cond, target } => {
                let target = self.known(target);
                let [taken, otherwise] = [target, next].map(|pc| self.goto(pc, form));
                End::Branch { cond, taken, otherwise }
            }
            Terminator::Indirect { target, .. } => {
                let sites = self.code.return_sites.iter().take(RETURN_SITES);
                let site = |pc: &u64| (*pc, self.within(*pc, form));
                End::Indirect { target, sites: sites.map(site).collect() }
            }
            Terminator::Stop { exit, detail } => End::Stop { exit, detail },
        }
    }

    /// True if no block of the region that may come next looks at the flags it finds.
    fn all_are_blind(&self, end: &Terminator, next: u64) -> bool {
        let is_blind = |pc: &u64| self.blind.contains(pc) || !self.code.words.contains_key(pc);
        match end {
            _ if self.blind.is_empty() => false,
            Terminator::Next => is_blind(&next),
            Terminator::Jump { target, .. } => is_blind(&self.known(*target)),
            Terminator::Branch { target, .. } => is_blind(&next) && is_blind(&self.known(*target)),
            Terminator::Indirect { .. } => {
                self.code.return_sites.iter().take(RETURN_SITES).all(is_blind)
            }
            Terminator::Stop { .. } => false,
        }
    }

    fn known(&self, target: Value) -> u64 {
        self.b.val(target).constant().expect("words and their addresses are known")
    }

    // Ways from block to block.

    /// The way to an address, with the flags in that form.
    fn goto(&mut self, pc: u64, form: Form) -> Goto {
        if !self.code.is_straight && self.code.words.contains_key(&pc) {
            return Goto::Block(self.within(pc, form));
        }
        Goto::Leave(pc)
    }

    /// The block for an address of the region. One that does not look at the flags is reached by a detour on which they
    /// are left in the lane's state; one with versions enough, by a detour on which their operands are put where it
    /// expects them.
    fn within(&mut self, pc: u64, form: Form) -> usize {
        if self.blind.contains(&pc) && form != Form::Stored {
            return self.leave_flags(pc, form);
        }
        let existing = self.versions.keys().filter(|(at, _)| *at == pc).count();
        let is_new = !self.versions.contains_key(&(pc, form));
        if !is_new || existing < VERSIONS || form == form.kept() {
            return self.version(pc, form);
        }
        let goal = self.version(pc, form.kept());
        let detour = self.add(pc, form);
        self.begin(form);
        if let Form::Lazy { ty, operands, .. } = form {
            for (index, operand) in operands.into_iter().enumerate() {
                self.keep(index, self.operand(ty, operand, index).value());
            }
        }
        (self.blocks[detour].tail, _) = self.b.take();
        self.blocks[detour].end = End::Jump(Goto::Block(goal));
        detour
    }

    fn leave_flags(&mut self, pc: u64, form: Form) -> usize {
        let goal = self.version(pc, Form::Stored);
        let detour = self.add(pc, form);
        self.begin(form);
        let block = &mut self.blocks[detour];
        (block.leaves_flags, block.end) = (true, End::Jump(Goto::Block(goal)));
        self.blocks[detour].flags_after = self.exit_flags();
        (self.blocks[detour].tail, _) = self.b.take();
        detour
    }

    fn keep(&self, index: usize, operand: Value) {
        let operand = self.b.val(operand);
        self.b.write_var(operand_var(operand.ty(), index), operand);
    }

    // Flags.

    /// Starts a block that finds the flags in that form.
    fn begin(&self, form: Form) {
        self.b.forget();
        match form {
            Form::Stored => {
                self.b.assume_flags(Flags::Bits(Cond::FLAGS.map(|flag| self.b.test(flag))));
            }
            Form::Lazy { kind, ty, operands } => {
                let [x, y] = [0, 1].map(|i| self.operand(ty, operands[i], i));
                // Exits and comparisons can do with the result, if a register holds that.
                if let ([Operand::Reg { slot, .. }, Operand::Const(_)], Some(op)) =
                    (operands, kind.operation())
                    && self.b.slot_with(X, x.value()).is_none()
                {
                    self.b.assume(op, x, y, self.register(slot).trunc(ty));
                }
                self.b.assume_flags(kind.of(x, y));
            }
        }
    }

    fn register(&self, slot: u64) -> Val<'a> {
        self.b.read_reg(X, self.b.u32(slot as u32))
    }

    fn operand(&self, ty: Type, operand: Operand, index: usize) -> Val<'a> {
        match operand {
            Operand::Kept => self.b.read_var(operand_var(ty, index)),
            Operand::Const(bits) => self.b.konst(ty, bits),
            Operand::Reg { slot, plus } => self.register(slot).trunc(ty) + plus,
        }
    }

    /// The flags here, for an exit.
    fn exit_flags(&self) -> ExitFlags {
        let (kind, x, y) = match self.b.known_flags() {
            None | Some(Flags::Bits(_)) => return ExitFlags::Stored,
            Some(Flags::Add(x, y)) => (Kind::Add, x, y),
            Some(Flags::Sub(x, y)) => (Kind::Sub, x, y),
            Some(Flags::Logic(x)) => {
                let x = self.b.val(x);
                (Kind::Logic, x.value(), self.b.konst(x.ty(), 0).value())
            }
        };
        let operands = [self.first_source(kind, x, y), self.source(y)];
        ExitFlags::Lazy { kind, ty: self.b.val(x).ty(), operands }
    }

    fn source(&self, v: Value) -> Source {
        match self.b.val(v).constant() {
            Some(bits) => Source::Const(bits),
            None => Source::Value(v),
        }
    }

    /// The first operand: from the result, if a register holds that instead and the second is a constant.
    fn first_source(&self, kind: Kind, x: Value, y: Value) -> Source {
        let plain = self.source(x);
        let (Some(op), Some(_)) = (kind.operation(), self.b.val(y).constant()) else {
            return plain;
        };
        match self.b.computed(op, x, y) {
            Some(result)
                if plain == Source::Value(x)
                    && self.b.slot_with(X, x).is_none()
                    && self.b.slot_with(X, result).is_some() =>
            {
                Source::Result(result)
            }
            _ => plain,
        }
    }

    /// The form of the flags for the next block; what has to be kept for it is written to variables.
    fn form(&self) -> Form {
        let ExitFlags::Lazy { kind, ty, operands } = self.exit_flags() else {
            return Form::Stored;
        };
        let less = match (kind, operands[1]) {
            (Kind::Add, Source::Const(bits)) => bits.wrapping_neg(),
            (Kind::Sub, Source::Const(bits)) => bits,
            _ => 0,
        };
        let operands = std::array::from_fn(|index| match operands[index] {
            Source::Const(bits) => Operand::Const(bits),
            Source::Value(v) => match self.b.slot_with(X, v) {
                Some(slot) => Operand::Reg { slot, plus: 0 },
                None => {
                    self.keep(index, v);
                    Operand::Kept
                }
            },
            Source::Result(v) => {
                let slot = self.b.slot_with(X, v).expect("a register holds it");
                Operand::Reg { slot, plus: less & ty.mask() }
            }
        });
        Form::Lazy { kind, ty, operands }
    }
}

/// The beginnings of blocks that do not look at the flags they find.
fn blind_blocks(code: &GuestCode, lacks: Lacks) -> HashSet<u64> {
    let b = Builder::for_target(lacks);
    code.leaders.iter().copied().filter(|pc| !looks_at_flags(&b, code, *pc)).collect()
}

fn looks_at_flags(b: &Builder, code: &GuestCode, pc: u64) -> bool {
    b.forget();
    let found = Cond::FLAGS.map(|flag| b.test(flag));
    b.assume_flags(Flags::Bits(found));
    b.take();
    let found = found.map(|flag| flag.value());
    let mut looks = false;
    for (pc, word) in code.block(pc) {
        if let Some(instruction) = decode(word) {
            build(b, instruction, word, pc);
        }
        let (stmts, end) = b.take();
        let mut look = |v: &Value| looks |= found.contains(v);
        stmts.iter().for_each(|stmt| {
            crate::visit(stmt, &mut |stmt| stmt.op.for_each_operand(&mut look));
        });
        end.for_each_operand(&mut look);
    }
    looks
}

fn sets_lazily(stmt: &Stmt) -> bool {
    matches!(stmt.op, Op::SetFlags(Flags::Add(..) | Flags::Sub(..) | Flags::Logic(_)))
}

/// Finds for every block the registers that some way to it has written.
fn find_dirty_registers(blocks: &mut [Block], b: &Builder) {
    let written: Vec<Slots> = blocks.iter().map(|block| written(block, b)).collect();
    let mut pending = vec![(0, 0)];
    let mut reached = vec![false; blocks.len()];
    while let Some((number, incoming)) = pending.pop() {
        let block = &mut blocks[number];
        let merged = block.dirty | incoming;
        if std::mem::replace(&mut reached[number], true) && merged == block.dirty {
            continue;
        }
        block.dirty = merged;
        let outgoing = merged | written[number];
        block.end.for_each_next(|next| pending.push((next, outgoing)));
    }
}

/// True if some block can be reached from itself: none is left once those are taken away that no other leads to, then
/// those that no other of the rest leads to, and so on.
fn has_loop(blocks: &[Block]) -> bool {
    let mut ways = vec![0; blocks.len()];
    blocks.iter().for_each(|block| block.end.for_each_next(|next| ways[next] += 1));
    let mut free: Vec<usize> = (0..blocks.len()).filter(|number| ways[*number] == 0).collect();
    let mut taken = 0;
    while let Some(number) = free.pop() {
        taken += 1;
        blocks[number].end.for_each_next(|next| {
            ways[next] -= 1;
            if ways[next] == 0 {
                free.push(next);
            }
        });
    }
    taken < blocks.len()
}

/// The register slots that a block writes.
fn written(block: &Block, b: &Builder) -> Slots {
    let mut slots = 0;
    for stmt in block.insns.iter().flat_map(|insn| &insn.stmts) {
        crate::visit(stmt, &mut |stmt| {
            if let Op::WriteReg(file, index, _) = stmt.op {
                let slot = b.val(index).constant().expect("slots are known");
                slots |= 1 << slot_number(file, slot);
            }
        });
    }
    slots
}
