//! Functions of the IR, compiled when a translation first calls them and kept as long as the machine.
//!
//! Translated code calls them where its shortcuts do not do, which is rare: they get their arguments and leave their
//! results in the lane context, and change no register, so that nothing has to be kept elsewhere for them.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

use kvrm_ir::legalise::{Calls, Lacks};
use kvrm_ir::{Function, Op, Routine, Stmt};
use kvrm_translate::Region;

use crate::arena::Arena;
use crate::compiler::Compilers;
use crate::translate::{HostTarget, LACKS, stub_signature, translate_function};

/// Where the functions are that a region calls, by their names.
pub(crate) type Addresses = HashMap<&'static str, usize>;

/// All functions that were called.
#[derive(Default)]
pub(crate) struct Functions(Mutex<Compiled>);

#[derive(Default)]
struct Compiled {
    addresses: Addresses,
    /// Keeps the code.
    arena: Arena,
}

/// The function that a statement calls.
fn callee(stmt: &Stmt) -> Option<&'static Function> {
    match stmt.op {
        Op::Call(function, _) => Some(function),
        _ => None,
    }
}

impl Functions {
    /// Compiles the functions that a region calls, unless it was done before.
    pub(crate) fn of(
        &self,
        region: &Region,
        target: &HostTarget,
        compilers: &Compilers,
    ) -> Result<Addresses, String> {
        let mut called = Vec::new();
        region.for_each_stmt(&mut |stmt| called.extend(callee(stmt)));
        self.addresses(&called, target, compilers)
    }

    /// The same for a routine.
    pub(crate) fn of_routine(
        &self,
        routine: &Routine,
        target: &HostTarget,
        compilers: &Compilers,
    ) -> Result<Addresses, String> {
        let mut called = Vec::new();
        routine.body.for_each_stmt(&mut |stmt| called.extend(callee(stmt)));
        self.addresses(&called, target, compilers)
    }

    fn addresses(
        &self,
        called: &[&'static Function],
        target: &HostTarget,
        compilers: &Compilers,
    ) -> Result<Addresses, String> {
        let mut addresses = Addresses::new();
        for function in called {
            if !addresses.contains_key(function.name) {
                addresses.insert(function.name, self.address(function, target, compilers)?);
            }
        }
        Ok(addresses)
    }

    fn address(
        &self,
        function: &'static Function,
        target: &HostTarget,
        compilers: &Compilers,
    ) -> Result<usize, String> {
        let compiled = &mut *self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(address) = compiled.addresses.get(function.name) {
            return Ok(*address);
        }
        let routine = function.routine(Lacks { calls: Calls::Inlined, ..LACKS });
        let address = compilers.with(|compiler| {
            let code = compiler.compile(target, stub_signature(), |host, scratch| {
                translate_function(host, scratch, target, routine);
            })?;
            compiled.arena.add(code).map_err(|error| error.to_string())
        })?;
        compiled.addresses.insert(function.name, address as usize);
        Ok(address as usize)
    }
}
