//! The architecture of the crate, checked on its source: layers of modules, and no cycles between files.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

/// Lowest layer first. A module uses only lower layers, and the modules of one layer do not use each other.
const LAYERS: [&[&str]; 6] = [
    &["error", "panics"],
    &["value"],
    &["shred", "parquet", "deletion_vector"],
    &["json", "bounds", "functions", "infer", "legacy", "scalars"],
    &["data_file", "check"],
    &["python"],
];

type Uses = BTreeMap<String, BTreeSet<String>>;

fn layer_of(module: &str) -> Option<usize> {
    LAYERS.iter().position(|layer| layer.contains(&module))
}

fn sources(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            found.extend(sources(&path));
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            found.push(path);
        }
    }
    found
}

/// Return the names that follow `prefix` in a source: a single one, or each one in braces.
fn names_after(source: &str, prefix: &str) -> BTreeSet<String> {
    let code =
        source.lines().filter(|line| !line.trim_start().starts_with("//")).collect::<Vec<_>>().join("\n");
    let mut names = BTreeSet::new();
    for (at, _) in code.match_indices(prefix) {
        let rest = &code[at + prefix.len()..];
        let list = match rest.strip_prefix('{') {
            Some(list) => list.split_once('}').map_or(list, |(list, _)| list),
            None => rest
                .split_once(|end: char| !(end.is_alphanumeric() || end == '_'))
                .map_or(rest, |(name, _)| name),
        };
        names.extend(list.split(',').map(|name| name.trim().split("::").next().unwrap_or("").to_owned()));
    }
    names
}

/// Restrict the uses of each module to the other modules.
fn among(modules: Uses) -> Uses {
    let known: BTreeSet<String> = modules.keys().cloned().collect();
    let others = |(module, uses): (String, BTreeSet<String>)| {
        let uses = uses.intersection(&known).filter(|other| **other != module).cloned().collect();
        (module, uses)
    };
    modules.into_iter().map(others).collect()
}

/// Return the top-level modules, each with the others that it uses.
fn top_modules(root: &Path) -> Uses {
    let mut modules = Uses::new();
    for file in sources(root) {
        let path = file.strip_prefix(root).unwrap();
        let module = path.iter().next().unwrap().to_str().unwrap().trim_end_matches(".rs").to_owned();
        let used = names_after(&fs::read_to_string(&file).unwrap(), "crate::");
        modules.entry(module).or_default().extend(used);
    }
    modules.remove("lib");
    among(modules)
}

/// Return the files of a folder module, each with the other files that it uses.
fn files_of(root: &Path, module: &str) -> Uses {
    let mut files = Uses::new();
    for file in sources(&root.join(module)) {
        let name = file.file_stem().unwrap().to_str().unwrap().to_owned();
        if name != "mod" {
            let source = fs::read_to_string(&file).unwrap();
            let mut used = names_after(&source, "super::");
            used.extend(names_after(&source, &format!("crate::{module}::")));
            files.insert(name, used);
        }
    }
    among(files)
}

/// Return the modules of a cycle and those that use them, if there is a cycle.
fn cycle(uses: &Uses) -> Option<Vec<String>> {
    let mut free: BTreeSet<String> = BTreeSet::new();
    loop {
        let next = uses.iter().find(|(module, used)| !free.contains(*module) && used.is_subset(&free));
        match next {
            Some((module, _)) => free.insert(module.clone()),
            None => break,
        };
    }
    let left: Vec<String> = uses.keys().filter(|module| !free.contains(*module)).cloned().collect();
    if left.is_empty() { None } else { Some(left) }
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("src")
}

#[test]
fn every_module_has_a_layer_and_uses_only_lower_ones() {
    let modules = top_modules(&root());
    assert!(modules.len() >= 11, "expected at least 11 modules, got {modules:?}");
    let mut wrong = Vec::new();
    for (module, used) in modules {
        let Some(layer) = layer_of(&module) else {
            wrong.push(format!("{module} has no layer"));
            continue;
        };
        let upward = used.iter().filter(|other| layer_of(other) >= Some(layer));
        wrong.extend(upward.map(|other| format!("{module} uses {other}, which is not in a lower layer")));
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

#[test]
fn the_files_of_a_module_use_each_other_without_cycles() {
    for module in LAYERS.concat() {
        if root().join(module).is_dir() {
            assert_eq!(cycle(&files_of(&root(), module)), None, "files of {module} that use each other");
        }
    }
}

#[test]
fn cycles_and_braced_imports_are_found() {
    let uses = |text: &str| names_after(text, "crate::");
    assert_eq!(
        uses("use crate::{error::Error, value};\n// crate::json\n"),
        ["error", "value"].map(str::to_owned).into()
    );
    assert_eq!(uses("use crate::value::Value;"), ["value".to_owned()].into());
    let graph = Uses::from([
        ("a".into(), ["b".to_owned()].into()),
        ("b".into(), ["a".to_owned()].into()),
        ("c".into(), BTreeSet::new()),
    ]);
    assert_eq!(cycle(&graph), Some(vec!["a".into(), "b".into()]));
}
