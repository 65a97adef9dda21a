//! The paths of Kirin that stand for a regular expression of nginx.

use std::collections::HashMap;

use super::expression::{Atom, sequences};

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
    let mut form = Builder::default().build(&rest, has_start, found)?;
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

/// Builds the form of a sequence.
#[derive(Default)]
struct Builder {
    form: Form,
    /// The text of the segment that is being read.
    segment: String,
    /// Whether the segment has characters that are not known.
    is_open: bool,
    /// The open groups, each with what it has so far.
    groups: Vec<(usize, Option<String>, String)>,
    /// The group that is the rest of the path.
    names: usize,
    /// What stands before the end of the segment is any text.
    after_any: bool,
    is_below: bool,
    has_end: bool,
}

impl Builder {
    fn build(mut self, atoms: &[Atom], is_anchored: bool, found: &mut Paths) -> Option<Form> {
        let mut is_first = true;
        if !is_anchored && !self.starts_with_slash(atoms) {
            self.after_any = true;
            is_first = false;
        }
        for atom in atoms {
            if self.has_end
                && !matches!(atom, Atom::CloseGroup(_) | Atom::OpenGroup(..) | Atom::End)
            {
                return None;
            }
            match atom {
                Atom::Start => return None,
                Atom::End => self.has_end = true,
                Atom::OpenGroup(number, name) => {
                    self.groups.push((*number, name.clone(), String::new()));
                }
                Atom::CloseGroup(number) => self.close_group(*number)?,
                Atom::Char('/') => {
                    if !std::mem::take(&mut is_first) {
                        self.end_segment(found)?;
                    }
                    self.push_to_groups("/");
                }
                atom if is_first => return self.everything(atom, atoms),
                Atom::Char(c) => {
                    if self.is_below {
                        return None;
                    }
                    self.segment.push(*c);
                    self.push_to_groups(&c.to_string());
                }
                Atom::OneOf | Atom::Run(_) => self.run(*atom == Atom::Run(true), found)?,
                Atom::Any => self.any(found)?,
            }
        }
        self.finish(is_first, found)
    }

    fn starts_with_slash(&self, atoms: &[Atom]) -> bool {
        let mut atoms = atoms.iter().filter(|atom| !matches!(atom, Atom::OpenGroup(..)));
        atoms.next() == Some(&Atom::Char('/'))
    }

    /// Returns the form of `^`, `^.*` and `^(.*)$`: every path.
    fn everything(mut self, atom: &Atom, atoms: &[Atom]) -> Option<Form> {
        let others = atoms
            .iter()
            .filter(|atom| !matches!(atom, Atom::OpenGroup(..) | Atom::CloseGroup(_) | Atom::End));
        if *atom != Atom::Any || others.count() != 1 {
            return None;
        }
        for (number, name, _) in std::mem::take(&mut self.groups) {
            self.form.rest = Some((number.to_string(), true));
            for key in [Some(number.to_string()), name].into_iter().flatten() {
                self.form.groups.insert(key, "{path}".into());
            }
        }
        Some(self.form)
    }

    fn push_to_groups(&mut self, text: &str) {
        for (_, _, content) in &mut self.groups {
            content.push_str(text);
        }
    }

    fn end_segment(&mut self, found: &mut Paths) -> Option<()> {
        if self.is_below || self.after_any {
            return None;
        }
        if self.segment.is_empty() {
            return None;
        }
        if self.is_open {
            found.is_broader = true;
        }
        self.form.segments.push(std::mem::take(&mut self.segment));
        self.is_open = false;
        Some(())
    }

    /// Reads characters that are not known and have no slash.
    fn run(&mut self, is_any_segment: bool, found: &mut Paths) -> Option<()> {
        if self.after_any {
            // One character before an extension, as in `[^/]\.php`.
            return self.segment.is_empty().then_some(());
        }
        if !self.segment.is_empty() && !self.segment.starts_with('{') {
            // A text and a run in one segment: every name stands for them.
            found.is_broader = true;
            self.segment.clear();
        }
        if self.segment.is_empty() {
            self.names += 1;
            let name = match self.groups.last() {
                Some((_, Some(name), content)) if content.is_empty() => name.clone(),
                _ => format!("s{}", self.names),
            };
            self.segment = format!("{{{name}}}");
            let text = self.segment.clone();
            self.push_to_groups(&text);
        } else {
            found.is_broader = true;
        }
        if !is_any_segment {
            found.is_broader = true;
        }
        Some(())
    }

    fn any(&mut self, found: &mut Paths) -> Option<()> {
        if self.is_below {
            return None;
        }
        if self.segment.is_empty() || self.after_any {
            // A text before it makes no difference to the path.
            found.is_broader |= !self.segment.is_empty();
            self.after_any = true;
            self.segment.clear();
            self.push_to_groups("\0");
            return Some(());
        }
        // `^/old.*`: names that begin with the text.
        found.missing.push("names that only begin with the text");
        self.form.segments.push(std::mem::take(&mut self.segment));
        self.is_below = true;
        self.push_to_groups("\0\0");
        Some(())
    }

    fn close_group(&mut self, number: usize) -> Option<()> {
        let at = self.groups.iter().rposition(|(other, _, _)| *other == number)?;
        let (_, name, content) = self.groups.remove(at);
        let keys = [Some(number.to_string()), name].into_iter().flatten();
        match content.as_str() {
            "\0" | "/\0" | "\0\0" => {
                let begins_with_slash = content != "\0";
                for key in keys {
                    self.form.rest = Some((key, begins_with_slash));
                }
            }
            content if content.contains('\0') => {}
            content => {
                for key in keys {
                    self.form.groups.insert(key, content.to_owned());
                }
            }
        }
        Some(())
    }

    fn finish(mut self, is_first: bool, found: &mut Paths) -> Option<Form> {
        if is_first {
            return (!self.has_end).then_some(self.form);
        }
        if self.after_any {
            let suffix = std::mem::take(&mut self.segment);
            if !suffix.is_empty() {
                if !self.has_end {
                    found.missing.push("names with more text behind it");
                }
                self.form.ending = Ending::Suffix(suffix);
                return Some(self.form);
            }
            return Some(self.form);
        }
        let has_slash = self.segment.is_empty() && !self.is_below;
        if !self.segment.is_empty() {
            let is_text = !self.segment.starts_with('{');
            if !self.has_end && is_text {
                found.missing.push("names that only begin with the text");
            }
            self.form.segments.push(std::mem::take(&mut self.segment));
        }
        if self.has_end && !self.is_below {
            self.form.ending = Ending::Exact(has_slash);
        }
        Some(self.form)
    }
}

#[cfg(test)]
#[path = "paths_tests.rs"]
mod tests;
