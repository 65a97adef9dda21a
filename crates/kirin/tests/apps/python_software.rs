//! Unmodified Python software from PyPI behind the built program: Django, Wagtail, Flask and
//! FastAPI. The tests are in Python (`tests/python-software`), because their clients are.

use std::process::Command;

use kirin_tests::{binary, repository};

/// Runs a module of unit tests.
fn unittest(module: &str) {
    let output = Command::new("python3")
        .args(["-m", "unittest", "-v", module])
        .current_dir(repository().join("tests/python-software"))
        .env("KIRIN_BINARY", binary())
        .output()
        .expect("python3 is installed");
    let text = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{text}");
    assert!(!text.contains("skipped"), "tests were skipped: {text}");
}

#[test]
fn a_django_site_answers_as_it_does_behind_gunicorn() {
    unittest("test_django");
}

#[test]
fn a_wagtail_site_answers_as_it_does_behind_gunicorn() {
    unittest("test_wagtail");
}

#[test]
fn a_flask_application_answers_as_it_does_behind_gunicorn() {
    unittest("test_flask");
}

#[test]
fn a_fastapi_application_answers_as_it_does_behind_uvicorn() {
    unittest("test_fastapi");
}

#[test]
fn requests_byte_by_byte_are_answered_as_by_gunicorn_and_uvicorn() {
    unittest("test_wire");
}
