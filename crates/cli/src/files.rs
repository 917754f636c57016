//! Reads and writes files: nothing is read forever, and nothing is left half written.

use std::fs::{self, File, OpenOptions};
use std::io::{self, BufWriter, Read, Write};
use std::path::Path;

use tempfile::NamedTempFile;

use crate::failure::{Failure, Result};

/// Limit of bytes of a file of text.
const MOST_TEXT: u64 = 256 << 20;

/// Reads a file, or standard input if its name is `-`; at most one byte more than `most`.
fn read(path: &Path, most: u64) -> Result<Vec<u8>> {
    let mut bytes = Vec::new();
    // One more, to recognise a file that is too large.
    let read = match path.as_os_str() == "-" {
        true => io::stdin().take(most.saturating_add(1)).read_to_end(&mut bytes),
        false => {
            refuse_devices(path)?;
            File::open(path)
                .and_then(|file| file.take(most.saturating_add(1)).read_to_end(&mut bytes))
        }
    };
    read.map_err(|error| Failure::file("read", path, &error))?;
    Ok(bytes)
}

/// Refuses devices: they may have no end, and reading may change them.
fn refuse_devices(path: &Path) -> Result<()> {
    match fs::metadata(path) {
        Ok(metadata) if is_device(&metadata) => Err(Failure::Host(format!(
            "{} is a device, and not a file: name a file, or - for standard input",
            path.display()
        ))),
        // Opening it reports anything else that is wrong.
        Ok(_) | Err(_) => Ok(()),
    }
}

#[cfg(unix)]
fn is_device(metadata: &fs::Metadata) -> bool {
    use std::os::unix::fs::FileTypeExt;
    let kind = metadata.file_type();
    kind.is_char_device() || kind.is_block_device()
}

#[cfg(not(unix))]
fn is_device(_: &fs::Metadata) -> bool {
    false
}

/// Reads a file of text, or standard input if its name is `-`.
pub(crate) fn read_text(path: &Path) -> Result<String> {
    let name = if path.as_os_str() == "-" {
        "standard input".to_string()
    } else {
        path.display().to_string()
    };
    let bytes = read(path, MOST_TEXT)?;
    if bytes.len() as u64 > MOST_TEXT {
        let message = format!("{name} has more than 256 MiB of text: split it");
        return Err(Failure::Host(message));
    }
    String::from_utf8(bytes).map_err(|_| Failure::Host(format!("{name} is not text (UTF-8)")))
}

/// Reads a file of machine code, or standard input if its name is `-`; at most one byte more than `most`.
pub(crate) fn read_code(path: &Path, most: u64) -> Result<Vec<u8>> {
    let code = read(path, most)?;
    match other_than_code(&code) {
        Some(what) => Err(Failure::Host(format!("{} is {what}", path.display()))),
        None => Ok(code),
    }
}

/// Returns the length of a file, if it is known.
pub(crate) fn length(path: &Path) -> Option<u64> {
    fs::metadata(path).ok().filter(fs::Metadata::is_file).map(|metadata| metadata.len())
}

/// Says what a file is that is not machine code, and what to do with it.
fn other_than_code(bytes: &[u8]) -> Option<&'static str> {
    // Code has bytes of zero and the like nearly everywhere.
    let is_text = |text: &str| text.chars().all(|c| !c.is_control() || c.is_ascii_whitespace());
    match bytes {
        [] => Some("empty"),
        [0x7f, b'E', b'L', b'F', ..] => Some(
            "an ELF file, which kvrm does not load: it runs plain machine code, such as `objcopy -O binary` takes \
             out of a program that needs no operating system",
        ),
        _ if std::str::from_utf8(bytes).is_ok_and(is_text) => {
            Some("text, and not machine code: if it is assembly, `kvrm asm` makes a program of it")
        }
        _ => None,
    }
}

