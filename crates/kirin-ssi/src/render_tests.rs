//! Tests of rendered pages, directive by directive.

use proptest::prelude::*;

use super::*;
use crate::Syntax;
use crate::test_pages::{TestPages, compile, render};

const ERROR: &str = "[an error occurred while processing the directive]";

#[test]
fn pages_are_rendered_as_by_nginx() {
    for (page, shown) in [
        ("", ""),
        ("plain", "plain"),
        // Variables.
        ("<!--# echo var=\"v_x\" -->", "x"),
        ("<!--#echo var='V_X'-->", "x"),
        ("<!--# echo var=\"none\" -->", "(none)"),
        ("<!--# echo var=\"none\" default=\"a$\\\"<\" -->", "a$&quot;&lt;"),
        ("<!--# echo var=\"none\" default=\"\" -->", ""),
        ("<!--# echo var=\"no name!\" -->", "(none)"),
        ("<!--# echo var=\"v_<\" encoding=\"base64\" -->", "&lt;"),
        ("<!--# set var=\"no name\" value=\"1\" --><!--# echo var=\"no name\" -->", "1"),
        ("<!--# set var=\"a\" value=\"<$v_x>\" --><!--# echo var=\"a\" -->", "&lt;x&gt;"),
        ("<!--# set var=\"a\" value=\"<\" --><!--# echo var=\"a\" encoding=\"none\" -->", "<"),
        ("<!--# set var=\"a\" value=\"<\" --><!--# echo var=\"a\" encoding=\"url\" -->", "%3C"),
        ("<!--# set var=\"v_x\" value=\"mine\" --><!--# echo var=\"v_x\" -->", "mine"),
        // Conditions, nested too.
        ("<!--# if expr=\"$v_x\" -->a<!--# else -->b<!--# endif -->c", "ac"),
        ("<!--# if expr=\"$none\" -->a<!--# else -->b<!--# endif -->c", "bc"),
        (
            "<!--# if expr=\"$none\" -->a<!--# elif expr=\"$v_x = x\" -->b<!--# else -->c<!--# endif -->",
            "b",
        ),
        (
            "<!--# if expr=\"$none\" -->a<!--# elif expr=\"$none\" -->b<!--# else -->c<!--# endif -->d",
            "cd",
        ),
        ("<!--# if expr=\"$none\" -->a<!--# endif -->b", "b"),
        (
            "<!--# if expr=\"$v_x\" --><!--# if expr=\"$none\" -->a<!--# else -->b<!--# endif -->c<!--# else -->d<!--# endif -->",
            "bc",
        ),
        (
            "<!--# if expr=\"$v_abc = /(b)(?P<last>.)/\" --><!--# echo var=\"1\" --><!--# echo var=\"last\" --><!--# endif -->",
            "bc",
        ),
        ("<!--# if expr=\"$none\" -->hidden", ""),
        ("<!--# if expr=\"$none\" --><!--# include gone --><!--# endif -->", ""),
        // Configuration.
        ("<!--# config errmsg=\"oops\" --><!--# nonsense -->", "oops"),
        ("<!--# config timefmt=\"%s\" --><!--# echo var=\"date_gmt\" -->", "Gmt %s"),
        ("<!--# echo var=\"DATE_LOCAL\" -->", "Local %A, %d-%b-%Y %H:%M:%S %Z"),
        // Includes.
        ("<!--# include a -->!", "A!"),
        ("<!--# include key=\"a\" -->", "A"),
        ("<!--# include key=\"$v_a\" -->", "A"),
        ("<!--# include nested -->", "(A)"),
        ("<!--# include virtual=\"/memory\" -->", "memory"),
        ("a<!--# include virtual=\"/x?$v_y\" -->b", "a</x?y>b"),
        ("<!--#include file=\"f.html\"-->", "<f.html>"),
        ("<!--# include virtual=\"/x\" wait=\"yes\" -->b", "</x>b"),
        (
            "<!--# include virtual=\"/fail\" -->b",
            "[an error occurred while processing the directive]b",
        ),
        (
            "<!--# include virtual=\"/refused\" -->b",
            "[an error occurred while processing the directive]b",
        ),
        (
            "<!--# include virtual=\"/x\" set=\"a\" -->b<!--# echo var=\"a\" encoding=\"none\" -->",
            "b</x>",
        ),
        ("<!--# include virtual=\"/fail\" set=\"a\" -->[<!--# echo var=\"a\" -->]", "[]"),
        ("<!--# include a set=\"x\" -->[<!--# echo var=\"x\" -->]", "[A]"),
        ("<!--# include nested set=\"x\" -->[<!--# echo var=\"x\" -->]", "[(A)]"),
        (
            "<!--# include remote set=\"x\" -->[<!--# echo var=\"x\" encoding=\"none\" -->]",
            "[(</r>)]",
        ),
        ("<!--# include setter --><!--# echo var=\"s\" -->", "1"),
        // Stubs.
        ("<!--# block name=\"b\" -->no <!--# echo var=\"v_x\" --><!--# endblock -->-", "-"),
        (
            "<!--# block name=\"b\" -->no<!--# endblock --><!--# include virtual=\"/fail\" stub=\"b\" -->.",
            "no.",
        ),
        (
            "<!--# block name=\"b\" -->no<!--# endblock --><!--# include virtual=\"/empty\" stub=\"b\" -->.",
            "no.",
        ),
        (
            "<!--# block name=\"b\" -->no<!--# endblock --><!--# include virtual=\"/x\" stub=\"b\" -->.",
            "</x>.",
        ),
        ("<!--# block name=\"b\" -->no<!--# endblock --><!--# include gone stub=\"b\" -->.", "no."),
        ("<!--# block name=\"b\" -->no<!--# endblock --><!--# include void stub=\"b\" -->.", "no."),
        (
            "<!--# block name=\"b\" --><!--# endblock --><!--# include virtual=\"/fail\" stub=\"b\" -->.",
            ".",
        ),
        (
            "<!--# block name=\"b\" --><!--# include virtual=\"/y\" --><!--# endblock --><!--# include virtual=\"/x\" stub=\"b\" -->.",
            "</x>.",
        ),
        (
            "<!--# block name=\"b\" -->[<!--# include virtual=\"/y\" -->]<!--# endblock --><!--# include virtual=\"/fail\" stub=\"b\" -->.",
            "[</y>].",
        ),
        (
            "<!--# block name=\"b\" -->no<!--# endblock --><!--# include virtual=\"/fail\" stub=\"b\" set=\"s\" -->.<!--# echo var=\"s\" -->",
            ".no",
        ),
    ] {
        let items = [
            ("a", "A"),
            ("void", ""),
            ("nested", "(<!--# include a -->)"),
            ("remote", "(<!--# include virtual=\"/r\" -->)"),
            ("setter", "<!--# set var=\"s\" value=\"1\" -->"),
        ];
        assert_eq!(render(page, &items).0, shown, "{page}");
    }
}

