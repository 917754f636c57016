//! Debian packages that are unpacked, not installed, so that nothing else on the system changes and nobody
//! need be root. They come from the mirrors that the system uses anyway.

use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};
use std::process::Command;

use super::{cannot, remove};
use crate::shell::{self, Outcome, command, works};

/// Packages whose libraries stay the system's, as all programs of a test run find ours first.
const SYSTEM: &[&str] = &["libc6", "libgcc-s1", "libstdc++6"];

/// apt-get with a list of sources and folders of its own, which do not need root. It works out what packages
/// need as if nothing were installed, and checks the signatures.
pub(super) struct Apt {
    folder: PathBuf,
}

impl Apt {
    /// One that works in `folder`; without apt-get, there is none.
    pub(super) fn new(folder: PathBuf) -> Outcome<Apt> {
        match works("apt-get", &["--version"]) {
            true => Ok(Apt { folder }),
            false => Err("there is no apt-get".to_string()),
        }
    }

    /// Unpacks packages and all that they need into `root`, except those of [`SYSTEM`], and removes what was
    /// downloaded. `check` sees the packages first. They are of this suite, or of the system's.
    pub(super) fn unpack(
        &self,
        names: &[&str],
        suite: Option<&str>,
        root: &Path,
        check: impl FnOnce(&[PathBuf]) -> Outcome,
    ) -> Outcome {
        let packages = self.download(names, suite)?;
        check(&packages)?;
        for package in packages.iter().filter(|package| !SYSTEM.contains(&name(package))) {
            shell::output(command("dpkg-deb").arg("-x").arg(package).arg(root))?;
        }
        remove(&self.folder)
    }

    fn download(&self, names: &[&str], suite: Option<&str>) -> Outcome<Vec<PathBuf>> {
        let archives = self.folder.join("cache/archives");
        create(&archives.join("partial"))?;
        create(&self.folder.join("lists/partial"))?;
        // Takes the place of that file; the folder beside it is read as ever.
        let mut sources = std::fs::read_to_string("/etc/apt/sources.list").unwrap_or_default();
        if let Some(suite) = suite {
            sources.push_str(&line_for(&codename(), suite)?);
        }
        write(&self.folder.join("sources.list"), &sources)?;
        shell::output(self.command().args(["update", "-qq"]))?;
        let mut install = self.command();
        install.args(["install", "--download-only", "-y", "-qq", "--no-install-recommends"]);
        install.args(suite.iter().flat_map(|suite| ["-t", suite]));
        shell::output(install.args(names))?;
        let packages = list(&archives)?;
        Ok(packages.into_iter().filter(|path| path.extension() == Some("deb".as_ref())).collect())
    }

    fn command(&self) -> Command {
        let mut apt_get = command("apt-get");
        let mut option = |name: &str, value: &OsStr| {
            let mut setting = OsString::from(name);
            setting.push("=");
            setting.push(value);
            apt_get.arg("-o").arg(setting);
        };
        for (name, path) in [
            ("Dir::Etc::SourceList", "sources.list"),
            ("Dir::State::Lists", "lists"),
            ("Dir::Cache", "cache"),
        ] {
            option(name, self.folder.join(path).as_os_str());
        }
        // Nothing is installed, as far as this apt-get knows.
        option("Dir::State::status", "/dev/null".as_ref());
        option("Debug::NoLocking", "true".as_ref());
        option("Acquire::Retries", "3".as_ref());
        // Another user might not reach our folder.
        option("APT::Sandbox::User", "root".as_ref());
        apt_get
    }
}

/// A line for the list of sources that adds a suite, or nothing if the system has it.
fn line_for(codename: &str, suite: &str) -> Outcome<String> {
    let mut command = command("apt-get");
    command.args(["indextargets", "--no-release-info", "--format"]);
    command.args(["$(RELEASE) $(COMPONENT) $(REPO_URI)", "Created-By: Packages"]);
    let targets = shell::output(&mut command)?;
    let mirror = |suite: &str| {
        let start = format!("{suite} main ");
        targets.lines().find_map(|line| line.strip_prefix(start.as_str()))
    };
    match (mirror(suite), mirror(codename)) {
        (Some(_), _) => Ok(String::new()),
        (None, Some(uri)) => Ok(format!("\ndeb {uri} {suite} main\n")),
        (None, None) => Err(format!(
            "apt's sources name no mirror of {codename}: add {suite} to them, see \
             /etc/apt/sources.list"
        )),
    }
}

/// The name in a package's file name, `name_version_architecture.deb`.
pub(super) fn name(package: &Path) -> &str {
    let file = package.file_name().and_then(OsStr::to_str).unwrap_or_default();
    file.split('_').next().unwrap_or_default()
}

/// The distribution's, such as `bookworm`.
pub(super) fn codename() -> String {
    let release = std::fs::read_to_string("/etc/os-release").unwrap_or_default();
    let codename = release.lines().find_map(|line| line.strip_prefix("VERSION_CODENAME="));
    codename.unwrap_or("unknown").trim_matches('"').to_string()
}

pub(super) fn list(folder: &Path) -> Outcome<Vec<PathBuf>> {
    std::fs::read_dir(folder)
        .and_then(|entries| entries.map(|entry| Ok(entry?.path())).collect())
        .map_err(|error| cannot("list", folder, &error))
}

pub(super) fn create(folder: &Path) -> Outcome {
    std::fs::create_dir_all(folder).map_err(|error| cannot("create", folder, &error))
}

pub(super) fn write(file: &Path, text: &str) -> Outcome {
    std::fs::write(file, text).map_err(|error| cannot("write", file, &error))
}
