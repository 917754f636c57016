//! Files in a snapshot.
//!
//! What is in memory is there as it is. Of folders of the host, a snapshot has the names of what was seen there, and what the
//! host said about it; they are opened again when a run goes on.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::Vfs;
use super::host::{Host, HostStat, Place};
use super::limits::{Limits, Usage};
use super::mount::Mount;
use super::node::{Attributes, Id, Kind, Name, Node, Nodes, Source};
use super::stat::{FileType, Timespec};
use crate::SnapshotError;

/// A folder or file of the host that a run was given.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Given {
    /// The path in the guest.
    pub guest: Vec<u8>,
    /// The path on the host.
    pub host: Vec<u8>,
}

impl Given {
    /// The path on the host.
    pub fn path(&self) -> &Path {
        Path::new(OsStr::from_bytes(&self.host))
    }
}

/// All files of a run, for a snapshot.
#[derive(Serialize, Deserialize)]
pub(crate) struct Saved {
    pub(super) nodes: BTreeMap<Id, SavedNode>,
    pub(super) next: Id,
    pub(super) root: Id,
    pub(super) mounts: Vec<Mount>,
    pub(super) usage: Usage,
    pub(super) now: Timespec,
    /// Each comes after the one that it is below.
    pub(super) places: Vec<SavedPlace>,
}

/// Where something is on the host.
#[derive(Serialize, Deserialize)]
pub(super) enum SavedPlace {
    /// What the run was given, by its number.
    Given(u32),
    /// A name in another place.
    Below(u32, Name),
}

/// A [`Node`].
#[derive(Serialize, Deserialize)]
pub(super) struct SavedNode {
    pub(super) kind: Kind,
    pub(super) source: SavedSource,
    pub(super) attributes: Attributes,
    pub(super) mount: u16,
    pub(super) mount_point: bool,
    pub(super) names: BTreeSet<(Id, Name)>,
    pub(super) gone: Option<(Id, Name)>,
    pub(super) origin: Option<(Id, Name)>,
    pub(super) changed: bool,
    pub(super) holders: u64,
    pub(super) counted: bool,
    pub(super) linkable: bool,
}

/// Where contents are.
#[derive(Serialize, Deserialize)]
pub(super) enum SavedSource {
    Memory,
    /// At a place of the host.
    Below(u32, Seen),
}

/// What the host said about something. Only of files, it says when and how long.
#[derive(Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Seen {
    file_type: FileType,
    file: Option<(u64, Timespec)>,
}

impl Seen {
    fn new(stat: &HostStat) -> Seen {
        let is_file = stat.file_type == FileType::Regular;
        Seen { file_type: stat.file_type, file: is_file.then_some((stat.size, stat.mtime)) }
    }
}

/// Numbers places as they come up.
#[derive(Default)]
struct Places {
    places: Vec<SavedPlace>,
    numbers: HashMap<u64, u32>,
}

impl Places {
    fn add(&mut self, given: &[u64], place: &Arc<Place>) -> u32 {
        let mut steps = Vec::new();
        let mut at = Arc::clone(place);
        // A guest can make directories that lie so deep that this must not recurse; the host's may, too.
        let mut number = loop {
            if let Some(number) = self.numbers.get(&at.id()) {
                break *number;
            }
            if let Some(index) = given.iter().position(|id| *id == at.id()) {
                break self.put(at.id(), SavedPlace::Given(index as u32));
            }
            let (above, name) = at.above().expect("it is below something that was given");
            steps.push((at.id(), name));
            at = above;
        };
        for (id, name) in steps.into_iter().rev() {
            number = self.put(id, SavedPlace::Below(number, name));
        }
        number
    }

    fn put(&mut self, id: u64, place: SavedPlace) -> u32 {
        let number = self.places.len() as u32;
        self.places.push(place);
        self.numbers.insert(id, number);
        number
    }
}

impl Vfs {
    /// What of the host the run was given, in order.
    pub(crate) fn given(&self) -> Vec<Given> {
        self.given.iter().map(|(given, _)| given.clone()).collect()
    }

