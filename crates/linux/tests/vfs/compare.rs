//! Random operations, here and on the host: the results, the numbers of errors and the files must be the same.

use std::path::{Path, PathBuf};

use kvrm_linux::Errno;
use kvrm_linux::vfs::{At, Bind, FileType, Found, NodeId, OpenFlags, RenameMode, Setup, Vfs};
use kvrm_random::Random;

use crate::host_side::{HostSide, Outcome};
use crate::support::{NOBODY, setup};

const SLOTS: usize = 4;
/// Where operations start, so that `..` rarely leaves the directory.
const BASE: &str = "n/n/n/n/n/n/n/n";

/// The guest's side of a comparison.
struct GuestSide {
    vfs: Vfs,
    top: NodeId,
    base: NodeId,
    top_path: Vec<u8>,
    slots: Vec<Option<NodeId>>,
}

fn number<T>(result: Result<T, Errno>) -> Result<T, u16> {
    result.map_err(Errno::number)
}

fn done<T>(result: Result<T, Errno>) -> Outcome {
    number(result).map(|_| String::new())
}

impl GuestSide {
    fn at<'a>(&self, base: Option<usize>, path: &'a str) -> At<'a> {
        let slot = base.and_then(|slot| self.slots[slot]);
        At { processes: &NOBODY, base: slot.unwrap_or(self.base), path: path.as_bytes() }
    }

    fn open(&mut self, base: Option<usize>, path: &str, flags: OpenFlags, slot: usize) -> Outcome {
        match number(self.vfs.open(self.at(base, path), flags, 0o644))? {
            Found::Node(node) => {
                self.close(slot);
                self.slots[slot] = Some(node);
                Ok(String::new())
            }
            Found::Descriptor { .. } => panic!("no path leads to /proc"),
        }
    }

    fn close(&mut self, slot: usize) {
        if let Some(node) = self.slots[slot].take() {
            self.vfs.release(node);
        }
    }

    fn lookup(&mut self, base: Option<usize>, path: &str, follow: bool) -> Result<NodeId, Errno> {
        self.vfs.lookup(self.at(base, path), follow)?.node()
    }

    fn link(
        &mut self,
        from: (Option<usize>, &str),
        follow: bool,
        to: (Option<usize>, &str),
    ) -> Outcome {
        let node = number(self.lookup(from.0, from.1, follow))?;
        done(self.vfs.link(node, self.at(to.0, to.1)))
    }

    fn readlink(&mut self, base: Option<usize>, path: &str) -> Outcome {
        let node = number(self.lookup(base, path, false))?;
        Ok(String::from_utf8(number(self.vfs.readlink(&NOBODY, node))?).unwrap())
    }

    fn stat(&mut self, base: Option<usize>, path: &str, follow: bool) -> Outcome {
        let node = number(self.lookup(base, path, follow))?;
        self.describe(node)
    }

    fn describe(&mut self, node: NodeId) -> Outcome {
        let stat = number(self.vfs.stat(node))?;
        let directory = stat.mode() & 0o170000 == 0o040000;
        let regular = stat.mode() & 0o170000 == 0o100000;
        let size = if directory { 0 } else { stat.size };
        let links = if regular { stat.links } else { 0 };
        Ok(format!("mode {:o}, {links} links, {size} bytes", stat.mode()))
    }

    fn slot(&self, slot: usize) -> Result<NodeId, u16> {
        self.slots[slot].ok_or(0)
    }

    fn read(&mut self, slot: usize, offset: u64, len: usize) -> Outcome {
        let mut buffer = vec![0; len];
        let node = self.slot(slot)?;
        let count = number(self.vfs.read(&NOBODY, node, offset, &mut buffer))?;
        Ok(format!("{:?}", &buffer[..count]))
    }

    fn read_dir(&mut self, node: NodeId) -> Outcome {
        let entries = number(self.vfs.read_dir(&NOBODY, node))?;
        let names: Vec<_> =
            entries.into_iter().map(|e| String::from_utf8(e.name).unwrap()).collect();
        let mut sorted = names.clone();
        sorted[2..].sort();
        assert_eq!(names, sorted);
        sorted.sort();
        Ok(sorted.join(" "))
    }

    fn path(&mut self, slot: usize) -> Outcome {
        let path = number(self.vfs.link_text(self.slot(slot)?))?;
        let path = path.strip_prefix(&self.top_path[..]).unwrap();
        Ok(String::from_utf8(path.strip_prefix(b"/").unwrap_or(path).to_vec()).unwrap())
    }

    fn tree(&mut self) -> String {
        let mut text = String::new();
        self.tree_of(self.top, "", &mut text);
        text
    }

    fn tree_of(&mut self, directory: NodeId, path: &str, text: &mut String) {
        for entry in self.vfs.read_dir(&NOBODY, directory).unwrap().into_iter().skip(2) {
            let name = String::from_utf8(entry.name).unwrap();
            let at = At { processes: &NOBODY, base: directory, path: name.as_bytes() };
            let node = self.vfs.lookup(at, false).unwrap().node().unwrap();
            let stat = self.vfs.stat(node).unwrap();
            assert_eq!((stat.inode, stat.file_type), (entry.inode, entry.file_type));
            let path = format!("{path}/{name}");
            text.push_str(&format!("{path}: {}", self.describe(node).unwrap()));
            match stat.mode() & 0o170000 {
                0o120000 => {
                    let target = self.vfs.readlink(&NOBODY, node).unwrap();
                    text.push_str(&format!(" -> {}\n", String::from_utf8(target).unwrap()));
                }
                0o040000 => {
                    text.push('\n');
                    self.tree_of(node, &path, text);
                }
                _ => {
                    let mut bytes = vec![0; stat.size as usize];
                    let count = self.vfs.read(&NOBODY, node, 0, &mut bytes).unwrap();
                    let sum = bytes[..count]
                        .iter()
                        .fold(7u64, |sum, byte| sum * 31 % 1_000_003 + u64::from(*byte));
                    text.push_str(&format!(" sum {sum}\n"));
                }
            }
        }
    }
}

