//! Why lanes stopped.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;

use kvrm::{FaultKind, Lacking, Stop as Reason};
use pyo3::exceptions::{PyIndexError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyIterator, PyList, PySlice};

/// Why a lane stopped.
///
/// >>> import kvrm
/// >>> m = kvrm.Machine()
/// >>> m.load([0xd4400000])                            # hlt #0
/// >>> stop = m.run().stop
/// >>> stop.reason, stop.code, stop.immediate, stop.pc
/// ('HALT', 1, 0, 0)
/// >>> print(stop)
/// HALT: HLT #0x0 at 0x0
#[pyclass(frozen, eq, hash, module = "kvrm")]
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct Stop {
    reason: Option<Reason>,
    /// The lane's program counter.
    #[pyo3(get)]
    pc: u64,
}

impl Stop {
    pub(crate) fn new(reason: Option<Reason>, pc: u64) -> Stop {
        Stop { reason, pc }
    }
}

/// The parts of a stop: its code, its number, its kind, the program counter.
type Parts = (u8, Option<u64>, Option<String>, u64);

/// Returns the number of a stop: an immediate, a word or an address.
fn detail(reason: Reason) -> Option<u64> {
    match reason {
        Reason::Halt { imm } | Reason::Syscall { imm } => Some(imm.into()),
        Reason::Breakpoint { imm } => imm.map(u64::from),
        Reason::MaxCycles | Reason::ZeroWord | Reason::OutOfMemory { .. } => None,
        Reason::Undefined { word } => Some(word.into()),
        Reason::Fault { address, .. } => Some(address),
    }
}

/// Returns the stop for these parts; `None` if they do not fit together.
fn reason_of(number: u8, detail: Option<u64>, kind: Option<&str>) -> Option<Option<Reason>> {
    let imm = detail.map(u16::try_from).transpose().ok();
    let (word, address) = (u32::try_from(detail.unwrap_or(0)).ok(), detail.unwrap_or(0));
    let kinds = [FaultKind::Read, FaultKind::Write, FaultKind::Fetch, FaultKind::Unaligned];
    let lacking = [Lacking::Pages, Lacking::Code].into_iter().find(|it| Some(it.name()) == kind);
    let kind = kinds.into_iter().find(|it| Some(it.name()) == kind);
    let all = [
        imm.map(|imm| imm.map_or(Reason::ZeroWord, |imm| Reason::Halt { imm })),
        imm.flatten().map(|imm| Reason::Syscall { imm }),
        imm.map(|imm| Reason::Breakpoint { imm }),
        Some(Reason::MaxCycles),
        word.map(|word| Reason::Undefined { word }),
        kind.map(|kind| Reason::Fault { kind, address }),
        lacking.map(|lacking| Reason::OutOfMemory { lacking }),
    ];
    match number {
        Reason::NONE => Some(None),
        _ => all.into_iter().flatten().find(|reason| reason.code() == number).map(Some),
    }
}

/// Returns the code of a stop, or of no stop.
pub(crate) fn code(reason: Option<Reason>) -> u8 {
    reason.map_or(Reason::NONE, |reason| reason.code())
}