#[test]
fn a_malformed_directive_shows_the_error_message() {
    for page in [
        "<!--# -->",
        "<!--# include -->",
        "<!--# include a b -->",
        "<!--# include key= -->",
        "<!--# include key=\"\" -->",
        "<!--# include key=\"a b\" -->",
        "<!--# include virtual=\"/a\" file=\"b\" -->",
        "<!--# include virtual=\"/a\" wait=\"maybe\" -->",
        "<!--# include virtual=\"/a\" depth=\"1\" -->",
        "<!--# exec cmd=\"rm\" -->",
        "<!--# echo -->",
        "<!--# echo var=\"v_x\" var=\"v_x\" -->",
        "<!--# set var=\"a\" value=\"b\" value=\"b\" -->",
        "<!--# include virtual=\"/a\" stub=\"none\" -->",
        "<!--# if expr=\"$a b\" -->",
        "<!--# set var=\"a\" -->",
        "<!--# if -->",
        "<!--# else -->",
        "<!--# endif -->",
        "<!--# elif expr=\"$a\" -->",
    ] {
        assert_eq!(render(page, &[]).0, ERROR, "{page}");
    }
    let second_else = "<!--# if expr=\"$v_x\" -->a<!--# else -->b<!--# else -->c<!--# endif -->";
    assert_eq!(render(second_else, &[]).0, "a");
}

#[test]
fn a_missing_key_is_named() {
    let (page, problem) = render("a<!--# include gone -->b", &[]);
    assert_eq!(page, format!("a{ERROR}b"));
    assert_eq!(problem, Some(RenderProblem::Missing(Bytes::from_static(b"gone"))));
}

#[test]
fn a_cycle_is_cut_and_the_page_continues() {
    let (page, problem) = render("<!--# include a -->end", &[("a", "x<!--# include a -->")]);
    assert_eq!(page, "x".repeat(MAX_DEPTH) + ERROR + "end");
    assert!(matches!(problem, Some(RenderProblem::Cut(_))));
}

#[test]
fn doubling_includes_do_not_explode() {
    let doubling = "<!--# config errmsg=\"\" -->x<!--# include a --><!--# include a -->";
    let (page, problem) = render("<!--# include a -->", &[("a", doubling)]);
    assert!(page.len() <= MAX_INCLUDES, "{} bytes", page.len());
    assert!(matches!(problem, Some(RenderProblem::Cut(_))));
}

