//! Host code that depends on no guest, for all machines of the process: handlers, what makes their records, functions
//! and stubs. It is kept on disk, so that most processes compile none of it.
//!
//! Pieces have names. A piece from disk is copied into memory when it is first needed, and the addresses that it calls
//! are filled in.

use std::collections::{HashMap, HashSet};
use std::time::{Duration, Instant};

use cranelift::codegen::ir;
use cranelift::prelude::*;
use kvrm_engine::EngineError;
use kvrm_engine::cache::{KernelCache, KernelKey};
use kvrm_ir::legalise::{Calls, Lacks};
use kvrm_ir::{Function, Op, Stmt};

use crate::arena::Arena;
use crate::compiler::{Compiler, Reference, Target, fill_in};
use crate::file::{read_bytes, read_list, read_number, read_text, write_bytes, write_number};
use crate::slow;
use crate::translate::{HostTarget, LACKS, MemoryKind, stub_signature, translate_function};

/// What was made is put on disk no more often than this.
const PAUSE: Duration = Duration::from_secs(2);

/// Bytes on disk after which no more is added: every process reads all of it when it starts.
const MOST_KEPT: usize = 4 << 20;

/// Where functions are, by their names.
pub(crate) type Addresses = HashMap<&'static str, usize>;

/// Functions of the engine that pieces call.
fn engine_functions() -> [(&'static str, usize); 3] {
    [
        ("engine probe", slow::probe as *const () as usize),
        ("engine cas128", slow::cas128 as *const () as usize),
        ("engine settle", slow::settle as *const () as usize),
    ]
}

/// The function that a statement calls.
pub(crate) fn callee(stmt: &Stmt) -> Option<&'static Function> {
    match stmt.op {
        Op::Call(function, _) => Some(function),
        _ => None,
    }
}

/// The name of the piece that is a function of the IR.
fn function_piece(name: &str) -> String {
    format!("function {name}")
}

/// A piece in memory.
#[derive(Clone, Copy)]
pub(crate) struct Piece {
    pub(crate) code: *const u8,
    /// Whatever whoever made it wants to know about it.
    pub(crate) tag: u8,
}

/// A piece on disk.
#[derive(Clone)]
struct Kept<'a> {
    name: &'a str,
    tag: u8,
    code: &'a [u8],
    /// Where the address of which piece or function is to be filled in.
    calls: Vec<(u32, &'a str)>,
}

/// A piece that is to be kept on disk.
struct New {
    name: String,
    tag: u8,
    code: Vec<u8>,
    calls: Vec<(u32, String)>,
}

/// All pieces.
pub(crate) struct Library {
    target: HostTarget,
    compiler: Compiler,
    arena: Arena,
    placed: HashMap<String, Piece>,
    /// What was on disk.
    kept: HashMap<&'static str, Kept<'static>>,
    /// What was made since.
    new: Vec<New>,
    shelf: Shelf,
    last_kept: Option<Instant>,
}

impl Library {
    /// A library of code for `target`, with what is in the cache.
    pub(crate) fn open(target: HostTarget, cache: KernelCache) -> Library {
        let shelf = Shelf { cache, host: host_key(&target) };
        // Pieces refer to it as long as the process lives.
        let kept = shelf.read().map_or(&[][..], |bytes| bytes.leak());
        let kept = parse(kept).into_iter().map(|piece| (piece.name, piece)).collect();
        Library {
            target,
            compiler: Compiler::new(),
            arena: Arena::default(),
            placed: HashMap::new(),
            kept,
            new: Vec::new(),
            shelf,
            last_kept: None,
        }
    }

    /// A piece that was made before, by this process or another.
    pub(crate) fn find(&mut self, name: &str) -> Result<Option<Piece>, EngineError> {
        if let Some(piece) = self.placed.get(name) {
            return Ok(Some(*piece));
        }
        let Some(Kept { tag, code, calls, .. }) = self.kept.get(name).cloned() else {
            return Ok(None);
        };
        let mut code = code.to_vec();
        for (offset, callee) in calls {
            let Some(address) = self.address(callee)? else { return Ok(None) };
            if fill_in(&mut code, offset, address as u64).is_none() {
                return Ok(None);
            }
        }
        self.place(name, tag, &code).map(Some)
    }

    /// The address of a function that pieces call.
    fn address(&mut self, name: &str) -> Result<Option<usize>, EngineError> {
        let engine = engine_functions().into_iter().find(|(other, _)| *other == name);
        match engine {
            Some((_, address)) => Ok(Some(address)),
            None => Ok(self.find(name)?.map(|piece| piece.code as usize)),
        }
    }

