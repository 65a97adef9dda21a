//! Tests of pages with ESI.

use std::sync::Arc;

use bytes::Bytes;
use proptest::prelude::*;

use crate::test_pages::{TestPages, compile, render};
use crate::{Rendering, Syntax, Template};

const ERROR: &str = "[an error occurred while processing the directive]";

#[test]
fn pages_are_rendered_as_esi_1_0_specifies() {
    for (page, shown) in [
        // Includes.
        ("a<esi:include src=\"/x\"/>b", "a</x>b"),
        ("<esi:include  src = '/x'\n />", "</x>"),
        ("<esi:include src=\"/x\">", "</x>"),
        ("<esi:include src=\"/x\"></esi:include>.", "</x>."),
        ("<esi:include src=\"/x\" ttl=\"1m\" onerror=\"continue\"/>", "</x>"),
        ("<esi:include src=\"/x?a=1&amp;b=2\"/>", "</x?a=1&b=2>"),
        ("<esi:include src=\"http://example.org/x\"/>", "</x>"),
        ("<esi:include src=\"http://$(HTTP_HOST)/x\"/>", "</x>"),
        ("<esi:include src=\"http://other.org/x\"/>.", ERROR_DOT),
        ("<esi:include src=\"/fail\"/>.", ERROR_DOT),
        ("<esi:include src=\"/refused\"/>.", ERROR_DOT),
        ("<esi:include src=\"/fail\" onerror=\"continue\"/>.", "."),
        ("<esi:include src=\"/refused\" onerror=\"continue\"/>.", "."),
        ("<esi:include src=\"/refused\" onerror=\"other\"/>.", ERROR_DOT),
        ("<esi:include src=\"/x\" alt=\"/y\"/>", "</x or /y>"),
        ("<esi:include src=\"/refused\" alt=\"/y\"/>", "</y>"),
        ("<esi:include src=\"http://other.org/x\" alt=\"/y\"/>", "</y>"),
        ("<esi:include src=\"/x\" alt=\"http://other.org/y\"/>", "</x>"),
        ("<esi:include src=\"/refused\" alt=\"/refused\"/>.", ERROR_DOT),
        ("<esi:include src=\"/refused\" alt=\"/refused\" onerror=\"continue\"/>.", "."),
        // Values in targets fill one place and never create another.
        ("<esi:include src=\"/x/$(QUERY_STRING{v_a?c&d%20})\"/>", "</x/a%3Fc%26d%20>"),
        (
            "<esi:include src=\"/x?y=$(QUERY_STRING{v_a/../b?c&d%20})\"/>",
            "</x?y=a%2F..%2Fb%3Fc%26d%20>",
        ),
        ("<esi:include src=\"/x/$(QUERY_STRING{v_a/../b})\"/>.", ERROR_DOT),
        ("<esi:include src=\"/x/$(V_..%2F)\"/>.", "</x/$(V_..%2F)>."),
        ("<esi:include src=\"/x/$(QUERY_STRING{v_../b})\" alt=\"/y\"/>", "</y>"),
        (
            "<esi:include src=\"/fail/x\" alt=\"/y/$(QUERY_STRING{v_..})\" onerror=\"continue\"/>.",
            ".",
        ),
        ("<esi:include src=\"/x?$(V_A=1&B=2)\"/>", "</x?$(V_A=1&B=2)>"),
        ("<esi:include src=\"/x?$(V_AB)\"/>", "</x?ab>"),
        ("<esi:include src=\"/x/$(NONE|d)/$(NONE)\"/>", "</x/d/>"),
        // Text for other programs, and text for ESI only.
        ("a<esi:remove>b<esi:include src=\"/x\"/>c</esi:remove>d", "ad"),
        ("a<esi:remove/>d", "ad"),
        ("a<!--esi b<esi:include src=\"/x\"/>c-->d--><!-- e -->", "a b</x>cd--><!-- e -->"),
        ("<!--esi<esi:remove>-->x</esi:remove>-->y", "y"),
        ("<!--esi <!--# echo var=\"v_a\" -->b-->c", " abc"),
        ("a<esi:comment text=\"x > y\"/>b", "ab"),
        // Variables.
        ("$(V_A)<esi:vars>$(V_A)</esi:vars>$(V_A)", "$(V_A)a$(V_A)"),
        ("<esi:vars>$(QUERY_STRING{v_<b>&'})</esi:vars>", "&lt;b&gt;&amp;&#39;"),
        ("<esi:vars>$(NONE)|$(NONE|no)|$(NONE|'a ) <b>')|$(V_A|no)</esi:vars>", "|no|a ) <b>|a"),
        ("<esi:vars>$(HTTP_COOKIE{none}|d) $(HTTP_USER_AGENT{browser}|d)</esi:vars>", "d d"),
        (
            "<esi:vars>$(document).x $(v_a) $() $(A{}) $(A $(A{b) 5$</esi:vars>",
            "$(document).x $(v_a) $() $(A{}) $(A $(A{b) 5$",
        ),
        ("<esi:vars><esi:include src=\"/x\"/>$(V_A)</esi:vars>", "</x>a"),
        ("<esi:vars>$(V_A)", "a"),
        // Both syntaxes in one page.
        ("<!--# if expr=\"$none\" --><esi:include src=\"/x\"/><!--# else -->b<!--# endif -->", "b"),
        ("<!--# set var=\"x\" value=\"<\" --><esi:vars>$(X)</esi:vars>", "&lt;"),
        ("<!--# config errmsg=\"oops\" --><esi:include src=\"/fail\"/>", "oops"),
        // Text without an end stays text.
        ("a<esi:include src=\"/x\"", "a<esi:include src=\"/x\""),
        ("a<!--esi b", "a<!--esi b"),
        ("<esi:include src=\"/x\"/><esi:include", "</x><esi:include"),
        // These are not tags of ESI.
        ("<esx:include src=\"/x\"/><p>-->", "<esx:include src=\"/x\"/><p>-->"),
    ] {
        assert_eq!(render(page, &[]).0, shown, "{page}");
    }
}

