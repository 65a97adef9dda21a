//! What an operator's changes mean for the choice of a server.

use std::sync::Arc;
use std::time::{Duration, Instant};

use super::*;
use crate::{Availability, Balancer, Criteria, Method, ServerSettings, Servers, Settings};

const SETTINGS: Settings = Settings {
    max_failures: 1,
    ejection_time: Duration::from_secs(10),
    healthy_after: 1,
    unhealthy_after: 1,
    slow_start: Duration::ZERO,
    queue_length: 10,
};

fn server(name: &str, weight: u32) -> ServerSettings {
    ServerSettings { name: name.into(), weight, backup: false, max_in_flight: None }
}

fn balancer(names: &[&str]) -> (Balancer, Instant) {
    let now = Instant::now();
    let servers = Servers::new(names.iter().map(|name| server(name, 1)), SETTINGS, now);
    (Balancer::new(Arc::new(servers), Method::RoundRobin, 7), now)
}

fn chosen(balancer: &Balancer, now: Instant, times: usize) -> Vec<Option<usize>> {
    (0..times).map(|_| balancer.choose(&Criteria::default(), now)).collect()
}

#[test]
fn a_draining_server_has_its_own_visitors_and_a_disabled_one_nobody() {
    let (balancer, now) = balancer(&["a:80", "b:80"]);
    let servers = balancer.servers();
    let own = Criteria { sticky: servers.id(0), ..Criteria::default() };
    for (state, of_own, availability) in [
        (OperatorState::Draining, Some(0), Availability::Draining),
        (OperatorState::Disabled, Some(1), Availability::Disabled),
    ] {
        assert_eq!(servers.change("a:80", ServerChange::State(state), now), 1);
        assert!(chosen(&balancer, now, 4).iter().all(|chosen| *chosen == Some(1)), "{state:?}");
        assert_eq!(balancer.choose(&own, now), of_own, "{state:?}");
        assert_eq!(servers.server_status(now)[0].availability, availability);
    }
    servers.change("a:80", ServerChange::State(OperatorState::Enabled), now);
    assert!(chosen(&balancer, now, 4).contains(&Some(0)));
}

#[test]
fn no_server_is_chosen_when_all_are_disabled_not_even_as_the_last_resort() {
    let (balancer, now) = balancer(&["a:80", "b:80"]);
    for name in ["a:80", "b:80"] {
        balancer.servers().change(name, ServerChange::State(OperatorState::Disabled), now);
    }
    assert_eq!(chosen(&balancer, now, 1), [None]);
    assert!(!balancer.servers().has_candidate(&Criteria::default(), now));
}

#[test]
fn a_weight_holds_until_it_is_taken_back() {
    let (balancer, now) = balancer(&["a:80", "b:80"]);
    let servers = balancer.servers();
    let count = || chosen(&balancer, now, 8).iter().filter(|chosen| **chosen == Some(0)).count();
    assert_eq!(count(), 4);
    servers.change("a:80", ServerChange::Weight(Some(3)), now);
    assert_eq!(count(), 6);
    let status = &servers.server_status(now)[0];
    assert_eq!((status.weight, status.configured_weight), (3, Some(1)));
    servers.change("a:80", ServerChange::Weight(None), now);
    assert_eq!(count(), 4);
    assert_eq!(servers.server_status(now)[0].configured_weight, None);
}

#[test]
fn servers_are_named_with_or_without_scheme_and_address_of_a_name() {
    let (balancer, now) =
        balancer(&["https://a:443 (10.0.0.1:443)", "https://a:443 (10.0.0.2:443)"]);
    let change = ServerChange::Weight(Some(2));
    for (name, count) in [
        ("a:443", 2),
        ("https://a:443", 2),
        ("https://a:443 (10.0.0.2:443)", 1),
        ("10.0.0.2:443", 0),
        ("a", 0),
        ("", 0),
    ] {
        assert_eq!(balancer.servers().change(name, change, now), count, "{name}");
    }
}

#[test]
fn a_change_outlives_another_configuration_unless_that_says_something_else() {
    let (balancer, now) = balancer(&["a:80", "b:80"]);
    let servers = balancer.servers();
    servers.change("a:80", ServerChange::Weight(Some(5)), now);
    servers.change("a:80", ServerChange::State(OperatorState::Draining), now);
    let after = |settings: ServerSettings| {
        let next = servers.continued(SETTINGS).exchanged([settings, server("b:80", 1)]);
        let status = next.server_status(now).remove(0);
        (status.weight, status.availability)
    };
    assert_eq!(after(server("a:80", 1)), (5, Availability::Draining));
    let limited =
        ServerSettings { max_in_flight: std::num::NonZeroU32::new(9), ..server("a:80", 1) };
    assert_eq!(after(limited), (5, Availability::Draining));
    assert_eq!(after(server("a:80", 2)), (2, Availability::Draining));
    assert_eq!(after(server("c:80", 1)), (1, Availability::Available));
}
