//! A small machine for the translated form: it evaluates each instruction with word and address known, and records
//! which memory was touched.

use std::collections::HashMap;
use std::rc::Rc;

use kvrm::{FaultKind, Stop};
use kvrm_a64::state::{CpuState, SP, V, VectorState};
use kvrm_a64::{decode, stop, translated_form};
use kvrm_ir::eval::{End, Inputs, Machine, eval};
use kvrm_ir::{Access, File, Order, Routine, Type, Var};
use kvrm_oracles::{Case, MEMORY_END, State, WINDOW_LEN};

use crate::ours::Ran;

/// A piece of memory that an instruction asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Touch {
    /// The first address.
    pub addr: u64,
    /// Number of bytes; 0 if the address was refused because it is not aligned.
    pub len: u32,
    /// True if it was to be written.
    pub write: bool,
}

impl Touch {
    /// Returns the address after it, or the largest address if it wraps around.
    pub fn end(self) -> u64 {
        self.addr.saturating_add(self.len.into())
    }

    /// True if it lies partly inside and partly after memory.
    pub fn straddles_end(self) -> bool {
        self.addr < MEMORY_END && self.end() > MEMORY_END
    }
}

/// The machine.
pub struct Flat {
    memory: Vec<u8>,
    state: CpuState,
    vectors: VectorState,
    count: u64,
    touches: Vec<Touch>,
    /// The case's code, and what its instructions do, by address: it is often run again.
    code: Vec<u32>,
    routines: HashMap<u64, (u32, Rc<Routine>)>,
}

impl Default for Flat {
    fn default() -> Self {
        Flat::new(MEMORY_END)
    }
}

impl Flat {
    /// Makes a machine with this much memory, the end of which is the data window.
    pub fn new(memory_size: u64) -> Flat {
        Flat {
            memory: vec![0; memory_size as usize],
            state: CpuState::new(),
            vectors: VectorState::new(),
            count: 0,
            touches: Vec::new(),
            code: Vec::new(),
            routines: HashMap::new(),
        }
    }

    fn memory_end(&self) -> u64 {
        self.memory.len() as u64
    }

    fn window(&mut self) -> &mut [u8; WINDOW_LEN] {
        self.memory.last_chunk_mut().expect("memory is larger than the window")
    }

    /// Runs a case to its end; returns its result and what it touched.
    pub fn run(&mut self, case: &Case) -> (Ran, &[Touch]) {
        self.begin(case);
        let end = case.code_address + 4 * case.code.len() as u64;
        let mut stop = None;
        while stop.is_none() && self.state.pc != end && self.count < case.max_instructions.into() {
            stop = self.step();
        }
        let single = case.max_instructions == 1;
        if stop.is_none() && self.state.pc != end && !single {
            stop = Some(Stop::MaxCycles);
        }
        let (pc, count, window) = (self.state.pc, self.count, *self.window());
        let ran = Ran::new(case, stop, &self.oracle_state(), pc, count, |w| {
            w.copy_from_slice(&window);
        });
        self.finish(case);
        (ran, &self.touches)
    }

    fn begin(&mut self, case: &Case) {
        self.touches.clear();
        self.count = 0;
        self.set_state(&case.state, case.code_address);
        *self.window() = case.window;
        if self.code != case.code {
            self.code.clone_from(&case.code);
            self.routines.clear();
        }
        for (i, word) in case.code.iter().enumerate() {
            self.put(case.code_address + 4 * i as u64, 4, (*word).into());
        }
    }

    /// Clears the case's code and what it touched, so that memory is zero outside the window.
    fn finish(&mut self, case: &Case) {
        let start = case.code_address as usize;
        self.memory[start..start + 4 * case.code.len()].fill(0);
        for touch in &self.touches {
            let end = touch.end().min(self.memory.len() as u64);
            if touch.addr < end {
                self.memory[touch.addr as usize..end as usize].fill(0);
            }
        }
    }

    fn get(&self, addr: u64, len: u32) -> u64 {
        let bytes = &self.memory[addr as usize..addr as usize + len as usize];
        bytes.iter().rfold(0, |value, byte| value << 8 | u64::from(*byte))
    }

    fn put(&mut self, addr: u64, len: u32, value: u64) {
        let bytes = &value.to_le_bytes()[..len as usize];
        self.memory[addr as usize..addr as usize + len as usize].copy_from_slice(bytes);
    }

    /// Executes one instruction like `kvrm_engine::step`, but in the translated form.
    fn step(&mut self) -> Option<Stop> {
        let stop = self.execute();
        if stop.is_some_and(|stop| stop.is_exception()) {
            self.state.take_exception();
        }
        stop
    }

