//! One suite for every engine.
//!
//! A test is a function of a [`Subject`](support::Subject): an engine and its settings. The macro
//! [`for_every_engine`] makes a test of it for each of them; a new engine is added there. Those of several
//! lanes with private memory go through [`for_split_engines`], too, and those of what is translated through
//! [`for_llvmpipe`].

/// Makes tests of functions that take a `Subject`, one for each there is.
macro_rules! for_every_engine {
    ($($test:ident),* $(,)?) => {
        for_every_engine! { @module cpu_translating, TRANSLATING, []: $($test)* }
        for_every_engine! { @module cpu_interpreting, INTERPRETING, []: $($test)* }
        for_every_engine! { @module cpu_switching, SWITCHING, []: $($test)* }
        for_every_engine! { @module cpu, CPU, []: $($test)* }
        for_every_engine! { @module eval, EVAL, []: $($test)* }
        for_every_engine! { @module wgpu_interpreting, WGPU_INTERPRETING, []: $($test)* }
        for_every_engine! {
            @module wgpu, WGPU,
            [#[ignore = "takes minutes on a driver of the CPU: cargo xtask gpu-check"]]: $($test)*
        }
        for_every_engine! {
            @module wgpu_switching, WGPU_SWITCHING,
            [#[ignore = "takes minutes on a driver of the CPU: cargo xtask gpu-check"]]: $($test)*
        }
        for_every_engine! {
            @module cuda, CUDA, [#[ignore = "needs an NVIDIA GPU: cargo xtask gpu-check"]]: $($test)*
        }
        for_every_engine! {
            @module cuda_interpreting, CUDA_INTERPRETING,
            [#[ignore = "needs an NVIDIA GPU: cargo xtask gpu-check"]]: $($test)*
        }
        for_every_engine! {
            @module cuda_switching, CUDA_SWITCHING,
            [#[ignore = "needs an NVIDIA GPU: cargo xtask gpu-check"]]: $($test)*
        }
    };
    (@module $module:ident, $subject:ident, $attributes:tt: $($test:ident)*) => {
        mod $module {
            $(for_every_engine! { @test $attributes $test $subject })*
        }
    };
    (@test [$($attribute:tt)*] $test:ident $subject:ident) => {
            $($attribute)*
            #[test]
            fn $test() {
                super::$test(crate::support::Subject::$subject);
            }
    };
}

/// Makes tests of the same functions for lanes that are split over devices.
macro_rules! for_split_engines {
    ($($test:ident),* $(,)?) => {
        for_every_engine! {
            @module cuda_split, CUDA_SPLIT,
            [#[ignore = "needs an NVIDIA GPU: cargo xtask gpu-check"]]: $($test)*
        }
    };
}

/// Makes tests of the same functions for translated code of the engine `wgpu`. Llvmpipe takes long to compile that: tests of
/// what translated code may do wrong are enough.
macro_rules! for_llvmpipe {
    ($($test:ident),* $(,)?) => {
        for_every_engine! { @module llvmpipe_translating, WGPU, []: $($test)* }
        for_every_engine! { @module llvmpipe_switching, WGPU_SWITCHING, []: $($test)* }
    };
}

/// Makes tests of the same functions for lanes whose translations are forgotten again and again.
macro_rules! for_evicting_engines {
    ($($test:ident),* $(,)?) => {
        for_every_engine! { @module cpu_evicting, EVICTING, []: $($test)* }
    };
}

/// Assembles code for [`CODE`](support::CODE): `asm!(; add x0, x0, 1 ; hlt 0)`.
macro_rules! asm {
    ($($code:tt)*) => {{
        use dynasmrt::{DynasmApi as _, DynasmLabelApi as _};
        type Assembler = dynasmrt::VecAssembler<dynasmrt::aarch64::Aarch64Relocation>;
        let mut ops = Assembler::new(crate::support::CODE as usize);
        dynasm::dynasm!(ops ; .arch aarch64 ; ->start: $($code)*);
        ops.align(4, 0);
        ops.finalize().expect("the labels exist")
    }};
}

mod background;
mod blocks;
mod breakpoints;
mod cancelling;
mod changed_code;
mod ciphers;
mod code_memory;
mod counting;
mod errors;
mod exclusives;
mod flags;
mod lanes;
mod many_lanes;
mod mapped_memory;
mod mega;
mod memory;
mod models;
mod much_code;
mod random_programs;
mod registers;
mod shared_code;
mod shared_memory;
mod spans;
mod split;
mod stops;
mod support;
