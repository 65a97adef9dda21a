//! Pages that are designed to take long. None of these tests would end if the code read the rest of
//! a page once for each directive.

use std::sync::Arc;

use bytes::Bytes;

use crate::test_pages::{TestPages, compile};
use crate::value::VariableValue;
use crate::{RenderProgress, Rendering, Syntax, Template};

const MEGABYTES: usize = 4 << 20;

fn repeated(unit: &str) -> Bytes {
    Bytes::from(unit.repeat(MEGABYTES / unit.len()))
}

#[test]
fn pages_of_elements_without_an_end_are_read_once() {
    for unit in [
        "<!--#",
        "<!--# a",
        "<!--# a \"",
        "<!--# a b='\"",
        "<!--#x a='--><!--#x b=c' ",
        "<!--esi",
        "<!--esi -->",
        "<esi:",
        "<esi:vars>$(",
        "<esi:vars>$(A|",
        "<esi:include src='",
        "<esi:include src='\" a=\"'",
        "<esi:remove>",
        "</esi:vars>",
        "<esi:x a=\"<esi:x b='>\" c='",
        "<!--# if expr=\"$a\" -->",
        "<!--# block name=\"a\" --><!--# if expr=\"$a\" -->",
        "<!--# block name=\"a\" --><!--# endblock -->",
        "<!--# if expr=\"$a\" --><!--# else --><!--# else -->",
    ] {
        let template = Template::compile(&repeated(unit), Syntax { ssi: true, esi: true });
        let mut rendering = Rendering::new(Arc::new(template));
        assert_eq!(rendering.run(&mut TestPages::default()), RenderProgress::Done, "{unit}");
        rendering.take_ready();
    }
    for start in ["<!--# ", "<esi:x ", "<esi:vars>$(", "<!--# set var=\"a\" value=\""] {
        for unit in ["a ", "a=b ", "a='b' ", "$a", "\\", "${", "-"] {
            let page = [start.as_bytes(), &repeated(unit)].concat();
            Template::compile(&Bytes::from(page), Syntax { ssi: true, esi: true });
        }
    }
}

#[test]
fn regular_expressions_of_a_page_are_limited_in_size_and_number() {
    let small = "<!--# if expr=\"$v_a = /a/\" -->x<!--# endif -->";
    let shown = crate::test_pages::render(&small.repeat(300), &[]).0;
    assert_eq!(shown.matches("an error occurred").count(), 2 * (300 - 256));
    let large = "<!--# if expr=\"$v_a = /(a{100}){100}/\" -->x<!--# endif -->";
    assert_eq!(crate::test_pages::render(large, &[]).0.matches("an error occurred").count(), 2);
}

#[test]
fn values_that_double_end_at_a_megabyte() {
    let doubling = "<!--# set var=\"a\" value=\"$a$a\" -->".repeat(64);
    let page =
        format!("<!--# set var=\"a\" value=\"0123456789\" -->{doubling}<!--# echo var=\"a\" -->");
    let mut rendering = Rendering::new(compile(&page));
    assert_eq!(rendering.run(&mut TestPages::default()), RenderProgress::Done);
    assert!(rendering.take_ready().concat().len() <= 1 << 20);
}

