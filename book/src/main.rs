//! Builds the guide, the pages of docs/, as a book: `cargo xtask book`.

use std::path::Path;
use std::process::ExitCode;

use mdbook_driver::MDBook;
use mdbook_driver::errors::Error;

fn main() -> ExitCode {
    match build() {
        Ok(page) => {
            println!("{page}");
            ExitCode::SUCCESS
        }
        Err(error) => {
            eprintln!("error: the guide cannot be built: {error:#}");
            ExitCode::FAILURE
        }
    }
}

/// Builds the book; returns the path of its first page.
fn build() -> Result<String, Error> {
    let docs = Path::new(env!("CARGO_MANIFEST_DIR")).with_file_name("docs");
    let book = MDBook::load(docs)?;
    book.build()?;
    let page = book.build_dir_for("html").join("index.html").canonicalize()?;
    Ok(page.display().to_string())
}