    /// Makes a piece, which may call what is in the library.
    pub(crate) fn add(
        &mut self,
        name: &str,
        tag: u8,
        signature: Signature,
        fill: impl FnOnce(&mut ir::Function, &mut FunctionBuilderContext, &HostTarget),
    ) -> Result<Piece, EngineError> {
        let target = &self.target;
        let compiled = self.compiler.compile(target, signature, |function, scratch| {
            fill(function, scratch, target);
        });
        let mut code = compiled.map_err(EngineError::Unsupported)?.to_vec();
        let mut calls = Vec::new();
        for Reference { offset, target } in self.compiler.references() {
            let Target::Function(address) = *target else { unreachable!("pieces know no guest") };
            fill_in(&mut code, *offset, address as u64).expect("it refers to something there");
            calls.push((*offset, self.name_at(address)));
        }
        let piece = self.place(name, tag, &code)?;
        self.new.push(New { name: name.to_string(), tag, code, calls });
        Ok(piece)
    }

    /// The name of what a piece calls.
    fn name_at(&self, called: usize) -> String {
        let engine = engine_functions().into_iter().find(|(_, address)| *address == called);
        let is_callee = |piece: &Piece| piece.code as usize == called;
        let placed = || self.placed.iter().find(|(_, piece)| is_callee(piece));
        let name = engine.map(|(name, _)| name).or_else(|| Some(placed()?.0.as_str()));
        name.expect("pieces call what is in the library").to_string()
    }

    fn place(&mut self, name: &str, tag: u8, code: &[u8]) -> Result<Piece, EngineError> {
        let code = self.arena.add(code);
        let code = code.map_err(|error| EngineError::Unsupported(error.to_string()))?;
        let piece = Piece { code, tag };
        self.placed.insert(name.to_string(), piece);
        Ok(piece)
    }

    /// A piece without a tag, which is made if it is not there.
    pub(crate) fn get(
        &mut self,
        name: &str,
        signature: Signature,
        fill: impl FnOnce(&mut ir::Function, &mut FunctionBuilderContext, &HostTarget),
    ) -> Result<*const u8, EngineError> {
        let piece = match self.find(name)? {
            Some(piece) => piece,
            None => self.add(name, 0, signature, fill)?,
        };
        Ok(piece.code)
    }

    /// Where functions of the IR are. Translated code calls them where its shortcuts do not do, which is rare: they get their
    /// arguments and leave their results in the lane context, and change no register.
    pub(crate) fn functions(
        &mut self,
        called: &[&'static Function],
    ) -> Result<Addresses, EngineError> {
        let mut addresses = Addresses::new();
        for function in called {
            if addresses.contains_key(function.name) {
                continue;
            }
            let code = self.get(
                &function_piece(function.name),
                stub_signature(),
                |host, scratch, target| {
                    let routine = function.routine(Lacks { calls: Calls::Inlined, ..LACKS });
                    translate_function(host, scratch, target, routine);
                },
            )?;
            addresses.insert(function.name, code as usize);
        }
        Ok(addresses)
    }

    /// Where a function of the IR is that was made before.
    pub(crate) fn function(&mut self, name: &str) -> Result<Option<usize>, EngineError> {
        Ok(self.find(&function_piece(name))?.map(|piece| piece.code as usize))
    }

    /// Puts what was made on disk, if some time has passed since that was last done.
    pub(crate) fn keep(&mut self) {
        if self.new.is_empty() || self.last_kept.is_some_and(|last| last.elapsed() < PAUSE) {
            return;
        }
        self.shelf.add(&self.new);
        self.new.clear();
        self.last_kept = Some(Instant::now());
    }
}

/// The key of host code in the cache, which depends on what `text` says and on the host.
pub(crate) fn code_key<'k>(text: &'k str, host: &'k str) -> KernelKey<'k> {
    KernelKey { engine: "cpu", text, device: host, driver: cranelift::codegen::VERSION }
}

/// Everything about the host and the kind of memory that host code may depend on.
pub(crate) fn host_key(target: &HostTarget) -> String {
    let MemoryKind { atomic, mapped } = target.kind;
    let flags = target.isa.isa_flags();
    let flags: Vec<String> = flags.iter().map(|flag| flag.to_string()).collect();
    let memory = format!("atomic {atomic}, mapped {mapped}");
    format!("{} {} {} {memory}", target.isa.triple(), target.isa.flags(), flags.join(" "))
}

/// The pieces in a file, which the checksum says is as it was written; what cannot be read is made again.
fn parse(mut bytes: &[u8]) -> Vec<Kept<'_>> {
    std::iter::from_fn(|| Kept::read(&mut bytes)).collect()
}

