//! Converts arguments from Python: whole numbers, lanes, registers, programs, arrays.

use std::time::Duration;

use kvrm::{FloatFormat, Lanes, Reg};
use pyo3::exceptions::{PyIndexError, PyOverflowError, PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyByteArray, PyBytes, PyDict, PyFloat, PyInt, PySet, PyString};

/// Returns the name of a value's type, for messages.
pub(crate) fn type_name(value: &Bound<'_, PyAny>) -> String {
    value.get_type().name().map_or_else(|_| "object".to_string(), |name| name.to_string())
}

/// Converts a Python integer, or an object that can stand for one.
fn integer<'py>(value: &Bound<'py, PyAny>, what: &str) -> PyResult<Bound<'py, PyAny>> {
    if value.is_instance_of::<PyInt>() {
        return Ok(value.clone());
    }
    value.call_method0("__index__").map_err(|_| {
        let given = type_name(value);
        PyTypeError::new_err(format!("{what} must be a whole number, not {given}"))
    })
}

/// Converts a number from 0 to 2**64 - 1.
pub(crate) fn unsigned(value: &Bound<'_, PyAny>, what: &str) -> PyResult<u64> {
    if let Ok(number) = value.extract::<u64>() {
        return Ok(number);
    }
    let number = integer(value, what)?;
    match number.extract::<u64>() {
        Ok(number) => Ok(number),
        Err(_) if number.lt(0)? => {
            Err(PyValueError::new_err(format!("{what} must not be negative")))
        }
        Err(_) => Err(PyOverflowError::new_err(format!("{what} must be less than 2**64"))),
    }
}

/// Converts the limit of instructions of a run; `None` means no limit.
pub(crate) fn cycles(value: Option<&Bound<'_, PyAny>>) -> PyResult<u64> {
    value.map_or(Ok(u64::MAX), |value| unsigned(value, "max_cycles"))
}

/// Converts a number that fits `usize`.
pub(crate) fn size(value: &Bound<'_, PyAny>, what: &str) -> PyResult<usize> {
    let number = unsigned(value, what)?;
    usize::try_from(number)
        .map_err(|_| PyOverflowError::new_err(format!("{what} is larger than an address")))
}

/// Converts the number of a lane. The library checks that the lane exists.
pub(crate) fn lane(value: &Bound<'_, PyAny>) -> PyResult<usize> {
    let number = integer(value, "lane")?;
    number.extract::<usize>().map_err(|_| {
        let text = number.str().map_or_else(|_| "?".to_string(), |text| text.to_string());
        PyIndexError::new_err(format!("lane {text} does not exist: lanes are numbered from 0"))
    })
}

/// Converts one lane, or all if none is given.
pub(crate) fn lanes(value: Option<&Bound<'_, PyAny>>) -> PyResult<Lanes> {
    value.map_or(Ok(Lanes::All), |value| Ok(Lanes::One(lane(value)?)))
}

/// Converts a register's value: any number of 64 bits, signed or not.
pub(crate) fn value(value: &Bound<'_, PyAny>) -> PyResult<u64> {
    bits(value, "the value of a register")
}

/// Converts any number of 64 bits, signed or not.
pub(crate) fn bits(value: &Bound<'_, PyAny>, what: &str) -> PyResult<u64> {
    if let Ok(number) = value.extract::<u64>() {
        return Ok(number);
    }
    let number = integer(value, what)?;
    if let Ok(number) = number.extract::<u64>() {
        return Ok(number);
    }
    number.extract::<i64>().map(i64::cast_unsigned).map_err(|_| {
        PyOverflowError::new_err(format!("{what} must fit in 64 bits, with or without a sign"))
    })
}