#[pymethods]
impl Stop {
    /// "HALT", "SYSCALL", "BREAKPOINT", "MAX_CYCLES", "UNDEFINED", "FAULT" or "OUT_OF_MEMORY"; None if the lane has
    /// not stopped, because it has not run or the run was cancelled.
    #[getter]
    fn reason(&self) -> Option<&'static str> {
        self.reason.as_ref().map(Reason::name)
    }

    /// The reason's number: see kvrm.StopReason.
    #[getter]
    fn code(&self) -> u8 {
        code(self.reason)
    }

    /// The immediate of HLT, SVC or BRK; None for other stops. A HALT without one is an all-zero word.
    #[getter]
    fn immediate(&self) -> Option<u16> {
        match self.reason? {
            Reason::Halt { imm } | Reason::Syscall { imm } => Some(imm),
            Reason::Breakpoint { imm } => imm,
            Reason::ZeroWord
            | Reason::MaxCycles
            | Reason::Undefined { .. }
            | Reason::Fault { .. }
            | Reason::OutOfMemory { .. } => None,
        }
    }

    /// For UNDEFINED: the word that is not an instruction. For HALT at an all-zero word: 0.
    #[getter]
    fn word(&self) -> Option<u32> {
        match self.reason? {
            Reason::Undefined { word } => Some(word),
            Reason::ZeroWord => Some(0),
            _ => None,
        }
    }

    /// For FAULT: the address that could not be accessed.
    #[getter]
    fn address(&self) -> Option<u64> {
        match self.reason? {
            Reason::Fault { address, .. } => Some(address),
            _ => None,
        }
    }

    /// For FAULT: the kind of access, "read", "write", "fetch" or "unaligned". For OUT_OF_MEMORY: what a
    /// device has no room for, "pages" or "code".
    #[getter]
    fn kind(&self) -> Option<&'static str> {
        match self.reason? {
            Reason::Fault { kind, .. } => Some(kind.name()),
            Reason::OutOfMemory { lacking } => Some(lacking.name()),
            Reason::Halt { .. }
            | Reason::ZeroWord
            | Reason::Syscall { .. }
            | Reason::Breakpoint { .. }
            | Reason::MaxCycles
            | Reason::Undefined { .. } => None,
        }
    }

    pub(crate) fn __str__(&self) -> String {
        let Stop { reason, pc } = self;
        let Some(reason) = reason else { return format!("not stopped, at {pc:#x}") };
        let name = reason.name();
        match reason {
            Reason::Halt { imm } => format!("{name}: HLT #{imm:#x} at {pc:#x}"),
            Reason::ZeroWord => format!("{name}: the word at {pc:#x} is zero"),
            Reason::Syscall { imm } => format!("{name}: SVC #{imm:#x}, goes on at {pc:#x}"),
            Reason::Breakpoint { imm: Some(imm) } => format!("{name}: BRK #{imm:#x} at {pc:#x}"),
            Reason::Breakpoint { imm: None } => format!("{name}: the one set at {pc:#x}"),
            Reason::MaxCycles => format!("{name}: the limit was reached, goes on at {pc:#x}"),
            Reason::Undefined { word } => {
                format!("{name}: {word:#010x} at {pc:#x} is not an instruction")
            }
            Reason::Fault { kind, address } => {
                format!("{name}: {} at {address:#x} by the instruction at {pc:#x}", kind.name())
            }
            Reason::OutOfMemory { lacking } => {
                format!("{name}: at {pc:#x}, {}", lacking.advice())
            }
        }
    }

    fn __repr__(&self) -> String {
        format!("<kvrm.Stop {}>", self.__str__())
    }

    fn __reduce__<'py>(&self, py: Python<'py>) -> PyResult<(Bound<'py, PyAny>, Parts)> {
        let (number, detail) = match self.reason {
            None => (Reason::NONE, None),
            Some(reason) => (reason.code(), detail(reason)),
        };
        let make = py.get_type::<Stop>().getattr("_of")?;
        Ok((make, (number, detail, self.kind().map(str::to_string), self.pc)))
    }

    /// For pickle: makes a stop from the parts that `__reduce__` returns.
    #[staticmethod]
    fn _of(number: u8, detail: Option<u64>, kind: Option<&str>, pc: u64) -> PyResult<Stop> {
        let whole = reason_of(number, detail, kind);
        match whole {
            Some(reason) => Ok(Stop { reason, pc }),
            None => Err(PyValueError::new_err("this is not what a Stop was pickled as")),
        }
    }
}

/// The stops of all lanes: a sequence that makes each Stop on demand.
#[pyclass(frozen, sequence, module = "kvrm")]
#[derive(Clone)]
pub(crate) struct Stops {
    reasons: Arc<Vec<Option<Reason>>>,
    pcs: Arc<Vec<u64>>,
}

impl Stops {
    pub(crate) fn new(reasons: Arc<Vec<Option<Reason>>>, pcs: Arc<Vec<u64>>) -> Stops {
        Stops { reasons, pcs }
    }

    pub(crate) fn get(&self, lane: usize) -> Stop {
        Stop::new(self.reasons[lane], self.pcs[lane])
    }

