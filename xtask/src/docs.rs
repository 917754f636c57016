//! Checks the Markdown pages: relative links lead somewhere, README shows the tested example, and the book
//! has every page of docs/ and can be built.

use std::fs;
use std::path::{Path, PathBuf};

use crate::shell::{self, Outcome, cargo, root};
use crate::tools::cannot;

/// Checks all pages.
pub(crate) fn check() -> Outcome {
    let mut pages = Vec::new();
    find_pages(&root(), &mut pages)?;
    let mut wrong = Vec::new();
    for page in &pages {
        let text = fs::read_to_string(page).map_err(|e| cannot("read", page, &e))?;
        for target in links(&text) {
            if !leads_somewhere(page, &text, target)? {
                let page = page.strip_prefix(root()).unwrap_or(page);
                wrong.push(format!("{}: nothing at {target}", page.display()));
            }
        }
    }
    if !wrong.is_empty() {
        return Err(wrong.join("\n"));
    }
    println!("{} pages", pages.len());
    check_summary(&pages)?;
    check_example()?;
    book()
}

/// Builds the book.
pub(crate) fn book() -> Outcome {
    shell::run(cargo().args(["run", "--quiet", "--profile", "quick", "--package", "kvrm-book"]))
}

/// Checks that the table of contents names every page: mdBook silently leaves out others.
fn check_summary(pages: &[PathBuf]) -> Outcome {
    let folder = root().join("docs");
    let summary = folder.join("SUMMARY.md");
    let text = fs::read_to_string(&summary).map_err(|e| cannot("read", &summary, &e))?;
    let chapters = links(&text);
    let missing: Vec<_> = pages
        .iter()
        .filter_map(|page| page.strip_prefix(&folder).ok()?.to_str())
        .filter(|page| *page != "SUMMARY.md" && !chapters.contains(page))
        .collect();
    match missing[..] {
        [] => Ok(()),
        _ => Err(format!("docs/SUMMARY.md does not name {}", missing.join(", "))),
    }
}

fn find_pages(folder: &Path, pages: &mut Vec<PathBuf>) -> Outcome {
    for entry in fs::read_dir(folder).map_err(|e| cannot("read", folder, &e))? {
        let path = entry.map_err(|e| cannot("read", folder, &e))?.path();
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        if path.is_dir() && !path.is_symlink() && !name.starts_with('.') && name != "target" {
            find_pages(&path, pages)?;
        } else if name.ends_with(".md") {
            pages.push(path);
        }
    }
    Ok(())
}

/// Returns the lines outside of code blocks.
fn prose(text: &str) -> impl Iterator<Item = &str> {
    let mut code = false;
    text.lines().filter(move |line| {
        let fence = line.trim_start().starts_with("```");
        code ^= fence;
        !code && !fence
    })
}

/// Returns the targets of a page's links and images, except those on the net.
fn links(text: &str) -> Vec<&str> {
    let inline = prose(text)
        .flat_map(|line| line.split("](").skip(1).filter_map(|rest| rest.split([')', ' ']).next()));
    let sources = prose(text)
        .flat_map(|line| line.split("src=\"").skip(1).filter_map(|rest| rest.split('"').next()));
    let elsewhere = |target: &&str| target.contains("://") || target.starts_with("mailto:");
    inline.chain(sources).filter(|target| !elsewhere(target)).collect()
}

fn leads_somewhere(page: &Path, text: &str, target: &str) -> Outcome<bool> {
    let (path, anchor) = target.split_once('#').unwrap_or((target, ""));
    let file = match path {
        "" => page.to_path_buf(),
        path => page.parent().expect("a page is in a folder").join(path),
    };
    if !file.exists() {
        return Ok(false);
    }
    if anchor.is_empty() || file.extension().is_none_or(|extension| extension != "md") {
        return Ok(true);
    }
    let other;
    let text = match path {
        "" => text,
        _ => {
            other = fs::read_to_string(&file).map_err(|e| cannot("read", &file, &e))?;
            &other
        }
    };
    let mut headings = prose(text).filter(|line| line.starts_with('#'));
    Ok(headings.any(|heading| anchor_of(heading) == anchor))
}

/// Returns the anchor that GitHub gives a heading.
fn anchor_of(heading: &str) -> String {
    let text = heading.trim_start_matches('#').trim().to_lowercase();
    let kept = text.chars().filter(|c| c.is_alphanumeric() || " -_".contains(*c));
    kept.map(|c| if c == ' ' { '-' } else { c }).collect()
}

/// Checks that the example in README is the one in the documentation of the library, which is tested.
fn check_example() -> Outcome {
    let read = |name: &str| {
        let path = root().join(name);
        fs::read_to_string(&path).map_err(|e| cannot("read", &path, &e))
    };
    let (readme, library) = (read("README.md")?, read("crates/kvrm/src/lib.rs")?);
    let doc_comment = |line: &str| {
        let line = line.strip_prefix("//!")?;
        Some(line.strip_prefix(' ').unwrap_or(line).to_string())
    };
    let documentation = library.lines().map_while(doc_comment).collect::<Vec<_>>().join("\n");
    let tested = block(&documentation, "```").unwrap_or_default();
    let shown = block(&readme, "```rust").unwrap_or_default();
    match !shown.is_empty() && shown == tested {
        true => Ok(()),
        false => Err("the Rust example in README.md is not the one that is tested, in \
                      crates/kvrm/src/lib.rs"
            .to_string()),
    }
}

/// Returns the lines of the first code block that starts this way, without those that rustdoc hides.
fn block<'a>(text: &'a str, fence: &str) -> Option<Vec<&'a str>> {
    let mut lines = text.lines().skip_while(|line| *line != fence);
    lines.next()?;
    let shown = lines.take_while(|line| *line != "```").filter(|line| !line.starts_with("# "));
    Some(shown.map(str::trim_end).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn links_are_found_outside_of_code() {
        let page = "[a](b.md) and ![c](d.png \"title\")\n```\n[no](x.md)\n```\n\
                    <img src=\"e.png\"> [web](https://example.org)";
        assert_eq!(links(page), ["b.md", "d.png", "e.png"]);
    }

    #[test]
    fn anchors_are_those_of_github() {
        assert_eq!(anchor_of("## Adding an IR op: `clz`"), "adding-an-ir-op-clz");
    }

    #[test]
    fn hidden_lines_of_an_example_do_not_count() {
        assert_eq!(block("x\n```\na\n# b\n```\n", "```"), Some(vec!["a"]));
        assert_eq!(block("x", "```"), None);
    }
}