    /// Everything, for a snapshot. Folders of the host must not be written.
    pub(crate) fn save(&mut self) -> Result<Saved, SnapshotError> {
        // All nodes are in one table after that.
        let Vfs { nodes, root, mounts, host, usage, now, nameless: _, given } =
            &mut self.fork().ok_or(SnapshotError::HostDirectories)?;
        let given_ids: Vec<u64> = given.iter().map(|(_, id)| *id).collect();
        let mut places = Places::default();
        let mut saved = BTreeMap::new();
        for (id, node) in nodes.common() {
            let Node {
                kind,
                source,
                attributes,
                mount,
                mount_point,
                names,
                gone,
                origin,
                changed,
                holders,
                counted,
                linkable,
            } = node.clone();
            let source = match source {
                Source::Memory => SavedSource::Memory,
                Source::Below(place) => {
                    let number = places.add(&given_ids, &place);
                    let path = || path_of(given, &places.places, number);
                    let stat = host.stat(&place).map_err(|_| SnapshotError::Changed(path()))?;
                    let size = if let Kind::File(contents) = &kind { contents.len() } else { 0 };
                    if stat.file_type == FileType::Regular && stat.size != size {
                        return Err(SnapshotError::Changed(path()));
                    }
                    SavedSource::Below(number, Seen::new(&stat))
                }
                Source::Through(..) | Source::Nameless(_) => {
                    return Err(SnapshotError::HostDirectories);
                }
            };
            let node = SavedNode {
                kind,
                source,
                attributes,
                mount,
                mount_point,
                names,
                gone,
                origin,
                changed,
                holders,
                counted,
                linkable,
            };
            saved.insert(*id, node);
        }
        Ok(Saved {
            nodes: saved,
            next: nodes.next(),
            root: *root,
            mounts: std::mem::take(mounts),
            usage: usage.clone(),
            now: *now,
            places: places.places,
        })
    }

    /// The files of a snapshot. `given` is what the run was given, with the places on the host where it is now.
    pub(crate) fn restore(
        saved: Saved,
        given: Vec<Given>,
        limits: Limits,
    ) -> Result<Vfs, SnapshotError> {
        saved.check(given.len())?;
        let Saved { nodes: saved, next, root, mounts, mut usage, now, places: saved_places } =
            saved;
        usage.change_limits(limits);
        if !usage.fits() {
            return Err(SnapshotError::FileLimit);
        }
        let mut host = Host::new();
        let mut tops = Vec::new();
        for given in &given {
            let opened = host.given(given.path());
            let (place, _) = opened.map_err(|error| {
                let guest = String::from_utf8_lossy(&given.guest).into_owned();
                SnapshotError::Given { host: given.path().to_owned(), guest, error }
            })?;
            tops.push(place);
        }
        let given: Vec<(Given, u64)> =
            given.into_iter().zip(&tops).map(|(given, place)| (given, place.id())).collect();
        let mut places: Vec<Arc<Place>> = Vec::with_capacity(saved_places.len());
        for place in &saved_places {
            places.push(match place {
                SavedPlace::Given(index) => Arc::clone(&tops[*index as usize]),
                SavedPlace::Below(above, name) => host.below(&places[*above as usize], name),
            });
        }
        let mut nodes = BTreeMap::new();
        for (id, node) in saved {
            let SavedNode {
                kind,
                source,
                attributes,
                mount,
                mount_point,
                names,
                gone,
                origin,
                changed,
                holders,
                counted,
                linkable,
            } = node;
            let source = match source {
                SavedSource::Memory => Source::Memory,
                SavedSource::Below(number, seen) => {
                    let place = &places[number as usize];
                    if !host.stat(place).is_ok_and(|stat| Seen::new(&stat) == seen) {
                        return Err(SnapshotError::Changed(path_of(&given, &saved_places, number)));
                    }
                    Source::Below(Arc::clone(place))
                }
            };
            let node = Node {
                kind,
                source,
                attributes,
                mount,
                mount_point,
                names,
                gone,
                origin,
                changed,
                holders,
                counted,
                linkable,
            };
            nodes.insert(id, node);
        }
        let nodes = Nodes::of(nodes, next);
        Ok(Vfs { nodes, root, mounts, host, usage, now, nameless: Vec::new(), given })
    }
}

/// The path of a place on the host.
fn path_of(given: &[(Given, u64)], places: &[SavedPlace], number: u32) -> PathBuf {
    let (mut names, mut at) = (Vec::new(), number);
    let top = loop {
        match &places[at as usize] {
            SavedPlace::Given(index) => break &given[*index as usize].0,
            SavedPlace::Below(above, name) => {
                names.push(name);
                at = *above;
            }
        }
    };
    let mut path = top.path().to_owned();
    names.iter().rev().for_each(|name| path.push(OsStr::from_bytes(name)));
    path
}
