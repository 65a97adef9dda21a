//! Which locations protect something, and what Kirin does not have of that.

use super::context::Context;
use super::directive::Directive;
use super::location::Location;
use super::route::Route;
use super::scope::Scope;

/// Directives that keep visitors out in a way that Kirin does not have.
const UNKNOWN_GUARDS: [&str; 16] = [
    "access_by_lua",
    "access_by_lua_block",
    "access_by_lua_file",
    "rewrite_by_lua_block",
    "rewrite_by_lua_file",
    "auth_jwt",
    "auth_jwt_key_file",
    "auth_ldap",
    "auth_ldap_servers",
    "auth_pam",
    "auth_gss",
    "auth_digest",
    "auth_spnego",
    "js_access",
    "perl_access",
    "oidc",
];

/// Returns whether a block keeps visitors out by its own directives.
pub fn protects(scope: &Scope<'_>) -> bool {
    let has = |name: &str| !scope.own_named(name).is_empty();
    let is_set = |name: &str| scope.own_named(name).iter().any(|directive| !directive.is_off());
    has("deny")
        || has("internal")
        || has("limit_except")
        || has("valid_referers")
        || has("secure_link")
        || is_set("auth_basic")
        || is_set("auth_request")
        || scope.own_named("return").iter().any(|directive| refuses(directive))
        || scope.own_named("if").iter().any(|block| block.inside().iter().any(refuses))
        || UNKNOWN_GUARDS.iter().any(|name| is_set(name))
}

/// Returns whether a directive is `return` with a status that keeps visitors out.
pub fn refuses(directive: &Directive) -> bool {
    let status = directive.arg(0).parse::<u16>();
    directive.name == "return" && status.is_ok_and(|status| (400..500).contains(&status))
}

/// Returns whether a location refuses everybody.
pub fn refuses_all(location: &Location<'_>) -> bool {
    let denies = location.scope.own_named("deny").iter().any(|deny| deny.has("all"));
    let allows = !location.scope.own_named("allow").is_empty();
    denies && !allows || location.own("return").is_some_and(refuses)
}

/// Closes a route if a guard of nginx holds in its block that Kirin does not have.
pub fn close_without_guard<'a>(route: &mut Route, scope: &Scope<'a>, context: &Context<'a>) {
    for name in UNKNOWN_GUARDS {
        let Some(directive) = scope.one(name).filter(|directive| !directive.is_off()) else {
            continue;
        };
        let why = format!("Kirin has no `{name}`");
        close(route, directive, &why, context);
    }
}

/// Closes a route because of a directive that protects it in nginx.
pub fn close<'a>(route: &mut Route, directive: &'a Directive, why: &str, context: &Context<'a>) {
    let note = format!("{why}. The route {} refuses everybody until you decide", route.path());
    context.globals.notes.protection_lost(directive, note);
    if !route.closed {
        route.close(&format!("{}: {why}", directive.at()));
    }
}