    fn execute(&mut self) -> Option<Stop> {
        let pc = self.state.pc;
        let fault = |kind| Stop::Fault { kind, address: pc };
        if !pc.is_multiple_of(4) {
            return Some(fault(FaultKind::Unaligned));
        }
        if pc >= self.memory_end() {
            return Some(fault(FaultKind::Fetch));
        }
        let word = self.get(pc, 4) as u32;
        let Some(routine) = self.routine(word, pc) else {
            return Some(Stop::Undefined { word });
        };
        let next = pc.wrapping_add(4);
        let (stop, goes_to) = match eval(&routine, self) {
            End::Next => (None, Some(next)),
            End::Jump(target) => (None, Some(target)),
            End::Exit { exit, detail } => {
                if exit.reason == stop::UNALIGNED {
                    self.touches.push(Touch { addr: detail, len: 0, write: false });
                }
                (Some(Stop::from_exit(exit.reason, detail)), exit.completes.then_some(next))
            }
            End::Fault { access, addr } => (Some(Stop::from_fault(access, addr)), None),
        };
        if let Some(pc) = goes_to {
            self.count += 1;
            self.state.pc = pc;
        }
        stop
    }

    /// Returns what a word does at an address; `None` if it is not an instruction.
    fn routine(&mut self, word: u32, pc: u64) -> Option<Rc<Routine>> {
        match self.routines.get(&pc) {
            Some((known, routine)) if *known == word => Some(Rc::clone(routine)),
            _ => {
                let routine = Rc::new(translated_form(decode(word)?, word, pc));
                self.routines.insert(pc, (word, Rc::clone(&routine)));
                Some(routine)
            }
        }
    }

    /// Returns the registers as an oracle has them.
    fn oracle_state(&self) -> State {
        let CpuState { x, tpidr_el0, fpcr, fpsr, .. } = self.state;
        State {
            x: std::array::from_fn(|i| x[i]),
            sp: x[SP as usize],
            nzcv: self.state.nzcv(),
            tpidr_el0,
            v: self.vectors.v.map(|[low, high]| u128::from(high) << 64 | u128::from(low)),
            fpcr,
            fpsr,
        }
    }

    /// Sets the registers to an oracle's.
    fn set_state(&mut self, state: &State, pc: u64) {
        let State { x, sp, nzcv, tpidr_el0, v, fpcr, fpsr } = *state;
        self.state = CpuState { pc, tpidr_el0, fpcr, fpsr, ..CpuState::new() };
        self.state.x[..31].copy_from_slice(&x);
        self.state.x[SP as usize] = sp;
        self.state.set_nzcv(nzcv);
        self.vectors.v = v.map(|v| [v as u64, (v >> 64) as u64]);
    }
}

impl Inputs for Flat {
    fn word(&self) -> u32 {
        unreachable!("the translated form knows its word")
    }

    fn param(&self, _: u8) -> u64 {
        unreachable!("rows are not cut")
    }

    fn read_var(&self, var: Var) -> u64 {
        self.state.var(var)
    }
}

impl Machine for Flat {
    fn count(&self) -> u64 {
        self.count
    }

    fn read_reg(&self, file: File, index: u32) -> u64 {
        match file {
            V => self.vectors.half(index),
            _ => self.state.x[index as usize],
        }
    }

    fn write_reg(&mut self, file: File, index: u32, value: u64) {
        match file {
            V => self.vectors.set_half(index, value),
            _ => self.state.x[index as usize] = value,
        }
    }

    fn write_var(&mut self, var: Var, value: u64) {
        self.state.set_var(var, value);
    }

    fn flags(&self) -> [bool; 4] {
        self.state.flags.map(|flag| flag != 0)
    }

    fn set_flags(&mut self, flags: [bool; 4]) {
        self.state.flags = flags.map(u8::from);
    }

    fn probe(&mut self, access: Access, addr: u64, len: u32) -> Result<u64, u64> {
        let write = access != Access::Read;
        self.touches.push(Touch { addr, len, write });
        match addr.checked_add(len.into()) {
            Some(end) if end <= self.memory_end() => Ok(addr),
            _ => Err(addr.max(self.memory_end())),
        }
    }

    fn load(&mut self, ty: Type, _: Order, addr: u64) -> u64 {
        self.get(addr, ty.bytes())
    }

    fn store(&mut self, ty: Type, _: Order, addr: u64, value: u64) {
        self.put(addr, ty.bytes(), value);
    }

    fn cas(&mut self, ty: Type, addr: u64, expected: u64, new: u64) -> u64 {
        let old = self.get(addr, ty.bytes());
        if old == expected {
            self.put(addr, ty.bytes(), new);
        }
        old
    }

    fn cas128(&mut self, addr: u64, expected: [u64; 2], new: [u64; 2]) -> [u64; 2] {
        let old = [self.get(addr, 8), self.get(addr + 8, 8)];
        if old == expected {
            self.put(addr, 8, new[0]);
            self.put(addr + 8, 8, new[1]);
        }
        old
    }

    fn fence(&mut self) {}
}