#[test]
fn pages_cost_no_more_than_their_bytes() {
    let mut table = kirin_doubling::Table::new();
    let pieces = [
        "<!--#",
        "<!--# ",
        "<!--# a",
        "<!--# a=\"",
        "<!--# a='",
        "<!--# a=\"' -->",
        "<!--# a='\" -->",
        "<!--# set var=\"\\",
        "<!--# set var=\"a\" value=\"$a$b${c}\" -->",
        "<!--# echo var=\"v_a\" -->",
        "<!--# if expr=\"$v_a\" -->",
        "<!--# if expr=\"$v_a = /(a)(b)*/\" -->",
        "<!--# elif expr=\"$v_a\" -->",
        "<!--# else -->",
        "<!--# endif -->",
        "<!--# block name=\"b\" -->",
        "<!--# block name=\"b\" --><!--# endblock -->",
        "<!--# include virtual=\"/memory\" stub=\"b\" -->",
        "<!--# include a b c d e f g h i j k l m n o p q r -->",
        "-->",
        "<!--esi",
        "<!--esi -->",
        "<esi:",
        "<esi:x a=\"",
        "<esi:x a='\" b=\"'",
        "<esi:remove>",
        "<esi:remove></esi:remove>",
        "<esi:vars>",
        "<esi:vars>$(V_A)</esi:vars>",
        "$(",
        "$(A{",
        "$(A|'",
        "<esi:include src=\"/memory?$(QUERY_STRING{v_a})&amp;\"/>",
        "&amp;",
        "</esi:",
    ];
    let both = Syntax { ssi: true, esi: true };
    let run = |page: &Bytes| {
        let template = Arc::new(Template::compile(page, both));
        let mut rendering = Rendering::new(template);
        let _ = rendering.run(&mut TestPages::default());
        rendering.take_ready().len()
    };
    for start in
        ["", "<esi:vars>", "<!--esi ", "<!--# if expr=\"$v_a\" -->", "<!--# set var=\"a\" value=\""]
    {
        for piece in pieces {
            // The count stays below the limits of includes and regular expressions in one page.
            let page = |count: usize| Bytes::from(format!("{start}{}", piece.repeat(count)));
            table.check(&format!("{start}{piece}"), 30, page, run);
        }
    }
    let names = |count: usize| {
        let blocks = (0..count).map(|n| {
            format!(
                "<!--# if expr=\"$v_a\" --><!--# block name=\"b{n}\" --><!--# endblock --><!--# endif -->\
                     <!--# include virtual=\"/memory\" stub=\"b{n}\" -->"
            )
        });
        Bytes::from(blocks.collect::<String>())
    };
    table.check("blocks and stubs of many names", 30, names, run);
    table.finish();
}

#[test]
fn values_and_conditions_cost_no_more_than_their_bytes() {
    let mut table = kirin_doubling::Table::new();
    for piece in ["$a", "${a", "${", "\\", "$", "a$v_b.", "${v_a}", "/", "$v_a = "] {
        let text = |count: usize| Bytes::from(piece.repeat(count));
        table.check(&format!("value {piece}"), 100, text, |text| {
            crate::text::Text::parse(text)
                .evaluate(|_| Some(VariableValue::outside("arg_a", Bytes::from_static(b"../a"))))
                .target()
        });
        table.check(&format!("condition {piece}"), 100, text, |text| {
            crate::condition::IfCondition::parse(text, true).is_some()
        });
    }
    // The text of a visitor.
    for piece in ["../", "%2e", "/", "%", "a", "?", "\\", "a/b"] {
        for name in ["arg_a", "uri", "request_uri", "args", "http_host"] {
            let value =
                |count: usize| VariableValue::outside(name, Bytes::from(piece.repeat(count)));
            table.check(&format!("{name} {piece}"), 100, value, |value| {
                let path = VariableValue::concat(
                    [VariableValue::authors(Bytes::from_static(b"/p/")), value.clone()].into_iter(),
                );
                path.target().is_ok()
            });
        }
    }
    for pattern in ["^(a*)*b", "(a|aa)+x", "(.*)(.*)(.*)y", "a{1,50}z"] {
        let condition =
            crate::condition::IfCondition::parse(&Bytes::from(format!("$v = /{pattern}/")), true)
                .unwrap();
        let text = |count: usize| Bytes::from("a".repeat(count));
        table.check(&format!("pattern {pattern}"), 300, text, |text| {
            condition
                .holds(&mut crate::Scope::default(), |_| Some(VariableValue::authors(text.clone())))
        });
    }
    table.finish();
}
