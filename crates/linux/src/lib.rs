//! The Linux that guests see.

mod errno;

pub use errno::{Errno, Result};
