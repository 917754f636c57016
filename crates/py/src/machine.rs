//! The class `Machine`.

use std::sync::{Arc, Mutex};
use std::time::Instant;

use kvrm::{Batches, EngineKind, MemoryModel, ProcessMark, Reg};
use numpy::{PyArray1, PyArray2, PyArrayMethods};
use pyo3::exceptions::{PyTimeoutError, PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyInt, PyType};

use crate::arguments::{self, device_numbers, memory_size, seconds};
use crate::arrays::{empty, to_lanes, written_through};
use crate::errors::{exception, guarded};
use crate::hold::{Current, Ended, LOOK, lock};
use crate::result::{Progress, RunResult};
use crate::run::{Watcher, control};
use crate::stops::{Stop, Stops, code};

/// One or more ARM64 machines, called lanes, that run the same program.
///
/// engine: "auto", "cpu", "cuda", "wgpu" or "eval". "auto" takes an NVIDIA GPU for very many lanes, else the
/// CPU. lanes: number of lanes. memory: size in bytes, or text like "16M"; per lane, if memory is private.
/// model: "private" (one memory per lane), "shared" (one for all), "read-only" (one for all; a store stops the
/// lane with FAULT) or "double-buffered" (one for all; a run's changes stay only if it ends well). device:
/// number of the engine's device, or a list of numbers to split the lanes over. threads: host threads that the
/// cpu engine may use. code_memory: bytes, or text like "64M", that the code which the cpu engine translates may take;
/// when they are spent, it is translated anew as it is needed.
///
/// >>> import kvrm
/// >>> m = kvrm.Machine(lanes=4)
/// >>> m.load([0x9b007c00, 0xd4400000])                # mul x0, x0, x0; hlt #0
/// >>> m.registers = [[n] + [0] * 30 for n in range(4)]
/// >>> m.run().cycles
/// 4
/// >>> m.registers[:, 0].tolist()
/// [0, 1, 4, 9]
#[pyclass(frozen, subclass, weakref, module = "kvrm")]
pub(crate) struct Machine {
    /// `None` once it is closed.
    pub(crate) machine: Mutex<Option<kvrm::Machine>>,
    /// The run in progress, no matter which thread waits for it.
    pub(crate) current: Mutex<Option<Current>>,
    /// The last run that has ended.
    pub(crate) ended: Mutex<Option<Ended>>,
    engine: &'static str,
    pub(crate) lanes: usize,
    memory_size: u64,
    model: MemoryModel,
    /// The process that built it.
    process: ProcessMark,
}