/// Converts the value of this register, which has at most 64 bits.
pub(crate) fn value_of(register: Reg, value: &Bound<'_, PyAny>) -> PyResult<u64> {
    if register.float_format().is_some() && value.is_instance_of::<PyFloat>() {
        return Err(PyTypeError::new_err(format!(
            "the value of {register} must be a whole number, its bits: set_float takes floating-point numbers"
        )));
    }
    let number = self::value(value)?;
    let above = 64 - register.bits();
    // As the low bits, extended with zeros or with the sign.
    let is_narrow = number << above >> above == number
        || (number << above).cast_signed() >> above == number.cast_signed();
    match register {
        _ if !is_narrow => Err(too_wide(register)),
        Reg::Nzcv => check_flags(number).map(|()| number),
        _ => Ok(number),
    }
}

/// Converts the value of a vector register.
pub(crate) fn vector(register: Reg, value: &Bound<'_, PyAny>) -> PyResult<u128> {
    let number = integer(value, "the value of a register")?;
    if let Ok(number) = number.extract::<u128>() {
        return Ok(number);
    }
    number.extract::<i128>().map(i128::cast_unsigned).map_err(|_| too_wide(register))
}

fn too_wide(register: Reg) -> PyErr {
    let bits = register.bits();
    PyOverflowError::new_err(format!(
        "the value of {register} must fit in {bits} bits, with or without a sign"
    ))
}

/// Converts a register that holds a floating-point number, with the format of that.
pub(crate) fn float_register(register: &Bound<'_, PyAny>) -> PyResult<(Reg, FloatFormat)> {
    let register = self::register(register)?;
    let format = register.float_format().ok_or_else(|| {
        PyValueError::new_err(format!(
            "{register} holds no floating-point number: use d0 to d31, s0 to s31 or h0 to h31"
        ))
    })?;
    Ok((register, format))
}

/// Converts a floating-point number to the bits of a register.
pub(crate) fn float_bits(register: Reg, format: FloatFormat, value: f64) -> PyResult<u64> {
    let bits = format.bits_of(value);
    match value.is_finite() && format.value_of(bits).is_infinite() {
        true => Err(PyOverflowError::new_err(format!("{value:e} is too large for {register}"))),
        false => Ok(bits),
    }
}

/// Checks that no bits but those of the flags are set.
pub(crate) fn check_flags(nzcv: u64) -> PyResult<()> {
    match nzcv & !0xf000_0000 {
        0 => Ok(()),
        _ => Err(PyValueError::new_err(format!(
            "nzcv has its flags in bits 31 to 28, and no others: {nzcv:#x} has"
        ))),
    }
}

/// Converts a register, given by number or name.
pub(crate) fn register(register: &Bound<'_, PyAny>) -> PyResult<Reg> {
    if let Ok(name) = register.cast::<PyString>() {
        return name.to_cow()?.parse().map_err(crate::errors::exception);
    }
    let number = integer(register, "a register that is not named")?;
    match number.extract::<u8>() {
        Ok(number @ 0..=30) => Ok(Reg::X(number)),
        _ => Err(PyValueError::new_err(format!(
            "there is no register {}: numbers go from 0 to 30",
            number.str()?
        ))),
    }
}

/// Converts anything that has bytes or 32-bit words to bytes: `bytes`, `bytearray`, arrays, sequences of
/// numbers. Of a sequence, it takes not many more than `most`; the library reports that they are too many.
pub(crate) fn program(program: &Bound<'_, PyAny>, what: &str, most: u64) -> PyResult<Vec<u8>> {
    if let Some(bytes) = plain_bytes(program) {
        return Ok(bytes);
    }
    let unordered = program.is_instance_of::<PyDict>() || program.is_instance_of::<PySet>();
    if program.is_instance_of::<PyString>() || unordered {
        return Err(not_a_program(program, what));
    }
    let memory = program.py().import("builtins")?.getattr("memoryview")?;
    if let Ok(view) = memory.call1((program,)) {
        return array_of_words(&view, what);
    }
    let items = program.try_iter().map_err(|_| not_a_program(program, what))?;
    let mut bytes = Vec::new();
    for item in items {
        if bytes.len() as u64 > most {
            break;
        }
        let word = unsigned(&item?, "an instruction word")?;
        let word = u32::try_from(word).map_err(|_| {
            PyOverflowError::new_err(format!("the word {word:#x} has more than 32 bits"))
        })?;
        bytes.extend(word.to_le_bytes());
    }
    Ok(bytes)
}

