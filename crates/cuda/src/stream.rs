//! Streams: what is done in one happens in order, and waits for nothing else.

use std::ffi::c_void;

use cudarc::driver::result;
use cudarc::driver::sys::{self, CUdeviceptr};

use crate::driver::{Attempt, CudaError, Plain};
use crate::kernel::Control;

/// An engine's stream. Its launches, copies and clearings go through it, so that they happen in order and
/// do not wait for those of other engines on the same device.
///
/// The methods do not check addresses: callers name memory of their buffers.
#[derive(Clone, Copy)]
pub(crate) struct Stream(pub(crate) sys::CUstream);

// SAFETY: a handle of the driver, which is thread-safe.
unsafe impl Send for Stream {}
// SAFETY: as above.
unsafe impl Sync for Stream {}

impl Stream {
    pub(crate) fn new() -> Result<Stream, CudaError> {
        let kind = result::stream::StreamKind::NonBlocking;
        Ok(Stream(result::stream::create(kind).when("creating a stream")?))
    }

    /// Ends the stream; whoever made it must not use it any more.
    pub(crate) fn destroy(self) {
        // SAFETY: made in `new`.
        let _ = unsafe { result::stream::destroy(self.0) };
    }

    /// Waits for all that has been asked of the stream.
    pub(crate) fn wait(self) -> Result<(), CudaError> {
        // SAFETY: the stream is alive.
        unsafe { result::stream::synchronize(self.0) }.when("waiting for the device")
    }

    /// Sets bytes.
    pub(crate) fn fill(self, at: CUdeviceptr, len: u64, byte: u8) -> Result<(), CudaError> {
        // SAFETY: see the type.
        unsafe { sys::cuMemsetD8Async(at, byte, len as usize, self.0) }
            .result()
            .when("clearing memory")
    }

    /// Copies bytes from one place of the device to another.
    pub(crate) fn copy(
        self,
        to: CUdeviceptr,
        from: CUdeviceptr,
        len: u64,
    ) -> Result<(), CudaError> {
        // SAFETY: see the type.
        unsafe { sys::cuMemcpyDtoDAsync_v2(to, from, len as usize, self.0) }
            .result()
            .when("copying device memory")
    }

    /// Copies rows from one place of the device to another where they are farther apart: the places, and the bytes from a row
    /// to the next.
    pub(crate) fn copy_rows(
        self,
        [to, from]: [CUdeviceptr; 2],
        [to_pitch, from_pitch]: [u64; 2],
        rows: u64,
    ) -> Result<(), CudaError> {
        let mut copy = copy_2d::<u8>(from_pitch as usize, (rows * from_pitch) as usize);
        copy.dstMemoryType = sys::CUmemorytype::CU_MEMORYTYPE_DEVICE;
        (copy.srcDevice, copy.srcPitch) = (from, from_pitch as usize);
        (copy.dstDevice, copy.dstPitch) = (to, to_pitch as usize);
        // SAFETY: see the type.
        unsafe { sys::cuMemcpy2DAsync_v2(&copy, self.0) }.result().when("copying device memory")
    }

    /// Sets a 32-bit number in each of `rows` places that are `pitch` bytes apart.
    pub(crate) fn fill_column(
        self,
        at: CUdeviceptr,
        pitch: u64,
        rows: usize,
        value: u32,
    ) -> Result<(), CudaError> {
        // SAFETY: see the type.
        unsafe { sys::cuMemsetD2D32Async(at, pitch as usize, value, 1, rows, self.0) }
            .result()
            .when("setting device memory")
    }

    pub(crate) fn write<T: Plain>(self, to: CUdeviceptr, data: &[T]) -> Result<(), CudaError> {
        // SAFETY: `T` is plain; `data` outlives the copy, which is waited for.
        unsafe { result::memcpy_htod_async(to, data, self.0) }.when("writing device memory")?;
        self.wait()
    }

    pub(crate) fn read<T: Plain>(self, from: CUdeviceptr, data: &mut [T]) -> Result<(), CudaError> {
        // SAFETY: every bit pattern is a `T`; `data` outlives the copy, which is waited for.
        unsafe { result::memcpy_dtoh_async(data, from, self.0) }.when("reading device memory")?;
        self.wait()
    }