#[test]
fn a_page_starts_a_limited_number_of_requests() {
    let (page, problem) = render(&"<!--# include virtual=\"/x\" -->".repeat(MAX_REQUESTS + 1), &[]);
    assert_eq!(page, "</x>".repeat(MAX_REQUESTS) + ERROR);
    assert!(matches!(problem, Some(RenderProblem::Cut(_))));
}

#[test]
fn requests_start_before_the_first_is_answered_and_pieces_leave_in_order() {
    let mut site = TestPages::new(&[]);
    let mut rendering = Rendering::new(compile(
        "a<!--# include virtual=\"/1\" -->b<!--# include virtual=\"/2\" -->c",
    ));
    assert_eq!(rendering.run(&mut site), RenderProgress::Done);
    assert_eq!(
        site.requested,
        [(IncludeTarget::Virtual, "/1".to_owned()), (IncludeTarget::Virtual, "/2".to_owned())]
    );
    assert_eq!(rendering.take_ready().concat(), b"a");
    rendering.fill(1, Some(vec![Bytes::from_static(b"two")]));
    assert_eq!(rendering.take_ready().concat(), b"");
    rendering.fill(0, None);
    assert_eq!(rendering.take_ready().concat(), format!("{ERROR}btwoc").as_bytes());
    assert_eq!(rendering.take_ready().concat(), b"");
}

proptest! {
    #[test]
    fn a_page_without_directives_is_unchanged(page in prop::collection::vec(any::<u8>(), 0..200)) {
        prop_assume!(memchr::memmem::find(&page, b"<!--#").is_none());
        let mut rendering = Rendering::new(Arc::new(Template::compile(&Bytes::from(page.clone()), Syntax::SSI)));
        prop_assert_eq!(rendering.run(&mut TestPages::default()), RenderProgress::Done);
        prop_assert_eq!(rendering.take_ready().concat(), page);
    }

    #[test]
    fn taking_pieces_early_changes_nothing(
        page in "(<!--# (include (a|gone|virtual=\"/[xy]\"( wait=\"yes\")?( set=\"s\")?( stub=\"b\")?)|echo var=\"(s|v_x)\"|if expr=\"\\$(s|v_x|none)\"|else|elif expr=\"\\$v_y\"|endif|block name=\"b\"|endblock|set var=\"s\" value=\"1\") -->|t){0,14}",
        failing in prop::collection::vec(any::<bool>(), 32),
    ) {
        let items = [("a", "A<!--# include virtual=\"/z\" stub=\"b\" -->")];
        let finish = |early: bool| {
            let mut site = TestPages::new(&items);
            let mut rendering = Rendering::new(compile(&page));
            let mut shown = Vec::new();
            let answer = |rendering: &mut Rendering, id: usize| {
                let body = (!failing[id % 32]).then(|| vec![Bytes::from(format!("<{id}>"))]);
                rendering.fill(id, body);
            };
            while let RenderProgress::Wait(id) = rendering.run(&mut site) {
                if early {
                    shown.extend(rendering.take_ready());
                }
                answer(&mut rendering, id);
            }
            for id in 0..site.requested.len() {
                if early {
                    shown.extend(rendering.take_ready());
                }
                answer(&mut rendering, id);
            }
            shown.extend(rendering.take_ready());
            (shown.concat(), rendering.problem())
        };
        prop_assert_eq!(finish(true), finish(false));
    }
}

#[test]
fn variables_of_a_part_become_the_pages_if_it_has_waited() {
    for (wait, shown) in [("wait=\"yes\"", "part"), ("set=\"x\"", "part"), ("", "page")] {
        let mut site = TestPages::default();
        let page = format!(
            "<!--# set var=\"a\" value=\"page\" --><!--# include virtual=\"/1\" {wait} --><!--# echo var=\"a\" -->"
        );
        let mut rendering = Rendering::new(compile(&page));
        let mut part =
            Rendering::within(compile("<!--# set var=\"a\" value=\"part\" -->"), Scope::default());
        assert_eq!(part.run(&mut site), RenderProgress::Done);
        rendering.run(&mut site);
        rendering.adopt(0, part.scope());
        rendering.fill(0, Some(Vec::new()));
        assert_eq!(rendering.run(&mut site), RenderProgress::Done);
        assert_eq!(rendering.take_ready().concat(), shown.as_bytes(), "{wait}");
    }
}

#[test]
fn a_part_has_the_variables_of_the_page() {
    let mut site = TestPages::default();
    let mut page = Rendering::new(compile("<!--# set var=\"a\" value=\"page\" -->"));
    page.run(&mut site);
    let mut part = Rendering::within(compile("<!--# echo var=\"a\" -->"), page.scope().clone());
    part.run(&mut site);
    assert_eq!(part.take_ready().concat(), b"page");
}

