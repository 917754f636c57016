//! Arrays on the device that the host looks into and changes.

use std::cell::{Cell, RefCell};
use std::ops::Range;

use crate::driver::{Buffer, CudaError, Device, Plain};
use crate::guest::TOO_MUCH;

/// From this many elements on, copying all is faster than copying each.
pub(crate) const MANY: usize = 64;

/// An array on the device with a copy on the host. Nothing is copied before it is needed: what kernels
/// wrote when the host looks, what the host changed before the next launch.
pub(crate) struct Mirror<T> {
    device: Buffer,
    host: RefCell<Vec<T>>,
    /// Kernels have written the array since it was copied here.
    stale: Cell<bool>,
    /// All that the host has changed is in here.
    changed: Range<usize>,
}

impl<T: Plain> Mirror<T> {
    /// An array of that many equal elements.
    pub(crate) fn new(device: &Device, element: T, len: usize) -> Result<Self, CudaError> {
        let host = vec![element; len];
        let bytes = size_of_val(&host[..]) as u64;
        let device = Buffer::new(device, bytes, |_| TOO_MUCH.to_string())?;
        Ok(Mirror { device, host: RefCell::new(host), stale: Cell::new(false), changed: 0..len })
    }

    /// Where the array is on the device.
    pub(crate) fn address(&self) -> u64 {
        self.device.address
    }

    fn fetch(&self) -> Result<(), CudaError> {
        if self.stale.get() {
            self.device.read(0, &mut self.host.borrow_mut()[..])?;
            self.stale.set(false);
        }
        Ok(())
    }

    /// An element.
    pub(crate) fn get(&self, index: usize) -> Result<T, CudaError> {
        self.fetch()?;
        Ok(self.host.borrow()[index])
    }

    /// Shows elements, one after another.
    pub(crate) fn visit(
        &self,
        range: Range<usize>,
        visit: &mut dyn FnMut(&T),
    ) -> Result<(), CudaError> {
        self.fetch()?;
        self.host.borrow()[range].iter().for_each(visit);
        Ok(())
    }

    /// An element, without copying the others.
    pub(crate) fn get_one(&self, index: usize) -> Result<T, CudaError> {
        if !self.stale.get() {
            return Ok(self.host.borrow()[index]);
        }
        let mut element = [self.host.borrow()[index]];
        self.device.read((index * size_of::<T>()) as u64, &mut element)?;
        Ok(element[0])
    }

    /// Changes an element here and on the device.
    pub(crate) fn set_one(&mut self, index: usize, element: T) -> Result<(), CudaError> {
        self.host.get_mut()[index] = element;
        self.device.write((index * size_of::<T>()) as u64, &[element])
    }

    /// Sets elements; the device has them after the next [`upload`](Self::upload).
    pub(crate) fn set(&mut self, range: Range<usize>, element: T) -> Result<(), CudaError> {
        match range.len() == self.host.get_mut().len() {
            // Nothing is left of what kernels wrote.
            true => self.stale.set(false),
            false => self.fetch()?,
        }
        self.host.get_mut()[range.clone()].fill(element);
        self.changed = match self.changed.is_empty() {
            true => range,
            false => self.changed.start.min(range.start)..self.changed.end.max(range.end),
        };
        Ok(())
    }

    /// Changes some elements, one by one where they are few.
    pub(crate) fn modify(
        &mut self,
        indices: &[usize],
        change: impl Fn(&mut T),
    ) -> Result<(), CudaError> {
        for &index in indices {
            let few = indices.len() <= MANY;
            let mut element = if few { self.get_one(index)? } else { self.get(index)? };
            change(&mut element);
            match few {
                true => self.set_one(index, element)?,
                false => self.set(index..index + 1, element)?,
            }
        }
        Ok(())
    }

    /// Brings the device up to date.
    pub(crate) fn upload(&mut self) -> Result<(), CudaError> {
        let range = std::mem::take(&mut self.changed);
        self.device.write((range.start * size_of::<T>()) as u64, &self.host.get_mut()[range])
    }

    /// To be called before a kernel writes the array; the host's changes must have been uploaded.
    pub(crate) fn will_change(&self) {
        assert!(self.changed.is_empty(), "changes of the host would be lost");
        self.stale.set(true);
    }
}
