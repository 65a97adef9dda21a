//! Unmodified frameworks of Debian packages behind the built program: Mojolicious, Dancer2 and
//! Catalyst. The tests are in Perl (`tests/perl-software`), because their clients are.

use kirin_tests::prove;

const SOFTWARE: &str = "tests/perl-software";

#[test]
fn a_mojolicious_application_answers_as_it_does_behind_starlet() {
    prove(SOFTWARE, "t/mojolicious.t");
}

#[test]
fn a_dancer2_application_answers_as_it_does_behind_starlet() {
    prove(SOFTWARE, "t/dancer2.t");
}

#[test]
fn a_catalyst_application_answers_as_it_does_behind_starlet() {
    prove(SOFTWARE, "t/catalyst.t");
}

#[test]
fn generated_and_packaged_applications_pass_their_own_tests() {
    prove(SOFTWARE, "t/own_tests.t");
}
