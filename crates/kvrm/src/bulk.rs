//! Access to all lanes at once: registers, stops and counts as arrays, and memory without a copy.

use kvrm_a64::state::V_REGISTERS;
use kvrm_engine::{GENERAL, LaneStatus};
use kvrm_mem::View;

use crate::{Error, Machine, Reg, Result};

impl Machine {
    /// Copies x0 to x30 of every lane, lane after lane.
    ///
    /// ```
    /// use kvrm::{Machine, Reg};
    /// let mut machine = Machine::builder().lanes(2).build()?;
    /// machine.set_register(1, Reg::X(3), 7)?;
    /// let mut registers = vec![0; 2 * 31];
    /// machine.read_general_registers(&mut registers)?;
    /// assert_eq!(registers[31 + 3], 7);
    /// registers[4] = 9;
    /// machine.write_general_registers(&registers)?;
    /// assert_eq!(machine.register(0, Reg::X(4))?, 9);
    /// # Ok::<(), kvrm::Error>(())
    /// ```
    pub fn read_general_registers(&self, values: &mut [u64]) -> Result<()> {
        self.check_len(values.len(), GENERAL)?;
        let (rows, _) = values.as_chunks_mut::<GENERAL>();
        Ok(self.core()?.engine.copy_registers(rows)?)
    }

    /// Sets x0 to x30 of every lane, given lane after lane.
    pub fn write_general_registers(&mut self, values: &[u64]) -> Result<()> {
        self.check_len(values.len(), GENERAL)?;
        let (rows, _) = values.as_chunks::<GENERAL>();
        let (lanes, mut rows) = (0..self.lanes(), rows.iter());
        Ok(self.core_mut()?.engine.change_states(lanes, &mut |state| {
            state.x[..GENERAL].copy_from_slice(rows.next().expect("one a lane"));
        })?)
    }

    /// Copies a register of every lane; any but V, which has more bits: see [`read_vectors`](Self::read_vectors).
    ///
    /// ```
    /// use kvrm::{Machine, Reg};
    /// let mut machine = Machine::builder().lanes(3).build()?;
    /// machine.write_register(Reg::Sp, &[1, 2, 3])?;
    /// let mut values = [0; 3];
    /// machine.read_register(Reg::Sp, &mut values)?;
    /// assert_eq!(values, [1, 2, 3]);
    /// # Ok::<(), kvrm::Error>(())
    /// ```
    pub fn read_register(&self, reg: Reg, values: &mut [u64]) -> Result<()> {
        reg.check_narrow()?;
        self.check_len(values.len(), 1)?;
        let mut values = values.iter_mut();
        self.visit_register(0..self.lanes(), reg, &mut |value| {
            *values.next().expect("one a lane") = value;
        })
    }

    /// Sets a register of every lane. If one of the values is invalid, it changes none.
    pub fn write_register(&mut self, reg: Reg, values: &[u64]) -> Result<()> {
        self.check_len(values.len(), 1)?;
        values.iter().try_for_each(|value| reg.check_value(*value))?;
        let (lanes, mut values) = (0..self.lanes(), values.iter());
        self.change_register(lanes, reg, &mut || *values.next().expect("one a lane"))
    }

    /// Copies v0 to v31 of every lane, lane after lane.
    ///
    /// ```
    /// use kvrm::Machine;
    /// let mut machine = Machine::builder().lanes(2).build()?;
    /// machine.set_vector(1, 3, 7 << 64)?;
    /// let mut vectors = vec![0; 2 * 32];
    /// machine.read_vectors(&mut vectors)?;
    /// assert_eq!(vectors[32 + 3], 7 << 64);
    /// vectors[4] = 9;
    /// machine.write_vectors(&vectors)?;
    /// assert_eq!(machine.vector(0, 4)?, 9);
    /// # Ok::<(), kvrm::Error>(())
    /// ```
    pub fn read_vectors(&self, values: &mut [u128]) -> Result<()> {
        self.check_len(values.len(), V_REGISTERS)?;
        let (rows, _) = values.as_chunks_mut::<V_REGISTERS>();
        Ok(self.core()?.engine.copy_vectors(rows)?)
    }