/// Returns the bytes of an array whose items are bytes, or 32-bit words in the guest's byte order.
fn array_of_words(view: &Bound<'_, PyAny>, what: &str) -> PyResult<Vec<u8>> {
    let size: usize = view.getattr("itemsize")?.extract()?;
    let format: String = view.getattr("format")?.extract()?;
    let kind = format.trim_start_matches(['@', '=', '<']);
    let fits = match size {
        1 => ["B", "b", "c"].contains(&kind),
        4 => ["I", "i", "L", "l"].contains(&kind),
        _ => false,
    };
    let dimensions: usize = view.getattr("ndim")?.extract()?;
    if !fits || dimensions == 0 {
        return Err(PyTypeError::new_err(format!(
            "{what} has items of {size} bytes, of the kind {format:?}: use an array of uint8 or uint32, \
             or a sequence of 32-bit words"
        )));
    }
    Ok(view.call_method0("tobytes")?.cast::<PyBytes>()?.as_bytes().to_vec())
}

/// Converts bytes to write to memory.
pub(crate) fn bytes(data: &Bound<'_, PyAny>) -> PyResult<Vec<u8>> {
    if let Some(bytes) = plain_bytes(data) {
        return Ok(bytes);
    }
    let memory = data.py().import("builtins")?.getattr("memoryview")?;
    let view = memory.call1((data,)).map_err(|_| {
        let given = type_name(data);
        PyTypeError::new_err(format!("data must be bytes, a bytearray or an array, not {given}"))
    })?;
    Ok(view.call_method0("tobytes")?.cast::<PyBytes>()?.as_bytes().to_vec())
}

fn plain_bytes(value: &Bound<'_, PyAny>) -> Option<Vec<u8>> {
    if let Ok(bytes) = value.cast::<PyBytes>() {
        return Some(bytes.as_bytes().to_vec());
    }
    value.cast::<PyByteArray>().ok().map(|bytes| bytes.to_vec())
}

fn not_a_program(value: &Bound<'_, PyAny>, what: &str) -> PyErr {
    let given = type_name(value);
    PyTypeError::new_err(format!(
        "{what} must be bytes or a sequence of 32-bit words, not {given}; kvrm.assemble makes one from text"
    ))
}

/// Converts a size of memory as callers write it.
pub(crate) fn memory_size(memory: Option<&Bound<'_, PyAny>>) -> PyResult<Option<u64>> {
    let Some(memory) = memory else { return Ok(None) };
    match memory.cast::<PyString>() {
        Ok(text) => {
            kvrm::parse_memory_size(&text.to_cow()?).map(Some).map_err(crate::errors::exception)
        }
        Err(_) => unsigned(memory, "memory").map(Some),
    }
}

/// A number of bytes as callers write it.
pub(crate) fn byte_count(bytes: &Bound<'_, PyAny>, what: &str) -> PyResult<u64> {
    match bytes.cast::<PyString>() {
        Ok(text) => kvrm::parse_size(&text.to_cow()?).map_err(crate::errors::exception),
        Err(_) => unsigned(bytes, what),
    }
}

/// Converts one device number, or several.
pub(crate) fn device_numbers(device: Option<&Bound<'_, PyAny>>) -> PyResult<Vec<usize>> {
    let Some(device) = device else { return Ok(Vec::new()) };
    match device.try_iter() {
        Ok(devices) => devices.map(|device| size(&device?, "device")).collect(),
        Err(_) => Ok(vec![size(device, "device")?]),
    }
}

/// Converts a time in seconds.
pub(crate) fn seconds(timeout: Option<f64>) -> PyResult<Option<Duration>> {
    let Some(timeout) = timeout else { return Ok(None) };
    if timeout.is_nan() || timeout < 0.0 {
        return Err(PyValueError::new_err("timeout must be a number of seconds, not negative"));
    }
    // What is too long to be told is for ever.
    Ok(Duration::try_from_secs_f64(timeout).ok())
}
