//! The state of one machine, as every engine keeps it.

use kvrm_ir::{File, Type, Var};

/// Slot of the zero register in the [`X`] file: always zero.
pub const ZR: u32 = 31;
/// Slot of the stack pointer in the [`X`] file.
pub const SP: u32 = 32;
/// Slot that takes writes to the zero register.
pub const SINK: u32 = 33;
/// Number of slots in the [`X`] file.
pub const X_SLOTS: usize = 34;

/// The general registers: x0 to x30, then [`ZR`], [`SP`] and [`SINK`].
pub const X: File =
    File { id: 0, name: "x", ty: Type::U64, len: X_SLOTS as u32, zero: Some(ZR), sink: Some(SINK) };

/// The vector registers by halves: the lower and upper 64 bits of V0, those of V1, and so on.
pub const V: File =
    File { id: 1, name: "v", ty: Type::U64, len: 2 * V_REGISTERS as u32, zero: None, sink: None };
/// The same registers as wholes, for engines that compute with these.
pub const Q: File =
    File { id: 2, name: "q", ty: Type::U128, len: V_REGISTERS as u32, zero: None, sink: None };
/// Number of vector registers.
pub const V_REGISTERS: usize = 32;

/// One machine's vector registers, each in two halves, the lower one first.
///
/// They are kept apart from [`CpuState`], so that programs without them need not carry them along.
#[derive(Clone, Copy, Debug, PartialEq, Eq, bytemuck::Pod, bytemuck::Zeroable)]
#[repr(C, align(16))]
pub struct VectorState {
    /// V0 to V31.
    pub v: [[u64; 2]; V_REGISTERS],
}

impl VectorState {
    /// All registers zero.
    pub const fn new() -> VectorState {
        VectorState { v: [[0; 2]; V_REGISTERS] }
    }

    /// A slot of the file [`V`].
    pub fn half(&self, slot: u32) -> u64 {
        self.v[slot as usize / 2][slot as usize % 2]
    }

    /// Sets a slot of the file [`V`].
    pub fn set_half(&mut self, slot: u32, value: u64) {
        self.v[slot as usize / 2][slot as usize % 2] = value;
    }

    /// One of the registers, as a whole.
    ///
    /// ```
    /// let mut vectors = kvrm_a64::state::VectorState::new();
    /// vectors.set(3, 7 << 64 | 9);
    /// assert_eq!((vectors.v[3], vectors.get(3)), ([9, 7], 7 << 64 | 9));
    /// let mut all = [0; 32];
    /// vectors.copy_to(&mut all);
    /// assert_eq!(all[3], vectors.get(3));
    /// ```
    pub fn get(&self, n: usize) -> u128 {
        joined(self.v[n])
    }

    /// Sets one of the registers, as a whole.
    pub fn set(&mut self, n: usize, value: u128) {
        self.v[n] = [value as u64, (value >> 64) as u64];
    }

    /// Copies all registers, as wholes.
    pub fn copy_to(&self, values: &mut [u128; V_REGISTERS]) {
        for (value, halves) in values.iter_mut().zip(&self.v) {
            *value = joined(*halves);
        }
    }
}

impl From<&[u128; V_REGISTERS]> for VectorState {
    fn from(values: &[u128; V_REGISTERS]) -> VectorState {
        VectorState { v: values.map(|value| [value as u64, (value >> 64) as u64]) }
    }
}

fn joined([low, high]: [u64; 2]) -> u128 {
    u128::from(low) | u128::from(high) << 64
}

impl Default for VectorState {
    fn default() -> Self {
        VectorState::new()
    }
}

