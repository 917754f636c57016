//! What `cargo xtask bench-peers` measures.

use crate::bench_set::Size;

const LINUX: &str = "linux";
const LANES: &str = "lanes";

/// What to measure.
#[derive(Default)]
pub(crate) struct Choice {
    sizes: Vec<Size>,
    linux: bool,
    lanes: bool,
    /// All, if there is none.
    programs: Vec<String>,
}

impl Choice {
    /// Adds parts from a list with commas.
    pub(crate) fn add_parts(&mut self, list: &str) -> Result<(), String> {
        for name in list.split(',') {
            match Size::ALL.into_iter().find(|size| size.name() == name) {
                Some(size) => self.sizes.push(size),
                None if name == LINUX => self.linux = true,
                None if name == LANES => self.lanes = true,
                None => {
                    return Err(format!("no part {name}; there are long, short, {LINUX}, {LANES}"));
                }
            }
        }
        Ok(())
    }

    /// Adds programs from a list with commas.
    pub(crate) fn add_programs(&mut self, list: &str) {
        self.programs.extend(list.split(',').map(str::to_string));
    }

    pub(crate) fn is_everything(&self) -> bool {
        self.has_all_parts() && self.programs.is_empty()
    }

    /// True if no parts were chosen.
    fn has_all_parts(&self) -> bool {
        self.sizes.is_empty() && !self.linux && !self.lanes
    }

    pub(crate) fn has_size(&self, size: Size) -> bool {
        self.has_all_parts() || self.sizes.contains(&size)
    }

    /// True if a size of the benchmark set was chosen.
    pub(crate) fn has_set(&self) -> bool {
        self.has_all_parts() || !self.sizes.is_empty()
    }

    pub(crate) fn has_linux(&self) -> bool {
        self.has_all_parts() || self.linux
    }

    /// True if programs in many lanes were chosen.
    pub(crate) fn has_lanes(&self) -> bool {
        self.has_all_parts() || self.lanes
    }

    pub(crate) fn has_program(&self, name: &str) -> bool {
        self.programs.is_empty() || self.programs.iter().any(|program| program == name)
    }

    /// Fails if a program was chosen that is not one of these.
    pub(crate) fn check(&self, all: &[String]) -> Result<(), String> {
        match self.programs.iter().find(|name| !all.contains(name)) {
            Some(name) => Err(format!("no program {name}; there are {}", all.join(", "))),
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn without_a_choice_everything_is_measured() {
        let mut choice = Choice::default();
        assert!(choice.is_everything() && choice.has_linux() && choice.has_size(Size::Short));
        choice.add_parts("linux,long").unwrap();
        assert!(!choice.is_everything() && choice.has_linux() && !choice.has_size(Size::Short));
        assert!(!choice.has_lanes());
        assert!(choice.add_parts("middle").is_err());
        assert!(choice.has_program("gzip") && choice.check(&[]).is_ok());
        choice.add_programs("xz");
        assert!(!choice.has_program("gzip") && choice.has_program("xz"));
        assert!(choice.check(&["gzip".to_string()]).is_err());
    }
}
