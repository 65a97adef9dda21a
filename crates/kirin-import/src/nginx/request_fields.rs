//! `proxy_set_header` and its relatives: the fields that servers get.

use super::context::Context;
use super::directive::Directive;
use super::route::Route;
use super::scope::Scope;
use super::units::text;
use super::upstream::Protocol;
use super::variables::{Target, Variables};

/// Adds the fields of requests.
pub fn add_request_fields<'a>(
    route: &mut Route,
    scope: &Scope<'a>,
    protocol: Protocol,
    context: &Context<'a>,
) {
    let mut variables = context.variables(scope);
    add_subrequest_variables(&mut variables, scope);
    let name = format!("{}_set_header", protocol.prefix());
    for directive in scope.list(&name).iter().copied() {
        add_field(route, directive, &variables, context);
    }
    if let Some(directive) = scope.one(&format!("{}_pass_request_headers", protocol.prefix())) {
        if directive.is_off() {
            // The server may be of somebody else.
            for name in ["Authorization", "Cookie"] {
                route.add_entry("request_headers", name, text(""));
            }
            let note = "without `Authorization` and `Cookie`; other fields are passed on";
            context.carried_but(directive, note);
        } else {
            context.by_itself(directive, "servers get the fields of the request");
        }
    }
}

/// Makes the variables of `auth_request_set` known. The key `auth_request` itself has these fields.
fn add_subrequest_variables(variables: &mut Variables, scope: &Scope<'_>) {
    for directive in scope.of_all_levels("auth_request_set") {
        let name = directive.arg(0).trim_start_matches('$').to_owned();
        variables.known.insert(name, "\0".into());
    }
}

fn add_field<'a>(
    route: &mut Route,
    directive: &'a Directive,
    variables: &Variables,
    context: &Context<'a>,
) {
    let (name, value) = (directive.arg(0), directive.arg(1));
    match name.to_ascii_lowercase().as_str() {
        // It is a key of the upstream.
        "host" => return,
        "connection" | "upgrade" | "keep-alive" | "te" | "trailer" | "transfer-encoding"
        | "proxy-connection" => {
            let text = "Kirin writes the fields of the connection, and WebSockets pass";
            return context.by_itself(directive, text);
        }
        "x-forwarded-for" | "x-forwarded-host" | "forwarded" => {
            return context.by_itself(directive, "Kirin sends X-Forwarded-For, -Proto and -Host");
        }
        "x-forwarded-proto" => return forwarded_scheme(directive, context),
        "x-request-id" => return context.by_itself(directive, "Kirin sends the id of the request"),
        "content-length" | "expect" => {
            return context.by_itself(directive, "Kirin writes the fields of the body");
        }
        "accept-encoding" => {
            let text = "the field cannot be set. With `ssi` or `esi` Kirin asks for responses that \
                        are not compressed";
            return context.left_out(directive, text);
        }
        _ => {}
    }
    if !name.chars().all(|c| c.is_ascii_alphanumeric() || c == '-') || name.is_empty() {
        return context.left_out(directive, "names of fields have letters, digits and `-` only");
    }
    match variables.translate(value, Target::Field) {
        Ok(value) if value.contains('\0') => {
            context.carried_but(directive, "by `fields` of `auth_request`");
        }
        Ok(value) if value.chars().any(char::is_control) => {
            context.left_out(directive, "a value has no control characters");
        }
        Ok(value) => {
            route.add_entry("request_headers", name, text(value));
            context.carried(directive);
        }
        Err(variable) => {
            context.left_out(directive, format!("`request_headers` has no variable `${variable}`"));
        }
    }
}

fn forwarded_scheme<'a>(directive: &'a Directive, context: &Context<'a>) {
    match directive.arg(1) {
        "$scheme"
        | "$http_x_forwarded_proto"
        | "$proxy_x_forwarded_proto"
        | "$the_scheme"
        | "$forwarded_proto" => {
            context.by_itself(directive, "Kirin sends X-Forwarded-For, -Proto and -Host");
        }
        "https" if context.server.schemes() == (true, false) => {
            context.by_itself(directive, "Kirin sends X-Forwarded-For, -Proto and -Host");
        }
        _ => context.left_out(
            directive,
            "Kirin sends the scheme of the connection. If a proxy in front has TLS, name it in \
             `trusted` of the listener",
        ),
    }
}