macro_rules! state {
    ($($(#[$doc:meta])* $id:literal $var:ident $field:ident: $ty:ident as $rust:ty;)*) => {
        /// One machine's registers.
        ///
        /// The layout is fixed (`repr(C)`), because translated code works on it directly.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, bytemuck::Pod, bytemuck::Zeroable)]
        #[repr(C)]
        pub struct CpuState {
            /// Slots of the [`X`] file.
            pub x: [u64; X_SLOTS],
            $($(#[$doc])* pub $field: $rust,)*
            /// The flags N, Z, C and V: bytes that are 0 or 1.
            pub flags: [u8; 4],
        }

        $($(#[$doc])* pub const $var: Var =
            Var { id: $id, name: stringify!($field), ty: Type::$ty };)*

        /// Every variable with its byte offset in [`CpuState`], by number.
        pub const VARS: &[(Var, usize)] =
            &[$(($var, std::mem::offset_of!(CpuState, $field)),)*];

        impl CpuState {
            /// A machine at address zero with every register zero.
            pub const fn new() -> CpuState {
                CpuState { x: [0; X_SLOTS], $($field: 0,)* flags: [0; 4] }
            }

            /// Reads a variable.
            pub fn var(&self, var: Var) -> u64 {
                match var.id {
                    $($id => self.$field.into(),)*
                    _ => unreachable!("no such variable"),
                }
            }

            /// Writes a variable.
            pub fn set_var(&mut self, var: Var, value: u64) {
                match var.id {
                    $($id => self.$field = value as $rust,)*
                    _ => unreachable!("no such variable"),
                }
            }
        }
    };
}

state! {
    /// Program counter.
    0 PC pc: U64 as u64;
    /// User-space thread pointer.
    1 TPIDR_EL0 tpidr_el0: U64 as u64;
    /// Thread pointer user space can only read.
    2 TPIDRRO_EL0 tpidrro_el0: U64 as u64;
    /// Floating-point control register.
    3 FPCR fpcr: U64 as u64;
    /// Floating-point status register.
    4 FPSR fpsr: U64 as u64;
    /// Exclusive monitor: the address marked by the last load-exclusive.
    5 EXCLUSIVE_ADDR exclusive_addr: U64 as u64;
    /// Exclusive monitor: what the load-exclusive saw (low half of a pair).
    6 EXCLUSIVE_LOW exclusive_low: U64 as u64;
    /// Exclusive monitor: the high half of a pair.
    7 EXCLUSIVE_HIGH exclusive_high: U64 as u64;
    /// The bits of PSTATE that only MRS and MSR see: [`DIT`] and [`SSBS`].
    8 PSTATE pstate: U64 as u64;
    /// What the virtual counter has beyond the completed instructions.
    9 COUNTER counter: U64 as u64;
    /// Where SVC goes instead of stopping the lane, on engines that know [supervisors](crate::supervised_form): the first
    /// instruction of what serves calls; 0 if nothing does.
    10 SUPERVISOR supervisor: U64 as u64;
    /// Where the program goes on while its supervisor runs; 0 while it runs itself.
    11 CALLER caller: U64 as u64;
    /// X16 of the program while its supervisor runs.
    12 CALLER_X16 caller_x16: U64 as u64;
    /// X17 of the program while its supervisor runs.
    13 CALLER_X17 caller_x17: U64 as u64;
    /// What the counter was when the supervisor was called.
    14 CALLED_AT called_at: U64 as u64;
    /// Exclusive monitor: bytes marked, or 0 if nothing is.
    15 EXCLUSIVE_LEN exclusive_len: U32 as u32;
}

/// The number of PSTATE's bit for timing that does not depend on data, which nothing here does.
pub const DIT: u32 = 24;
/// The number of PSTATE's bit for speculative store bypassing, which nobody here does.
pub const SSBS: u32 = 12;

/// The bits of FPCR that can be written: AHP, DN, FZ, RMode, FZ16. The others are zero.
pub const FPCR_MASK: u64 = 0x07c8_0000;
/// The bits of FPSR that can be written: QC and the cumulative exceptions. The others are zero.
pub const FPSR_MASK: u64 = 0x0800_009f;

impl Default for CpuState {
    fn default() -> Self {
        CpuState::new()
    }
}

impl CpuState {
    /// What an exception does to the registers: it clears the exclusive monitor.
    pub fn take_exception(&mut self) {
        self.exclusive_len = 0;
    }

    /// The flags as the NZCV register holds them: N at bit 31, Z, C, V below it.
    ///
    /// ```
    /// let mut state = kvrm_a64::state::CpuState::new();
    /// state.set_nzcv(0b0110 << 28);
    /// assert_eq!(state.flags, [0, 1, 1, 0]);
    /// assert_eq!(state.nzcv(), 0b0110 << 28);
    /// ```
    pub fn nzcv(&self) -> u64 {
        self.flags.iter().fold(0, |bits, f| bits << 1 | u64::from(*f)) << 28
    }

    /// Sets the flags from bits 31 to 28.
    pub fn set_nzcv(&mut self, nzcv: u64) {
        let bit = |i: u32| (nzcv >> i & 1) as u8;
        self.flags = [bit(31), bit(30), bit(29), bit(28)];
    }
}