/// Deletes everything in a directory but what leads to where operations start.
fn delete_all(vfs: &mut Vfs, directory: NodeId) {
    for entry in vfs.read_dir(&NOBODY, directory).unwrap().into_iter().skip(2) {
        let at = At { processes: &NOBODY, base: directory, path: &entry.name };
        if entry.file_type != FileType::Directory {
            vfs.unlink(at).unwrap();
            continue;
        }
        let inner = vfs.lookup(at, false).unwrap().node().unwrap();
        delete_all(vfs, inner);
        if entry.name != b"n" {
            vfs.rmdir(at).unwrap();
        }
    }
}

/// A path of few components, which often exists.
fn path(random: &mut Random, top: &str) -> String {
    if random.once_in(60) {
        // Not "/": that is another directory on the host.
        return random.pick(&["", ".", "..", "a/../a", "./"]).to_owned();
    }
    if random.once_in(80) {
        return format!("a/{}", "x".repeat(random.pick(&[255, 256, 5000])));
    }
    let mut path = String::new();
    if random.once_in(12) {
        path.push_str(top);
        path.push('/');
        path.push_str(BASE);
        path.push('/');
    }
    for index in 0..random.pick(&[1, 1, 1, 2, 2, 3]) {
        if index > 0 {
            path.push_str(random.pick(&["/", "/", "/", "//"]));
        }
        path.push_str(random.pick(&["a", "a", "a", "b", "b", "b", "c", "c", ".", ".."]));
    }
    if random.once_in(10) {
        path.push_str(random.pick(&["/", "//", "/."]));
    }
    path
}

fn flags(random: &mut Random) -> OpenFlags {
    let access = random.below(4);
    let (read, write) = (access != 1, access > 0);
    if random.once_in(15) {
        // Other flags have no meaning besides.
        return OpenFlags { read: true, write, temporary: true, ..OpenFlags::default() };
    }
    let create = random.once_in(2);
    OpenFlags {
        read,
        write,
        create,
        exclusive: random.once_in(4) && create,
        truncate: random.once_in(5),
        directory: random.once_in(6),
        no_follow: random.once_in(6),
        path_only: random.once_in(12),
        temporary: false,
    }
}

