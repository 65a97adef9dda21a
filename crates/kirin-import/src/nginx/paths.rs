//! The paths of Kirin that stand for a regular expression of nginx.

use std::collections::HashMap;

use super::expression::{Atom, sequences};
use super::form_builder::FormBuilder;

/// How deep below the root a directory of any depth is written.
const MAX_LEVELS: usize = 2;

/// The paths for an expression.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Paths {
    /// The paths, as Kirin writes them, with what groups stand for.
    pub forms: Vec<Form>,
    /// Whether they match paths that the expression does not match.
    pub is_broader: bool,
    /// What the expression matches and the paths do not.
    pub missing: Vec<&'static str>,
}

/// A path of Kirin.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Form {
    /// The segments: texts, and names in braces.
    pub segments: Vec<String>,
    /// What follows them.
    pub ending: Ending,
    /// What the groups of the expression stand for, by number and by name.
    pub groups: HashMap<String, String>,
    /// The group that is the rest of the path behind the segments. It is true if the group begins
    /// with the slash.
    pub rest: Option<(String, bool)>,
}

/// What follows the segments of a path.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum Ending {
    /// Everything below.
    #[default]
    Below,
    /// Nothing, or a slash if it is true.
    Exact(bool),
    /// A last segment that ends in this text.
    Suffix(String),
}

impl Form {
    /// Returns the form for everything below a path without names.
    pub fn below(path: &str) -> Self {
        Self { segments: segments_of(path), ..Self::default() }
    }

    /// Returns the form for this path alone.
    pub fn exact(path: &str) -> Self {
        let slash = path.ends_with('/');
        Self { segments: segments_of(path), ending: Ending::Exact(slash), ..Self::default() }
    }

    /// Returns the same below another path.
    pub fn moved_below(&self, path: &str) -> Self {
        let segments = [segments_of(path), self.segments.clone()].concat();
        Self { segments, ..self.clone() }
    }

    /// Returns whether Kirin can have such a path.
    fn is_possible(&self) -> bool {
        let is_good = |segment: &String| {
            let is_name = segment.starts_with('{') && segment.ends_with('}');
            !matches!(segment.as_str(), "" | "." | "..")
                && !segment.contains(['*', '%', '?', '#'])
                && (is_name || !segment.contains(['{', '}']))
        };
        let suffix_is_good = match &self.ending {
            Ending::Suffix(suffix) => {
                !suffix.is_empty() && !suffix.contains(['*', '%', '?', '#', '{', '}', '/'])
            }
            _ => true,
        };
        suffix_is_good && self.segments.iter().all(is_good)
    }

    /// Returns whether it has a character that a path of Kirin cannot have.
    fn has_other_signs(&self) -> bool {
        let has = |text: &str| text.contains(['#', '%', '*', '?']);
        let suffix = match &self.ending {
            Ending::Suffix(suffix) => suffix.as_str(),
            _ => "",
        };
        has(suffix) || self.segments.iter().any(|segment| has(segment))
    }

    /// Returns the value of the key `path`. Returns `None` if Kirin cannot have such a path.
    pub fn path(&self) -> Option<String> {
        if !self.is_possible() {
            return None;
        }
        let segments: String = self.segments.iter().map(|segment| format!("/{segment}")).collect();
        Some(match &self.ending {
            Ending::Below if segments.is_empty() => "/".into(),
            Ending::Below => segments,
            Ending::Exact(false) if !segments.is_empty() => format!("= {segments}"),
            Ending::Exact(_) => format!("= {segments}/"),
            Ending::Suffix(suffix) if segments.is_empty() => format!("*{suffix}"),
            Ending::Suffix(suffix) => format!("{segments}/*{suffix}"),
        })
    }
}

/// Returns the segments of a path.
fn segments_of(path: &str) -> Vec<String> {
    path.split('/').filter(|segment| !segment.is_empty()).map(str::to_owned).collect()
}

