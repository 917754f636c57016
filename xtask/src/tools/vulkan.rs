//! The Vulkan loader, and the libraries that NVIDIA's driver needs: container images of servers often have only
//! the driver.

use std::path::PathBuf;

use super::apt::{Apt, codename, create, list, write};
use super::{cannot, remove};
use crate::shell::{Outcome, root};

/// The loader; libX11 and libXext, which the driver is linked with; what these need.
const LIBRARIES: [&str; 8] = [
    "libvulkan.so.1",
    "libX11.so.6",
    "libXext.so.6",
    "libxcb.so.1",
    "libXau.so.6",
    "libXdmcp.so.6",
    "libbsd.so.0",
    "libmd.so.0",
];

/// The packages that contain them.
const PACKAGES: [&str; 3] = ["libvulkan1", "libx11-6", "libxext6"];

/// Returns a folder with only these libraries; downloads them if necessary.
pub(crate) fn vulkan_loader() -> Outcome<PathBuf> {
    let folder = root().join(".cache/vulkan");
    let (libraries, done) = (folder.join("lib"), folder.join("done"));
    if std::fs::read_to_string(&done).is_ok_and(|of| of.trim() == codename()) {
        return Ok(libraries);
    }
    println!("unpacking a Vulkan loader into .cache/vulkan");
    remove(&folder)?;
    let unpacked = folder.join("root");
    Apt::new(folder.join("apt"))?.unpack(&PACKAGES, None, &unpacked, |_| Ok(()))?;
    create(&libraries)?;
    for name in LIBRARIES {
        // Packages put libraries into usr/lib/TRIPLE or lib/TRIPLE.
        let folders =
            ["usr/lib", "lib"].map(|folder| list(&unpacked.join(folder)).unwrap_or_default());
        let mut paths = folders.iter().flatten().map(|folder| folder.join(name));
        let path = paths.find(|path| path.is_file());
        let path = path.ok_or_else(|| format!("{name} is in none of {}", PACKAGES.join(", ")))?;
        std::fs::copy(&path, libraries.join(name)).map_err(|e| cannot("copy", &path, &e))?;
    }
    remove(&unpacked)?;
    write(&done, &format!("{}\n", codename()))?;
    Ok(libraries)
}
