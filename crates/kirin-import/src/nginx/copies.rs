//! Routes of a guard below the routes that would come before it.
//!
//! nginx asks a regular expression before all prefixes. In Kirin a literal segment comes before a
//! name and before a shorter path. So a guard with an expression is written again below each path
//! that would take its requests.

use super::context::Context;
use super::paths::{Ending, Form};

/// The most paths below which a guard is written again.
const MAX_COPIES: usize = 200;

/// The most paths of a server that are compared with guards.
pub const MAX_PATHS: usize = 300;

/// A path whose route could come before that of a guard.
#[derive(Debug, Clone)]
pub struct OpenPath {
    /// The path.
    pub form: Form,
    /// The number of its directive, if it is of an expression. nginx asks expressions in the order
    /// of the file.
    pub number: Option<usize>,
}

/// Returns the forms of a guard with those below other paths. `number` is that of the guard.
/// Returns `None` if there are too many.
pub fn with_copies(forms: &[Form], number: usize, context: &Context<'_>) -> Option<Vec<Form>> {
    if context.open_paths.len() >= MAX_PATHS {
        return None;
    }
    let mut all = forms.to_vec();
    for open in &context.open_paths {
        if open.number.is_some_and(|other| other <= number) {
            continue;
        }
        for form in forms {
            if let Some(copy) = overlap(form, &open.form)
                && !all.contains(&copy)
            {
                all.push(copy);
            }
        }
        if all.len() > MAX_COPIES {
            return None;
        }
    }
    Some(all)
}

/// Returns the form for the paths of `guard` that the route of `open` would take. Returns `None` if
/// there are none, or if Kirin finds the guard first in any case.
pub fn overlap(guard: &Form, open: &Form) -> Option<Form> {
    match &open.ending {
        Ending::Below => copy_below(guard, open),
        Ending::Exact(_) => covers(guard, open).then(|| open.clone()),
        Ending::Suffix(text) => {
            let is_suffix = |suffix: &str| text.ends_with(suffix);
            let has_all = match &guard.ending {
                Ending::Below => true,
                Ending::Suffix(suffix) => is_suffix(suffix),
                Ending::Exact(_) => false,
            };
            let fits = guard.segments.len() <= open.segments.len() && fits(guard, open);
            if has_all && fits {
                return Some(open.clone());
            }
            let below = Form { ending: Ending::Below, ..open.clone() };
            copy_below(guard, &below)
        }
    }
}

/// Returns whether the segments of both may be the same, as far as both have some.
fn fits(guard: &Form, open: &Form) -> bool {
    let is_name = |segment: &str| segment.starts_with('{');
    guard
        .segments
        .iter()
        .zip(&open.segments)
        .all(|(of_guard, of_open)| of_guard == of_open || is_name(of_guard) || is_name(of_open))
}

/// Returns whether a guard is for an exact path.
fn covers(guard: &Form, open: &Form) -> bool {
    let (own, other) = (guard.segments.len(), open.segments.len());
    let by_ending = match &guard.ending {
        Ending::Below => own <= other,
        Ending::Exact(_) => own == other && guard.ending == open.ending,
        Ending::Suffix(suffix) => {
            own < other && open.segments.last().is_some_and(|last| last.ends_with(suffix.as_str()))
        }
    };
    by_ending && fits(guard, open)
}

/// Returns the form for the paths of `guard` that are below `open`, too. Returns `None` if there
/// are none, or if Kirin finds the guard first in any case.
fn copy_below(guard: &Form, open: &Form) -> Option<Form> {
    let is_name = |segment: &str| segment.starts_with('{');
    if !fits(guard, open) {
        return None;
    }
    let is_deeper = open.segments.len() > guard.segments.len();
    if is_deeper && matches!(guard.ending, Ending::Exact(_)) {
        return None;
    }
    // A literal segment of either of them stays.
    let longest = guard.segments.len().max(open.segments.len());
    let segments =
        (0..longest).filter_map(|at| match (guard.segments.get(at), open.segments.get(at)) {
            (Some(of_guard), Some(of_open)) if is_name(of_guard) => Some(of_open),
            (Some(of_guard), _) => Some(of_guard),
            (None, of_open) => of_open,
        });
    let segments: Vec<String> = segments.cloned().collect();
    (segments != guard.segments).then(|| Form { segments, ..guard.clone() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_guard_takes_exact_paths_and_extensions_of_others() {
        let suffix = |path: &str, suffix: &str| Form {
            ending: Ending::Suffix(suffix.to_owned()),
            ..Form::below(path)
        };
        for (guard, open, expected) in [
            (suffix("/", ".sql"), Form::exact("/x.sql"), Some("= /x.sql")),
            (suffix("/", ".sql"), Form::exact("/x.txt"), None),
            (suffix("/", ".sql"), suffix("/a", ".sql"), Some("/a/*.sql")),
            (suffix("/", ".sql"), suffix("/a", ".a.sql"), Some("/a/*.a.sql")),
            (suffix("/", ".sql"), suffix("/a", ".txt"), Some("/a/*.sql")),
            (Form::below("/a"), suffix("/a/b", ".txt"), Some("/a/b/*.txt")),
            (Form::below("/a"), Form::exact("/a/b"), Some("= /a/b")),
        ] {
            let found = overlap(&guard, &open).and_then(|form| form.path());
            assert_eq!(found.as_deref(), expected, "{guard:?} {open:?}");
        }
    }

    #[test]
    fn a_guard_is_copied_below_paths_that_would_come_first() {
        let suffix = |path: &str, suffix: &str| Form {
            ending: Ending::Suffix(suffix.to_owned()),
            ..Form::below(path)
        };
        for (guard, open, expected) in [
            (suffix("/", ".sql"), "/data", Some("/data/*.sql")),
            (suffix("/{s1}/uploads", ".php"), "/wp-content", Some("/wp-content/uploads/*.php")),
            (suffix("/{s1}/uploads", ".php"), "/a/uploads/b", Some("/a/uploads/b/*.php")),
            (suffix("/data", ".sql"), "/other", None),
            (Form::below("/data"), "/data/public", Some("/data/public")),
            (Form::below("/data/public"), "/data", None),
            (Form::exact("/data"), "/data/public", None),
            (Form::below("/users/{s1}/private"), "/users/bob", Some("/users/bob/private")),
            (Form::below("/users/{s1}/private"), "/users/bob/x", None),
        ] {
            let found = copy_below(&guard, &Form::below(open)).and_then(|form| form.path());
            assert_eq!(found.as_deref(), expected, "{guard:?} {open}");
        }
    }
}
