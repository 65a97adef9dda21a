//! `valid_referers`: pages of other sites that may not link to files.

use toml::{Table, Value};

use super::base_route::copy_answers_of_errors;
use super::context::Context;
use super::directive::Directive;
use super::location::Location;
use super::protection::close;
use super::route::Route;
use super::units::text;

/// The most values of the field that are written.
const MAX_VALUES: usize = 50;

/// Adds routes for requests with a referer that nginx accepts before `main`, which refuses all
/// others.
pub fn guard_referers<'a>(
    block: &'a Directive,
    refusal: &'a Directive,
    main: &mut Route,
    location: &Location<'a>,
    context: &Context<'a>,
) -> Vec<Route> {
    let Some(valid) = location.scope.one("valid_referers") else {
        close(main, block, "there is no `valid_referers`", context);
        return Vec::new();
    };
    let Some(values) = values(valid, context) else {
        close(main, valid, "`match` cannot have these referers", context);
        return Vec::new();
    };
    let mut accepted = Vec::new();
    for value in values {
        let mut route = main.clone();
        let field = Table::from_iter([("Referer".to_owned(), value)]);
        let conditions = Table::from_iter([("headers".to_owned(), Value::Table(field))]);
        if route.add_conditions(&conditions) {
            accepted.push(route);
        }
    }
    let mut refused = Route::new(main.path());
    refused.section.comments = main.section.comments.clone();
    refused.section.set("deny", if refusal.arg(0) == "404" { 404 } else { 403 });
    copy_answers_of_errors(main, &mut refused);
    *main = refused;
    context.carried(block);
    context.carried(refusal);
    context.carried_but(valid, "a client chooses this field, so it protects nothing");
    accepted
}

/// Returns the values of the field that are accepted.
fn values<'a>(valid: &'a Directive, context: &Context<'a>) -> Option<Vec<Value>> {
    let mut values = Vec::new();
    for word in &valid.args {
        match word.as_str() {
            "none" => values.push(Value::Boolean(false)),
            "blocked" => {
                context.left_out(valid, "`blocked`: a referer without http:// is refused");
            }
            "server_names" => {
                for host in &context.server.hosts {
                    add_host(host, &mut values)?;
                }
            }
            word if word.starts_with('~') => return None,
            host => add_host(host, &mut values)?,
        }
    }
    (!values.is_empty() && values.len() <= MAX_VALUES).then_some(values)
}

fn add_host(host: &str, values: &mut Vec<Value>) -> Option<()> {
    if host.starts_with('~') || host.contains(['$', '{']) {
        return None;
    }
    let (host, path) = host.split_once('/').unwrap_or((host, ""));
    let inner = host.trim_start_matches("*.").trim_start_matches('.');
    if inner.contains('*') || inner.is_empty() {
        return None;
    }
    if host != inner {
        // Names below it: the text between the scheme and the name is not known.
        values.push(text(format!("*.{inner}/{path}*")));
        if host.starts_with("*.") {
            return Some(());
        }
    }
    for scheme in ["https", "http"] {
        values.push(text(format!("{scheme}://{inner}/{path}*")));
    }
    Some(())
}