/// Does one operation on both sides; returns what it was, and both outcomes.
fn step(
    random: &mut Random,
    top: &str,
    host: &mut HostSide,
    guest: &mut GuestSide,
) -> (String, Outcome, Outcome) {
    let base = |random: &mut Random| random.once_in(4).then(|| random.below(SLOTS as u64) as usize);
    let (base1, base2) = (base(random), base(random));
    let (path1, path2) = (path(random, top), path(random, top));
    let (p, q) = (&path1[..], &path2[..]);
    let slot = random.below(SLOTS as u64) as usize;
    let (at, text) = (guest.at(base1, p), format!("{base1:?} {p:?}"));
    match random.below(24) {
        0..=4 => {
            let flags = flags(random);
            let outcomes = (host.open(base1, p, flags, slot), guest.open(base1, p, flags, slot));
            (format!("open {text} {flags:?} as {slot}"), outcomes.0, outcomes.1)
        }
        5..=7 => (format!("mkdir {text}"), host.mkdir(base1, p), done(guest.vfs.mkdir(at, 0o755))),
        8 => (format!("unlink {text}"), host.unlink(base1, p), done(guest.vfs.unlink(at))),
        9 => (format!("rmdir {text}"), host.rmdir(base1, p), done(guest.vfs.rmdir(at))),
        10..=11 => {
            let ours = done(guest.vfs.symlink(at, q.as_bytes()));
            (format!("symlink {q:?} at {text}"), host.symlink(q, base1, p), ours)
        }
        12..=13 => {
            let follow = random.once_in(2);
            let outcomes = (
                host.link((base1, p), follow, (base2, q)),
                guest.link((base1, p), follow, (base2, q)),
            );
            (format!("link {text} {base2:?} {q:?}, follow {follow}"), outcomes.0, outcomes.1)
        }
        14..=17 => {
            let mode = random.pick(&[
                RenameMode::Replace,
                RenameMode::Replace,
                RenameMode::NoReplace,
                RenameMode::Exchange,
            ]);
            let ours = done(guest.vfs.rename(at, guest.at(base2, q), mode));
            (
                format!("rename {text} {base2:?} {q:?} {mode:?}"),
                host.rename((base1, p), (base2, q), mode),
                ours,
            )
        }
        18 if !p.is_empty() => {
            (format!("readlink {text}"), host.readlink(base1, p), guest.readlink(base1, p))
        }
        18 | 19 => {
            let follow = random.once_in(2);
            (
                format!("stat {text}, follow {follow}"),
                host.stat(base1, p, follow),
                guest.stat(base1, p, follow),
            )
        }
        _ => step_open(random, slot, host, guest),
    }
}

/// Does something with an open file.
fn step_open(
    random: &mut Random,
    slot: usize,
    host: &mut HostSide,
    guest: &mut GuestSide,
) -> (String, Outcome, Outcome) {
    let offset = random.pick(&[0, 1, 100, 4095, 65_530, 65_536, 131_000]) + random.below(10);
    let stat = host.stat_slot(slot);
    let is = |kind: &str| stat.as_ref().is_ok_and(|stat| stat.starts_with(kind));
    let (file, directory) = (is("mode 10"), is("mode 4"));
    let Ok(node) = guest.slot(slot) else { return ("nothing".into(), stat, Err(0)) };
    match random.below(6) {
        0 if file => {
            let bytes = vec![random.below(256) as u8; random.below(200) as usize];
            let theirs = host.write(slot, offset, &bytes);
            // Whether a file is open for writing is not the business of the file system.
            let ours = match theirs {
                Err(error) if error == Errno::BADF.number() => theirs.clone(),
                _ => number(guest.vfs.write(node, offset, &bytes)).map(|count| count.to_string()),
            };
            (format!("write {slot} at {offset}: {} bytes", bytes.len()), theirs, ours)
        }
        1 if file => {
            let theirs = host.truncate(slot, offset);
            let ours = match theirs {
                Err(error) if error == Errno::BADF.number() || error == Errno::INVAL.number() => {
                    theirs.clone()
                }
                _ => done(guest.vfs.truncate(node, offset)),
            };
            (format!("truncate {slot} to {offset}"), theirs, ours)
        }
        2 if file => {
            let theirs = host.read(slot, offset, 300);
            let ours = match theirs {
                Err(error) if error == Errno::BADF.number() => theirs.clone(),
                _ => guest.read(slot, offset, 300),
            };
            (format!("read {slot} at {offset}"), theirs, ours)
        }
        0..=2 if directory => (format!("list {slot}"), host.read_dir(slot), guest.read_dir(node)),
        3 if directory => (format!("path {slot}"), host.path(slot), guest.path(slot)),
        4 => {
            host.close(slot);
            guest.close(slot);
            (format!("close {slot}"), Ok(String::new()), Ok(String::new()))
        }
        _ => (format!("stat {slot}"), stat, guest.describe(node)),
    }
}

