//! `return` with a text or a status that no key of a route has: a script answers.

use super::context::Context;
use super::directive::Directive;
use super::location::Location;
use super::route::Route;

/// Sets a script as the place of a route.
pub fn set_fixed_answer<'a>(
    route: &mut Route,
    location: &Location<'a>,
    directive: &'a Directive,
    context: &Context<'a>,
) -> Result<(), String> {
    let status = directive.arg(0).parse::<u16>().unwrap_or(200);
    if !(200..=599).contains(&status) {
        return Err(format!("Kirin does not answer {status}"));
    }
    let body = directive.args.get(1).map_or("", String::as_str);
    let body = context
        .variables(&location.scope)
        .constant(body)
        .ok_or("a fixed answer has no variables: write a script for `lua:FILE` (docs/lua.md)")?;
    let media_type = location.scope.word("default_type").filter(|_| !body.is_empty());
    let headers = media_type.map_or(String::new(), |media_type| {
        format!(", headers = {{ [\"Content-Type\"] = {} }}", lua_text(media_type))
    });
    let body_key =
        if body.is_empty() { String::new() } else { format!(", body = {}", lua_text(&body)) };
    let script = format!("return function() return {{ status = {status}{headers}{body_key} }} end");
    let name = context.output.add_file("answer", ".lua", &[script]);
    route.section.set("try", super::units::texts([format!("lua:{name}")]));
    context.carried_but(directive, format!("by the script {name}"));
    if let Some(default_type) = location.own("default_type") {
        context.carried(default_type);
    }
    Ok(())
}

/// Returns a text as Lua reads it, on one line.
fn lua_text(value: &str) -> String {
    let mut written = String::from("\"");
    for c in value.chars() {
        match c {
            '"' | '\\' => written.extend(['\\', c]),
            '\n' => written.push_str("\\n"),
            '\r' => written.push_str("\\r"),
            c if c.is_control() => written.push_str(&format!("\\u{{{:x}}}", u32::from(c))),
            c => written.push(c),
        }
    }
    written.push('"');
    written
}
