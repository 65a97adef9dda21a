//! Runs the cases of a file. Cases with one configuration share a running Kirin.

use std::any::Any;
use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};

use kirin_tests::{Kirin, Site};
use toml::Table;

use super::adapters::{Adapter, HandOver};
use super::cases::{Case, CaseFile, Texts, Worker};
use super::expected::is_logged;
use super::steps::Progress;

/// Runs all cases of a file that are for an adapter, and adds a text for each that fails.
pub fn run(file: &CaseFile, adapter: Adapter, hand_over: HandOver, failures: &mut Vec<String>) {
    let mut groups: BTreeMap<String, Vec<(Table, &Case)>> = BTreeMap::new();
    for case in file.cases.iter().filter(|case| case.is_for(adapter, hand_over)) {
        let mut keys = file.app.clone();
        keys.extend(case.app.clone());
        let group = if case.is_alone() { case.name.clone() } else { keys.to_string() };
        groups.entry(group).or_default().push((keys, case));
    }
    for group in groups.values_mut() {
        // A warning may be logged after the end of its case. So no case that allows none follows.
        group.sort_by_key(|(_, case)| case.warns);
        run_group(group, adapter, hand_over, failures);
    }
}

fn run_group(
    group: &[(Table, &Case)],
    adapter: Adapter,
    hand_over: HandOver,
    failures: &mut Vec<String>,
) {
    let mut running: Option<Running> = None;
    for (keys, case) in group {
        let (mut log, mut is_kept) = (String::new(), false);
        let result = catch_unwind(AssertUnwindSafe(|| {
            let is_first = running.is_none();
            let now = running.get_or_insert_with(|| Running::start(case, keys, adapter, hand_over));
            let result = catch_unwind(AssertUnwindSafe(|| {
                is_kept = !run_case(case, keys, adapter, now, is_first);
                // A case of a group leaves workers that take requests in the same way.
                if !case.is_alone() {
                    hand_over.wait_for_workers(&now.kirin, keys);
                }
            }));
            log = now.kirin.log();
            result
        }));
        // After a failure the others get a new Kirin.
        if !matches!(result, Ok(Ok(()))) || !is_kept {
            running = None;
        }
        if let Err(panic) | Ok(Err(panic)) = result {
            let (adapter, hand_over) = (adapter.name(), hand_over.name());
            let message = message(panic.as_ref());
            failures.push(format!("`{}`, {adapter}, {hand_over}:\n{message}\n{log}", case.name));
        }
    }
}

/// A Kirin, and the directory of its application.
struct Running {
    site: Site,
    kirin: Kirin,
}

impl Running {
    fn start(case: &Case, keys: &Table, adapter: Adapter, hand_over: HandOver) -> Self {
        let files = case.files.iter();
        let site = files.fold(adapter.site(), |site, (name, text)| site.with(name, text));
        let kirin = hand_over.start(&site, adapter, keys);
        Self { site, kirin }
    }
}

/// Returns the text of a panic.
fn message(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<String>().map(String::as_str);
    text.or_else(|| panic.downcast_ref::<&str>().copied()).unwrap_or("a panic").to_owned()
}

/// Runs a case. Returns whether Kirin has ended.
fn run_case(
    case: &Case,
    keys: &Table,
    adapter: Adapter,
    now: &mut Running,
    is_first: bool,
) -> bool {
    let mut progress = Progress::new(adapter, &now.site, &mut now.kirin, is_first);
    // With several workers nobody knows which one answers.
    let is_watched = case.worker != Worker::Unchecked && !keys.contains_key("workers");
    let before = is_watched.then(|| progress.state(None));
    if let Some((pid, _)) = &before {
        progress.memory.remember("worker", pid.clone());
    }
    let mut connection = None;
    if let (Some(request), Some(response)) = (&case.request, &case.response) {
        connection = progress.exchange(request, response);
    }
    for step in &case.steps {
        progress.step(step);
    }
    if let Some((pid, runs)) = before {
        // Over the same connection this also shows that nothing follows the response.
        let (pid_after, runs_after) = progress.state(connection);
        if case.worker == Worker::Ends {
            assert_ne!(pid_after, pid, "the worker must have left");
        } else {
            assert_eq!(pid_after, pid, "the worker must serve on");
            let runs_of_case = case.runs.unwrap_or(progress.requests);
            assert_eq!(runs_after - runs, runs_of_case, "runs of the application");
        }
    }
    check_log(case, &progress);
    progress.has_ended
}

fn check_log(case: &Case, progress: &Progress<'_>) {
    for texts in &case.log {
        let what = match texts {
            Texts::One(text) => text.clone(),
            Texts::All(texts) => texts.join("` and `"),
        };
        progress.wait_for_log(&what, |log| is_logged(log, texts, &progress.memory));
    }
    let log = progress.log();
    for text in &case.log_once {
        let text = progress.memory.expand(text);
        assert_eq!(log.matches(&text).count(), 1, "`{text}` must be in the log once");
    }
    let mut unwanted: Vec<&str> = case.no_log.iter().map(String::as_str).collect();
    if !case.warns {
        unwanted.extend([" WARN ", " ERROR "]);
    }
    for text in unwanted {
        assert!(!log.contains(text), "`{text}` must not be in the log");
    }
}