/// Writes a file completely or, if something goes wrong (such as a full disk), leaves it as it was.
pub(crate) fn write(
    path: &Path,
    contents: impl FnOnce(&mut dyn Write) -> io::Result<()>,
) -> Result<()> {
    let written = match fs::metadata(path) {
        // Devices and pipes cannot be replaced by a file.
        Ok(there) if !there.is_file() => {
            OpenOptions::new().write(true).open(path).and_then(|file| fill(&file, contents))
        }
        there => replace(path, there.ok(), contents),
    };
    written.map_err(|error| Failure::file("write", path, &error))
}

/// Writes a new file next to the old one, which it then replaces.
fn replace(
    path: &Path,
    old: Option<fs::Metadata>,
    contents: impl FnOnce(&mut dyn Write) -> io::Result<()>,
) -> io::Result<()> {
    // Through symbolic links, which stay.
    let path = fs::canonicalize(path).unwrap_or_else(|_| path.to_path_buf());
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
    if old.is_some() {
        // One that must not be written must not be replaced.
        OpenOptions::new().write(true).open(&path)?;
    }
    let new = new_file(folder.unwrap_or(Path::new("."))).map_err(plain)?;
    fill(new.as_file(), contents)?;
    if let Some(old) = old {
        new.as_file().set_permissions(old.permissions())?;
    }
    // Some systems report only now that the disk is full.
    new.as_file().sync_all()?;
    new.persist(&path).map_err(|error| error.error)?;
    Ok(())
}

/// Removes the name of the temporary file, which the user did not choose, from an error.
fn plain(error: io::Error) -> io::Error {
    error.kind().into()
}

#[cfg(unix)]
fn new_file(folder: &Path) -> io::Result<NamedTempFile> {
    use std::os::unix::fs::PermissionsExt;
    // As for any new file; the user's umask restricts them.
    let permissions = fs::Permissions::from_mode(0o666);
    tempfile::Builder::new().prefix(".kvrm-").permissions(permissions).tempfile_in(folder)
}

#[cfg(not(unix))]
fn new_file(folder: &Path) -> io::Result<NamedTempFile> {
    tempfile::Builder::new().prefix(".kvrm-").tempfile_in(folder)
}

fn fill(file: &File, contents: impl FnOnce(&mut dyn Write) -> io::Result<()>) -> io::Result<()> {
    let mut out = BufWriter::new(file);
    contents(&mut out)?;
    out.flush()
}

#[cfg(test)]
mod tests {
    use tempfile::TempDir;

    use super::*;

    fn names(folder: &TempDir) -> Vec<String> {
        let entries = fs::read_dir(folder.path()).unwrap();
        entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect()
    }

    #[test]
    fn a_file_is_whole_or_as_it_was() {
        let folder = TempDir::new().unwrap();
        let path = folder.path().join("picture.png");
        let full = |out: &mut dyn Write| {
            out.write_all(&[1; 100_000])?;
            Err(io::ErrorKind::StorageFull.into())
        };
        let error = write(&path, full).unwrap_err();
        assert!(error.message().is_some_and(|text| text.contains("picture.png")));
        assert_eq!(names(&folder), [""; 0]);
        write(&path, |out| out.write_all(b"old")).unwrap();
        write(&path, full).unwrap_err();
        assert_eq!(fs::read(&path).unwrap(), b"old");
        write(&path, |out| out.write_all(b"new")).unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"new");
        assert_eq!(names(&folder), ["picture.png"]);
    }

    #[cfg(unix)]
    #[test]
    fn what_is_there_keeps_its_place_and_permissions() {
        use std::os::unix::fs::PermissionsExt;
        let folder = TempDir::new().unwrap();
        let (file, link) = (folder.path().join("file"), folder.path().join("link"));
        write(&file, |out| out.write_all(b"old")).unwrap();
        fs::set_permissions(&file, fs::Permissions::from_mode(0o640)).unwrap();
        std::os::unix::fs::symlink(&file, &link).unwrap();
        write(&link, |out| out.write_all(b"new")).unwrap();
        assert_eq!(fs::read(&file).unwrap(), b"new");
        assert_eq!(fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o640);
        assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
    }
}
