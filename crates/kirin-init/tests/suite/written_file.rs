//! The written `kirin.toml` as Kirin itself reads it.

use std::fs;
use std::path::Path;

use kirin_config::ConfigSource;
use kirin_config::target::{Entrances, classify, configuration};
use kirin_init::{Found, Plan};

use crate::support::{Layout, find, project};
use crate::{perl, php, servers, sites};

/// The most lines of a file that a new user reads to its end.
const MAX_LINES: usize = 66;

fn layouts() -> impl Iterator<Item = &'static Layout> {
    perl::LAYOUTS.iter().chain(&php::LAYOUTS).chain(&servers::LAYOUTS).chain(&sites::LAYOUTS)
}

/// Builds a site as its generator would, or collects files as Django does.
fn build(directory: &Path, found: &Found) {
    let files = match &found.plan {
        Plan::Site(site) => Some(&site.directory),
        Plan::Python(plan) => plan.static_files.as_ref().map(|files| &files.directory),
        _ => None,
    };
    if let Some(files) = files {
        fs::create_dir_all(directory.join(files)).unwrap();
    }
}

fn check(directory: &Path, config: &str, name: &str) {
    let source = ConfigSource::from_text("kirin.toml", directory, config);
    if let Err(errors) = kirin_config::read(&source) {
        panic!("{name}: {errors}\n{config}");
    }
}

fn is_off(line: &str) -> bool {
    let line = line.trim_start();
    line.starts_with('#') && !line.starts_with("# ") && line != "#"
}

fn turned_on(line: &str) -> String {
    line.replacen('#', "", 1)
}

#[test]
fn a_written_file_is_good() {
    for layout in layouts() {
        let directory = project(layout.files);
        let found = find(directory.path()).unwrap();
        build(directory.path(), &found);
        check(directory.path(), &kirin_init::config(&found), layout.name);
    }
}

#[test]
fn every_setting_that_is_off_is_good_when_it_is_turned_on() {
    for layout in layouts() {
        let directory = project(layout.files);
        let found = find(directory.path()).unwrap();
        build(directory.path(), &found);
        let config = kirin_init::config(&found);
        let lines: Vec<&str> = config.lines().collect();
        let off: Vec<usize> = (0..lines.len()).filter(|at| is_off(lines[*at])).collect();
        assert!(off.len() >= 3, "{}: {config}", layout.name);
        for at in &off {
            let mut lines: Vec<String> = lines.iter().copied().map(String::from).collect();
            lines[*at] = turned_on(&lines[*at]);
            check(directory.path(), &lines.join("\n"), layout.name);
        }
        let all: Vec<String> = lines
            .iter()
            .map(|line| if is_off(line) { turned_on(line) } else { (*line).to_owned() })
            .collect();
        check(directory.path(), &all.join("\n"), layout.name);
    }
}

#[test]
fn a_written_file_is_short_and_narrow() {
    for layout in layouts() {
        let found = find(project(layout.files).path()).unwrap();
        let config = kirin_init::config(&found);
        assert!(config.lines().count() <= MAX_LINES, "{}:\n{config}", layout.name);
        let widest = config.lines().max_by_key(|line| line.chars().count()).unwrap();
        assert!(widest.chars().count() <= 100, "{}: {widest}", layout.name);
    }
}

#[test]
fn everything_that_was_found_is_in_the_file() {
    for layout in layouts() {
        let found = find(project(layout.files).path()).unwrap();
        let config = kirin_init::config(&found);
        let words: Vec<&str> = config.split_whitespace().filter(|word| *word != "#").collect();
        let text = words.join(" ");
        for evidence in found.evidence.iter().take(1).chain(&found.unused) {
            assert!(text.contains(&evidence.to_string()), "{}: {evidence}\n{config}", layout.name);
        }
    }
}

/// Parses a configuration.
fn parsed(config: &str) -> toml::Table {
    config.parse().unwrap_or_else(|error| panic!("{error}\n{config}"))
}

#[test]
fn a_project_is_served_as_kirin_serve_does_without_a_file() {
    for (files, target) in [
        (vec![("app.psgi", ""), ("public/a", "")], "app.psgi"),
        (vec![("config.ru", ""), ("public/a", "")], "config.ru"),
        (vec![("compose.yml", "ports:\n- 3000:80")], "http://127.0.0.1:3000"),
    ] {
        let project = project(&files);
        let found = find(project.path()).unwrap();
        let written = parsed(&kirin_init::config(&found));
        let directory = format!("{}/", project.path().display());
        let target = match target.contains("://") {
            true => target.to_owned(),
            false => format!("{directory}{target}"),
        };
        let kind = classify(&target, |_| Ok(None)).unwrap();
        let entrances = Entrances::Plain("127.0.0.1:8080");
        let expected = configuration(&target, &kind, &entrances, 5, true);
        // Paths in the written file are relative to it.
        let mut expected = parsed(&expected.replace(&directory, ""));
        // These are the defaults, which a user needs not read.
        expected.remove("store").unwrap();
        if let Some(app) = expected.get_mut("app") {
            let app = app[0].as_table_mut().unwrap();
            assert!(app.remove("workers").is_some() && app.remove("directory").is_some());
        }
        assert_eq!(written, expected, "{target}");
    }
}
