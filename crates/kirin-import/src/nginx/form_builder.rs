//! Builds the path of Kirin that stands for a sequence of an expression.

use super::expression::Atom;
use super::paths::{Ending, Form, Paths};

/// Builds the form of a sequence.
#[derive(Default)]
pub struct FormBuilder {
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

impl FormBuilder {
    /// Returns the form of the sequence. Returns `None` if no path stands for it. `found` learns
    /// what the form matches too much or too little.
    pub fn build(mut self, atoms: &[Atom], is_anchored: bool, found: &mut Paths) -> Option<Form> {
        let mut is_first = true;
        if !is_anchored && !self.starts_with_slash(atoms) {
            self.after_any = true;
            is_first = false;
        }
        let mut following = atoms.iter().skip(1);
        for atom in atoms {
            let next = following.next();
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
                Atom::Dot if self.is_text() && matches!(next, Some(Atom::Char(c)) if *c != '/') => {
                    // Most people mean a dot.
                    found.missing.push("names with another character in place of the dot");
                    self.segment.push('.');
                    self.push_to_groups(".");
                }
                Atom::Dot | Atom::OneOf | Atom::Run(_) => {
                    self.run(*atom == Atom::Run(true), found)?
                }
                Atom::Any => self.any(found)?,
            }
        }
        self.finish(is_first, found)
    }

    /// Returns whether the segment has text so far, and no name.
    fn is_text(&self) -> bool {
        !self.segment.is_empty() && !self.segment.starts_with('{') && !self.is_below
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