    pub(crate) fn codes(&self) -> Vec<u8> {
        self.reasons.iter().copied().map(code).collect()
    }

    /// Returns how many lanes have each code, in the order of the codes.
    pub(crate) fn counts(&self) -> Vec<(&'static str, usize)> {
        let mut counts: Vec<(u8, &'static str, usize)> = Vec::new();
        for reason in self.reasons.iter() {
            let number = code(*reason);
            match counts.iter_mut().find(|(code, ..)| *code == number) {
                Some((_, _, count)) => *count += 1,
                None => {
                    let name = reason.as_ref().map_or("not stopped", Reason::name);
                    counts.push((number, name, 1));
                }
            }
        }
        counts.sort_unstable();
        counts.into_iter().map(|(_, name, count)| (name, count)).collect()
    }

    /// Returns the most common stop, as the first lane with it has it.
    pub(crate) fn commonest(&self) -> Stop {
        let most = self.counts().into_iter().max_by_key(|(_, count)| *count);
        let name = most.map_or("", |(name, _)| name);
        let named =
            |reason: &Option<Reason>| reason.as_ref().map_or("not stopped", Reason::name) == name;
        self.get(self.reasons.iter().position(named).unwrap_or(0))
    }
}

#[pymethods]
impl Stops {
    fn __len__(&self) -> usize {
        self.reasons.len()
    }

    fn __getitem__<'py>(
        &self,
        py: Python<'py>,
        index: &Bound<'py, PyAny>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let len = self.reasons.len();
        if let Ok(slice) = index.cast::<PySlice>() {
            let range = slice.indices(len as isize)?;
            let mut at = range.start;
            let stops = (0..range.slicelength).map(|_| {
                let stop = self.get(at as usize);
                at += range.step;
                stop
            });
            return Ok(PyList::new(py, stops.collect::<Vec<_>>())?.into_any());
        }
        let wanted: isize = index.extract()?;
        let at = if wanted < 0 { wanted + len as isize } else { wanted };
        if !(0..len as isize).contains(&at) {
            return Err(PyIndexError::new_err(format!(
                "lane {wanted} does not exist: there are {len}"
            )));
        }
        Ok(Bound::new(py, self.get(at as usize))?.into_any())
    }

    fn __iter__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyIterator>> {
        let stops: Vec<_> = (0..self.reasons.len()).map(|lane| self.get(lane)).collect();
        PyList::new(py, stops)?.try_iter()
    }

    fn __contains__(&self, stop: &Bound<'_, PyAny>) -> bool {
        let stop = stop.cast::<Stop>().map(|stop| *stop.get());
        stop.is_ok_and(|stop| (0..self.reasons.len()).any(|lane| self.get(lane) == stop))
    }

    /// Returns how many lanes have stopped like this.
    fn count(&self, stop: &Bound<'_, PyAny>) -> usize {
        let Ok(stop) = stop.cast::<Stop>().map(|stop| *stop.get()) else { return 0 };
        (0..self.reasons.len()).filter(|lane| self.get(*lane) == stop).count()
    }

    /// Returns the first lane that has stopped like this.
    fn index(&self, stop: &Bound<'_, PyAny>) -> PyResult<usize> {
        let wanted = stop.cast::<Stop>().map(|stop| *stop.get());
        let lane = wanted
            .ok()
            .and_then(|wanted| (0..self.reasons.len()).find(|lane| self.get(*lane) == wanted));
        lane.ok_or_else(|| PyValueError::new_err("no lane has stopped like this"))
    }

    fn __eq__(&self, other: &Stops) -> bool {
        self.reasons == other.reasons && self.pcs == other.pcs
    }

    fn __hash__(&self) -> u64 {
        let mut hasher = DefaultHasher::new();
        (&self.reasons, &self.pcs).hash(&mut hasher);
        hasher.finish()
    }

    fn __repr__(&self) -> String {
        let counts = self.counts().into_iter().map(|(name, count)| format!("{count} {name}"));
        format!(
            "<kvrm.Stops of {} lanes: {}>",
            self.reasons.len(),
            counts.collect::<Vec<_>>().join(", ")
        )
    }
}