impl<'a> Kept<'a> {
    /// Reads a piece, and leaves what comes after it.
    fn read(bytes: &mut &'a [u8]) -> Option<Kept<'a>> {
        let (tag, rest) = bytes.split_first()?;
        *bytes = rest;
        let (name, code) = (read_text(bytes)?, read_bytes(bytes)?);
        let calls = read_list(bytes, |bytes| Some((read_number(bytes)?, read_text(bytes)?)))?;
        Some(Kept { name, tag: *tag, code, calls })
    }

    fn write(&self, file: &mut Vec<u8>) {
        file.push(self.tag);
        write_bytes(file, self.name.as_bytes());
        write_bytes(file, self.code);
        write_number(file, self.calls.len());
        for (offset, name) in &self.calls {
            write_number(file, *offset as usize);
            write_bytes(file, name.as_bytes());
        }
    }
}

/// Where pieces are kept.
struct Shelf {
    cache: KernelCache,
    host: String,
}

impl Shelf {
    fn key(&self) -> KernelKey<'_> {
        code_key(env!("KVRM_CPU_SOURCES"), &self.host)
    }

    fn read(&self) -> Option<Vec<u8>> {
        self.cache.get(&self.key())
    }

    /// Adds pieces to what is there, also to what other processes have added.
    fn add(&self, new: &[New]) {
        let there = self.read().unwrap_or_default();
        if there.len() >= MOST_KEPT {
            return;
        }
        let names: HashSet<&str> = parse(&there).iter().map(|piece| piece.name).collect();
        let mut bytes = there.clone();
        let is_new = |piece: &&New| !names.contains(piece.name.as_str());
        new.iter().filter(is_new).for_each(|piece| piece.kept().write(&mut bytes));
        self.cache.put(&self.key(), &bytes);
    }
}

impl New {
    fn kept(&self) -> Kept<'_> {
        let New { name, tag, code, calls } = self;
        let calls = calls.iter().map(|(offset, name)| (*offset, name.as_str())).collect();
        Kept { name, tag: *tag, code, calls }
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use crate::stubs::{fill_stub, host_signature};

    fn open(folder: &Path) -> Library {
        Library::open(HostTarget::new(MemoryKind::default()).unwrap(), KernelCache::at(folder))
    }

    /// Makes a piece that calls another, which calls the engine.
    fn make(library: &mut Library) {
        let settle = slow::settle as *const () as usize;
        let inner = library.get("inner", stub_signature(), |f, scratch, target| {
            fill_stub(f, scratch, target, settle);
        });
        let inner = inner.unwrap() as usize;
        let outer = library.add("outer", 7, host_signature(1), |f, scratch, target| {
            fill_stub(f, scratch, target, inner);
        });
        outer.unwrap();
    }

    fn bytes_of(library: &Library, name: &str) -> Vec<u8> {
        let len = library.kept[name].code.len();
        // SAFETY: it is in memory, and as long as it was on disk.
        unsafe { std::slice::from_raw_parts(library.placed[name].code, len).to_vec() }
    }

    #[test]
    fn pieces_are_found_again_with_what_they_call() {
        let folder = tempfile::tempdir().unwrap();
        let mut first = open(folder.path());
        assert!(first.find("outer").unwrap().is_none());
        make(&mut first);
        first.keep();

        let mut second = open(folder.path());
        let outer = second.find("outer").unwrap().expect("it was kept");
        assert_eq!(outer.tag, 7);
        assert!(second.new.is_empty());
        let inner = second.placed["inner"].code as u64;
        let bytes = bytes_of(&second, "outer");
        assert!(bytes.windows(8).any(|window| window == inner.to_le_bytes()), "it calls the copy");
        assert!(second.find("other").unwrap().is_none());
    }

    #[test]
    fn files_that_end_early_have_fewer_pieces() {
        let calls = vec![(3, "one"), (11, "two")];
        let piece = Kept { name: "piece", tag: 2, code: &[1, 2, 3], calls };
        let mut file = Vec::new();
        (0..2).for_each(|_| piece.write(&mut file));
        let pieces = parse(&file);
        assert_eq!(pieces.len(), 2);
        let Kept { name, tag, code, calls } = &pieces[1];
        assert_eq!((*name, *tag, *code, calls), ("piece", 2, &[1, 2, 3][..], &piece.calls));
        for len in 0..file.len() {
            assert_eq!(parse(&file[..len]).len(), usize::from(len >= file.len() / 2));
        }
    }

    #[test]
    fn what_other_processes_have_kept_stays() {
        let folder = tempfile::tempdir().unwrap();
        let [mut first, mut second] = [(); 2].map(|()| open(folder.path()));
        make(&mut first);
        second
            .get("own", stub_signature(), |f, scratch, target| {
                fill_stub(f, scratch, target, slow::probe as *const () as usize);
            })
            .unwrap();
        first.keep();
        second.keep();
        let mut third = open(folder.path());
        assert!(["inner", "outer", "own"].iter().all(|name| third.find(name).unwrap().is_some()));
    }

    #[test]
    fn a_piece_without_what_it_calls_is_made_again() {
        let folder = tempfile::tempdir().unwrap();
        let mut first = open(folder.path());
        make(&mut first);
        first.new.retain(|piece| piece.name == "outer");
        first.keep();
        assert!(open(folder.path()).find("outer").unwrap().is_none());
    }
}
