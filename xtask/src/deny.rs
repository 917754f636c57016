//! Checks dependencies against `deny.toml`: their licences, duplicate versions, and where they come from.
//!
//! These are the checks `licenses`, `bans` and `sources` of cargo-deny, for the settings that the file has. A setting
//! that is not known here is an error, and so is an exception that nothing needs any more.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;

use serde::Deserialize;

use crate::shell::{self, Outcome, cargo, root};
use crate::tools::cannot;

/// `deny.toml`, without the sections that only cargo-deny can check.
#[derive(Deserialize)]
struct Rules {
    graph: Graph,
    licenses: Licenses,
    bans: Bans,
    sources: Sources,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
struct Graph {
    all_features: bool,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
struct Licenses {
    include_dev: bool,
    allow: Vec<String>,
    exceptions: Vec<Exception>,
}

/// Licences that one crate may have.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Exception {
    #[serde(rename = "crate")]
    name: String,
    allow: Vec<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
struct Bans {
    multiple_versions: String,
    multiple_versions_include_dev: bool,
    skip: Vec<Skip>,
}

/// A version that may be used in addition to another.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Skip {
    /// For example `syn@2.0.119`.
    #[serde(rename = "crate")]
    version: String,
    reason: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
struct Sources {
    unknown_registry: String,
    unknown_git: String,
    allow_registry: Vec<String>,
}

/// What `cargo metadata` prints.
#[derive(Deserialize)]
struct Metadata {
    packages: Vec<Package>,
}

#[derive(Deserialize)]
struct Package {
    name: String,
    version: String,
    license: Option<String>,
    /// `None` for those of this repository.
    source: Option<String>,
}

/// Checks all dependencies, for all platforms.
pub(crate) fn check() -> Outcome {
    let path = root().join("deny.toml");
    let text = fs::read_to_string(&path).map_err(|e| cannot("read", &path, &e))?;
    let rules: Rules = toml::from_str(&text).map_err(|e| format!("deny.toml: {e}"))?;
    rules.check_strict()?;
    let mut command = cargo();
    command.args(["metadata", "--locked", "--format-version", "1"]);
    if rules.graph.all_features {
        command.arg("--all-features");
    }
    let metadata: Metadata = serde_json::from_str(&shell::output(&mut command)?)
        .map_err(|e| format!("cannot read what `cargo metadata` printed: {e}"))?;
    let wrong = rules.violations(&metadata.packages);
    if !wrong.is_empty() {
        return Err(format!("{}\n(the rules are in deny.toml)", wrong.join("\n")));
    }
    println!("{} packages", metadata.packages.len());
    Ok(())
}

impl Rules {
    /// Refuses the settings that this check does not implement.
    fn check_strict(&self) -> Outcome {
        let Rules { licenses, bans, sources, .. } = self;
        let denied = [&bans.multiple_versions, &sources.unknown_registry, &sources.unknown_git];
        let strict = denied.iter().all(|setting| *setting == "deny");
        let include_dev = licenses.include_dev && bans.multiple_versions_include_dev;
        let explained = bans.skip.iter().all(|skip| !skip.reason.is_empty());
        match strict && include_dev && explained {
            true => Ok(()),
            false => {
                Err("deny.toml: xtask implements only the strict settings: everything that can \
                          be denied is, dev-dependencies count, and every skip has a reason"
                    .to_string())
            }
        }
    }

