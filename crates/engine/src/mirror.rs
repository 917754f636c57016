//! Arrays on a device that the host reads and changes.

use std::cell::{Cell, RefCell};
use std::ops::Range;

use crate::EngineError;

/// An array on a device.
pub trait DeviceArray<T> {
    /// Copies elements from `first` on to the host.
    fn read(&self, first: usize, elements: &mut [T]) -> Result<(), EngineError>;

    /// Copies elements from `first` on to the device.
    fn write(&self, first: usize, elements: &[T]) -> Result<(), EngineError>;
}

/// An array on a device with a copy on the host. Nothing is copied before it is needed: what kernels wrote is
/// copied when the host reads it, what the host changed before the next launch.
pub struct Mirror<T, A> {
    device: A,
    host: RefCell<Vec<T>>,
    /// True if kernels may have written the array since it was copied here.
    stale: Cell<bool>,
    /// Range that contains all changes of the host.
    changed: Range<usize>,
    /// Up to this many elements are copied one by one.
    few: usize,
}

impl<T: Copy, A: DeviceArray<T>> Mirror<T, A> {
    /// Makes an array of equal elements. Up to `few` elements are faster to copy one by one than all together.
    pub fn new(device: A, element: T, len: usize, few: usize) -> Self {
        let host = RefCell::new(vec![element; len]);
        Mirror { device, host, stale: Cell::new(false), changed: 0..len, few }
    }

    /// Returns the array on the device.
    pub fn device(&self) -> &A {
        &self.device
    }

    fn fetch(&self) -> Result<(), EngineError> {
        if self.stale.get() {
            self.device.read(0, &mut self.host.borrow_mut())?;
            self.stale.set(false);
        }
        Ok(())
    }

    /// Returns an element.
    pub fn get(&self, index: usize) -> Result<T, EngineError> {
        self.fetch()?;
        Ok(self.host.borrow()[index])
    }

    /// Calls `visit` with each element.
    pub fn visit(&self, range: Range<usize>, visit: &mut dyn FnMut(&T)) -> Result<(), EngineError> {
        self.fetch()?;
        self.host.borrow()[range].iter().for_each(visit);
        Ok(())
    }

    /// Returns one of `count` elements that the caller is going to read.
    pub fn get_of(&self, count: usize, index: usize) -> Result<T, EngineError> {
        if count > self.few || !self.stale.get() {
            return self.get(index);
        }
        let mut element = [self.host.borrow()[index]];
        self.device.read(index, &mut element)?;
        Ok(element[0])
    }

    /// Changes an element here and on the device.
    fn set_one(&mut self, index: usize, element: T) -> Result<(), EngineError> {
        self.host.get_mut()[index] = element;
        self.device.write(index, &[element])
    }

    /// Sets elements; the device has them after the next [`upload`](Self::upload).
    pub fn set(&mut self, range: Range<usize>, element: T) -> Result<(), EngineError> {
        match range.len() == self.host.get_mut().len() {
            // Everything that kernels wrote is overwritten.
            true => self.stale.set(false),
            false => self.fetch()?,
        }
        self.host.get_mut()[range.clone()].fill(element);
        self.note_change(range);
        Ok(())
    }

    /// Calls `change` with each element; the device has the changes after the next [`upload`](Self::upload).
    pub fn change(
        &mut self,
        range: Range<usize>,
        change: &mut dyn FnMut(&mut T),
    ) -> Result<(), EngineError> {
        self.fetch()?;
        self.host.get_mut()[range.clone()].iter_mut().for_each(change);
        self.note_change(range);
        Ok(())
    }

    fn note_change(&mut self, range: Range<usize>) {
        self.changed = match self.changed.is_empty() {
            true => range,
            false => self.changed.start.min(range.start)..self.changed.end.max(range.end),
        };
    }

    /// Sets one of `count` elements that the caller is going to change.
    pub fn set_of(&mut self, count: usize, index: usize, element: T) -> Result<(), EngineError> {
        match count <= self.few {
            true => self.set_one(index, element),
            false => self.set(index..index + 1, element),
        }
    }

