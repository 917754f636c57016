//! Running programs.

use std::sync::Arc;

use kvrm_a64::state::CpuState;

use crate::Errno;
use crate::answer::Answer;
use crate::elf::Image;
use crate::kernel::Kernel;
use crate::memory::{Memory, out_of_memory};
use crate::process::Program;
use crate::start::Start;
use crate::thread::Tid;
use crate::vfs::{Access, At, FileType, NodeId};

/// Bytes of a program's file, at the most.
const MOST_BYTES: u64 = 1 << 30;
/// Scripts whose interpreters are scripts, at the most.
const MOST_SCRIPTS: u32 = 4;
/// Bytes of a script's first line that count.
const FIRST_LINE: usize = 256;

/// A program that is ready to run.
pub(crate) struct Loaded {
    pub(crate) memory: Memory,
    pub(crate) registers: CpuState,
    pub(crate) program: Arc<Program>,
    pub(crate) name: [u8; 16],
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
        let bytes = kernel.read_program(tid, node)?;
        match script(&bytes)? {
            None => return load_program(kernel, tid, node, &bytes, path, args, env),
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

impl Kernel {
    /// The file of a program, which may have holes but must not be larger than memory.
    fn read_program(&mut self, tid: Tid, node: NodeId) -> Answer<Vec<u8>> {
        self.read_whole(tid, node, MOST_BYTES.min(self.limits.memory))
    }
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
    tid: Tid,
    node: NodeId,
    bytes: &[u8],
    path: Vec<u8>,
    args: Vec<Vec<u8>>,
    env: &[Vec<u8>],
) -> Answer<Loaded> {
    let image = Image::parse(bytes)?;
    let guest = kernel.make_machine().map_err(out_of_memory)?;
    let mut memory = Memory::new(guest, &kernel.budget);
    let program = image.load(&mut memory, node, false)?;
    let interpreter = match image.interpreter()? {
        None => None,
        Some(path) => {
            let root = kernel.vfs.root();
            let node = executable(kernel, tid, root, path)?;
            let bytes = kernel.read_program(tid, node)?;
            Some((node, Image::parse(&bytes)?.load(&mut memory, node, true)?))
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
    Ok(Loaded { memory, registers: started.registers, program, name })
}

/// The name of a program's first thread: the last part of its path.
fn thread_name(path: &[u8]) -> [u8; 16] {
    let base = path.rsplit(|byte| *byte == b'/').next().unwrap_or(path);
    let mut name = [0; 16];
    let len = base.len().min(15);
    name[..len].copy_from_slice(&base[..len]);
    name
}
