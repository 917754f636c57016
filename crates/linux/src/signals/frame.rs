//! What is on the stack of a handler: `struct rt_sigframe` of ARM64's Linux, and the frame record below it.

use kvrm_a64::state::{CpuState, DIT, FPCR_MASK, FPSR_MASK, SP, SSBS, VectorState};

use super::{Info, SignalStack, Signals};

const FRAME: usize = CONTEXT + 176 + 288 + 4096;
/// Where `ucontext` is, behind `siginfo`.
pub(super) const CONTEXT: usize = 128;
const STACK: usize = CONTEXT + 16;
const MASK: usize = CONTEXT + 40;
const FAULT_ADDRESS: usize = CONTEXT + 176;
const REGISTERS: usize = FAULT_ADDRESS + 8;
const STACK_POINTER: usize = REGISTERS + 31 * 8;
const PROGRAM_COUNTER: usize = STACK_POINTER + 8;
const STATE: usize = PROGRAM_COUNTER + 8;
const EXTENSIONS: usize = FAULT_ADDRESS + 288;

/// `FPSIMD_MAGIC` and the size of `struct fpsimd_context`.
const VECTORS: (u32, u32) = (0x4650_8001, 528);

/// The bits of PSTATE beside the flags that programs have.
const STATE_BITS: u64 = 1 << DIT | 1 << SSBS;

/// What the interrupted code had.
pub(super) struct Interrupted {
    pub(super) registers: CpuState,
    pub(super) vectors: VectorState,
    pub(super) mask: Signals,
    pub(super) stack: SignalStack,
}

/// Sixteen-byte aligned room for a frame below an address.
pub(super) fn room_below(sp: u64) -> u64 {
    (sp.wrapping_sub(16) & !15).wrapping_sub(FRAME as u64)
}

/// The bytes of a frame, the frame record last.
pub(super) fn build(interrupted: &Interrupted, info: &Info, fault: u64) -> Vec<u8> {
    let mut frame = vec![0; FRAME + 16];
    let mut put = |at: usize, bytes: &[u8]| frame[at..at + bytes.len()].copy_from_slice(bytes);
    let CpuState { x, pc, .. } = interrupted.registers;
    put(0, &info.bytes());
    let SignalStack { start, len, .. } = interrupted.stack;
    put(STACK, &start.to_le_bytes());
    put(STACK + 8, &stack_flags(&interrupted.stack, x[SP as usize]).to_le_bytes());
    put(STACK + 16, &len.to_le_bytes());
    put(MASK, &interrupted.mask.bits().to_le_bytes());
    put(FAULT_ADDRESS, &fault.to_le_bytes());
    for (i, value) in x.iter().take(31).enumerate() {
        put(REGISTERS + 8 * i, &value.to_le_bytes());
    }
    put(STACK_POINTER, &x[SP as usize].to_le_bytes());
    put(PROGRAM_COUNTER, &pc.to_le_bytes());
    let state = interrupted.registers.nzcv() | interrupted.registers.pstate & STATE_BITS;
    put(STATE, &state.to_le_bytes());
    put(EXTENSIONS, &VECTORS.0.to_le_bytes());
    put(EXTENSIONS + 4, &VECTORS.1.to_le_bytes());
    put(EXTENSIONS + 8, &(interrupted.registers.fpsr as u32).to_le_bytes());
    put(EXTENSIONS + 12, &(interrupted.registers.fpcr as u32).to_le_bytes());
    put(EXTENSIONS + 16, bytemuck::bytes_of(&interrupted.vectors));
    put(FRAME, &x[29].to_le_bytes());
    put(FRAME + 8, &x[30].to_le_bytes());
    frame
}

/// `ss_flags` of a stack, for code with that stack pointer.
pub(crate) fn stack_flags(stack: &SignalStack, sp: u64) -> u32 {
    const ON_STACK: u32 = linux_raw_sys::general::SS_ONSTACK;
    const DISABLE: u32 = linux_raw_sys::general::SS_DISABLE;
    const AUTO_DISARM: u32 = linux_raw_sys::general::SS_AUTODISARM;
    let place = match stack {
        SignalStack { len: 0, .. } => DISABLE,
        stack if stack.has(sp) => ON_STACK,
        _ => 0,
    };
    place | if stack.disarms { AUTO_DISARM } else { 0 }
}

/// What a handler's frame says, which it may have changed; `None` if the frame is not one.
pub(super) fn parse(frame: &[u8], now: &CpuState) -> Option<Interrupted> {
    let word = |at: usize| {
        let bytes = frame.get(at..at + 8)?;
        Some(u64::from_le_bytes(bytes.try_into().expect("eight bytes")))
    };
    let half = |at: usize| word(at).map(|word| word as u32);
    let mut registers = *now;
    for (i, value) in registers.x.iter_mut().take(31).enumerate() {
        *value = word(REGISTERS + 8 * i)?;
    }
    registers.x[SP as usize] = word(STACK_POINTER)?;
    registers.pc = word(PROGRAM_COUNTER)?;
    registers.set_nzcv(word(STATE)?);
    registers.pstate = word(STATE)? & STATE_BITS;
    registers.take_exception();
    if (half(EXTENSIONS)?, half(EXTENSIONS + 4)?) != VECTORS {
        return None;
    }
    registers.fpsr = u64::from(half(EXTENSIONS + 8)?) & FPSR_MASK;
    registers.fpcr = u64::from(half(EXTENSIONS + 12)?) & FPCR_MASK;
    let vectors = bytemuck::pod_read_unaligned(frame.get(EXTENSIONS + 16..EXTENSIONS + 16 + 512)?);
    let mask = Signals::blockable(word(MASK)?);
    let disarms = half(STACK + 8)? & linux_raw_sys::general::SS_AUTODISARM != 0;
    let is_off = half(STACK + 8)? & linux_raw_sys::general::SS_DISABLE != 0;
    let len = if is_off { 0 } else { word(STACK + 16)? };
    let stack = SignalStack { start: word(STACK)?, len, disarms };
    Some(Interrupted { registers, vectors, mask, stack })
}

/// Bytes that `parse` needs.
pub(super) const PARSED: usize = FRAME;