/// Returns the paths for `expression`. Returns `None` if no path stands for it.
pub fn paths(expression: &str, ignores_case: bool) -> Option<Paths> {
    let ignores_case = ignores_case || expression.starts_with("(?i)");
    let mut found = Paths::default();
    for sequence in sequences(expression)? {
        for form in read(&sequence, &mut found)? {
            if hides(&form) {
                // Kirin's files have no such names.
                continue;
            }
            if form.has_other_signs() {
                found.missing.push("names with `#`, `%`, `*` or `?`");
                continue;
            }
            let path = form.path()?;
            if !found.forms.iter().any(|other| other.path().as_ref() == Some(&path)) {
                found.forms.push(form);
            }
        }
    }
    join_exact(&mut found.forms);
    if ignores_case {
        add_spellings(&mut found);
    }
    (!found.forms.is_empty()).then_some(found)
}

/// Returns whether a form is for names that begin with a dot and have no further text.
fn hides(form: &Form) -> bool {
    form.segments.last().is_some_and(|segment| segment == ".")
}

/// Leaves out a path alone if the same path with everything below is there, too.
fn join_exact(forms: &mut Vec<Form>) {
    let below: Vec<Vec<String>> = forms
        .iter()
        .filter(|form| form.ending == Ending::Below)
        .map(|form| form.segments.clone())
        .collect();
    forms.retain(|form| {
        !(matches!(form.ending, Ending::Exact(_)) && below.contains(&form.segments))
    });
}

/// Adds other spellings of extensions, because upper and lower case differ in Kirin. Directories
/// stay as they are written: in a file system another spelling is another directory.
fn add_spellings(found: &mut Paths) {
    let mut all = Vec::new();
    for form in &found.forms {
        let Ending::Suffix(suffix) = &form.ending else {
            all.push(form.clone());
            continue;
        };
        for suffix in [suffix.clone(), suffix.to_lowercase(), suffix.to_uppercase()] {
            let other = Form { ending: Ending::Suffix(suffix), ..form.clone() };
            if !all.contains(&other) {
                all.push(other);
            }
        }
    }
    let has_letters = |form: &Form| match &form.ending {
        Ending::Suffix(suffix) => suffix.chars().any(char::is_alphabetic),
        _ => form.segments.iter().any(|segment| segment.chars().any(char::is_alphabetic)),
    };
    if all.iter().any(has_letters) {
        found.missing.push("other spellings with upper and lower case");
    }
    found.forms = all;
}

/// Returns the forms for one sequence.
fn read(sequence: &[Atom], found: &mut Paths) -> Option<Vec<Form>> {
    let has_start = sequence.contains(&Atom::Start);
    let mut rest: Vec<Atom> = sequence.to_vec();
    if has_start {
        let at = rest.iter().position(|atom| *atom == Atom::Start)?;
        if rest.iter().take(at).any(|atom| !matches!(atom, Atom::OpenGroup(..))) {
            return None;
        }
        rest.remove(at);
    }
    // `^.+\.php$` is the same as `\.php$`.
    let has_text = rest.iter().any(|atom| matches!(atom, Atom::Char(_)));
    let begins_with_any = has_start && has_text && rest.first() == Some(&Atom::Any);
    if begins_with_any {
        rest.remove(0);
    }
    let has_start = has_start && !begins_with_any;
    let mut form = FormBuilder::default().build(&rest, has_start, found)?;
    if has_start {
        return Some(vec![form]);
    }
    if form.segments.is_empty() || hides(&form) {
        return Some(vec![form]);
    }
    // A directory of any depth.
    found.missing.push("directories more than two levels below the root");
    form.rest = None;
    let names = ["{s1}", "{s2}"];
    let forms = (0..=MAX_LEVELS).map(|depth| {
        let above = names.iter().take(depth).map(|name| (*name).to_owned());
        Form { segments: above.chain(form.segments.iter().cloned()).collect(), ..form.clone() }
    });
    Some(forms.collect())
}

#[cfg(test)]
#[path = "paths_tests.rs"]
mod tests;
