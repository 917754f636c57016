//! Reads command lines; `commands/README.md` says how they are written.

use std::path::Path;

use crate::case::{Case, Needs};
use crate::folder;

const HELD_OUT: &str = "held-out.txt";

/// All command lines, except those held out.
pub(crate) fn all() -> Vec<Case> {
    let folder = folder().join("commands");
    let paths = std::fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap().path());
    let mut files: Vec<_> = paths
        .filter(|path| path.extension() == Some("txt".as_ref()) && !path.ends_with(HELD_OUT))
        .collect();
    files.sort();
    files.iter().flat_map(|file| read(file)).collect()
}

/// Those that are only for checking at the end.
pub(crate) fn held_out() -> Vec<Case> {
    read(&folder().join("commands").join(HELD_OUT))
}

fn read(file: &Path) -> Vec<Case> {
    let text = std::fs::read_to_string(file).unwrap();
    let mut lines = text.lines().enumerate().peekable();
    let mut cases = Vec::new();
    while let Some((number, line)) = lines.next() {
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        let mut case = header(file, line)
            .unwrap_or_else(|| panic!("{}:{}: not a header: {line}", file.display(), number + 1));
        loop {
            let (number, line) = lines.next().expect("`run` ends an entry");
            let mut block = String::new();
            while let Some((_, text)) = lines.next_if(|(_, line)| line.starts_with('|')) {
                block.push_str(text.strip_prefix("| ").unwrap_or(""));
                block.push('\n');
            }
            match line.split_once(' ').unwrap_or((line, "")) {
                ("file", name) => case.files.push((name.to_string(), block)),
                ("stdin", "") => case.input = block,
                ("run", command) => {
                    case.words = words(command);
                    break;
                }
                _ => panic!("{}:{}: what is {line}?", file.display(), number + 1),
            }
        }
        cases.push(case);
    }
    cases
}

/// Reads `[NAME] NEEDS`.
fn header(file: &Path, line: &str) -> Option<Case> {
    let (name, needs) = line.strip_prefix('[')?.split_once(']')?;
    let needs = match needs.trim() {
        "single" => Needs::Single,
        "long" => Needs::Long,
        "threads" => Needs::Threads,
        "" => Needs::Processes,
        _ => return None,
    };
    Some(Case {
        name: name.to_string(),
        needs,
        qemu_is_right: true,
        files: Vec::new(),
        input: String::new(),
        words: Vec::new(),
        directory: "/work",
        programs: None,
        expected: file.with_extension("expected"),
    })
}

/// Splits a command line into words; the first becomes a path.
fn words(line: &str) -> Vec<String> {
    let mut words: Vec<String> = Vec::new();
    let mut word: Option<String> = None;
    let mut characters = line.chars();
    while let Some(character) = characters.next() {
        if character == ' ' {
            words.extend(word.take());
            continue;
        }
        let word = word.get_or_insert_default();
        match character {
            '\'' => word.extend(characters.by_ref().take_while(|c| *c != '\'')),
            '"' => quoted(&mut characters, word),
            '\\' => word.extend(characters.next()),
            other => word.push(other),
        }
    }
    words.extend(word);
    if !words[0].contains('/') {
        words[0] = format!("/usr/bin/{}", words[0]);
    }
    words
}

fn quoted(characters: &mut std::str::Chars<'_>, word: &mut String) {
    while let Some(character) = characters.next() {
        match character {
            '"' => return,
            '\\' => word.extend(characters.next()),
            other => word.push(other),
        }
    }
}

#[test]
fn words_are_quoted_as_in_a_shell() {
    assert_eq!(words(r#"a/b 'c  d' e"f\" g"h i\ j ''"#), ["a/b", "c  d", "ef\" gh", "i j", ""]);
    assert_eq!(words("gzip -c"), ["/usr/bin/gzip", "-c"]);
}

#[test]
fn names_are_unique_and_there_are_many() {
    let cases = [all(), held_out()].concat();
    let names: std::collections::HashSet<_> = cases.iter().map(|case| &case.name).collect();
    assert_eq!(names.len(), cases.len());
    assert!(all().len() >= 220, "{}", all().len());
    assert!(all().iter().filter(|case| case.needs == Needs::Single).count() >= 100);
}
