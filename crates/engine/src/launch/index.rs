//! Which kernels the cache has, by their handlers: a program takes one that has all it wants, though it has more, instead of
//! having its own compiled.
//!
//! The index is an entry of the cache, for each device and kind of memory. Handlers are written down as words that want
//! them, so that it does not matter in which order another program has met them.

use std::time::Duration;

use super::{LaunchEngine, Launcher};
use crate::kernel::Selection;

/// Kernels in an index, at the most: those that were used last.
const MOST: usize = 32;
/// Handlers of a kernel in an index, at the most.
const MOST_HANDLERS: u32 = 4096;

/// A kernel that was compiled.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Known {
    /// What it took to compile it, in milliseconds.
    pub(super) cost: u32,
    /// Words that want its handlers, in the kernel's order.
    pub(super) words: Vec<u32>,
}

impl Known {
    /// What it took to compile it.
    pub(super) fn cost(&self) -> Duration {
        Duration::from_millis(self.cost.into())
    }
}

/// The kernels that are written down in an entry.
fn read(bytes: &[u8]) -> Vec<Known> {
    let numbers = bytes.chunks_exact(4);
    let mut numbers =
        numbers.map(|number| u32::from_le_bytes(number.try_into().expect("four bytes")));
    let mut kernels = Vec::new();
    while let (Some(cost), Some(len)) = (numbers.next(), numbers.next()) {
        let words: Vec<u32> = numbers.by_ref().take(len.min(MOST_HANDLERS) as usize).collect();
        kernels.push(Known { cost, words });
    }
    kernels
}

fn write(kernels: &[Known]) -> Vec<u8> {
    let numbers = kernels.iter().flat_map(|Known { cost, words }| {
        [*cost, words.len() as u32].into_iter().chain(words.iter().copied())
    });
    numbers.flat_map(u32::to_le_bytes).collect()
}

/// Puts a kernel in front of the others, and of what it was there as before.
fn put_first(kernels: &mut Vec<Known>, kernel: Known) {
    kernels.retain(|other| other.words != kernel.words);
    kernels.insert(0, kernel);
    kernels.truncate(MOST);
}

impl<L: Launcher> LaunchEngine<L> {
    fn name_of_index(&self) -> String {
        format!("kernels by their handlers, for {:?}", self.launcher.target(&self.code))
    }

    /// The kernels that there are, the one that was used last first.
    pub(super) fn known_kernels(&self) -> Vec<Known> {
        if !self.choosing.keeps {
            return Vec::new();
        }
        let name = self.name_of_index();
        read(&self.launcher.cache().get(&self.launcher.key(&name)).unwrap_or_default())
    }

    /// Notes that there is a kernel with some handlers, and what it took to compile it.
    pub(super) fn note_kernel(&self, selection: &Selection, cost: Duration) {
        if !self.choosing.keeps {
            return;
        }
        let cost = cost.as_millis().try_into().unwrap_or(u32::MAX);
        let mut kernels = self.known_kernels();
        put_first(&mut kernels, Known { cost, words: self.code.handlers.words(selection) });
        let name = self.name_of_index();
        self.launcher.cache().put(&self.launcher.key(&name), &write(&kernels));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_written_is_read_and_damage_does_no_harm() {
        let known = |cost, words: &[u32]| Known { cost, words: words.to_vec() };
        let mut kernels = vec![known(7, &[1, 2]), known(8, &[]), known(9, &[3])];
        assert_eq!(read(&write(&kernels)), kernels);
        put_first(&mut kernels, known(10, &[3]));
        assert_eq!(kernels, [known(10, &[3]), known(7, &[1, 2]), known(8, &[])]);
        for number in 0..2 * MOST as u32 {
            put_first(&mut kernels, known(0, &[number]));
        }
        assert_eq!(kernels.len(), MOST);
        assert_eq!(read(&[]), []);
        assert_eq!(read(&[1, 0, 0, 0, 255, 255, 255, 255, 5, 0, 0, 0, 6]), [known(1, &[5])]);
    }
}