const ERROR_DOT: &str = "[an error occurred while processing the directive].";

#[test]
fn an_unknown_tag_shows_the_error_message_once() {
    for (page, rest) in [
        ("<esi:include/>.", "."),
        ("<esi:include src=\"\"/>.", "."),
        ("<esi:include src=/x />.", "."),
        ("<esi:include src=\"/x\"alt=\"/y\"/>.", "."),
        ("<esi:include src=\"/x/>.", "."),
        ("<esi:choose>a</esi:choose>.", "a."),
        ("<esi:>.", "."),
        ("</esi:vars>.", "."),
        ("</esi:remove>.", "."),
        ("</esi:vars x=\"y\">.", "."),
        ("<esi:remove>a", "a"),
        ("<esi:remove>a<esi:include src=\"/x\"/>", "a</x>"),
        ("<esi:vars><esi:vars>a", "a"),
    ] {
        assert_eq!(render(page, &[]).0, ERROR.to_owned() + rest, "{page}");
    }
}

#[test]
fn a_syntax_that_is_off_is_text() {
    let page = Bytes::from_static(b"<!--# else --><esi:x/><!--esi a-->");
    for (syntax, shown) in [
        (Syntax::default(), "<!--# else --><esi:x/><!--esi a-->"),
        (Syntax::SSI, "[E]<esi:x/><!--esi a-->"),
        (Syntax::ESI, "<!--# else -->[E] a"),
    ] {
        let mut rendering = Rendering::new(Arc::new(Template::compile(&page, syntax)));
        let _ = rendering.run(&mut TestPages::default());
        let got = String::from_utf8(rendering.take_ready().concat()).unwrap();
        assert_eq!(got.replace(ERROR, "[E]"), shown, "{syntax:?}");
    }
}

proptest! {
    #[test]
    fn every_byte_outside_of_tags_is_kept(
        page in "(<esi:|</esi:|<!--esi|-->|include|vars|remove| src=\"/x\"|\"|'|/>|>|<|\\$\\(|A|\\{|\\}|\\||\\)| |é){0,40}",
    ) {
        let template = Template::compile(&Bytes::from(page.clone()), Syntax::ESI);
        if !template.is_dynamic() {
            let mut rendering = Rendering::new(Arc::new(template));
            let _ = rendering.run(&mut TestPages::default());
            prop_assert_eq!(rendering.take_ready().concat(), page.into_bytes());
        } else {
            let (shown, _) = render(&page, &[]);
            prop_assert!(shown.matches('é').count() <= page.matches('é').count());
            prop_assert_eq!(shown, render(&page, &[]).0);
        }
        prop_assert!(compile("é<!--# else -->").is_dynamic());
    }
}
