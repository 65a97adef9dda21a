//! Texts of nginx configurations, and the directives in them.

use proptest::prelude::*;

use super::*;

fn flat(directives: &[Directive]) -> String {
    let one = |directive: &Directive| {
        let words: Vec<_> =
            std::iter::once(&directive.name).chain(&directive.args).cloned().collect();
        let block = match (&directive.block, &directive.foreign) {
            (Some(block), _) => format!("{{{}}}", flat(block)),
            (None, Some(text)) => format!("<{text}>"),
            (None, None) => String::new(),
        };
        format!("{}{block}", words.join("|"))
    };
    directives.iter().map(one).collect::<Vec<_>>().join(" ")
}

#[test]
fn words_quotes_comments_and_blocks() {
    for (text, expected) in [
        ("a b  c;", "a|b|c"),
        ("# x;\na; # y {\nb;", "a b"),
        ("a \"b c\" 'd;e';", "a|b c|d;e"),
        (r#"a "b\"c" '\'' "\\d" "\n";"#, "a|b\"c|'|\\d|\n"),
        (r"location ~ \.php$ { }", "location|~|\\.php${}"),
        ("http { server { listen 80; } }", "http{server{listen|80}}"),
        ("a ${b}c{ d; }", "a|${b}c{d}"),
        ("if ($a = \"x\") { return 403; }", "if|($a|=|x|){return|403}"),
        ("a b#c;", "a|b#c"),
        ("a\n  b\n;", "a|b"),
        ("content_by_lua_block { if x { y } } z;", "content_by_lua_block< if x { y } > z"),
        ("\u{feff}a;", "a"),
        ("", ""),
    ] {
        let found = parse(text, "f").map(|directives| flat(&directives));
        assert_eq!(found.as_deref(), Ok(expected), "{text}");
    }
}

#[test]
fn an_error_has_its_file_and_line() {
    for (text, expected) in [
        ("a", "f:1: `a` has no `;` at its end"),
        ("\n\nserver {\n a b;\n", "f:3: the block of `server` has no `}`"),
        ("a;\n}", "f:2: this `}` ends no block"),
        ("a {\n b\n}", "f:2: `b` has no `;` at its end"),
        ("a 'b;\n", "f:1: the quote ' that begins here has no end"),
        ("a 'b'c;", "f:1: `c` follows a closing ': a space or `;` must stand between them"),
        (";", "f:1: a directive is missing before this sign"),
        ("x_by_lua_block {\n", "f:1: the block that begins here has no `}`"),
    ] {
        let error = parse(text, "f").expect_err(text).to_string();
        assert_eq!(error, expected, "{text}");
    }
    let deep = "a{".repeat(100);
    let error = parse(&deep, "f").expect_err("deep").to_string();
    assert!(error.contains("more than 32 blocks"), "{error}");
}

proptest! {
    #[test]
    fn no_text_makes_the_parser_panic(text in ".{0,200}") {
        let _ = parse(&text, "f");
    }

    #[test]
    fn what_is_written_again_is_the_same(text in "([a-z$(){};\"'\\\\ \n#~.^é]|\\$\\{|_by_lua_block \\{){0,60}") {
        if let Ok(directives) = parse(&text, "f") {
            let written: String = directives.iter().map(Directive::to_string).collect();
            let again = parse(&written, "f").map(|again| flat(&again));
            prop_assert_eq!(again, Ok(flat(&directives)), "{}", written);
        }
    }
}