    fn violations(&self, packages: &[Package]) -> Vec<String> {
        let mut wrong = self.licenses.violations(packages);
        wrong.extend(self.bans.violations(packages));
        wrong.extend(self.sources.violations(packages));
        wrong
    }
}

impl Licenses {
    fn violations(&self, packages: &[Package]) -> Vec<String> {
        let mut wrong = Vec::new();
        let mut used = BTreeSet::new();
        for Package { name, version, license, .. } in packages {
            let exception = self.exceptions.iter().find(|exception| exception.name == *name);
            let own = exception.map_or(&[][..], |exception| &exception.allow);
            let mut is_allowed = |license: &str| {
                let allowed = self.allow.iter().chain(own).find(|allowed| *allowed == license);
                used.extend(allowed);
                allowed.is_some()
            };
            let expression = license.as_deref().unwrap_or_default();
            match satisfied(expression, &mut is_allowed) {
                Some(true) => {}
                Some(false) => wrong.push(format!("{name} {version}: licence {expression}")),
                None => wrong.push(format!("{name} {version}: \"{expression}\" is no licence")),
            }
        }
        let unused = self.allow.iter().filter(|license| !used.contains(license));
        wrong.extend(unused.map(|license| format!("no package needs the licence {license}")));
        let names: BTreeSet<_> = packages.iter().map(|package| &package.name).collect();
        let unused = self.exceptions.iter().filter(|exception| !names.contains(&exception.name));
        wrong.extend(unused.map(|Exception { name, .. }| format!("there is no package {name}")));
        wrong
    }
}

impl Bans {
    fn violations(&self, packages: &[Package]) -> Vec<String> {
        let mut versions = BTreeMap::<&str, BTreeSet<&str>>::new();
        for Package { name, version, .. } in packages {
            versions.entry(name).or_default().insert(version);
        }
        let mut wrong = Vec::new();
        for skip in &self.skip {
            let (name, version) = skip.version.split_once('@').unwrap_or((&skip.version, ""));
            let others = versions.get_mut(name);
            if !others.is_some_and(|others| others.len() > 1 && others.remove(version)) {
                wrong.push(format!("{} is not there beside another version", skip.version));
            }
        }
        let twice = versions.into_iter().filter(|(_, versions)| versions.len() > 1);
        wrong.extend(
            twice.map(|(name, versions)| format!("several versions of {name}: {versions:?}")),
        );
        wrong
    }
}

impl Sources {
    fn violations(&self, packages: &[Package]) -> Vec<String> {
        let is_known = |source: &str| {
            let registry = source.strip_prefix("registry+");
            registry.is_some_and(|registry| self.allow_registry.iter().any(|r| r == registry))
        };
        let unknown = packages.iter().filter_map(|Package { name, version, source, .. }| {
            let source = source.as_deref().filter(|source| !is_known(source))?;
            Some(format!("{name} {version} comes from {source}"))
        });
        unknown.collect()
    }
}

/// Returns whether allowed licences satisfy an SPDX expression; `None` if it is not one. Cargo's old notation
/// `MIT/Apache-2.0` counts as `OR`.
fn satisfied(expression: &str, is_allowed: &mut dyn FnMut(&str) -> bool) -> Option<bool> {
    let spaced = expression.replace('(', " ( ").replace(')', " ) ").replace('/', " OR ");
    let mut words: Vec<_> = spaced.split_whitespace().rev().collect();
    let result = any(&mut words, is_allowed)?;
    words.is_empty().then_some(result)
}

/// Evaluates `a OR b`; the words are in reverse order.
fn any(words: &mut Vec<&str>, is_allowed: &mut dyn FnMut(&str) -> bool) -> Option<bool> {
    let mut result = all(words, is_allowed)?;
    while words.pop_if(|word| *word == "OR").is_some() {
        result |= all(words, is_allowed)?;
    }
    Some(result)
}

/// Evaluates `a AND b`, which binds more tightly.
fn all(words: &mut Vec<&str>, is_allowed: &mut dyn FnMut(&str) -> bool) -> Option<bool> {
    let mut result = one(words, is_allowed)?;
    while words.pop_if(|word| *word == "AND").is_some() {
        result &= one(words, is_allowed)?;
    }
    Some(result)
}

/// Evaluates a licence, possibly with an exception, or an expression in parentheses.
fn one(words: &mut Vec<&str>, is_allowed: &mut dyn FnMut(&str) -> bool) -> Option<bool> {
    match words.pop()? {
        "(" => {
            let result = any(words, is_allowed)?;
            words.pop_if(|word| *word == ")").map(|_| result)
        }
        ")" | "AND" | "OR" | "WITH" => None,
        license if words.pop_if(|word| *word == "WITH").is_some() => {
            Some(is_allowed(&format!("{license} WITH {}", words.pop()?)))
        }
        license => Some(is_allowed(license)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn expressions_are_those_of_spdx() {
        let judge =
            |expression: &str| satisfied(expression, &mut |l| l == "MIT" || l == "A WITH b");
        for allowed in ["MIT", "GPL-3.0 OR MIT", "GPL-3.0/MIT", "A WITH b", "(X OR MIT) AND MIT"] {
            assert_eq!(judge(allowed), Some(true), "{allowed}");
        }
        for denied in ["GPL-3.0", "A", "MIT AND GPL-3.0", "A WITH c", "GPL-3.0 OR MIT AND X"] {
            assert_eq!(judge(denied), Some(false), "{denied}");
        }
        for wrong in ["", "MIT AND", "(MIT", "MIT)", "OR MIT", "MIT MIT", "A WITH"] {
            assert_eq!(judge(wrong), None, "{wrong}");
        }
    }

    const RULES: &str = r#"
        [graph]
        all-features = true
        [licenses]
        include-dev = true
        allow = ["MIT"]
        exceptions = [{ allow = ["MPL-2.0"], crate = "book" }]
        [bans]
        multiple-versions = "deny"
        multiple-versions-include-dev = true
        skip = [{ crate = "syn@2.0.0", reason = "old macros" }]
        [sources]
        unknown-registry = "deny"
        unknown-git = "deny"
        allow-registry = ["https://crates"]
    "#;

    fn package(name: &str, version: &str, license: &str, source: &str) -> Package {
        Package {
            name: name.to_string(),
            version: version.to_string(),
            license: Some(license.to_string()),
            source: Some(source.to_string()),
        }
    }

    /// Returns the violations of packages that follow the rules and one more.
    fn violations_with(more: Option<Package>) -> Vec<String> {
        let here = "registry+https://crates";
        let mut packages = vec![
            package("syn", "2.0.0", "MIT", here),
            package("syn", "3.0.0", "MIT", here),
            package("book", "1.0.0", "MPL-2.0", here),
        ];
        packages.extend(more);
        toml::from_str::<Rules>(RULES).unwrap().violations(&packages)
    }

    #[test]
    fn what_breaks_a_rule_is_named() {
        assert_eq!(violations_with(None), Vec::<String>::new());
        let here = "registry+https://crates";
        let cases = [
            (package("a", "1.0.0", "GPL-3.0", here), "a 1.0.0: licence GPL-3.0"),
            (package("a", "1.0.0", "MPL-2.0", here), "a 1.0.0: licence MPL-2.0"),
            (
                package("syn", "1.0.0", "MIT", here),
                r#"several versions of syn: {"1.0.0", "3.0.0"}"#,
            ),
            (package("a", "1.0.0", "MIT", "git+https://a"), "a 1.0.0 comes from git+https://a"),
            (package("a", "1.0.0", "MIT", "registry+x"), "a 1.0.0 comes from registry+x"),
        ];
        for (package, message) in cases {
            assert_eq!(violations_with(Some(package)), [message]);
        }
    }

    #[test]
    fn exceptions_that_nothing_needs_are_named() {
        let rules: Rules = toml::from_str(RULES).unwrap();
        let wanted = [
            "no package needs the licence MIT",
            "there is no package book",
            "syn@2.0.0 is not there beside another version",
        ];
        assert_eq!(rules.violations(&[]), wanted);
    }

    #[test]
    fn settings_that_are_not_checked_are_refused() {
        let rules = |from, to| toml::from_str::<Rules>(&RULES.replace(from, to));
        assert!(rules("skip =", "skip-tree =").is_err());
        let weak = rules("unknown-git = \"deny\"", "unknown-git = \"warn\"").unwrap();
        assert!(weak.check_strict().is_err());
        assert!(rules("", "").unwrap().check_strict().is_ok());
    }
}
