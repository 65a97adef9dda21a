//! Instructions for directives of SSI. Each function returns `None` for a malformed directive.

use bytes::Bytes;

use crate::directive::Directive;
use crate::encoding::Encoding;
use crate::template::{Echo, Include, IncludeTarget, Instruction, Stub};
use crate::text::{Text, name, unescape};

/// Returns the instruction for `include`. `block` knows the blocks above it.
pub(crate) fn include(
    directive: &Directive,
    block: impl Fn(&Bytes) -> Option<Stub>,
) -> Option<Instruction> {
    if !directive.has_only(&["", "key", "virtual", "file", "wait", "set", "stub"]) {
        return None;
    }
    let mut targets = directive.parameters.iter().filter_map(|parameter| {
        let target = match &parameter.name[..] {
            b"" | b"key" => IncludeTarget::Key,
            b"virtual" => IncludeTarget::Virtual,
            b"file" => IncludeTarget::File,
            _ => return None,
        };
        Some((target, &parameter.value))
    });
    let (target, value) = targets.next()?;
    if targets.next().is_some() || value.is_empty() {
        return None;
    }
    let name_text = Text::parse(value);
    if let (IncludeTarget::Key, Some(key)) = (target, name_text.constant()) {
        let is_key = key.iter().all(|byte| *byte > b' ' && *byte != 0x7f);
        is_key.then_some(())?;
    }
    let set = match directive.value("set") {
        Some(variable) => Some(name(variable)?),
        None => None,
    };
    let wait = match directive.value("wait") {
        None => false,
        Some(answer) if answer.eq_ignore_ascii_case(b"no") => false,
        Some(answer) if answer.eq_ignore_ascii_case(b"yes") => true,
        Some(_) => return None,
    };
    let stub = match directive.value("stub") {
        Some(name) => Some(block(name)?),
        None => None,
    };
    Some(Instruction::Include(Box::new(Include {
        target,
        name: name_text,
        alternate: None,
        wait,
        set,
        stub,
        is_silent: false,
    })))
}

/// Returns the instruction for `echo`. Its default is text in which a `$` is a dollar sign, as in
/// nginx.
pub(crate) fn echo(directive: &Directive) -> Option<Instruction> {
    let variable =
        directive.value("var").filter(|_| directive.has_only(&["var", "default", "encoding"]))?;
    // Text that cannot be a name names no variable.
    let variable = name(variable).unwrap_or_default();
    let encoding =
        directive.value("encoding").map_or(Encoding::Entity, |name| Encoding::parse(name));
    let default = directive.value("default").map_or(Bytes::from_static(b"(none)"), unescape);
    Some(Instruction::Echo(Box::new(Echo { variable, default, encoding })))
}

/// Returns the instruction for `set`.
pub(crate) fn set(directive: &Directive) -> Option<Instruction> {
    let variable = directive.value("var").filter(|_| directive.has_only(&["var", "value"]))?;
    let value = Text::parse(directive.value("value")?);
    Some(Instruction::Set { variable: name(variable)?, value })
}

/// Returns the instruction for `config`.
pub(crate) fn config(directive: &Directive) -> Option<impl Iterator<Item = Instruction>> {
    if !directive.has_only(&["errmsg", "timefmt"]) {
        return None;
    }
    let time_format = |format: &Bytes| String::from_utf8_lossy(&unescape(format)).into();
    let format =
        directive.value("timefmt").map(|format| Instruction::TimeFormat(time_format(format)));
    let message =
        directive.value("errmsg").map(|message| Instruction::ErrorMessage(unescape(message)));
    Some(format.into_iter().chain(message))
}