    /// Reads rows of `width` elements that are `pitch` bytes apart.
    pub(crate) fn read_rows<T: Plain>(
        self,
        from: CUdeviceptr,
        pitch: u64,
        width: usize,
        rows: &mut [T],
    ) -> Result<(), CudaError> {
        let mut copy = copy_2d::<T>(width, rows.len());
        (copy.srcDevice, copy.srcPitch) = (from, pitch as usize);
        copy.dstMemoryType = sys::CUmemorytype::CU_MEMORYTYPE_HOST;
        (copy.dstHost, copy.dstPitch) = (rows.as_mut_ptr().cast::<c_void>(), copy.WidthInBytes);
        // SAFETY: `rows` has as many rows as are copied, and outlives the copy, which is waited for; every bit
        // pattern is a `T`.
        unsafe { sys::cuMemcpy2DAsync_v2(&copy, self.0) }.result().when("reading device memory")?;
        self.wait()
    }

    /// Writes rows of `width` elements that are `pitch` bytes apart.
    pub(crate) fn write_rows<T: Plain>(
        self,
        to: CUdeviceptr,
        pitch: u64,
        width: usize,
        rows: &[T],
    ) -> Result<(), CudaError> {
        let mut copy = copy_2d::<T>(width, rows.len());
        copy.srcMemoryType = sys::CUmemorytype::CU_MEMORYTYPE_HOST;
        (copy.srcHost, copy.srcPitch) = (rows.as_ptr().cast::<c_void>(), copy.WidthInBytes);
        (copy.dstDevice, copy.dstPitch) = (to, pitch as usize);
        // SAFETY: as in `read_rows`.
        unsafe { sys::cuMemcpy2DAsync_v2(&copy, self.0) }.result().when("writing device memory")?;
        self.wait()
    }
}

/// A copy of `len` elements in rows of `width`; from where and to where is still to be said.
fn copy_2d<T>(width: usize, len: usize) -> sys::CUDA_MEMCPY2D {
    sys::CUDA_MEMCPY2D {
        srcXInBytes: 0,
        srcY: 0,
        srcMemoryType: sys::CUmemorytype::CU_MEMORYTYPE_DEVICE,
        srcHost: std::ptr::null(),
        srcDevice: 0,
        srcArray: std::ptr::null_mut(),
        srcPitch: 0,
        dstXInBytes: 0,
        dstY: 0,
        dstMemoryType: sys::CUmemorytype::CU_MEMORYTYPE_DEVICE,
        dstHost: std::ptr::null_mut(),
        dstDevice: 0,
        dstArray: std::ptr::null_mut(),
        dstPitch: 0,
        WidthInBytes: width * size_of::<T>(),
        Height: len / width,
    }
}

/// Memory of the host that kernels see too: how the two talk while a kernel runs. The driver may be busy
/// then, waiting for that very kernel on behalf of another thread, and is not asked.
pub(crate) struct Mapped {
    host: *mut Control,
    /// Its address for kernels.
    pub(crate) device: CUdeviceptr,
}

// SAFETY: accessed through volatile reads and writes only.
unsafe impl Send for Mapped {}
// SAFETY: as above.
unsafe impl Sync for Mapped {}

impl Drop for Mapped {
    fn drop(&mut self) {
        // SAFETY: allocated in `new`; no kernel runs any more.
        let _ = unsafe { result::free_host(self.host.cast()) };
    }
}

impl Mapped {
    pub(crate) fn new() -> Result<Mapped, CudaError> {
        // SAFETY: plain allocation.
        let host =
            unsafe { result::malloc_host(size_of::<Control>(), sys::CU_MEMHOSTALLOC_DEVICEMAP) }
                .when("allocating mapped memory")?;
        let mut device = 0;
        // SAFETY: writes one address.
        unsafe { sys::cuMemHostGetDevicePointer_v2(&mut device, host, 0) }
            .result()
            .when("mapping memory")?;
        let mapped = Mapped { host: host.cast(), device };
        // SAFETY: as large as a `Control`, and aligned to more.
        unsafe { mapped.host.write_volatile(Control::default()) };
        Ok(mapped)
    }

    /// What kernels have said.
    pub(crate) fn read(&self) -> Control {
        // SAFETY: allocated in `new`.
        unsafe { self.host.read_volatile() }
    }

    /// Asks kernels to end soon, or no longer.
    pub(crate) fn set_cancel(&self, cancel: bool) {
        // SAFETY: allocated in `new`.
        unsafe { (&raw mut (*self.host).cancel).write_volatile(cancel.into()) };
    }
}
