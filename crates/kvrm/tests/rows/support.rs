//! Running rows together and alone.

use std::path::{Path, PathBuf};

use kvrm::EngineKind;
use kvrm::linux::{Limits, Many, Outcome, Process, Row};

/// A program, and how its lanes differ.
pub(crate) struct Case {
    program: String,
    args: Vec<String>,
    root: Option<PathBuf>,
    limits: Limits,
    rows: Vec<Own>,
}

/// What a lane has of its own.
#[derive(Clone, Default)]
pub(crate) struct Own {
    pub(crate) args: Vec<String>,
    pub(crate) env: Vec<(String, String)>,
    pub(crate) stdin: Option<String>,
    pub(crate) files: Vec<(String, String)>,
}

/// Arguments for a lane.
pub(crate) fn args<const N: usize>(args: [&str; N]) -> Own {
    Own { args: args.map(str::to_owned).to_vec(), ..Own::default() }
}

/// Input for a lane.
pub(crate) fn stdin(text: impl Into<String>) -> Own {
    Own { stdin: Some(text.into()), ..Own::default() }
}

impl Case {
    /// A program of the repository.
    pub(crate) fn of_repository(path: &str) -> Case {
        let program = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(path);
        Case::new(program.to_str().expect("a path of letters"), None)
    }

    /// A program of Debian.
    pub(crate) fn of_debian(program: &str) -> Case {
        let root = std::env::var_os("KVRM_DEBIAN_ARM64").expect("the folder of a Debian");
        Case::new(program, Some(root.into()))
    }

    fn new(program: &str, root: Option<PathBuf>) -> Case {
        let limits = Limits { instructions: 1 << 31, ..Limits::default() };
        Case { program: program.to_owned(), args: Vec::new(), root, limits, rows: Vec::new() }
    }

    pub(crate) fn args<const N: usize>(mut self, args: [&str; N]) -> Case {
        self.args = args.map(str::to_owned).to_vec();
        self
    }

    pub(crate) fn limits(mut self, limits: Limits) -> Case {
        self.limits = limits;
        self
    }

    pub(crate) fn rows(mut self, rows: impl IntoIterator<Item = Own>) -> Case {
        self.rows.extend(rows);
        self
    }

    fn process(&self, engine: EngineKind) -> Process {
        let process = Process::new(&self.program).args(&self.args).engine(engine);
        let process = process.limits(self.limits.clone()).env("LANG", "C").env("PATH", "/usr/bin");
        match &self.root {
            Some(root) => process.root(root),
            None => process,
        }
    }

    fn alone(&self, own: &Own) -> Outcome {
        let mut process = self.process(EngineKind::Cpu).args(&own.args);
        for (key, value) in &own.env {
            process = process.env(key, value);
        }
        for (path, contents) in &own.files {
            process = process.file(path, contents.as_str());
        }
        process.stdin(own.stdin.clone().unwrap_or_default()).run().expect("it begins")
    }

    fn row(own: &Own) -> Row {
        let mut row = Row::new().args(&own.args);
        for (key, value) in &own.env {
            row = row.env(key, value);
        }
        for (path, contents) in &own.files {
            row = row.file(path, contents.as_str());
        }
        match &own.stdin {
            Some(stdin) => row.stdin(stdin.as_str()),
            None => row,
        }
    }

    /// Each lane does the same as alone, on this engine, with one thread and with several, and if it is found out soon how far
    /// lanes go together.
    pub(crate) fn check_on(&self, engine: EngineKind) {
        let expected: Vec<String> =
            self.rows.iter().map(|own| format!("{:?}", self.alone(own))).collect();
        for (threads, is_explored) in [(1, false), (3, false), (1, true)] {
            let rows: Vec<Row> = self.rows.iter().map(Case::row).collect();
            let many = Many::new(self.process(engine)).threads(threads);
            let many = if is_explored { many.exploring_after(1) } else { many };
            let runs = many.run(rows);
            let mut seen = 0;
            for ran in runs.expect("the program is there") {
                let ran = ran.expect("the host does what it should");
                let outcome = format!("{:?}", ran.result.expect("it begins"));
                let expected = &expected[ran.lane as usize];
                assert_eq!(outcome, *expected, "lane {} with {threads} threads", ran.lane);
                seen += 1;
            }
            assert_eq!(seen, expected.len(), "there is a result for each lane");
        }
    }

    /// How many instructions are executed for all lanes, if it is found out after so many how far they go together.
    pub(crate) fn instructions(&self, exploring_after: u64) -> u64 {
        let rows: Vec<Row> = self.rows.iter().map(Case::row).collect();
        let many = Many::new(self.process(EngineKind::Cpu)).threads(1);
        let mut runs = many.exploring_after(exploring_after).run(rows).expect("it is there");
        let all: kvrm::Result<Vec<_>> = runs.by_ref().collect();
        assert_eq!(all.expect("the host does what it should").len(), self.rows.len());
        runs.watch().instructions()
    }

    pub(crate) fn check(&self) {
        self.check_on(EngineKind::Cpu);
    }
}
