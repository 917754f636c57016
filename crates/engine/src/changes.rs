//! Changes of lanes' memory that are made together.

use kvrm_mem::Permissions;

use crate::{Engine, EngineError};

/// A change of a lane's [mapped](crate::Config::mapped) memory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum MemoryChange {
    /// Bytes are written, whatever the guest may do there.
    Write {
        /// Where they begin.
        addr: u64,
        /// The bytes.
        bytes: Vec<u8>,
    },
    /// Whole pages get permissions.
    Protect {
        /// The first page's address.
        addr: u64,
        /// Bytes of all pages.
        len: u64,
        /// What guests may do there.
        permissions: Permissions,
    },
    /// Whole pages become zero.
    Discard {
        /// The first page's address.
        addr: u64,
        /// Bytes of all pages.
        len: u64,
    },
}

/// A part of a lane's memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Piece {
    /// The lane.
    pub lane: usize,
    /// Where it begins.
    pub addr: u64,
    /// How many bytes it has.
    pub len: usize,
}

/// Makes changes lane after lane; the lanes for which there was no room.
pub(crate) fn make_one_by_one<E: Engine + ?Sized>(
    engine: &mut E,
    changes: &[(usize, Vec<MemoryChange>)],
) -> Result<Vec<usize>, EngineError> {
    let mut refused = Vec::new();
    for (lane, changes) in changes {
        let made = changes.iter().try_for_each(|change| match change {
            MemoryChange::Write { addr, bytes } => engine.write_memory(*lane, *addr, bytes),
            MemoryChange::Discard { addr, len } => engine.discard(*lane, *addr, *len),
            MemoryChange::Protect { addr, len, permissions } => {
                engine.protect(*lane, *addr, *len, *permissions)
            }
        });
        match made {
            Err(EngineError::DeviceFull(_)) => refused.push(*lane),
            made => made?,
        }
    }
    Ok(refused)
}

/// Reads pieces of memory one after the other.
pub(crate) fn read_one_by_one<E: Engine + ?Sized>(
    engine: &E,
    pieces: &[Piece],
) -> Result<Vec<Vec<u8>>, EngineError> {
    let read = |piece: &Piece| {
        let mut bytes = vec![0; piece.len];
        engine.read_memory(piece.lane, piece.addr, &mut bytes).map(|()| bytes)
    };
    pieces.iter().map(read).collect()
}