    /// Changes some elements.
    pub fn modify(
        &mut self,
        indices: &[usize],
        change: impl Fn(&mut T),
    ) -> Result<(), EngineError> {
        for &index in indices {
            let mut element = self.get_of(indices.len(), index)?;
            change(&mut element);
            self.set_of(indices.len(), index, element)?;
        }
        Ok(())
    }

    /// Copies the host's changes to the device.
    pub fn upload(&mut self) -> Result<(), EngineError> {
        let range = self.changed.clone();
        if !range.is_empty() {
            self.device.write(range.start, &self.host.get_mut()[range])?;
            self.changed = 0..0;
        }
        Ok(())
    }

    /// Takes elements that the caller has copied from the device after a launch.
    pub fn copied(&self, elements: &[T]) {
        self.host.borrow_mut().copy_from_slice(elements);
        self.stale.set(false);
    }

    /// Must be called before a kernel writes the array, after [`upload`](Self::upload).
    pub fn will_change(&self) {
        assert!(self.changed.is_empty(), "changes of the host would be lost");
        self.stale.set(true);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A device, and how many elements were copied.
    struct Fake {
        elements: RefCell<Vec<u32>>,
        copied: Cell<usize>,
    }

    impl DeviceArray<u32> for Fake {
        fn read(&self, first: usize, elements: &mut [u32]) -> Result<(), EngineError> {
            elements.copy_from_slice(&self.elements.borrow()[first..first + elements.len()]);
            self.copied.set(self.copied.get() + elements.len());
            Ok(())
        }

        fn write(&self, first: usize, elements: &[u32]) -> Result<(), EngineError> {
            self.elements.borrow_mut()[first..first + elements.len()].copy_from_slice(elements);
            self.copied.set(self.copied.get() + elements.len());
            Ok(())
        }
    }

    fn mirror() -> Mirror<u32, Fake> {
        let fake = Fake { elements: RefCell::new(vec![9; 100]), copied: Cell::new(0) };
        let mut mirror = Mirror::new(fake, 0, 100, 4);
        mirror.upload().unwrap();
        mirror.device.copied.set(0);
        mirror
    }

    /// What a kernel does.
    fn launch(mirror: &mut Mirror<u32, Fake>) {
        mirror.upload().unwrap();
        mirror.will_change();
        mirror.device.elements.borrow_mut().iter_mut().for_each(|element| *element += 1);
    }

    #[test]
    fn what_kernels_wrote_is_copied_once_when_the_host_looks() {
        let mut mirror = mirror();
        launch(&mut mirror);
        assert_eq!(mirror.device.copied.get(), 0);
        assert_eq!((mirror.get(3).unwrap(), mirror.get(4).unwrap()), (1, 1));
        assert_eq!(mirror.device.copied.get(), 100);
    }

    #[test]
    fn what_the_engine_copied_is_not_copied_again() {
        let mut mirror = mirror();
        launch(&mut mirror);
        mirror.copied(&[7; 100]);
        assert_eq!((mirror.get(3).unwrap(), mirror.device.copied.get()), (7, 0));
    }

    #[test]
    fn few_elements_are_copied_alone() {
        let mut mirror = mirror();
        launch(&mut mirror);
        assert_eq!(mirror.get_of(2, 7).unwrap(), 1);
        assert_eq!(mirror.device.copied.get(), 1);
        assert_eq!(mirror.get_of(5, 7).unwrap(), 1);
        assert_eq!(mirror.device.copied.get(), 101);
    }

    #[test]
    fn what_the_host_changes_is_there_at_the_next_launch() {
        let mut mirror = mirror();
        launch(&mut mirror);
        mirror.set(5..6, 40).unwrap();
        mirror.modify(&[6, 7], |element| *element += 10).unwrap();
        mirror.change(7..9, &mut |element| *element *= 2).unwrap();
        launch(&mut mirror);
        let seen: Vec<u32> = (4..10).map(|i| mirror.get(i).unwrap()).collect();
        assert_eq!(seen, [2, 41, 12, 23, 3, 2]);
    }

    #[test]
    fn setting_all_elements_copies_nothing_back() {
        let mut mirror = mirror();
        launch(&mut mirror);
        mirror.set(0..100, 5).unwrap();
        assert_eq!((mirror.get(50).unwrap(), mirror.device.copied.get()), (5, 0));
    }
}