#[pymethods]
impl Machine {
    #[new]
    #[pyo3(signature = (engine="auto", *, lanes=None, memory=None, model="private", device=None, threads=None,
                        code_memory=None),
           text_signature = "(engine='auto', *, lanes=1, memory='4M', model='private', device=None, threads=None, code_memory='256M')")]
    #[expect(clippy::too_many_arguments, reason = "they have names in Python")]
    fn new(
        py: Python<'_>,
        engine: &str,
        lanes: Option<&Bound<'_, PyAny>>,
        memory: Option<&Bound<'_, PyAny>>,
        model: &str,
        device: Option<&Bound<'_, PyAny>>,
        threads: Option<&Bound<'_, PyAny>>,
        code_memory: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<Machine> {
        let engine: EngineKind = engine.parse().map_err(exception)?;
        let model: MemoryModel = model.parse().map_err(exception)?;
        let mut builder = kvrm::Machine::builder().engine(engine).model(model);
        if let Some(lanes) = lanes {
            builder = builder.lanes(arguments::size(lanes, "lanes")?);
        }
        if let Some(bytes) = memory_size(memory)? {
            builder = builder.memory(bytes);
        }
        if let Some(threads) = threads {
            let threads = arguments::size(threads, "threads")?;
            if !(1..=1024).contains(&threads) {
                return Err(PyValueError::new_err("threads must be from 1 to 1024"));
            }
            builder = builder.threads(threads);
        }
        if let Some(bytes) = code_memory {
            builder = builder.code_memory(arguments::byte_count(bytes, "code_memory")?);
        }
        let builder = builder.devices(device_numbers(device)?);
        let machine = py.detach(|| guarded(|| builder.build()))?;
        Ok(Machine {
            engine: machine.engine(),
            lanes: machine.lanes(),
            memory_size: machine.memory_size(),
            model,
            process: ProcessMark::here(),
            machine: Mutex::new(Some(machine)),
            current: Mutex::default(),
            ended: Mutex::default(),
        })
    }

    /// Name of the machine's engine.
    #[getter]
    fn engine(&self) -> &'static str {
        self.engine
    }

    /// Number of lanes.
    #[getter]
    fn lanes(&self) -> usize {
        self.lanes
    }

    /// Size of guest memory in bytes; per lane, if memory is private.
    #[getter]
    fn memory_size(&self) -> u64 {
        self.memory_size
    }

    /// The memory model: "private", "shared", "read-only" or "double-buffered".
    #[getter]
    fn model(&self) -> &'static str {
        self.model.name()
    }

    // Programs.

    /// Writes a program to the memory of all lanes, now and after each reset. Does not change the PC.
    ///
    /// program: bytes, a bytearray, an array of uint8 or uint32, or a sequence of 32-bit words.
    ///
    /// >>> import kvrm
    /// >>> m = kvrm.Machine()
    /// >>> m.load([0xd4400000], 0x1000)
    /// >>> m.read_memory(0x1000, 4).hex()
    /// '000040d4'
    #[pyo3(signature = (program, address=None), text_signature = "($self, program, address=0)")]
    fn load(
        &self,
        py: Python<'_>,
        program: &Bound<'_, PyAny>,
        address: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<()> {
        let bytes = arguments::program(program, "program", self.memory_size)?;
        let address = address.map_or(Ok(0), |address| arguments::unsigned(address, "address"))?;
        self.with(py, |machine| machine.load(address, &bytes))
    }

    /// Sets where all lanes start, now and after each reset.
    fn set_entry(&self, py: Python<'_>, pc: &Bound<'_, PyAny>) -> PyResult<()> {
        let pc = arguments::unsigned(pc, "pc")?;
        self.with(py, |machine| machine.set_entry(pc))
    }

    // Running.

    /// Runs every lane until it stops or has completed max_cycles instructions.
    ///
    /// timeout: seconds after which the run ends as if it were cancelled; its result then says timed_out.
    /// progress: show the progress on stderr, with tqdm if it is installed. Ctrl-C ends the run and raises
    /// KeyboardInterrupt. In either case the lanes can continue from where they are.
    ///
    /// >>> import kvrm
    /// >>> m = kvrm.Machine()
    /// >>> m.load([0x14000000])                        # b .
    /// >>> m.run(1000)                                 # doctest: +ELLIPSIS
    /// <kvrm.RunResult 1000 instructions in ... s, MAX_CYCLES: the limit was reached, goes on at 0x0>
    /// >>> m.run(timeout=0.1).timed_out
    /// True
    #[pyo3(signature = (max_cycles=None, *, timeout=None, progress=false))]
    fn run(
        &self,
        py: Python<'_>,
        max_cycles: Option<&Bound<'_, PyAny>>,
        timeout: Option<f64>,
        progress: bool,
    ) -> PyResult<RunResult> {
        let max_cycles = arguments::cycles(max_cycles)?;
        let watcher = Watcher::new(seconds(timeout)?, self.bar(py, progress, max_cycles)?);
        self.run_watched(py, &watcher, |machine, control, _| machine.run_with(max_cycles, control))
    }

    /// Like run, but in a single launch if the engine supports it (cuda). Use it only on GPUs that do nothing
    /// else: a display on the same GPU freezes until the run ends.
    #[pyo3(signature = (max_cycles=None, *, timeout=None, progress=false))]
    fn run_mega(
        &self,
        py: Python<'_>,
        max_cycles: Option<&Bound<'_, PyAny>>,
        timeout: Option<f64>,
        progress: bool,
    ) -> PyResult<RunResult> {
        let max_cycles = arguments::cycles(max_cycles)?;
        let watcher = Watcher::new(seconds(timeout)?, self.bar(py, progress, max_cycles)?);
        self.run_watched(py, &watcher, |machine, control, _| {
            machine.run_mega_with(max_cycles, control)
        })
    }

    /// Runs in batches of cycles_per_batch instructions per lane, until all lanes have stopped for another
    /// reason, max_batches are done, or timeout seconds have passed.
    ///
    /// callback: called with the result so far after each batch except the last. It must not use the machine
    /// itself; returning False ends the run. Lanes do exactly what they would do in one run.
    ///
    /// >>> import kvrm
    /// >>> m = kvrm.Machine()
    /// >>> m.load([0x14000000])                        # b .
    /// >>> result = m.run_batches(10, 3, callback=lambda result: print(result.cycles))
    /// 10
    /// 20
    /// >>> result.batch_count, result.cycles
    /// (3, 30)
    #[pyo3(signature = (cycles_per_batch, max_batches=None, *, timeout=None, callback=None, progress=false))]
    fn run_batches(
        &self,
        py: Python<'_>,
        cycles_per_batch: &Bound<'_, PyAny>,
        max_batches: Option<&Bound<'_, PyAny>>,
        timeout: Option<f64>,
        callback: Option<Bound<'_, PyAny>>,
        progress: bool,
    ) -> PyResult<RunResult> {
        let cycles = arguments::unsigned(cycles_per_batch, "cycles_per_batch")?;
        let max = max_batches.map(|max| arguments::unsigned(max, "max_batches")).transpose()?;
        if let Some(callback) = callback.as_ref().filter(|callback| !callback.is_callable()) {
            let given = arguments::type_name(callback);
            return Err(PyTypeError::new_err(format!("callback must be callable, not {given}")));
        }
        let batches = Batches { cycles, max, timeout: None };
        let total = max.map_or(u64::MAX, |max| max.saturating_mul(cycles));
        let bar = self.bar(py, progress, total)?;
        let watcher =
            Watcher::new(seconds(timeout)?, bar).with_callback(callback.map(Bound::unbind));
        self.run_watched(py, &watcher, |machine, control, caller| {
            machine.run_batches_with(batches, control, |machine, report| {
                watcher.between(machine, report, control, caller)
            })
        })
    }

    /// Starts a run and returns at once: see poll, wait and cancel. Until the run has ended, nothing else can
    /// be done with the machine. mega: as in run_mega. timeout: as in run; the timeout of wait is a different one.
    ///
    /// >>> import kvrm
    /// >>> m = kvrm.Machine()
    /// >>> m.load([0x14000000])                        # b .
    /// >>> m.start()
    /// >>> m.running
    /// True
    /// >>> m.cancel().cancelled
    /// True
    #[pyo3(signature = (max_cycles=None, *, timeout=None, mega=false))]
    fn start(
        &self,
        py: Python<'_>,
        max_cycles: Option<&Bound<'_, PyAny>>,
        timeout: Option<f64>,
        mega: bool,
    ) -> PyResult<()> {
        let (max_cycles, timeout) = (arguments::cycles(max_cycles)?, seconds(timeout)?);
        self.with(py, |machine| {
            match mega {
                true => machine.start_mega_with(max_cycles, control(timeout))?,
                false => machine.start_with(max_cycles, control(timeout))?,
            }
            *lock(&self.current) = machine.control().map(Current::started);
            *lock(&self.ended) = None;
            Ok(())
        })
    }

    /// Returns the progress of the run, or its final state.
    fn poll(&self, py: Python<'_>) -> PyResult<Progress> {
        loop {
            let guard = self.try_hold(py)?;
            if let Some(Current { control, start, .. }) = lock(&self.current).clone() {
                return Ok(Progress::new(kvrm::Progress::of(&control, true, start.elapsed())));
            }
            if let Some(mut guard) = guard {
                let progress = match &*lock(&self.ended) {
                    Some(ended) => kvrm::Progress::of(&ended.control, false, ended.elapsed),
                    None => guard.as_mut().expect("it is not closed").poll(),
                };
                return Ok(Progress::new(progress));
            }
            py.detach(|| std::thread::sleep(LOOK));
            py.check_signals()?;
        }
    }

    /// True during a run.
    #[getter]
    fn running(&self, py: Python<'_>) -> PyResult<bool> {
        drop(self.try_hold(py)?);
        Ok(lock(&self.current).is_some())
    }

    /// Waits for the end of the run and returns its result, the same each time. After timeout seconds it raises
    /// TimeoutError, and the run continues. Ctrl-C cancels the run.
    #[pyo3(signature = (timeout=None))]
    fn wait(&self, py: Python<'_>, timeout: Option<f64>) -> PyResult<RunResult> {
        let deadline = seconds(timeout)?.and_then(|timeout| Instant::now().checked_add(timeout));
        self.wait_until(py, deadline)?
            .ok_or_else(|| PyTimeoutError::new_err("the run goes on: wait longer, or cancel it"))
    }

    /// Ends the run, no matter which thread waits for it, and returns its result. Lanes that had not stopped
    /// can continue.
    fn cancel(&self, py: Python<'_>) -> PyResult<RunResult> {
        self.end_run(py)
    }

    /// Like run, for use with await: other tasks continue in the meantime. Cancelling the task cancels the run.
    #[pyo3(signature = (max_cycles=None, *, timeout=None))]
    fn run_async<'py>(
        slf: &Bound<'py, Self>,
        max_cycles: Option<&Bound<'py, PyAny>>,
        timeout: Option<f64>,
    ) -> PyResult<Bound<'py, PyAny>> {
        slf.py().import("kvrm._async")?.call_method1("run_async", (slf, max_cycles, timeout))
    }

    // Registers.

    /// x0 to x30 of all lanes as they are now, of shape (lanes, 31). Assigning sets them, all or some; the value is
    /// broadcast. The array does not change when the machine runs.
    ///
    /// >>> import kvrm
    /// >>> m = kvrm.Machine(lanes=2)
    /// >>> m.registers = 7
    /// >>> m.registers[1, 30] = 9
    /// >>> m.registers[:, 0] += 1
    /// >>> m.registers.shape, m.registers[:, 0].tolist(), m.get_register("x30", lane=1)
    /// ((2, 31), [8, 8], 9)
    #[getter]
    fn registers<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        let (py, machine) = (slf.py(), slf.get());
        let array = empty(py, (machine.lanes, 31), "uint64")?.cast_into::<PyArray2<u64>>()?;
        let mut values = array.try_readwrite()?;
        let slice = values.as_slice_mut()?;
        machine.with(py, |machine| machine.read_general_registers(slice))?;
        drop(values);
        written_through(slf, "registers", array.into_any())
    }

    #[setter]
    fn set_registers(&self, value: &Bound<'_, PyAny>) -> PyResult<()> {
        let array = to_lanes(value, (self.lanes, 31), "registers")?;
        let array = array.cast_into::<PyArray2<u64>>()?;
        let values = array.try_readonly()?;
        let values = values.as_slice()?;
        self.with(value.py(), |machine| machine.write_general_registers(values))
    }

    /// The stack pointers of all lanes as they are now. Assigning sets them, all or some.
    #[getter]
    fn sp<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        written_through(slf, "sp", slf.get().column(slf.py(), Reg::Sp)?.into_any())
    }

    #[setter]
    fn set_sp(&self, value: &Bound<'_, PyAny>) -> PyResult<()> {
        self.set_column(value, Reg::Sp)
    }

    /// The program counters of all lanes as they are now. Assigning sets them, all or some.
    #[getter]
    fn pc<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        written_through(slf, "pc", slf.get().column(slf.py(), Reg::Pc)?.into_any())
    }

    #[setter]
    fn set_pc(&self, value: &Bound<'_, PyAny>) -> PyResult<()> {
        self.set_column(value, Reg::Pc)
    }

    /// The thread pointers of all lanes as they are now. Assigning sets them, all or some.
    #[getter]
    fn tpidr_el0<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        written_through(slf, "tpidr_el0", slf.get().column(slf.py(), Reg::TpidrEl0)?.into_any())
    }

    #[setter]
    fn set_tpidr_el0(&self, value: &Bound<'_, PyAny>) -> PyResult<()> {
        self.set_column(value, Reg::TpidrEl0)
    }

    /// The flags of all lanes as 32-bit numbers: N in bit 31, then Z, C and V. Assigning sets them, all or some.
    #[getter]
    fn nzcv<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        let column = slf.get().column(slf.py(), Reg::Nzcv)?;
        written_through(slf, "nzcv", column.call_method1("astype", ("uint32",))?)
    }

    #[setter]
    fn set_nzcv(&self, value: &Bound<'_, PyAny>) -> PyResult<()> {
        self.set_column(value, Reg::Nzcv)
    }

    /// The flags of all lanes as booleans, of shape (lanes, 4): N, Z, C, V. They are to be read; nzcv can be assigned.
    #[getter]
    fn flags<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        let (py, machine) = (slf.py(), slf.get());
        let column = machine.column(py, Reg::Nzcv)?;
        let array = empty(py, (machine.lanes, 4), "bool")?.cast_into::<PyArray2<bool>>()?;
        let (nzcv, mut flags) = (column.try_readonly()?, array.try_readwrite()?);
        let (rows, _) = flags.as_slice_mut()?.as_chunks_mut::<4>();
        for (row, nzcv) in rows.iter_mut().zip(nzcv.as_slice()?) {
            *row = [31, 30, 29, 28].map(|bit| nzcv >> bit & 1 != 0);
        }
        drop(flags);
        written_through(slf, "flags", array.into_any())
    }

    /// v0 to v31 of all lanes as they are now, of shape (lanes, 32, 16): the bytes of each, the lowest first. The method
    /// view of the array gives them as elements of another type. Assigning sets them, all or some; an array with 16
    /// bytes along its last axis is taken as it is, and broadcast. The array does not change when the machine runs.
    ///
    /// >>> import kvrm, numpy as np
    /// >>> m = kvrm.Machine(lanes=2)
    /// >>> m.vectors.view(np.float32)[:, 3] = [1, 2, 3, 4]
    /// >>> m.vectors.view(np.float64)[1, 0, 0] = 1.5
    /// >>> m.vectors.shape, m.vectors.view(np.float32)[0, 3].tolist(), m.get_float("d0", lane=1)
    /// ((2, 32, 16), [1.0, 2.0, 3.0, 4.0], 1.5)
    #[getter]
    fn vectors<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        written_through(slf, "vectors", slf.get().read_vectors(slf.py())?)
    }

    #[setter]
    fn set_vectors(&self, value: &Bound<'_, PyAny>) -> PyResult<()> {
        self.write_vectors(value)
    }

    /// The floating-point control registers of all lanes, as 32-bit numbers. Assigning sets them, all or some; bits that
    /// do not exist stay zero.
    #[getter]
    fn fpcr<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        let column = slf.get().column(slf.py(), Reg::Fpcr)?;
        written_through(slf, "fpcr", column.call_method1("astype", ("uint32",))?)
    }

    #[setter]
    fn set_fpcr(&self, value: &Bound<'_, PyAny>) -> PyResult<()> {
        self.set_column(value, Reg::Fpcr)
    }

    /// The floating-point status registers of all lanes, as 32-bit numbers. Assigning sets them, all or some; bits that
    /// do not exist stay zero.
    #[getter]
    fn fpsr<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        let column = slf.get().column(slf.py(), Reg::Fpsr)?;
        written_through(slf, "fpsr", column.call_method1("astype", ("uint32",))?)
    }

    #[setter]
    fn set_fpsr(&self, value: &Bound<'_, PyAny>) -> PyResult<()> {
        self.set_column(value, Reg::Fpsr)
    }

    /// Returns a register of a lane, as an unsigned number.
    ///
    /// register: a number from 0 to 30, or a name: x0 to x30, w0 to w30, sp, pc, nzcv, tpidr_el0, fpcr, fpsr, v0 to
    /// v31 (128 bits, also q0 to q31), and d0, s0, h0, b0 to d31, s31, h31, b31 for the low bits of these.
    ///
    /// >>> import kvrm
    /// >>> m = kvrm.Machine()
    /// >>> m.set_register("sp", 0x8000)
    /// >>> m.set_register(3, -1)
    /// >>> m.get_register("sp"), hex(m.get_register("w3"))
    /// (32768, '0xffffffff')
    /// >>> m.set_register("v0", 1 << 127 | 5)
    /// >>> hex(m.get_register("q0")), m.get_register("b0")
    /// ('0x80000000000000000000000000000005', 5)
    #[pyo3(signature = (register, lane=None), text_signature = "($self, register, lane=0)")]
    fn get_register<'py>(
        &self,
        py: Python<'py>,
        register: &Bound<'py, PyAny>,
        lane: Option<&Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyInt>> {
        let register = arguments::register(register)?;
        let lane = lane.map_or(Ok(0), arguments::lane)?;
        match register {
            Reg::V(n) => Ok(self.with(py, |machine| machine.vector(lane, n))?.into_pyobject(py)?),
            _ => {
                Ok(self.with(py, |machine| machine.register(lane, register))?.into_pyobject(py)?)
            }
        }
    }

    /// Sets a register of a lane, or of all lanes if none is given. Of d, s, h and b, the value is the bits, and the rest
    /// of the vector register becomes zero: set_float takes floating-point numbers.
    #[pyo3(signature = (register, value, lane=None))]
    fn set_register(
        &self,
        py: Python<'_>,
        register: &Bound<'_, PyAny>,
        value: &Bound<'_, PyAny>,
        lane: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<()> {
        let register = arguments::register(register)?;
        if let Reg::V(n) = register {
            let (value, lanes) = (arguments::vector(register, value)?, arguments::lanes(lane)?);
            return self.with(py, |machine| machine.set_vector(lanes, n, value));
        }
        let (value, lanes) = (arguments::value_of(register, value)?, arguments::lanes(lane)?);
        self.with(py, |machine| machine.set_register(lanes, register, value))
    }

    /// Returns the floating-point number in a register of a lane: d0 to d31, s0 to s31 or h0 to h31.
    ///
    /// >>> import kvrm
    /// >>> m = kvrm.Machine()
    /// >>> m.set_float("d0", 1.5)
    /// >>> m.get_float("d0"), hex(m.get_register("d0"))
    /// (1.5, '0x3ff8000000000000')
    /// >>> m.set_float("s1", 0.1)                      # rounded to 24 bits
    /// >>> m.get_float("s1")
    /// 0.10000000149011612
    #[pyo3(signature = (register, lane=None), text_signature = "($self, register, lane=0)")]
    fn get_float(
        &self,
        py: Python<'_>,
        register: &Bound<'_, PyAny>,
        lane: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<f64> {
        let (register, format) = arguments::float_register(register)?;
        let lane = lane.map_or(Ok(0), arguments::lane)?;
        Ok(format.value_of(self.with(py, |machine| machine.register(lane, register))?))
    }

    /// Sets the floating-point number in a register of a lane, or of all lanes if none is given: d0 to d31, s0 to s31 or
    /// h0 to h31. It is rounded to the nearest; the rest of the vector register becomes zero.
    #[pyo3(signature = (register, value, lane=None))]
    fn set_float(
        &self,
        py: Python<'_>,
        register: &Bound<'_, PyAny>,
        value: f64,
        lane: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<()> {
        let (register, format) = arguments::float_register(register)?;
        let lanes = arguments::lanes(lane)?;
        let bits = arguments::float_bits(register, format, value)?;
        self.with(py, |machine| machine.set_register(lanes, register, bits))
    }

    /// Instructions that each lane has completed since it was built or reset.
    #[getter]
    fn counts<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyArray1<u64>>> {
        let counts = self.statuses(py)?.into_iter().map(|status| status.count);
        Ok(PyArray1::from_vec(py, counts.collect()))
    }

    /// Why each lane stopped, as numbers: see StopReason.
    #[getter]
    fn stop_codes<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyArray1<u8>>> {
        let codes = self.statuses(py)?.into_iter().map(|status| code(status.stop));
        Ok(PyArray1::from_vec(py, codes.collect()))
    }

    /// Why each lane stopped: a sequence of Stop.
    #[getter]
    fn stops(&self, py: Python<'_>) -> PyResult<Stops> {
        let reasons = self.statuses(py)?.into_iter().map(|status| status.stop).collect();
        let mut pcs = vec![0; self.lanes];
        self.with(py, |machine| machine.read_stopped_at(&mut pcs))?;
        Ok(Stops::new(Arc::new(reasons), Arc::new(pcs)))
    }

    /// Why a lane stopped.
    #[pyo3(signature = (lane=None), text_signature = "($self, lane=0)")]
    fn get_stop(&self, py: Python<'_>, lane: Option<&Bound<'_, PyAny>>) -> PyResult<Stop> {
        let lane = lane.map_or(Ok(0), arguments::lane)?;
        self.with(py, |machine| Ok(Stop::new(machine.stop(lane)?, machine.stopped_at(lane)?)))
    }

    // Memory.

    /// Returns bytes of memory as a lane sees them.
    ///
    /// >>> import kvrm
    /// >>> m = kvrm.Machine(lanes=2)
    /// >>> m.write_memory(0x100, b"hello", lane=1)
    /// >>> m.read_memory(0x100, 5), m.read_memory(0x100, 5, lane=1)
    /// (b'\x00\x00\x00\x00\x00', b'hello')
    #[pyo3(signature = (address, length, lane=None), text_signature = "($self, address, length, lane=0)")]
    fn read_memory<'py>(
        &self,
        py: Python<'py>,
        address: &Bound<'py, PyAny>,
        length: &Bound<'py, PyAny>,
        lane: Option<&Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyBytes>> {
        let address = arguments::unsigned(address, "address")?;
        let length = arguments::size(length, "length")?;
        let lane = lane.map_or(Ok(0), arguments::lane)?;
        // Before room is made for it.
        self.with(py, |machine| machine.check_access(lane, address, length as u64))?;
        PyBytes::new_with(py, length, |bytes| {
            self.with(py, |machine| machine.read_memory(lane, address, bytes))
        })
    }

    /// Writes to the memory of a lane, or of all lanes if none is given. If memory is private, a reset undoes
    /// it.
    #[pyo3(signature = (address, data, lane=None))]
    fn write_memory(
        &self,
        py: Python<'_>,
        address: &Bound<'_, PyAny>,
        data: &Bound<'_, PyAny>,
        lane: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<()> {
        let address = arguments::unsigned(address, "address")?;
        let (bytes, lanes) = (arguments::bytes(data)?, arguments::lanes(lane)?);
        self.with(py, |machine| machine.write_memory(lanes, address, &bytes))
    }

    /// Returns a copy of the same addresses of every lane's memory, with a row of bytes for each lane. Much
    /// faster than read_memory lane by lane, especially on a GPU.
    ///
    /// >>> import kvrm
    /// >>> m = kvrm.Machine(lanes=3)
    /// >>> m.write_lanes(0x100, [b"one", b"two", b"six"])
    /// >>> m.read_lanes(0x100, 2).tolist()
    /// [[111, 110], [116, 119], [115, 105]]
    fn read_lanes<'py>(
        &self,
        py: Python<'py>,
        address: &Bound<'py, PyAny>,
        length: &Bound<'py, PyAny>,
    ) -> PyResult<Bound<'py, PyArray2<u8>>> {
        let address = arguments::unsigned(address, "address")?;
        let length = arguments::size(length, "length")?;
        // Before room is made for it.
        self.with(py, |machine| machine.check_access(0, address, length as u64))?;
        let array = empty(py, (self.lanes, length), "uint8")?.cast_into::<PyArray2<u8>>()?;
        let mut bytes = array.try_readwrite()?;
        let bytes = bytes.as_slice_mut()?;
        self.with(py, |machine| machine.read_lanes(address, bytes))?;
        Ok(array)
    }

    /// Writes different bytes to the same addresses of every lane's memory: an array with a row for each lane,
    /// whose bytes are taken as they are, or a bytes object for each lane, all of one length. A reset undoes
    /// it. Raises ValueError if lanes share one memory.
    ///
    /// >>> import kvrm, numpy as np
    /// >>> m = kvrm.Machine(lanes=2)
    /// >>> m.write_lanes(0x100, np.array([1000, 2000]))
    /// >>> [int.from_bytes(m.read_memory(0x100, 8, lane), "little") for lane in range(2)]
    /// [1000, 2000]
    fn write_lanes(&self, address: &Bound<'_, PyAny>, rows: &Bound<'_, PyAny>) -> PyResult<()> {
        let py = address.py();
        let address = arguments::unsigned(address, "address")?;
        let rows = py.import("kvrm._arrays")?.call_method1("to_rows", (rows, self.lanes))?;
        let rows = rows.cast_into::<PyArray1<u8>>()?;
        let rows = rows.try_readonly()?;
        let rows = rows.as_slice()?;
        self.with(py, |machine| machine.write_lanes(address, rows))
    }

    /// Returns a lane's memory as an array of bytes that is not a copy: it shows what the lane writes. The
    /// array is read-only; use write_memory to write. If is_zero_copy is False, it raises BufferError; use
    /// read_memory then.
    ///
    /// >>> import kvrm
    /// >>> m = kvrm.Machine("cpu")
    /// >>> memory = m.memory()
    /// >>> m.write_memory(0x10, b"!")
    /// >>> memory.nbytes == m.memory_size, chr(memory[0x10])
    /// (True, '!')
    #[pyo3(signature = (lane=None), text_signature = "($self, lane=0)")]
    fn memory<'py>(
        &self,
        py: Python<'py>,
        lane: Option<&Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let lane = lane.map_or(Ok(0), arguments::lane)?;
        let view = self.with(py, |machine| machine.view_memory(lane))?;
        crate::view::array(py, view, self.engine)
    }

    /// True if memory() works, because the lanes' memory is in the host's memory.
    #[getter]
    fn is_zero_copy(&self, py: Python<'_>) -> PyResult<bool> {
        self.with(py, |machine| Ok(machine.view_memory(0)?.is_some()))
    }

    /// Makes lanes stop before they execute the instruction at an address.
    fn add_breakpoint(&self, py: Python<'_>, address: &Bound<'_, PyAny>) -> PyResult<()> {
        let address = arguments::unsigned(address, "address")?;
        self.with(py, |machine| {
            machine.check_idle()?;
            machine.add_breakpoint(address)
        })
    }

    /// Removes a breakpoint; returns True if there was one.
    fn remove_breakpoint(&self, py: Python<'_>, address: &Bound<'_, PyAny>) -> PyResult<bool> {
        let address = arguments::unsigned(address, "address")?;
        self.with(py, |machine| {
            machine.check_idle()?;
            Ok(machine.remove_breakpoint(address))
        })
    }

    /// Resets a lane, or all lanes: registers zero, PC at the entry, private memory as loaded. Memory that
    /// lanes share stays as it is.
    #[pyo3(signature = (lane=None))]
    fn reset(&self, py: Python<'_>, lane: Option<&Bound<'_, PyAny>>) -> PyResult<()> {
        let lanes = arguments::lanes(lane)?;
        self.with(py, |machine| machine.reset(lanes))
    }

    /// Frees everything; cancels a run in progress. The machine cannot be used afterwards.
    fn close(&self, py: Python<'_>) -> PyResult<()> {
        self.check_outside()?;
        if self.is_of_another_process() {
            // Who had it when the process was forked has it for ever.
            if let Ok(mut guard) = self.machine.try_lock() {
                drop(guard.take());
            }
            return Ok(());
        }
        loop {
            if let Some(Current { control, .. }) = lock(&self.current).clone() {
                control.cancel();
            }
            if let Ok(mut guard) = self.machine.try_lock() {
                let machine = guard.take();
                drop(guard);
                *lock(&self.current) = None;
                py.detach(|| drop(machine));
                return Ok(());
            }
            py.detach(|| std::thread::sleep(LOOK));
            py.check_signals()?;
        }
    }

    fn __enter__(slf: Py<Self>) -> Py<Self> {
        slf
    }

    fn __exit__(
        &self,
        py: Python<'_>,
        _kind: Option<&Bound<'_, PyType>>,
        _value: Option<&Bound<'_, PyAny>>,
        _traceback: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<()> {
        self.close(py)
    }

    fn __repr__(&self) -> String {
        let Machine { engine, lanes, memory_size, model, .. } = self;
        let closed = matches!(self.machine.try_lock().as_deref(), Ok(None));
        let closed = if closed { ", closed" } else { "" };
        format!(
            "<kvrm.Machine on {engine}: lanes={lanes}, memory={memory_size}, model={:?}{closed}>",
            model.name()
        )
    }
}

impl Machine {
    /// True in a process that was forked from the one that built the machine, where even locks may be held forever.
    pub(crate) fn is_of_another_process(&self) -> bool {
        !self.process.is_here()
    }

    fn statuses(&self, py: Python<'_>) -> PyResult<Vec<kvrm::LaneStatus>> {
        self.with(py, |machine| machine.statuses())
    }

    /// Makes a progress bar for a run of this many instructions per lane, if one is wanted.
    fn bar(&self, py: Python<'_>, wanted: bool, max_cycles: u64) -> PyResult<Option<Py<PyAny>>> {
        if !wanted {
            return Ok(None);
        }
        // Without a limit, nobody knows.
        let limit = Some(max_cycles).filter(|limit| *limit != u64::MAX);
        let total = limit.and_then(|limit| limit.checked_mul(self.lanes as u64));
        let bar = py.import("kvrm._progress")?.call_method1("Bar", (total,))?;
        Ok(Some(bar.unbind()))
    }
}
