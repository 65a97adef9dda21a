//! Pages that are made to take long. None of these tests would end if something looked at the rest of a page once for each
//! directive.

use crate::test_site::{Site, compile};
use crate::{Progress, Rendering, Syntax, Template};
use bytes::Bytes;
use std::sync::Arc;

const MEGABYTES: usize = 4 << 20;

fn repeated(unit: &str) -> Bytes {
    Bytes::from(unit.repeat(MEGABYTES / unit.len()))
}

#[test]
fn pages_of_what_does_not_end_are_read_once() {
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
        assert_eq!(rendering.run(&mut Site::default()), Progress::Done, "{unit}");
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
    let shown = crate::test_site::render(&small.repeat(300), &[]).0;
    assert_eq!(shown.matches("an error occurred").count(), 2 * (300 - 256));
    let large = "<!--# if expr=\"$v_a = /(a{100}){100}/\" -->x<!--# endif -->";
    assert_eq!(crate::test_site::render(large, &[]).0.matches("an error occurred").count(), 2);
}

#[test]
fn values_that_double_end_at_a_megabyte() {
    let doubling = "<!--# set var=\"a\" value=\"$a$a\" -->".repeat(64);
    let page = format!("<!--# set var=\"a\" value=\"0123456789\" -->{doubling}<!--# echo var=\"a\" -->");
    let mut rendering = Rendering::new(compile(&page));
    assert_eq!(rendering.run(&mut Site::default()), Progress::Done);
    assert!(rendering.take_ready().concat().len() <= 1 << 20);
}
