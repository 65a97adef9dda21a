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
            if let Some(copy) = copy_below(form, &open.form)
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

/// Returns the form for the paths of `guard` that are below `open`, too. Returns `None` if there
/// are none, or if Kirin finds the guard first in any case.
fn copy_below(guard: &Form, open: &Form) -> Option<Form> {
    let is_name = |segment: &str| segment.starts_with('{');
    let fits = |(of_guard, of_open): (&String, &String)| {
        of_guard == of_open || is_name(of_guard) || is_name(of_open)
    };
    if !guard.segments.iter().zip(&open.segments).all(fits) {
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
