//! Threads, channels, locks, hash maps, sorting, thread-local values, panics and printing.

use std::cell::Cell;
use std::collections::{BTreeMap, HashMap};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::channel;
use std::sync::{Arc, Barrier, Condvar, Mutex, RwLock};
use std::thread;
use std::time::Duration;

thread_local! {
    static CALLS: Cell<u32> = Cell::new(0);
}

static DROPPED: AtomicUsize = AtomicUsize::new(0);

struct Noisy;

impl Drop for Noisy {
    fn drop(&mut self) {
        DROPPED.fetch_add(1, Ordering::SeqCst);
    }
}

fn count_words(lines: &[&str]) -> BTreeMap<String, usize> {
    let counts = Mutex::new(HashMap::new());
    thread::scope(|scope| {
        for line in lines {
            let counts = &counts;
            scope.spawn(move || {
                for word in line.split_whitespace() {
                    *counts.lock().unwrap().entry(word.to_string()).or_insert(0) += 1;
                }
            });
        }
    });
    counts.into_inner().unwrap().into_iter().collect()
}

/// Sorts halves in threads of their own, down to a few levels.
fn merge_sort(mut values: Vec<u32>, levels: u32) -> Vec<u32> {
    if levels == 0 {
        values.sort_unstable();
        return values;
    }
    let right = values.split_off(values.len() / 2);
    let right = thread::spawn(move || merge_sort(right, levels - 1));
    let left = merge_sort(values, levels - 1);
    let right = right.join().unwrap();
    let (mut left, mut right) = (left.into_iter().peekable(), right.into_iter().peekable());
    let mut merged = Vec::new();
    loop {
        let next = match (left.peek(), right.peek()) {
            (Some(a), Some(b)) if a <= b => left.next(),
            (_, Some(_)) => right.next(),
            (Some(_), None) => left.next(),
            (None, None) => return merged,
        };
        merged.extend(next);
    }
}

fn pipeline() -> Vec<u64> {
    let (numbers, squares) = channel();
    let (results, receive) = channel();
    thread::spawn(move || (1..=10u64).for_each(|n| numbers.send(n).unwrap()));
    thread::spawn(move || squares.iter().for_each(|n: u64| results.send(n * n).unwrap()));
    receive.iter().collect()
}

fn ping_pong(rounds: u32) -> Vec<u32> {
    let shared = Arc::new((Mutex::new((0, Vec::new())), Condvar::new()));
    let players: Vec<_> = (0..2)
        .map(|me| {
            let shared = shared.clone();
            thread::spawn(move || {
                for _ in 0..rounds {
                    let (state, changed) = &*shared;
                    let mut state = changed.wait_while(state.lock().unwrap(), |s| s.0 != me).unwrap();
                    state.1.push(me);
                    state.0 = 1 - me;
                    changed.notify_all();
                }
            })
        })
        .collect();
    players.into_iter().for_each(|player| player.join().unwrap());
    let result = shared.0.lock().unwrap().1.clone();
    result
}

fn main() {
    println!("{:?}", std::env::args().skip(1).collect::<Vec<_>>());
    println!("{:?}", count_words(&["the cat sat", "on the mat", "the end"]));
    let mut state = 1u32;
    let values: Vec<u32> = std::iter::repeat_with(|| {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        state >> 8
    })
    .take(20_000)
    .collect();
    let sorted = merge_sort(values, 3);
    println!("sorted {} {} {}", sorted.windows(2).all(|w| w[0] <= w[1]), sorted[0], sorted[19_999]);
    println!("{:?}", pipeline());
    println!("{:?}", ping_pong(4));
    let barrier = Arc::new(Barrier::new(4));
    let leaders = (0..4).map(|_| {
        let barrier = barrier.clone();
        thread::spawn(move || {
            CALLS.with(|calls| calls.set(calls.get() + 1));
            usize::from(barrier.wait().is_leader())
        })
    });
    let leaders: Vec<_> = leaders.collect();
    let leaders: usize = leaders.into_iter().map(|leader| leader.join().unwrap()).sum();
    println!("leaders {leaders}, calls here {}", CALLS.with(Cell::get));
    let lock = RwLock::new(5);
    println!("{} {:?}", *lock.read().unwrap(), lock.try_write().map(|mut v| *v += 1).is_ok());
    std::panic::set_hook(Box::new(|info| eprintln!("line {}", info.location().unwrap().line())));
    let panicked = thread::Builder::new().name("worker".into()).spawn(|| {
        let _noisy = Noisy;
        let empty: Vec<u32> = Vec::new();
        empty[3]
    });
    let error = panicked.unwrap().join().unwrap_err();
    println!("panicked: {:?}, dropped {}", error.downcast_ref::<String>(), DROPPED.load(Ordering::SeqCst));
    thread::sleep(Duration::from_millis(10));
    println!("{:>8.3}|{:<6}|{:^7}|{:#x}|{:08b}|{:?}", 2.718281828, "left", "mid", 255, 37, "q\"\n");
    std::process::exit(3);
}
