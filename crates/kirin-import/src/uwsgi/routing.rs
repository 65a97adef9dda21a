//! Internal routing: `route = EXPRESSION ACTION:ARGUMENTS`.
//!
//! Kirin carries refusals and redirects. What asks for a password or looks at addresses closes its
//! paths.

use crate::draft::{Draft, one_line};
use crate::steps::{ExpressionPaths, PathPattern, Step};
use crate::uwsgi::options::UwsgiOption;

/// Actions that keep clients out.
const PROTECTING: [&str; 9] = [
    "basicauth",
    "basicauth-next",
    "ldapauth",
    "radius",
    "spnego",
    "ipv4in",
    "ipv6in",
    "break",
    "rpcbreak",
];

/// Reads a rule. Returns the step that stands in its place, if there is one.
pub(crate) fn rule(option: &UwsgiOption, draft: &mut Draft) -> Option<Step> {
    let directive = option.directive();
    let value = option.value.trim();
    let (subject, action) = value.split_once(char::is_whitespace).unwrap_or((value, ""));
    // `route-run` has an action alone.
    let all = matches!(option.key.as_str(), "route-run" | "route-always");
    let (subject, action) = if all { ("", value) } else { (subject, action.trim_start()) };
    let (name, arguments) = action.split_once(':').unwrap_or((action, ""));
    let by_path = all || matches!(option.key.as_str(), "route" | "route-uri" | "route-request-uri");
    let paths = if by_path { ExpressionPaths::read(subject) } else { ExpressionPaths::Unknown };
    let same = match &paths {
        ExpressionPaths::Same(paths) => Some(paths.clone()),
        _ => None,
    };
    let refuses = matches!(name, "break") && arguments.starts_with(['4', '5']);
    if let Some(paths) = same.clone() {
        let mut step = Step::new(paths, option.place.to_string());
        let status = match name {
            "redirect" | "redirect-302" => Some(302),
            "redirect-permanent" | "redirect-301" => Some(301),
            _ => None,
        };
        let exact = step.paths.iter().all(|path| matches!(path, PathPattern::Exact(_)));
        let plain = !arguments.contains(['$', '{', '%']) && arguments.starts_with(['/', 'h']);
        if let Some(status) = status.filter(|_| exact && plain) {
            step.route.set("redirect", arguments);
            step.route.set("redirect_status", status);
            draft.notes.carried(&option.place, &directive, "Kirin keeps the query.");
            return Some(step);
        }
        if refuses {
            step.route.set("deny", if arguments.starts_with("404") { 404 } else { 403 });
            draft.notes.carried(&option.place, &directive, "With 403 or 404.");
            return Some(step);
        }
    }
    let protects = PROTECTING.contains(&name) && (name != "break" || refuses)
        || option.key.starts_with("route-remote");
    if !protects {
        let text = "Kirin has no rules with expressions. Write routes (docs/routes.md), or a Lua \
                    script (docs/lua.md)";
        draft.notes.left_out(&option.place, &directive, text);
        return None;
    }
    let text = "PROTECTION NOT CARRIED OVER: Kirin has `basic_auth`, `allow` and `deny` of a \
                route (docs/routes.md). The route is closed until they are written";
    let shown = without_secret(name, &directive);
    draft.notes.left_out(&option.place, &shown, text);
    let mut step = Step::new(paths.closed(), option.place.to_string());
    step.close(&format!("Closed: {}", one_line(&shown)));
    Some(step)
}

/// Returns a rule without its password.
fn without_secret(name: &str, directive: &str) -> String {
    match directive.find(name).filter(|_| name.ends_with("auth") || name.starts_with("basicauth")) {
        Some(start) => format!("{}{name}", directive.get(..start).unwrap_or_default()),
        None => directive.to_owned(),
    }
}