#[test]
fn a_block_in_a_branch_is_defined_if_the_branch_is_carried_out() {
    let block = |condition: &str, name: &str, text: &str| {
        format!(
            "<!--# if expr=\"{condition}\" --><!--# block name=\"{name}\" -->{text}<!--# endblock --><!--# endif -->"
        )
    };
    let stub = "<!--# include virtual=\"/fail\" stub=\"b\" -->";
    let always = "<!--# block name=\"b\" -->always<!--# endblock -->";
    for (page, shown) in [
        (block("$none", "b", "no") + stub, ERROR),
        (block("$v_x", "b", "yes") + stub, "yes"),
        (
            block("$none", "b", "1") + &block("$v_x", "b", "2") + &block("$v_x", "b", "3") + stub,
            "2",
        ),
        (block("$none", "b", "no") + always + stub, "always"),
        (always.to_owned() + &block("$v_x", "b", "late") + stub, "always"),
        (block("$v_x", "other", "no") + stub, ERROR),
        (
            block("$v_x", "b", "in <!--# include virtual=\"/fail\" stub=\"b\" -->") + stub,
            &format!("in {ERROR}"),
        ),
        (always.to_owned() + "<!--# endblock -->" + stub, "always"),
        (stub.to_owned() + always, ERROR),
    ] {
        assert_eq!(render(&page, &[]).0, shown, "{page}");
    }
    // Each page has its own blocks.
    let part = format!("({stub})");
    let page = block("$v_x", "b", "yes") + "<!--# include part -->" + stub;
    assert_eq!(render(&page, &[("part", &part)]).0, format!("({ERROR})yes"));
}

#[test]
fn visitor_text_stays_foreign_in_other_variables() {
    for (page, shown) in [
        ("<!--# include virtual=\"/p/$v_a.html\" -->", "</p/a.html>".to_owned()),
        ("<!--# include virtual=\"/p/${arg_v_a}/x\" -->", "</p/a/x>".to_owned()),
        (
            "<!--# set var=\"t\" value=\"/p/$v_a\" --><!--# include virtual=\"$t/x\" -->",
            "</p/a/x>".to_owned(),
        ),
        (
            "<!--# set var=\"t\" value=\"/p/..\" --><!--# include virtual=\"$t/x\" -->",
            "</p/../x>".to_owned(),
        ),
    ] {
        assert_eq!(render(page, &[]).0, shown, "{page}");
    }
    let mut site = TestPages::default();
    let hostile = "<!--# set var=\"t\" value=\"$evil\" -->\
        <!--# if expr=\"$t = /^(.*)\\$/\" --><!--# set var=\"u\" value=\"/p/$1\" --><!--# endif -->\
        <!--# include virtual=\"/p/$t\" --><!--# include virtual=\"$u\" --><!--# include file=\"$evil\" -->\
        <!--# include virtual=\"/q?x=$t\" -->";
    site.evil = "../x";
    let mut rendering = Rendering::new(compile(hostile));
    assert_eq!(rendering.run(&mut site), RenderProgress::Done);
    assert_eq!(site.requested, [(IncludeTarget::Virtual, "/q?x=..%2Fx".to_owned())]);
}

#[test]
fn a_rendering_stops_in_front_of_an_item_that_is_not_known() {
    let page =
        "1<!--# include a -->2<!--# include b -->3<!--# include $v_c -->4<!--# include c -->";
    let mut site = TestPages::new(&[("a", "A"), ("b", "B"), ("c", "C")]);
    site.unknown.insert("b".to_owned());
    let mut rendering = Rendering::new(compile(page));
    assert_eq!(rendering.run(&mut site), RenderProgress::Unknown);
    assert_eq!(rendering.keys_ahead().collect::<Vec<_>>(), ["b", "c"]);
    assert_eq!(rendering.take_ready().concat(), b"1A2");
    assert_eq!(rendering.run(&mut site), RenderProgress::Done);
    assert_eq!(rendering.take_ready().concat(), b"B3C4C");
    assert_eq!(rendering.problem(), None);
}

#[test]
fn a_page_names_the_variables_that_it_asks_for() {
    for (page, names) in [
        ("<p>", &[][..]),
        ("<!--# echo var=\"session.name\" --><!--# echo var=\"A\" -->", &["a", "session.name"]),
        ("<!--# if expr=\"$session = $x\" --><!--# endif -->", &["session", "x"]),
        ("<!--# set var=\"y\" value=\"a${session.id}b\" -->", &["session.id"]),
        ("<!--# include virtual=\"/x?$arg_x\" -->", &["arg_x"]),
        ("<!--# block name=\"b\" --><!--# echo var=\"z\" --><!--# endblock -->", &["z"]),
        ("<esi:vars>$(HTTP_HOST)</esi:vars>", &["http_host"]),
    ] {
        assert_eq!(compile(page).variables().collect::<Vec<_>>(), names, "{page}");
    }
}
