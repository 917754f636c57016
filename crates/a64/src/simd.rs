//! Advanced SIMD (C4.1.97): instructions that work on the elements of vectors.
//!
//! Rows are named after the mnemonic and the arrangement, as in `ADD_16B`; those that work on one element have the
//! register's letter instead (`ADD_D`). Semantics see a register as a [`Vector`](vector::Vector), and its elements as
//! values of 32 or 64 bits.

mod across;
pub(crate) mod arrangement;
mod by_element;
mod copy;
mod crypto_aes;
mod crypto_sha;
mod crypto_sha512;
mod crypto_sm;
mod dot;
mod elements;
mod float_across;
mod float_by_element;
mod float_complex;
mod float_convert;
mod float_long;
mod float_three_same;
mod float_two_misc;
mod galois;
pub(crate) mod immediate;
mod loads_stores;
mod permute;
mod shift;
mod structures;
mod substitution;
#[cfg(test)]
mod tests;
mod three_different;
pub(crate) mod three_same;
mod two_misc;
pub(crate) mod vector;

use crate::row::Row;

pub(crate) const ROWS: &[&[&[Row]]] = &[
    three_same::ROWS,
    three_different::ROWS,
    two_misc::ROWS,
    across::ROWS,
    copy::ROWS,
    permute::ROWS,
    immediate::ROWS,
    shift::ROWS,
    by_element::ROWS,
    float_three_same::ROWS,
    float_two_misc::ROWS,
    float_convert::ROWS,
    float_across::ROWS,
    float_by_element::ROWS,
    float_complex::ROWS,
    float_long::ROWS,
    dot::ROWS,
    crypto_aes::ROWS,
    crypto_sha::ROWS,
    crypto_sha512::ROWS,
    crypto_sm::ROWS,
    loads_stores::ROWS,
    structures::ROWS,
];
