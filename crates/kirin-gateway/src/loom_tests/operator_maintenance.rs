//! An operator's maintenance while a reload exchanges the routes.

use std::sync::Arc;

use kirin_sync::model::{check, join, spawn};

use crate::routing::access::Maintenance;
use crate::routing::operator_maintenance::{HeldRoutes, OperatorMaintenance};
use crate::routing::route_names::{RouteName, RouteNames};

/// The route that both configurations have, and the one that only the second has.
const KEPT: u32 = 0;
const NEW: u32 = 1;

/// Returns the names of these routes, which are all of one site.
fn names(numbers: &[u32]) -> RouteNames {
    let name = |number: &u32| {
        let path = format!("/{number}");
        (*number, RouteName { site: "a.org".into(), path: path.clone(), route: path })
    };
    numbers.iter().map(name).collect()
}

fn begin(operator: &OperatorMaintenance, names: &RouteNames) {
    let held = HeldRoutes { site: Some("a.org".into()), route: None };
    let maintenance =
        Maintenance { page: None, retry_after_seconds: 1, except: Default::default() };
    assert!(operator.begin(held, maintenance, names));
}

/// Puts a configuration with both routes into force, as a reload does.
fn reload(operator: &OperatorMaintenance) {
    let after = names(&[KEPT, NEW]);
    operator.include(&after);
    assert_eq!(operator.follow(&after, |_| false), []);
}

#[test]
fn maintenance_that_begins_during_a_reload_holds_the_new_routes() {
    check(5, || {
        let operator = Arc::<OperatorMaintenance>::default();
        let reloading = Arc::clone(&operator);
        let thread = spawn(move || reload(&reloading));
        // The operator's request came before the reload.
        begin(&operator, &names(&[KEPT]));
        join(thread);
        for route in [KEPT, NEW] {
            assert!(operator.is_used() && operator.of(route).is_some(), "route {route} is served");
        }
    });
}

#[test]
fn a_reload_interrupts_no_maintenance() {
    check(5, || {
        let operator = Arc::<OperatorMaintenance>::default();
        begin(&operator, &names(&[KEPT]));
        let reloading = Arc::clone(&operator);
        let thread = spawn(move || reload(&reloading));
        for _ in 0..2 {
            assert!(operator.is_used() && operator.of(KEPT).is_some(), "the route is served");
        }
        join(thread);
        assert!(operator.of(NEW).is_some(), "the new route is served");
    });
}
