//! The responses that an unsafe request invalidates (section 4.4).

use super::{Case, Fate, Passed, Reused, case, run};

fn changed(method: &'static str, status: &str, fate: Fate) -> Case {
    let kept = "200\nCache-Control: max-age=3600";
    case("4.4", &format!("{method} {status}"), &[kept, status, kept])
        .ask(method, "", Passed)
        .get("", fate)
}

#[test]
fn unsafe_methods_that_succeed_invalidate_their_target() {
    let mut cases = Vec::new();
    for method in ["POST", "PUT", "DELETE", "PATCH", "M-SEARCH", "FOO"] {
        for (status, fate) in
            [("200", Passed), ("204", Passed), ("303", Passed), ("400", Reused), ("500", Reused)]
        {
            cases.push(changed(method, status, fate));
        }
    }
    cases.push(changed("OPTIONS", "200", Reused));
    run(cases);
}

#[test]
fn all_variants_are_invalidated() {
    let kept = "200\nCache-Control: max-age=3600\nVary: Foo";
    run(vec![
        case("4.4", "variants", &[kept, kept, "200", kept])
            .first("Foo: 1")
            .get("Foo: 2", Passed)
            .ask("POST", "", Passed)
            .get("Foo: 1", Passed)
            .get("Foo: 2", Passed)
            .get("Foo: 1", Reused),
    ]);
}
