//! Words that are not instructions: those that both oracles find UNDEFINED must be UNDEFINED here.
//!
//! The converse does not hold: the oracles have floating point, vectors and more. But words of the integer part that
//! both oracles execute and we do not are counted by group of the encoding, so that a missing instruction is noticed.

use std::collections::BTreeMap;

use kvrm_a64::{decode, table};
use kvrm_oracles::{CODE_START, Case, OutcomeKind, State, WINDOW_LEN};

use crate::compare::{Bench, Seen};
use crate::describe::{describe, instruction};
use crate::generate::{Test, random_word};
use crate::known::known;
use crate::oracle::ORACLES;
use crate::random::Random;

/// Words sent to the oracles at a time.
const BATCH: u64 = 4000;
/// Where all registers point: outside everyone's memory, so that no word can change any.
const NOWHERE: u64 = 1 << 44;

/// The results of words.
#[derive(Clone, Debug, Default)]
pub struct InvalidReport {
    /// Words tried.
    pub words: u64,
    /// Words that both oracles find UNDEFINED.
    pub undefined: u64,
    /// Words that both oracles find UNDEFINED and we execute, for a known reason.
    pub explained: u64,
    /// Words that both oracles find UNDEFINED and we execute, without a known reason.
    pub different: u64,
    /// Descriptions of the first of these.
    pub descriptions: Vec<String>,
    /// Words of the integer part that both oracles execute and we do not, by group: how many, and samples.
    pub missing: BTreeMap<&'static str, (u64, Vec<u32>)>,
}

impl InvalidReport {
    /// Adds the results of more words.
    pub fn add(&mut self, other: InvalidReport) {
        self.words += other.words;
        self.undefined += other.undefined;
        self.explained += other.explained;
        self.different += other.different;
        self.descriptions.extend(other.descriptions);
        for (group, (count, words)) in other.missing {
            let mine = self.missing.entry(group).or_default();
            mine.0 += count;
            mine.1.extend(words);
            mine.1.truncate(SAMPLES);
        }
    }
}

/// Words kept as samples of a group.
const SAMPLES: usize = 200;

/// Returns the group of the encoding (C4.1) that a word belongs to; `None` outside the integer part.
pub fn integer_group(word: u32) -> Option<&'static str> {
    let vector = word >> 26 & 1 == 1;
    match word >> 25 & 15 {
        0b0000 if word >> 31 == 0 => Some("reserved"),
        0b1000 | 0b1001 => Some("data processing, immediate"),
        0b1010 | 0b1011 => Some("branches, exceptions, system"),
        0b0101 | 0b1101 => Some("data processing, register"),
        0b0100 | 0b0110 | 0b1100 | 0b1110 if !vector => Some("loads and stores"),
        _ => None,
    }
}

/// Draws a word: any word, one of the integer part, a system instruction, or an instruction with one bit flipped.
pub(crate) fn draw(random: &mut Random) -> u32 {
    let any = random.next() as u32;
    match random.below(8) {
        0 => any,
        1 | 2 => integer_word(random, any),
        // System instructions and registers, half of them with the `op1` of those that programs may use.
        3 => 0xd500_0000 | any & 0x3f_ffff | random.pick(&[0, 3 << 16]),
        _ => {
            let row = &table()[random.below(table().len() as u64) as usize];
            random_word(random, row) ^ 1 << random.below(32)
        }
    }
}

fn integer_word(random: &mut Random, mut word: u32) -> u32 {
    while integer_group(word).is_none() {
        word = random.next() as u32;
    }
    word
}

fn case(word: u32, code_address: u64) -> Case {
    let state = State {
        x: std::array::from_fn(|i| NOWHERE + ((i as u64) << 24)),
        sp: NOWHERE,
        ..State::default()
    };
    Case {
        code: vec![word],
        max_instructions: 1,
        code_address,
        state,
        vectors: false,
        window: [0; WINDOW_LEN],
    }
}

/// Tries this many words.
pub fn try_words(
    bench: &mut Bench,
    words: u64,
    mut random: Random,
) -> Result<InvalidReport, String> {
    let mut report = InvalidReport::default();
    while report.words < words {
        let count = BATCH.min(words - report.words);
        let cases: Vec<_> =
            (0..count).map(|i| case(draw(&mut random), CODE_START + 16 * i)).collect();
        try_batch(bench, &cases, &mut report)?;
        report.words += count;
    }
    Ok(report)
}

fn try_batch(bench: &mut Bench, cases: &[Case], report: &mut InvalidReport) -> Result<(), String> {
    let [Some(first), Some(second)] = bench.oracles.run(cases)? else {
        return Err("invalid words need both oracles".to_string());
    };
    for (case, answers) in cases.iter().zip(first.iter().zip(&second)) {
        let (Some(first), Some(second)) = answers else {
            continue;
        };
        let undefined = [first, second].map(|outcome| outcome.kind == OutcomeKind::Undefined);
        match undefined {
            [true, true] => {
                report.undefined += 1;
                expect_undefined(bench, case, [first, second], report)?;
            }
            [false, false] => note_missing(case.code[0], report),
            _ => {}
        }
    }
    Ok(())
}

fn expect_undefined(
    bench: &mut Bench,
    case: &Case,
    theirs: [&kvrm_oracles::Outcome; 2],
    report: &mut InvalidReport,
) -> Result<(), String> {
    let word = case.code[0];
    let Some(row) = decode(word) else {
        return Ok(());
    };
    let [ours, ..] = bench.ours.run(case).map_err(|e| e.to_string())?;
    if ours.outcome.kind == OutcomeKind::Undefined {
        return Ok(());
    }
    let test = Test { row, word, case: case.clone(), touches: Vec::new() };
    let explained = (0..2).all(|oracle| {
        let seen = Seen { test: &test, ours: &ours, theirs: theirs[oracle] };
        known().any(|known| known.is_reason(ORACLES[oracle], &seen))
    });
    if explained {
        report.explained += 1;
        return Ok(());
    }
    report.different += 1;
    if report.descriptions.len() < 5 {
        let results = [("ours", &ours.outcome), ("both oracles", theirs[0])];
        report.descriptions.push(describe(&test, &results, "must be UNDEFINED"));
    }
    Ok(())
}

fn note_missing(word: u32, report: &mut InvalidReport) {
    let (None, Some(group)) = (decode(word), integer_group(word)) else {
        return;
    };
    let (count, words) = report.missing.entry(group).or_default();
    *count += 1;
    if words.len() < SAMPLES {
        words.push(word);
    }
}

/// Returns samples of missing words as text, one line per group.
pub fn missing_words(report: &InvalidReport) -> String {
    report.missing.iter().fold(String::new(), |text, (group, (count, words))| {
        let list: Vec<_> = words.iter().take(4).map(|w| instruction(*w)).collect();
        text + &format!("  {group}: {count}, such as {}\n", list.join(", "))
    })
}
