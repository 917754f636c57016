//! Starts the oracles and runs cases on them.

use std::path::PathBuf;
use std::sync::atomic::{AtomicU32, Ordering};

use kvrm_oracles::{Case, Error, Oracle, Outcome, QemuOracle, UnicornOracle, build_qemu_harness};

/// An oracle.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Which {
    /// Unicorn.
    Unicorn,
    /// QEMU's user mode.
    Qemu,
}

/// All oracles, in the order of arrays with one element per oracle.
pub const ORACLES: [Which; 2] = [Which::Unicorn, Which::Qemu];

impl Which {
    /// Returns the oracle's name.
    pub fn name(self) -> &'static str {
        match self {
            Which::Unicorn => "unicorn",
            Which::Qemu => "qemu",
        }
    }
}

/// The programs that the oracles need.
pub struct Tools {
    python: PathBuf,
    qemu: PathBuf,
    folder: PathBuf,
    harness: PathBuf,
    wanted: [bool; 2],
}

const ADVICE: &str = "\
the conformance suite compares with emulators that must be installed:
- Unicorn: python3 -m venv env && env/bin/pip install unicorn==2.1.4,
  and set KVRM_ORACLE_PYTHON to env/bin/python;
- QEMU: apt-get install qemu-user-static gcc-aarch64-linux-gnu
  (KVRM_ORACLE_QEMU names a qemu-aarch64-static that is not in the path).";

impl Tools {
    /// Looks for the programs of the oracles that are wanted, and builds what QEMU runs.
    pub fn find(wanted: [bool; 2]) -> Result<Tools, String> {
        let variable = |name: &str, default: &str| {
            PathBuf::from(std::env::var_os(name).unwrap_or(default.into()))
        };
        // Tests of one process run side by side and must not share what each removes at its end.
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let folder = format!("kvrm-conformance-{}-{number}", std::process::id());
        let folder = std::env::temp_dir().join(folder);
        let mut tools = Tools {
            python: variable("KVRM_ORACLE_PYTHON", "python3"),
            qemu: variable("KVRM_ORACLE_QEMU", "qemu-aarch64-static"),
            harness: PathBuf::new(),
            folder,
            wanted,
        };
        if wanted[1] {
            tools.harness = build_qemu_harness(&tools.folder).map_err(advised)?;
        }
        Ok(tools)
    }

    /// Starts the oracles that are wanted.
    pub fn start(&self) -> Result<Oracles, String> {
        let start = |which| -> Result<Option<Box<dyn Oracle>>, Error> {
            Ok(match which {
                Which::Unicorn if self.wanted[0] => {
                    Some(Box::new(UnicornOracle::start(&self.python)?))
                }
                Which::Qemu if self.wanted[1] => {
                    Some(Box::new(QemuOracle::start(&self.qemu, &self.harness)?))
                }
                Which::Unicorn | Which::Qemu => None,
            })
        };
        let [unicorn, qemu] = ORACLES.map(start);
        Ok(Oracles([unicorn.map_err(advised)?, qemu.map_err(advised)?]))
    }
}

impl Drop for Tools {
    fn drop(&mut self) {
        // It is in the system's folder for temporary files: nothing is lost if this fails.
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}

fn advised(error: Error) -> String {
    format!("{error}\n{ADVICE}")
}

/// The running oracles; `None` for one that is not wanted.
pub struct Oracles([Option<Box<dyn Oracle>>; 2]);

impl Oracles {
    /// Returns the outcome of each case on each oracle: `None` for an oracle that is not wanted, and for a case that
    /// makes its process crash.
    pub fn run(&mut self, cases: &[Case]) -> Result<[Option<Vec<Option<Outcome>>>; 2], String> {
        let [first, second] = &mut self.0;
        let ask = |oracle: &mut Option<Box<dyn Oracle>>| match oracle {
            None => Ok(None),
            Some(oracle) => match oracle.run(cases) {
                Ok(outcomes) => Ok(Some(outcomes.into_iter().map(Some).collect())),
                Err(Error::Cases { outcomes, .. }) => Ok(Some(outcomes)),
                Err(error) => Err(error.to_string()),
            },
        };
        Ok([ask(first)?, ask(second)?])
    }
}
