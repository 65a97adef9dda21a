//! Notes on directives that nothing else has read.

use super::by_itself::by_itself;
use super::directive::Directive;
use super::notes::Notes;
use super::unsupported::reason;

/// Notes every directive without a note, and those in its block.
pub fn note_remaining(directives: &[Directive], notes: &Notes) {
    for directive in directives {
        if notes.is_open(directive) {
            note(directive, notes);
        }
        // Blocks and includes are only some levels deep.
        note_remaining(directive.inside(), notes);
    }
}

fn note(directive: &Directive, notes: &Notes) {
    let name = directive.name.as_str();
    let is_off = directive.is_off() && directive.args.len() == 1;
    match (by_itself(name), reason(name)) {
        (Some(text), _) => notes.by_itself(directive, text),
        (None, Some(_)) if is_off => notes.by_itself(directive, "it is off here, too"),
        (None, Some(text)) => notes.left_out(directive, text),
        (None, None) => notes.left_out(directive, "not a directive that this importer knows"),
    }
}
