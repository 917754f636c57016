//! The Linux that guests see.

mod errno;
pub mod vfs;

pub use errno::{Errno, Result};