    /// Sets v0 to v31 of every lane, given lane after lane.
    pub fn write_vectors(&mut self, values: &[u128]) -> Result<()> {
        self.check_len(values.len(), V_REGISTERS)?;
        let (rows, _) = values.as_chunks::<V_REGISTERS>();
        let (lanes, mut rows) = (0..self.lanes(), rows.iter());
        Ok(self.core_mut()?.engine.change_vectors(lanes, &mut |vectors| {
            *vectors = rows.next().expect("one a lane").into();
        })?)
    }

    /// Returns why each lane stopped and how many instructions it has completed since it was built
    /// or reset.
    pub fn statuses(&self) -> Result<Vec<LaneStatus>> {
        let mut statuses = Vec::with_capacity(self.lanes());
        let engine = &self.core()?.engine;
        engine.visit_statuses(0..self.lanes(), &mut |status| statuses.push(status))?;
        Ok(statuses)
    }

    /// Returns how many instructions each lane had completed when the last run began.
    pub fn counts_before(&self) -> Result<&[u64]> {
        Ok(&self.core()?.counts_before)
    }

    /// Reads the same addresses of every lane's memory, lane after lane. The number of bytes per lane is the
    /// length divided by the number of lanes.
    ///
    /// ```
    /// use kvrm::Machine;
    /// let mut machine = Machine::builder().lanes(3).build()?;
    /// machine.write_lanes(0x100, b"onetwosix")?;
    /// let mut bytes = [0; 6];
    /// machine.read_lanes(0x101, &mut bytes)?;
    /// assert_eq!(&bytes, b"newoix");
    /// # Ok::<(), kvrm::Error>(())
    /// ```
    pub fn read_lanes(&self, address: u64, bytes: &mut [u8]) -> Result<()> {
        self.check_range(address, self.bytes_each(bytes.len())?)?;
        Ok(self.core()?.engine.read_memory_of(0..self.lanes(), address, bytes)?)
    }

    /// Writes different bytes to the same addresses of every lane's memory, given lane after lane. A reset
    /// undoes it. Fails if lanes share one memory.
    pub fn write_lanes(&mut self, address: u64, bytes: &[u8]) -> Result<()> {
        self.check_range(address, self.bytes_each(bytes.len())?)?;
        let lanes = self.lanes();
        if self.memory_model().is_one_for_all() && lanes > 1 {
            return Err(Error::OneMemory);
        }
        Ok(self.core_mut()?.engine.write_memory_of(0..lanes, address, bytes)?)
    }

    /// Returns the number of bytes per lane.
    fn bytes_each(&self, len: usize) -> Result<u64> {
        let lanes = self.lanes();
        match len % lanes {
            0 => Ok((len / lanes) as u64),
            _ => Err(Error::Uneven { len, lanes }),
        }
    }

    /// Returns a lane's memory without a copy; `None` if it is on a device whose memory the host cannot read.
    ///
    /// ```
    /// use kvrm::{EngineKind, Machine};
    /// let mut machine = Machine::builder().engine(EngineKind::Cpu).build()?;
    /// let view = machine.view_memory(0)?.expect("the CPU's memory is the host's");
    /// machine.write_memory(0, 0x100, &[7])?;
    /// // SAFETY: the address is in the view, and nobody writes it now.
    /// assert_eq!(unsafe { view.as_ptr().add(0x100).read() }, 7);
    /// # Ok::<(), kvrm::Error>(())
    /// ```
    pub fn view_memory(&self, lane: usize) -> Result<Option<View>> {
        self.check_lane(lane)?;
        Ok(self.core()?.engine.view_memory(lane))
    }

    /// Copies where every lane stopped: see [`stopped_at`](Self::stopped_at).
    pub fn read_stopped_at(&self, values: &mut [u64]) -> Result<()> {
        self.check_len(values.len(), 1)?;
        match &self.core()?.rolled_back {
            Some(pcs) => values.copy_from_slice(pcs),
            None => self.read_register(Reg::Pc, values)?,
        }
        Ok(())
    }

    fn check_len(&self, len: usize, each: usize) -> Result<()> {
        let wanted = self.lanes() * each;
        if len == wanted { Ok(()) } else { Err(Error::WrongLength { len, wanted }) }
    }
}
