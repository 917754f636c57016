//! Tests of what is decoded, translated, kept and forgotten.

use kvrm_engine::cache::KernelCache;
use kvrm_engine::{Config, MemoryModel};

use super::translating::{NOTES, WORTH_KEEPING};
use super::*;

fn stubs(translate_after: u32) -> Arc<Stubs> {
    stubs_with(translate_after, KernelCache::nowhere())
}

fn stubs_with(translate_after: u32, cache: KernelCache) -> Arc<Stubs> {
    let config = Config {
        lanes: 1,
        memory_size: 1 << 20,
        model: MemoryModel::Private,
        read_only: false,
        mapped: false,
        supervisor_bytes: 0,
        threads: 1,
        translate_after,
        code_memory: 16 << 20,
        profile: false,
    };
    Arc::new(Stubs::new(&config, cache).unwrap())
}

/// b .+8
fn hops(pc: u64) -> Option<u32> {
    (pc < 1 << 20).then_some(0x1400_0002)
}

/// Only the word at an address.
fn only(at: u64) -> impl Fn(u64) -> Option<u32> {
    move |pc| hops(pc).filter(|_| pc == at)
}

#[test]
fn little_is_kept_about_a_translation() {
    let stubs = stubs(0);
    let mut code = Translations::common(&stubs);
    // Every one ends at once, and leads to another that is not translated.
    for n in 0..1000 {
        assert!(code.translate(8 * n, only(8 * n), &mut |_, _| {}).unwrap());
    }
    assert!(code.charged / 1000 <= NOTES, "{} bytes", code.charged / 1000);
    code.clear();
    assert_eq!(code.charged, 0);
    drop(code);
    // SAFETY: nothing runs in it.
    unsafe { stubs.memory.clear() };
    assert_eq!(stubs.memory.code_use().bytes, 0);
}

#[test]
fn only_what_was_made_from_a_word_is_forgotten() {
    let stubs = stubs(0);
    let mut code = Translations::common(&stubs);
    for pc in [0, 8, 16] {
        assert!(code.translate(pc, only(pc), &mut |_, _| {}).unwrap());
    }
    assert_eq!(code.at(8).code(), code.regions[&8].code);
    assert!(code.forget(12, 4, true).is_empty());
    assert_eq!(code.forget(11, 2, true), BTreeSet::from([0]));
    assert!(!code.is_translated(8) && code.is_translated(0) && code.is_translated(16));
    assert_eq!(code.at(8).code(), stubs.interpreter.empty());
    assert_eq!(code.granules_of_page(0), 1, "other words are still translated");
}

#[test]
fn decoded_words_are_forgotten_one_by_one() {
    let stubs = stubs(100);
    let mut code = Translations::common(&stubs);
    // nop, and a branch to itself.
    let words = |pc: u64| Some(if pc < 8 { 0xd503_201f } else { 0x1400_0000 });
    let mut closed = Vec::new();
    code.decode(0, words, &mut |page, granules| closed.push((page, granules))).unwrap();
    assert_eq!(closed, [(0, 1)]);
    assert!([0, 4, 8].into_iter().all(|pc| code.at(pc).is_decoded()));
    assert!(!code.at(12).is_decoded(), "nobody has come there");
    assert_eq!(code.forget(5, 1, true), BTreeSet::from([0]));
    assert!(code.at(0).is_decoded() && !code.at(4).is_decoded());
    assert!(code.unsettled.is_empty(), "it was not translated");
}

#[test]
fn a_word_that_was_written_is_not_translated_before_it_is_decoded() {
    let stubs = stubs(3);
    let mut code = Translations::common(&stubs);
    code.decode(8, hops, &mut |_, _| {}).unwrap();
    code.forget(8, 4, true);
    assert!(code.heated(8, hops, &mut |_, _| {}).unwrap());
    assert!(!code.is_translated(8));
    assert_eq!(code.at(8).code(), stubs.interpreter.empty());
}

#[test]
fn words_that_change_need_longer_to_settle() {
    let stubs = stubs(3);
    let mut code = Translations::common(&stubs);
    let translate = |code: &mut Translations| {
        code.decode(8, hops, &mut |_, _| {}).unwrap();
        assert!(code.heated(8, hops, &mut |_, _| {}).unwrap());
        assert!(code.is_translated(8));
    };
    translate(&mut code);
    for expected in [6, 12, 24] {
        code.forget(8, 4, true);
        assert_eq!((code.patience(8), code.may_translate(8)), (expected, false));
        translate(&mut code);
    }
    // The host changes code once.
    code.forget(8, 4, false);
    assert!(code.is_settled(8));
}
/// Translations of a branch to itself, after a run with such a cache.
fn run_before(cache: &KernelCache) -> Translations {
    let stubs = stubs_with(WORTH_KEEPING, cache.clone());
    let mut code = Translations::common(&stubs);
    code.decode(8, itself, &mut |_, _| {}).unwrap();
    code
}

/// A branch to itself.
fn itself(pc: u64) -> Option<u32> {
    (pc == 8).then_some(0x1400_0000)
}

#[test]
fn what_was_translated_before_is_soon_taken_from_disk() {
    let folder = tempfile::tempdir().unwrap();
    let cache = KernelCache::at(folder.path());
    let mut code = run_before(&cache);
    assert_eq!(code.at(8).heat(), WORTH_KEEPING);
    assert!(code.heated(8, itself, &mut |_, _| {}).unwrap());
    assert_eq!(code.stubs.memory.code_use().kept, 0);
    drop(code);
    let mut code = run_before(&cache);
    assert_eq!(code.at(8).heat(), KEPT_PATIENCE);
    assert!(code.heated(8, itself, &mut |_, _| {}).unwrap());
    assert!(code.is_translated(8));
    assert_eq!(code.stubs.memory.code_use().kept, 1);
}

#[test]
fn what_cannot_be_used_is_translated_when_it_is_hot() {
    let folder = tempfile::tempdir().unwrap();
    let cache = KernelCache::at(folder.path());
    run_before(&cache).heated(8, itself, &mut |_, _| {}).unwrap();
    let mut code = run_before(&cache);
    // b .+8
    let changed = |pc| itself(pc).map(|_| 0x1400_0002);
    assert!(code.heated(8, changed, &mut |_, _| {}).unwrap());
    assert_eq!((code.is_translated(8), code.at(8).heat()), (false, WORTH_KEEPING));
    assert!(code.heated(8, changed, &mut |_, _| {}).unwrap());
    assert!(code.is_translated(8));
    assert_eq!(code.stubs.memory.code_use().kept, 0);
}

#[test]
fn words_that_keep_changing_are_not_taken_from_disk() {
    let folder = tempfile::tempdir().unwrap();
    let cache = KernelCache::at(folder.path());
    run_before(&cache).heated(8, itself, &mut |_, _| {}).unwrap();
    let mut code = run_before(&cache);
    assert!(code.kept(Key::Region(8), &itself, &mut |_, _| {}).is_some());
    code.unsettled.insert(8, Unsettled { writes: 1, settled: false });
    assert!(code.kept(Key::Region(8), &itself, &mut |_, _| {}).is_none());
}
