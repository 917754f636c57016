//! Unpacks Debian packages without installing them, so that nothing else on the system changes and no root
//! rights are needed. They come from the mirrors that the system uses.

use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};
use std::process::Command;

use super::{cannot, remove};
use crate::shell::{self, Outcome, command, works};

/// Packages that are not unpacked: all programs of a test run would find these libraries before the system's.
const SYSTEM: &[&str] = &["libc6", "libgcc-s1", "libstdc++6"];

/// apt-get with its own list of sources and folders, which do not need root. It resolves dependencies as if
/// nothing were installed, and checks the signatures.
pub(super) struct Apt {
    folder: PathBuf,
    /// Another architecture than the system's.
    foreign: Option<&'static str>,
}

impl Apt {
    /// Makes one that works in `folder`; fails without apt-get.
    pub(super) fn new(folder: PathBuf) -> Outcome<Apt> {
        match works("apt-get", &["--version"]) {
            true => Ok(Apt { folder, foreign: None }),
            false => Err("there is no apt-get".to_string()),
        }
    }

    /// The same for packages of another architecture.
    pub(super) fn foreign(folder: PathBuf, architecture: &'static str) -> Outcome<Apt> {
        Ok(Apt { foreign: Some(architecture), ..Apt::new(folder)? })
    }

    /// Unpacks packages and their dependencies into `root`, and removes the downloads. Those of [`SYSTEM`] are
    /// left out if they are for this system. Calls `check` with the packages first. They come from this suite,
    /// or from the system's.
    pub(super) fn unpack(
        &self,
        names: &[&str],
        suite: Option<&str>,
        root: &Path,
        check: impl FnOnce(&[PathBuf]) -> Outcome,
    ) -> Outcome {
        self.update(suite)?;
        let mut install = self.command();
        install.args(["install", "--download-only", "-y", "-qq", "--no-install-recommends"]);
        install.args(suite.iter().flat_map(|suite| ["-t", suite]));
        shell::output(install.args(names))?;
        let packages = self.downloads()?;
        check(&packages)?;
        let foreign = self.foreign.is_some();
        let wanted = |package: &&PathBuf| foreign || !SYSTEM.contains(&name(package));
        for package in packages.iter().filter(wanted) {
            shell::output(command("dpkg-deb").arg("-x").arg(package).arg(root))?;
        }
        remove(&self.folder)
    }

    /// Unpacks one package without its dependencies into `root`, and removes the download.
    pub(super) fn unpack_alone(&self, name: &str, suite: &str, root: &Path) -> Outcome {
        self.update(Some(suite))?;
        let mut download = self.command();
        download.args(["download", "-qq", "-t", suite, name]).current_dir(self.archives());
        shell::output(&mut download)?;
        for package in self.downloads()? {
            shell::output(command("dpkg-deb").arg("-x").arg(package).arg(root))?;
        }
        remove(&self.folder)
    }

    /// Makes our folders and brings the lists of packages.
    fn update(&self, suite: Option<&str>) -> Outcome {
        create(&self.archives().join("partial"))?;
        create(&self.folder.join("lists/partial"))?;
        // Replaces that file; the folder next to it is still read.
        let mut sources = std::fs::read_to_string("/etc/apt/sources.list").unwrap_or_default();
        if let Some(suite) = suite {
            sources.push_str(&line_for(&codename(), suite)?);
        }
        write(&self.folder.join("sources.list"), &sources)?;
        shell::output(self.command().args(["update", "-qq"])).map(drop)
    }

    fn archives(&self) -> PathBuf {
        self.folder.join("cache/archives")
    }

    fn downloads(&self) -> Outcome<Vec<PathBuf>> {
        let packages = list(&self.archives())?;
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
        if let Some(architecture) = self.foreign {
            option("APT::Architecture", architecture.as_ref());
            option("APT::Architectures", architecture.as_ref());
        }
        // For this apt-get, nothing is installed.
        option("Dir::State::status", "/dev/null".as_ref());
        option("Debug::NoLocking", "true".as_ref());
        option("Acquire::Retries", "3".as_ref());
        // Another user might have no access to our folder.
        option("APT::Sandbox::User", "root".as_ref());
        apt_get
    }
}

/// Returns a line for the list of sources that adds a suite, or nothing if the system has it.
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

/// Returns the name in a package's file name, `name_version_architecture.deb`.
pub(super) fn name(package: &Path) -> &str {
    let file = package.file_name().and_then(OsStr::to_str).unwrap_or_default();
    file.split('_').next().unwrap_or_default()
}

/// Returns the distribution's code name, such as `bookworm`.
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
