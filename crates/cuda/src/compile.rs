//! Compiling PTX with the driver's linker, which gives the machine code away.
//!
//! Loading PTX as a module would compile it, too, but keep the result to the driver.

use std::ffi::{CStr, CString, c_void};
use std::ptr;

use cudarc::driver::DriverError;
use cudarc::driver::sys::{self, CUjit_option, CUjitInputType};

use crate::driver::{Attempt, CudaError};

/// Room for what the compiler objects to.
const LOG_BYTES: usize = 8 << 10;

/// The linker's state.
struct Linker(sys::CUlinkState);

impl Drop for Linker {
    fn drop(&mut self) {
        // SAFETY: created in `compile`.
        let _ = unsafe { sys::cuLinkDestroy(self.0) };
    }
}

/// Compiles PTX for the current device, to a cubin.
pub(crate) fn compile(ptx: &str) -> Result<Vec<u8>, CudaError> {
    let text = CString::new(ptx).expect("PTX has no zero bytes");
    let mut log = vec![0u8; LOG_BYTES];
    let mut options =
        [CUjit_option::CU_JIT_ERROR_LOG_BUFFER, CUjit_option::CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES];
    // Numbers are passed in the place of pointers. Until the linker is destroyed, the driver writes into
    // the log, and into the second value how much that is.
    let mut values: [*mut c_void; 2] =
        [log.as_mut_ptr().cast(), ptr::without_provenance_mut(LOG_BYTES)];
    let mut state = ptr::null_mut();
    // SAFETY: two options with their values, which outlive the linker.
    unsafe { sys::cuLinkCreate_v2(2, options.as_mut_ptr(), values.as_mut_ptr(), &mut state) }
        .result()
        .when("creating a linker")?;
    let linker = Linker(state);
    let linked = link(&linker, &text);
    drop(linker);
    linked.map_err(|source| CudaError::Compile { source, log: text_of(&log) })
}

fn link(linker: &Linker, ptx: &CStr) -> Result<Vec<u8>, DriverError> {
    let data = ptx.to_bytes_with_nul();
    // SAFETY: the driver only reads the text, whose length includes the final zero, and keeps nothing of
    // it; there are no options.
    unsafe {
        sys::cuLinkAddData_v2(
            linker.0,
            CUjitInputType::CU_JIT_INPUT_PTX,
            data.as_ptr().cast_mut().cast(),
            data.len(),
            c"kvrm".as_ptr(),
            0,
            ptr::null_mut(),
            ptr::null_mut(),
        )
    }
    .result()?;
    let (mut cubin, mut len) = (ptr::null_mut(), 0);
    // SAFETY: writes an address and a length.
    unsafe { sys::cuLinkComplete(linker.0, &mut cubin, &mut len) }.result()?;
    // SAFETY: that many bytes, which the linker owns until it is destroyed.
    Ok(unsafe { std::slice::from_raw_parts(cubin.cast::<u8>(), len) }.to_vec())
}

/// What the compiler has written, up to the first zero.
fn text_of(log: &[u8]) -> String {
    let written = log.split(|byte| *byte == 0).next().unwrap_or_default();
    String::from_utf8_lossy(written).trim_end().to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_log_ends_at_the_first_zero() {
        assert_eq!(text_of(b"line 1: no\n\0\0x"), "line 1: no");
        assert_eq!(text_of(b"full"), "full");
        assert_eq!(text_of(b"\0"), "");
    }
}
