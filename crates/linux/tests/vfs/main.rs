//! Tests of the file system that guests see. They compare it with that of the host, which must be Linux.

#![cfg(target_os = "linux")]

mod changes;
mod compare;
mod escapes;
mod host_side;
mod limits;
mod overlay;
mod proc;
mod semantics;
mod support;
mod through;
