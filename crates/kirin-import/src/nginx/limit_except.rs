//! `limit_except`: methods that others than some clients may not use.

use super::access_rules::{Others, access_rules};
use super::base_route::copy_answers_of_errors;
use super::context::Context;
use super::directive::Directive;
use super::location::Location;
use super::passwords::add_password;
use super::protection::close;
use super::route::Route;
use super::units::texts;

/// Makes `main` the route for the methods that are limited. Returns the route for the others, which
/// comes before it.
pub fn split_methods<'a>(
    block: &'a Directive,
    main: &mut Route,
    location: &Location<'a>,
    context: &Context<'a>,
) -> Vec<Route> {
    if main.refuses_all() {
        context.carried(block);
        return Vec::new();
    }
    let mut free = main.clone();
    let methods = toml::Table::from_iter([("methods".to_owned(), texts(&block.args))]);
    if !free.add_conditions(&methods) {
        close(main, block, "the route has conditions on methods already", context);
        return Vec::new();
    }
    let scope = location.scope.inner(block.inside());
    context.carried(block);
    match access_rules(&scope, context) {
        Err((directive, why)) => close(main, directive, why, context),
        Ok(rules) if !rules.refused.is_empty() => {
            close(main, block, "`limit_except` with `deny` of single addresses", context);
        }
        Ok(rules) => match rules.others {
            Others::All => {}
            Others::Only(addresses) => main.section.set("allow", texts(addresses)),
            Others::Nobody => {
                let mut refused = Route::new(main.path());
                refused.section.comments = main.section.comments.clone();
                refused.section.set("deny", 403);
                copy_answers_of_errors(main, &mut refused);
                *main = refused;
            }
        },
    }
    if !main.refuses_all()
        && let Err((directive, why)) = add_password(main, &scope, context)
    {
        close(main, directive, &why, context);
    }
    vec![free]
}
