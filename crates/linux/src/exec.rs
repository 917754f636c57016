//! Running programs.

use std::ops::Range;
use std::sync::Arc;

use kvrm_a64::state::CpuState;

use crate::Errno;
use crate::answer::Answer;
use crate::elf::{File, Image};
use crate::kernel::Kernel;
use crate::memory::{Memory, out_of_memory};
use crate::process::Program;
use crate::start::Start;
use crate::thread::Tid;
use crate::vfs::{Access, At, FileType, NodeId};

/// Scripts whose interpreters are scripts, at the most.
const MOST_SCRIPTS: u32 = 4;
/// Bytes of a script's first line that count.
const FIRST_LINE: usize = 256;
/// Bytes of the beginning of a file that tell what it is.
const START: usize = 512;

/// A program that is ready to run.
pub(crate) struct Loaded {
    pub(crate) memory: Memory,
    pub(crate) registers: CpuState,
    pub(crate) program: Arc<Program>,
    pub(crate) name: [u8; 16],
    /// Where its arguments and its environment are.
    pub(crate) strings: [Vec<Range<u64>>; 2],
}

/// What to do about a program that cannot be executed.
pub(crate) fn advice(errno: Errno) -> &'static str {
    match errno {
        Errno::NOENT => {
            "; programs that are linked dynamically need their libraries: give --root a directory with an ARM64 Linux"
        }
        Errno::NOEXEC => "; it is neither an ARM64 program nor a script that begins with #!",
        Errno::ACCES => "; it is not executable: `chmod +x` would help",
        _ => "",
    }
}

/// Loads the program at a path. Its file and its interpreter's are retained.
pub(crate) fn load(
    kernel: &mut Kernel,
    base: NodeId,
    path: &[u8],
    args: &[Vec<u8>],
    env: &[Vec<u8>],
) -> Answer<Loaded> {
    load_for(kernel, 0, base, path, args, env)
}

/// The same for a thread.
pub(crate) fn load_for(
    kernel: &mut Kernel,
    tid: Tid,
    base: NodeId,
    path: &[u8],
    args: &[Vec<u8>],
    env: &[Vec<u8>],
) -> Answer<Loaded> {
    let mut path = path.to_vec();
    let mut args = args.to_vec();
    for _ in 0..=MOST_SCRIPTS {
        let node = executable(kernel, tid, base, &path)?;
        let start = start_of(&mut ProgramFile { kernel, tid, node })?;
        match script(&start)? {
            None => return load_program(kernel, (tid, node, &start), path, args, env),
            Some(Script { interpreter, argument }) => {
                let mut new = vec![interpreter.clone()];
                new.extend(argument);
                new.push(path);
                new.extend(args.into_iter().skip(1));
                (path, args) = (interpreter, new);
            }
        }
    }
    Err(Errno::LOOP.into())
}

/// The file of a program that may be executed.
fn executable(kernel: &mut Kernel, tid: Tid, base: NodeId, path: &[u8]) -> Answer<NodeId> {
    let found =
        kernel.with_vfs(tid, |vfs, processes| vfs.lookup(At { processes, base, path }, true))?;
    let node = kernel.node_of(found)?;
    let stat = kernel.vfs.stat(node)?;
    if stat.file_type != FileType::Regular {
        return Err(Errno::ACCES.into());
    }
    kernel.vfs.access(node, Access { execute: true, ..Access::default() })?;
    Ok(node)
}

/// The file of a program.
struct ProgramFile<'k> {
    kernel: &'k mut Kernel,
    tid: Tid,
    node: NodeId,
}

impl File for ProgramFile<'_> {
    fn size(&mut self) -> Answer {
        self.kernel.node_size(self.tid, self.node)
    }

    fn read(&mut self, offset: u64, bytes: &mut [u8]) -> Answer<usize> {
        self.kernel.read_node(self.tid, self.node, offset, bytes)
    }
}

/// The first bytes of a file, in which the header is, or the first line of a script.
fn start_of(file: &mut ProgramFile<'_>) -> Answer<Vec<u8>> {
    let mut bytes = vec![0; START];
    let mut len = 0;
    loop {
        match file.read(len as u64, &mut bytes[len..])? {
            0 => break,
            got => len += got,
        }
    }
    bytes.truncate(len);
    Ok(bytes)
}

/// The first line of a script.
struct Script {
    interpreter: Vec<u8>,
    argument: Option<Vec<u8>>,
}

/// The interpreter of a script and its argument.
fn script(bytes: &[u8]) -> Result<Option<Script>, Errno> {
    let Some(line) = bytes.strip_prefix(b"#!") else { return Ok(None) };
    let line = &line[..line.len().min(FIRST_LINE)];
    let line = line.split(|byte| *byte == b'\n').next().unwrap_or(line);
    let line = line.trim_ascii();
    let end = line.iter().position(|byte| *byte == b' ' || *byte == b'\t').unwrap_or(line.len());
    let (interpreter, rest) = line.split_at(end);
    let argument = rest.trim_ascii();
    if interpreter.is_empty() {
        return Err(Errno::NOEXEC);
    }
    let argument = (!argument.is_empty()).then(|| argument.to_vec());
    Ok(Some(Script { interpreter: interpreter.to_vec(), argument }))
}

fn load_program(
    kernel: &mut Kernel,
    (tid, node, start): (Tid, NodeId, &[u8]),
    path: Vec<u8>,
    args: Vec<Vec<u8>>,
    env: &[Vec<u8>],
) -> Answer<Loaded> {
    let mut file = ProgramFile { kernel, tid, node };
    let image = Image::parse(start, &mut file)?;
    let guest = file.kernel.make_machine().map_err(out_of_memory)?;
    let mut memory = Memory::new(guest, &file.kernel.budget);
    let program = image.load(&mut memory, (node, &mut file), false)?;
    let interpreter = match image.interpreter(&mut file)? {
        None => None,
        Some(path) => {
            let root = kernel.vfs.root();
            let node = executable(kernel, tid, root, &path)?;
            let mut file = ProgramFile { kernel, tid, node };
            let start = start_of(&mut file)?;
            let image = Image::parse(&start, &mut file)?;
            Some((node, image.load(&mut memory, (node, &mut file), true)?))
        }
    };
    let mut random = [0; 16];
    kernel.random.fill(&mut random);
    let start = Start {
        path: &path,
        args: &args,
        env,
        random,
        program,
        interpreter: interpreter.map(|(_, loaded)| loaded),
    };
    let started = start.put(&mut memory)?;
    kernel.vfs.retain(node)?;
    if let Some((node, _)) = interpreter {
        kernel.vfs.retain(node)?;
    }
    let name = thread_name(&path);
    let program = Arc::new(Program {
        node,
        args,
        env: env.to_vec(),
        auxv: started.auxv,
        signal_return: started.signal_return,
        interpreter: interpreter.map(|(node, _)| node),
    });
    Ok(Loaded { memory, registers: started.registers, program, name, strings: started.strings })
}

/// The name of a program's first thread: the last part of its path.
fn thread_name(path: &[u8]) -> [u8; 16] {
    let base = path.rsplit(|byte| *byte == b'/').next().unwrap_or(path);
    let mut name = [0; 16];
    let len = base.len().min(15);
    name[..len].copy_from_slice(&base[..len]);
    name
}