/// How the guest gets its files.
#[derive(Clone, Copy, Debug)]
enum Given {
    Memory,
    Overlay,
    Through,
}

/// Makes some files to begin with.
fn fill(base: &Path) {
    std::fs::create_dir_all(base.join("a/b")).unwrap();
    std::fs::create_dir_all(base.join("b/c")).unwrap();
    std::fs::write(base.join("a/c"), "contents of a/c").unwrap();
    std::fs::write(base.join("b/a"), vec![5; 100_000]).unwrap();
    std::os::unix::fs::symlink("a/b", base.join("c")).unwrap();
    std::os::unix::fs::symlink("../a", base.join("b/b")).unwrap();
}

/// Gives the guest a directory with the same path as on the host, so that links can be absolute.
fn guest_side(given: Given, top: &Path, copy: &Path) -> GuestSide {
    let path = top.as_os_str().as_encoded_bytes().to_vec();
    let bind = |writable| Bind { host: copy.to_owned(), guest: path.clone(), writable };
    let binds = match given {
        Given::Memory => Vec::new(),
        Given::Overlay => vec![bind(false)],
        Given::Through => vec![bind(true)],
    };
    let mut vfs = Vfs::new(Setup { binds, ..setup() }).unwrap();
    if matches!(given, Given::Memory) {
        let all = format!("{}/{BASE}", top.display());
        for (index, _) in all.match_indices('/').skip(1).chain([(all.len(), "")]) {
            let at = At { processes: &NOBODY, base: vfs.root(), path: &all.as_bytes()[..index] };
            let made = vfs.mkdir(at, 0o755).map(drop);
            assert!(matches!(made, Ok(()) | Err(Errno::EXIST)), "{made:?}");
        }
    }
    let find = |vfs: &mut Vfs, path: &str| {
        let at = At { processes: &NOBODY, base: vfs.root(), path: path.as_bytes() };
        vfs.lookup(at, true).unwrap().node().unwrap()
    };
    let (top, base) = (
        find(&mut vfs, top.to_str().unwrap()),
        find(&mut vfs, &format!("{}/{BASE}", top.display())),
    );
    vfs.retain(base).unwrap();
    GuestSide { vfs, top, base, top_path: path, slots: vec![None; SLOTS] }
}

fn compare(seed: u64, given: Given, steps: usize) {
    let (theirs, copy) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let top: PathBuf = theirs.path().canonicalize().unwrap();
    for directory in [&top, &copy.path().to_owned()] {
        std::fs::create_dir_all(directory.join(BASE)).unwrap();
        if !matches!(given, Given::Memory) {
            fill(&directory.join(BASE));
        }
    }
    let mut host = HostSide::new(&top, &top.join(BASE), SLOTS);
    let mut guest = guest_side(given, &top, copy.path());
    let mut random = Random::new(seed);
    let text = top.to_str().unwrap();
    let mut done = Vec::new();
    let used = guest.vfs.used();
    for index in 0..steps {
        let (what, expected, got) = step(&mut random, text, &mut host, &mut guest);
        done.push(format!("{what} = {expected:?}"));
        let last = &done[done.len().saturating_sub(30)..];
        let context = || format!("seed {seed}, {given:?}, step {index}:\n{}\n", last.join("\n"));
        assert!(expected == got, "{}here: {got:?}", context());
        if index % 16 == 15 {
            let (expected, got) = (host.tree(), guest.tree());
            assert!(expected == got, "{}expected:\n{expected}\nhere:\n{got}", context());
        }
    }
    // Everything that counted is given back in the end.
    (0..SLOTS).for_each(|slot| guest.close(slot));
    delete_all(&mut guest.vfs, guest.top);
    assert_eq!(guest.vfs.used(), used, "seed {seed}, {given:?}");
}

#[test]
fn in_memory() {
    for seed in 0..100 {
        compare(seed, Given::Memory, 160);
    }
}

#[test]
fn over_a_directory_of_the_host() {
    for seed in 1000..1100 {
        compare(seed, Given::Overlay, 160);
    }
}

#[test]
fn in_a_writable_directory_of_the_host() {
    for seed in 2000..2100 {
        compare(seed, Given::Through, 160);
    }
}
