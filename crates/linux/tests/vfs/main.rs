//! Tests of the file system that guests see.

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
