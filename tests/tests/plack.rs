//! `Plack::Handler::Kirin` with the program that was built beside this test: Plack's own tests of
//! servers, and the life of `plackup -s Kirin`.

use kirin_tests::prove;

const ADAPTER: &str = "adapters/perl";

#[test]
fn placks_own_tests_of_servers_pass_under_http_1_0_and_1_1() {
    prove(ADAPTER, "t/handler_suite.t");
}

#[test]
fn plackup_starts_and_ends_kirin_with_all_its_processes() {
    prove(ADAPTER, "t/handler_life.t");
}

#[test]
fn start_server_in_front_of_plackup_replaces_programs_without_a_lost_request() {
    prove(ADAPTER, "t/handler_start_server.t");
}
