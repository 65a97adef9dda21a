//! What is counted, and that counting changes nothing else.

use proptest::prelude::*;

use super::*;

/// Returns the source with the statements in a short form, without the function around it.
fn marked(source: &str) -> String {
    let counted = String::from_utf8(counted(source.as_bytes())).unwrap();
    let begin = format!("local {LEFT},{LOOK}=... return function(...) ");
    let inner = counted.strip_prefix(&begin).and_then(|rest| rest.strip_suffix("\nend")).unwrap();
    let statement = format!(" {LEFT}[1]={LEFT}[1]-");
    let mut parts = inner.split(&statement);
    let mut marked = parts.next().unwrap().to_owned();
    for part in parts {
        let (count, rest) = part.split_once(&format!(" if {LEFT}[1]<0 then {LOOK}()end ")).unwrap();
        marked += &format!("<{count}>{rest}");
    }
    marked
}

#[test]
fn every_loop_and_function_counts_its_tokens() {
    for (source, expected) in [
        ("while true do end", "while true do<3> end"),
        ("while a < b do f() end", "while a < b do<8> f() end"),
        ("for i = 1, 2 do a = b end", "for i = 1, 2 do<10> a = b end"),
        ("repeat f() until x", "repeat<20> f() until x"),
        ("local function f(a, b) return a end", "local function f(a, b)<9> return a end"),
        ("function a.b:c(...) end", "function a.b:c(...)<11> end"),
        ("f(function() g() end)", "f(function()<6> g() end)"),
        // An inner body counts for itself, and a condition for the body that it is in.
        (
            "for i = 1, 2 do if a then b() else c() end for k in d do e() end f() end",
            "for i = 1, 2 do<22> if a then b() else c() end for k in d do<8> e() end f() end",
        ),
        (
            "while f(function() return 1 end) do g() end",
            "while f(function()<5> return 1 end) do<9> g() end",
        ),
        ("do local a = 1 end", "do local a = 1 end"),
        ("while a do do b() end c() end", "while a do<11> do b() end c() end"),
        // What looks like code, and is none.
        (
            "-- while true do\n--[[ function f() ]] --[==[ ]] do ]==]\nwhile a do end",
            "-- while true do\n--[[ function f() ]] --[==[ ]] do ]==]\nwhile a do<3> end",
        ),
        (
            r#"while 'do \' do' .. "\"do" .. [[do ]] .. [=[ ]] do]=] do end"#,
            r#"while 'do \' do' .. "\"do" .. [[do ]] .. [=[ ]] do]=] do<12> end"#,
        ),
        ("while a[b[1]] do end", "while a[b[1]] do<9> end"),
        ("dodo = done.redo", "dodo = done.redo"),
        // `goto` as a statement, and as a name.
        ("::a:: f() goto a", "::a:: f() <8>goto a"),
        ("::a:: goto a", "::a:: <5>goto a"),
        (
            "while a do if b then goto c end d() ::c:: end",
            "while a do<15> if b then <15>goto c end d() ::c:: end",
        ),
        ("local goto = 1 a.goto = goto b = 2", "local goto = 1 a.goto = goto b = 2"),
        ("goto = 1 x = goto == 2", "goto = 1 x = goto == 2"),
    ] {
        assert_eq!(marked(source), expected, "{source}");
    }
}

/// Generates statements. Some are no valid Lua.
fn statement() -> impl Strategy<Value = String> {
    let simple = proptest::sample::select(vec![
        "f()",
        "local a = 1",
        "a.b, c = 1, 'do'",
        "a = -1 --[[ do ]]",
        "a = [==[ ]] do ]==]",
        "f{}",
        "(f or g)()",
        "a = {} ;",
        "-- while true do\n",
        "--[[ function\n f() ]]",
        "goto = 1",
        "local goto = a",
        "x = #goto",
        "goto l",
        "::l::",
        "break",
        "return",
        "return goto",
        "a = '\\' do ' .. \"\\\\\" .. '\\\n'",
        "a = b[c[1]]",
        "a = 0x1p4 .. 1e-5",
        "f'do'",
        "f[[do]]",
        "a = function(...) return ... end",
        "a = f(function() end, function() end)",
        "x = goto y = 1",
        "a = not goto",
        "a.goto = a.goto b = 1",
        "\u{e9}do = 1",
    ]);
    simple.prop_map(str::to_owned).prop_recursive(4, 30, 4, |inner| {
        let block = proptest::collection::vec(inner, 0..4).prop_map(|all| all.join(" "));
        let kinds = proptest::sample::select(vec![
            ("do", "end"),
            ("while a do", "end"),
            ("while f(function() return 1 end) do", "end"),
            ("repeat", "until a"),
            ("repeat", "until f(function() end)"),
            ("for i = 1, 2 do", "end"),
            ("for k, v in pairs{} do", "end"),
            ("if a then", "end"),
            ("if a then f() else", "end"),
            ("if a then f() elseif b then", "else f() end"),
            ("local function f(a, ...)", "end"),
            ("function a.b.c:d(--[[ ) ]] e)\n", "end"),
            ("a = function()", "end"),
        ]);
        (kinds, block).prop_map(|((begin, end), block)| format!("{begin} {block} {end}"))
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2000, ..ProptestConfig::default() })]

    #[test]
    fn valid_source_is_valid_when_it_counts(statements in proptest::collection::vec(statement(), 0..6)) {
        let source = statements.join(" ");
        let lua = mlua::Lua::new();
        if lua.load(&source).into_function().is_ok() {
            let counted = counted(source.as_bytes());
            let compiled = lua.load(&counted).into_function();
            prop_assert!(compiled.is_ok(), "{source}\n{}\n{compiled:?}", String::from_utf8_lossy(&counted));
        }
    }
}
