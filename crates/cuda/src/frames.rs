//! Frames of private memory: a range of device addresses that memory is added to as lanes write.

use cudarc::driver::sys;

use crate::driver::{CudaError, Device};
use crate::memory::FRAME_BYTES;

/// Frames, numbered from the start of an address range that never moves.
pub(crate) struct Frames {
    base: sys::CUdeviceptr,
    reserved: u64,
    mapped: u64,
    pieces: Vec<sys::CUmemGenericAllocationHandle>,
    properties: sys::CUmemAllocationProp,
}

// SAFETY: handles and addresses of the driver, which is thread-safe.
unsafe impl Send for Frames {}

/// The least that is added at a time, and what is left free for the driver and for kernels.
pub(crate) const PIECE: u64 = 256 << 20;
/// The most that is added before it is needed.
const MOST_AHEAD: u64 = 1 << 30;

fn check(what: &'static str, result: sys::CUresult) -> Result<(), CudaError> {
    result.result().map_err(|source| CudaError::Driver { what, source })
}

impl Frames {
    /// Reserves addresses for as many frames as the device could hold; makes none yet.
    pub(crate) fn new(device: &Device) -> Result<Frames, CudaError> {
        let (_, total) = device.memory()?;
        let reserved = total.next_multiple_of(PIECE);
        // SAFETY: a struct of integers, for which zero is the default.
        let mut properties: sys::CUmemAllocationProp = unsafe { std::mem::zeroed() };
        properties.type_ = sys::CUmemAllocationType::CU_MEM_ALLOCATION_TYPE_PINNED;
        properties.location.type_ = sys::CUmemLocationType::CU_MEM_LOCATION_TYPE_DEVICE;
        properties.location.id = device.info.index as i32;
        let mut base = 0;
        // SAFETY: writes one address.
        check("reserving addresses", unsafe {
            sys::cuMemAddressReserve(&mut base, reserved as usize, 0, 0, 0)
        })?;
        Ok(Frames { base, reserved, mapped: 0, pieces: Vec::new(), properties })
    }

    /// Device address of frame 0.
    pub(crate) fn base(&self) -> u64 {
        self.base
    }

    /// How many frames there are.
    pub(crate) fn count(&self) -> u64 {
        self.mapped / FRAME_BYTES
    }

    /// Adds at least so many frames, and more if there are many already, or as many as still fit.
    pub(crate) fn grow(
        &mut self,
        device: &Device,
        frames: u64,
        lanes: usize,
    ) -> Result<(), CudaError> {
        let (free, total) = device.memory()?;
        let room = (free.saturating_sub(PIECE) / PIECE * PIECE).min(self.reserved - self.mapped);
        let wanted = (frames * FRAME_BYTES)
            .max((self.mapped / 4).min(MOST_AHEAD))
            .max(1)
            .next_multiple_of(PIECE);
        let piece = wanted.min(room);
        let full = || {
            let each = self.mapped / lanes as u64;
            let advice = format!(
                "lanes have written more private pages than fit; there is room for {each} bytes written by each of {lanes} lanes: use fewer lanes, several devices or the cpu engine"
            );
            CudaError::Full { wanted, free, total, advice }
        };
        if piece == 0 {
            return Err(full());
        }
        let mut handle = 0;
        // SAFETY: writes one handle.
        match unsafe { sys::cuMemCreate(&mut handle, piece as usize, &self.properties, 0) } {
            // Somebody else was faster, or it is free only in pieces.
            sys::CUresult::CUDA_ERROR_OUT_OF_MEMORY => return Err(full()),
            result => check("allocating frames", result)?,
        }
        let mapped = self.map(handle, piece);
        match mapped {
            Ok(()) => {
                self.pieces.push(handle);
                self.mapped += piece;
            }
            // SAFETY: made above, and not mapped.
            Err(_) => unsafe {
                let _ = sys::cuMemRelease(handle);
            },
        }
        mapped
    }

    /// Makes memory accessible behind what is mapped.
    fn map(&self, handle: sys::CUmemGenericAllocationHandle, bytes: u64) -> Result<(), CudaError> {
        let at = self.base + self.mapped;
        // SAFETY: the addresses are reserved and not mapped yet.
        check("mapping frames", unsafe { sys::cuMemMap(at, bytes as usize, 0, handle, 0) })?;
        let access = sys::CUmemAccessDesc {
            location: self.properties.location,
            flags: sys::CUmemAccess_flags::CU_MEM_ACCESS_FLAGS_PROT_READWRITE,
        };
        // SAFETY: just mapped.
        let accessible = unsafe { sys::cuMemSetAccess(at, bytes as usize, &access, 1) };
        check("mapping frames", accessible).inspect_err(|_| {
            // SAFETY: mapped above; no kernel knows of it.
            let _ = unsafe { sys::cuMemUnmap(at, bytes as usize) };
        })
    }
}

impl Drop for Frames {
    fn drop(&mut self) {
        // SAFETY: nothing runs any more; what was mapped is unmapped and released in order.
        unsafe {
            if self.mapped > 0 {
                let _ = sys::cuMemUnmap(self.base, self.mapped as usize);
            }
            for handle in &self.pieces {
                let _ = sys::cuMemRelease(*handle);
            }
            let _ = sys::cuMemAddressFree(self.base, self.reserved as usize);
        }
    }
}
