//! Memory that is larger than a binding of the device may be: it is spread over several, of equal size.

use std::fmt::Write;

use kvrm_engine::MemoryModel;
use kvrm_mem::PAGE;

use crate::kernel::{Atomics, KernelTarget};

/// How memory is spread over bindings.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Windows {
    /// Bytes in a window of the image or of shared memory: a power of two.
    pub(crate) bytes: u64,
    /// How many of these there are.
    pub(crate) flat: u32,
    /// Frames in a window of frames.
    pub(crate) frames_each: u32,
    /// How many of these there are.
    pub(crate) frames: u32,
}

/// The bind groups of the two.
pub(crate) const FLAT_GROUP: u32 = 1;
pub(crate) const FRAMES_GROUP: u32 = 2;

impl Windows {
    /// Declares the windows, and functions for words in them.
    pub(crate) fn declare(&self, out: &mut String, memory: &KernelTarget) {
        match memory.model {
            MemoryModel::Shared if !memory.read_only => self.declare_shared(out, memory.atomics),
            MemoryModel::Shared | MemoryModel::Private => {
                let image = Windowed { name: "image", group: FLAT_GROUP, count: self.flat };
                image.declare(out, "var<storage, read>", "u64");
                let (window, index) = self.place_of_word();
                let head = "fn image_word(word: u32) -> u64";
                image.function(out, head, &window, &format!("return _[{index}];"));
                if memory.model == MemoryModel::Private {
                    self.declare_frames(out, memory.group);
                }
            }
        }
    }

    /// The window of a word of flat memory, and its index there.
    fn place_of_word(&self) -> (String, String) {
        let bits = (self.bytes / 8).ilog2();
        (format!("word >> {bits}u"), format!("word & 0x{:x}u", (1u64 << bits) - 1))
    }

    fn declare_shared(&self, out: &mut String, atomics: Atomics) {
        let memory = Windowed { name: "memory", group: FLAT_GROUP, count: self.flat };
        let (window, index) = self.place_of_word();
        let (space, element, heads, bodies) = match atomics {
            Atomics::Wide => (
                "var<storage, read_write>",
                "atomic<u64>",
                ["memory_word", "set_memory_word", "exchange_memory_word"],
                [
                    format!("return atomicLoad(&_[{index}]);"),
                    format!("atomicStore(&_[{index}], value);"),
                    // It may fail although the value is the old one.
                    format!(
                        "var seen = old; loop {{ let result = atomicCompareExchangeWeak(&_[{index}], old, wanted); seen = result.old_value; if (result.exchanged || seen != old) {{ break; }} }} return seen;"
                    ),
                ],
            ),
            Atomics::Locks { coherent } => (
                if coherent {
                    "@coherent var<storage, read_write>"
                } else {
                    "var<storage, read_write>"
                },
                "u64",
                ["memory_word", "store_locked_word", "exchange_locked_word"],
                [
                    format!("return _[{index}];"),
                    format!("_[{index}] = value;"),
                    format!(
                        "let seen = _[{index}]; if (seen == old) {{ _[{index}] = wanted; }} return seen;"
                    ),
                ],
            ),
        };
        memory.declare(out, space, element);
        let signatures = [
            "(word: u32) -> u64",
            "(word: u32, value: u64)",
            "(word: u32, old: u64, wanted: u64) -> u64",
        ];
        for ((name, signature), body) in heads.into_iter().zip(signatures).zip(&bodies) {
            memory.function(out, &format!("fn {name}{signature}"), &window, body);
        }
        if matches!(atomics, Atomics::Locks { .. }) {
            out.push_str(include_str!("locks.wgsl"));
        }
    }

    fn declare_frames(&self, out: &mut String, group: u32) {
        let frames = Windowed { name: "frames", group: FRAMES_GROUP, count: self.frames };
        frames.declare(out, "var<storage, read_write>", "u64");
        let (words, each) = (PAGE / 8 * u64::from(group), self.frames_each);
        let window = format!("frame / {each}u");
        let index = match self.frames {
            1 => format!("frame * {words}u + index"),
            _ => format!("(frame % {each}u) * {words}u + index"),
        };
        let head = "fn frame_word(frame: u32, index: u32) -> u64";
        frames.function(out, head, &window, &format!("return _[{index}];"));
        let head = "fn set_frame_word(frame: u32, index: u32, value: u64)";
        frames.function(out, head, &window, &format!("_[{index}] = value;"));
    }
}

/// An array in several bindings.
struct Windowed {
    name: &'static str,
    group: u32,
    count: u32,
}

impl Windowed {
    fn declare(&self, out: &mut String, space: &str, element: &str) {
        out.push('\n');
        for window in 0..self.count {
            let Windowed { name, group, .. } = self;
            let _ = writeln!(
                out,
                "@group({group}) @binding({window}) {space} {name}{window}: array<{element}>;"
            );
        }
    }

    /// A function whose body is for the window of that number; `_` in it is the window.
    fn function(&self, out: &mut String, head: &str, number: &str, body: &str) {
        let body = |window: u32| body.replace("_[", &format!("{}{window}[", self.name));
        let _ = writeln!(out, "\n{head} {{");
        if self.count == 1 {
            let _ = writeln!(out, "  {}\n}}", body(0));
            return;
        }
        let _ = writeln!(out, "  switch ({number}) {{");
        for window in 1..self.count {
            let _ = writeln!(out, "    case {window}u: {{ {} }}", body(window));
        }
        let _ = writeln!(out, "    default: {{ {} }}\n  }}\n}}", body(0));
    }
}
