//! Lavapipe, Mesa's Vulkan driver for the CPU. It is unpacked into `.cache/`, not installed, so that nothing
//! else on the system changes and no root rights are needed.
//!
//! It must be of Mesa 25 or later. The Mesa 22.3 of Debian 12 silently ends loops after 65,535 iterations,
//! so there it comes from bookworm-backports.

use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};

use super::apt::{Apt, codename, list, name, write};
use super::{cannot, remove};
use crate::shell::{self, Outcome, command, root};

/// The oldest version of Mesa that works.
const OLDEST: u32 = 25;

/// Distributions whose own Mesa is too old, and the suites with a newer one.
const BACKPORTS: &[(&str, &str)] = &[("bookworm", "bookworm-backports")];

const DRIVER: &str = "libvulkan_lvp.so";

const BY_HAND: &str =
    "set KVRM_LAVAPIPE_ICD to the lvp_icd file (JSON) of any lavapipe of Mesa 25 or later";

/// Returns the environment variables with which programs that use Vulkan find only lavapipe: the one whose JSON
/// file the environment names, or one in `.cache/`. `KVRM_LAVAPIPE_ICD` is always set.
pub(crate) fn lavapipe() -> Outcome<Vec<(&'static str, OsString)>> {
    let shaders = root().join(".cache/mesa-shaders");
    let mut environment = vec![("MESA_SHADER_CACHE_DIR", shaders.into_os_string())];
    let icd = match std::env::var_os("KVRM_LAVAPIPE_ICD").map(PathBuf::from) {
        // Tests run in other folders.
        Some(icd) => icd.canonicalize().map_err(|e| cannot("use KVRM_LAVAPIPE_ICD,", &icd, &e))?,
        None => {
            let folder = root().join(".cache/lavapipe");
            bring(&folder).map_err(|error| format!("no lavapipe: {error}. Or {BY_HAND}"))?;
            environment.push(("LD_LIBRARY_PATH", library_path(&folder)?));
            write_icd(&folder)?
        }
    };
    for name in ["VK_DRIVER_FILES", "KVRM_LAVAPIPE_ICD"] {
        environment.push((name, icd.clone().into_os_string()));
    }
    Ok(environment)
}

/// Downloads and unpacks it, unless that is done. The file `version` is written last; it also names the
/// distribution, whose C library must fit.
fn bring(folder: &Path) -> Outcome {
    let codename = codename();
    let version_file = folder.join("version");
    let done = std::fs::read_to_string(&version_file).unwrap_or_default();
    if done.split_once(' ').is_some_and(|(of, _)| of == codename) {
        return Ok(());
    }
    println!("unpacking lavapipe into .cache/lavapipe");
    remove(folder)?;
    let mut found = String::new();
    let suite = BACKPORTS.iter().find(|(of, _)| *of == codename).map(|(_, suite)| *suite);
    let names = ["mesa-vulkan-drivers", "libvulkan1"];
    Apt::new(folder.join("apt"))?.unpack(&names, suite, &folder.join("root"), |packages| {
        found = version(packages)?;
        Ok(())
    })?;
    loads(folder)?;
    write(&version_file, &format!("{codename} {found}\n"))
}

/// Returns the version of Mesa in these packages, if it is one that computes correctly.
fn version(packages: &[PathBuf]) -> Outcome<String> {
    let driver = packages.iter().find(|package| name(package) == "mesa-vulkan-drivers");
    let driver = driver.ok_or("apt-get downloaded no mesa-vulkan-drivers")?;
    let version = shell::output(command("dpkg-deb").arg("-f").arg(driver).arg("Version"))?;
    let version = version.trim().to_string();
    let major = version.split('.').next().and_then(|major| major.parse::<u32>().ok());
    match major {
        Some(major) if major >= OLDEST => Ok(version),
        _ => Err(format!(
            "this system's packages have Mesa {version}, and it must be {OLDEST} or later"
        )),
    }
}

/// Checks that the driver and the loader find all libraries they need.
fn loads(folder: &Path) -> Outcome {
    let script = format!("import ctypes; [ctypes.CDLL(l) for l in ('{DRIVER}', 'libvulkan.so.1')]");
    let mut python = command("python3");
    python.args(["-c", &script]).env("LD_LIBRARY_PATH", library_path(folder)?);
    shell::output(&mut python).map(drop)
}

/// Returns our folders of libraries, then those of the environment.
fn library_path(folder: &Path) -> Outcome<OsString> {
    let ours = libraries(folder)?;
    // Packages put libraries into either; both have the same subfolder.
    let triple = ours.file_name().expect("a folder in usr/lib");
    let others = std::env::var_os("LD_LIBRARY_PATH").unwrap_or_default();
    let paths = [ours.clone(), folder.join("root/lib").join(triple)];
    // An empty path would mean the current folder.
    let others = std::env::split_paths(&others).filter(|path| !path.as_os_str().is_empty());
    std::env::join_paths(paths.into_iter().chain(others))
        .map_err(|error| format!("cannot set LD_LIBRARY_PATH: {error}"))
}

/// Returns the folder of the driver.
fn libraries(folder: &Path) -> Outcome<PathBuf> {
    let folders = list(&folder.join("root/usr/lib"))?;
    let found = folders.into_iter().find(|folder| folder.join(DRIVER).is_file());
    found.ok_or_else(|| format!("{} has no {DRIVER}; remove that folder", folder.display()))
}

/// Writes the driver's JSON file with the full path of the library. It is written every time, because the
/// repository may have moved.
fn write_icd(folder: &Path) -> Outcome<PathBuf> {
    let manifests = list(&folder.join("root/usr/share/vulkan/icd.d"))?;
    let manifest = manifests.iter().find(|path| {
        path.file_name().and_then(OsStr::to_str).is_some_and(|name| name.starts_with("lvp_icd"))
    });
    let manifest = manifest.ok_or("mesa-vulkan-drivers has no lvp_icd file")?;
    let text = std::fs::read_to_string(manifest).map_err(|e| cannot("read", manifest, &e))?;
    let mut icd: serde_json::Value =
        serde_json::from_str(&text).map_err(|e| format!("{}: {e}", manifest.display()))?;
    icd["ICD"]["library_path"] = libraries(folder)?.join(DRIVER).to_string_lossy().into();
    let path = folder.join("lvp_icd.json");
    write(&path, &format!("{icd:#}\n"))?;
    Ok(path)
}
