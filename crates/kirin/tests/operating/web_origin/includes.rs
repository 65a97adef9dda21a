//! Pages with includes whose items are on the server.

use kirin_tests::wait_for;

use super::{Machine, Two, count_of_commands};

/// The text in place of an include that is not there.
const ERROR: &str = "[an error occurred while processing the directive]";

const NESTED: [(&str, &str); 4] = [
    ("/only/nested", "text/html\r\n<h1><!--# include title --></h1>."),
    ("title", "Hello <!--# include key=\"name\" -->!"),
    ("name", "<b><!--# include text --></b>"),
    ("text", "World"),
];

/// Writes items on a machine, the page first.
fn write(machine: &Machine, items: &[(&str, &str)]) {
    let mut memcached = machine.memcached();
    items.iter().for_each(|(key, value)| memcached.set(key, value.as_bytes()));
}

#[test]
fn a_page_with_nested_includes_is_assembled_by_all_machines() {
    let Two { redis, a, b } = Two::start();
    write(&a, &NESTED);
    assert_eq!(b.get("/only/nested"), "<h1>Hello <b>World</b>!</h1>.");
    let commands = count_of_commands(&redis);
    let reply = b.reply("/only/nested");
    assert_eq!(reply.text(), "<h1>Hello <b>World</b>!</h1>.");
    assert_eq!(count_of_commands(&redis), commands, "the copies answer");
    let etag = reply.field("etag").expect("an ETag").to_owned();
    let condition = format!("If-None-Match: {etag}\r\n");
    assert_eq!(a.ask("GET", "/only/nested", &condition).status, 304, "the same page is on both");
    // A changed fragment is a changed page.
    a.memcached().set("text", b"all");
    assert_eq!(a.get("/only/nested"), "<h1>Hello <b>all</b>!</h1>.");
    b.wait_for_text("/only/nested", "<h1>Hello <b>all</b>!</h1>.");
    assert_eq!(b.ask("GET", "/only/nested", &condition).status, 200);
    a.memcached().set("name", b"you, <!--# include text -->");
    b.wait_for_text("/only/nested", "<h1>Hello you, all!</h1>.");
}

#[test]
fn a_page_with_twenty_fragments_is_assembled_by_all_machines() {
    let Two { redis, a, b } = Two::start();
    let include = |number: usize| format!("<!--# include key=\"fragment-{number}\" -->");
    let page: String = (0..20).map(include).collect();
    write(&a, &[("/only/many", &format!("text/html\r\n{page}"))]);
    for number in 0..20 {
        write(&a, &[(&format!("fragment-{number}"), &format!("({number})"))]);
    }
    let shown: String = (0..20).map(|number| format!("({number})")).collect();
    let trips = |redis: &kirin_tests::RedisServer| {
        let stats = redis.command(&["INFO", "stats"]);
        let line = stats.lines().find_map(|line| line.strip_prefix("total_reads_processed:"));
        line.and_then(|count| count.parse::<u64>().ok()).expect("a count")
    };
    let before = trips(&redis);
    assert_eq!(b.get("/only/many"), shown);
    let taken = trips(&redis) - before;
    // Each fragment on a trip of its own would be twenty. Others are those of the upkeep.
    assert!(taken < 16, "{taken} pieces of commands have come to the server");
    let commands = count_of_commands(&redis);
    assert_eq!(b.get("/only/many"), shown);
    assert_eq!(count_of_commands(&redis), commands, "the copies answer");
}

#[test]
fn a_page_with_a_missing_fragment_is_left_to_the_next_place() {
    let Two { redis: _redis, a, b } = Two::start();
    write(&a, &[("/page", "text/html\r\n1<!--# include there -->2<!--# include gone -->3")]);
    write(&a, &[("there", "-")]);
    for machine in [&a, &b] {
        for _ in 0..2 {
            let runs = machine.runs();
            let reply = machine.ask("GET", "/page", "X-Value: of the application\r\n");
            assert_eq!((reply.text().as_str(), machine.runs()), ("of the application", runs + 1));
        }
    }
    write(&a, &[("gone", "+")]);
    assert_eq!(a.get("/page"), "1-2+3");
    b.wait_for_text("/page", "1-2+3");
    a.memcached().delete("there");
    wait_for("the application", || b.get("/page").starts_with("b ").then_some(()));
}

#[test]
fn a_missing_fragment_of_the_last_place_is_left_out() {
    let Two { redis: _redis, a, b } = Two::start();
    let page = "text/html\r\n1<!--# block name=\"b\" -->stub<!--# endblock -->\
                <!--# include virtual=\"/only/gone\" stub=\"b\" -->2<!--# include gone -->3";
    write(&a, &[("/only/page", page)]);
    let alone = Machine::alone("c");
    write(&alone, &[("/only/page", page)]);
    let shown = alone.get("/only/page");
    assert_eq!(shown, format!("1stub2{ERROR}3"));
    for machine in [&b, &a, &b] {
        assert_eq!(machine.get("/only/page"), shown);
    }
    write(&b, &[("gone", "found"), ("/only/gone", "text/html\r\nvirtual")]);
    assert_eq!(b.get("/only/page"), "1virtual2found3");
    a.wait_for_text("/only/page", "1virtual2found3");
}

#[test]
fn responses_and_files_include_items_of_the_server() {
    let Two { redis: _redis, a, b } = Two::start();
    write(&a, &NESTED[1..]);
    let page = "<!--# include title --> <!--# include virtual=\"/only/part\" -->.";
    write(&a, &[("/only/part", "text/html\r\npart of <!--# include text -->")]);
    std::fs::create_dir_all(b.site.path("public/files")).expect("a directory");
    std::fs::write(b.site.path("public/files/page.html"), page).expect("a file");
    let shown = "Hello <b>World</b>! part of World.";
    assert_eq!(b.get("/files/page.html"), shown);
    let reply = b.ask("GET", "/ssi/page", &format!("X-Value: {page}\r\n"));
    assert_eq!(reply.text(), shown);
    write(&a, &[("/only/esi", "text/html\r\nESI of <!--# include text -->")]);
    let tag = "X-Value: (<esi:include src='/only/esi'/>)\r\n";
    assert_eq!(b.ask("GET", "/esi/page", tag).text(), "(ESI of World)");
    a.memcached().set("text", b"all");
    b.wait_for_text("/files/page.html", "Hello <b>all</b>! part of all.");
    // A page of the store whose part the application makes, and that includes an item again.
    write(
        &a,
        &[(
            "/only/app",
            "text/html\r\n(<!--# include virtual=\"/ssi/part\" -->|<!--# include title -->)",
        )],
    );
    let fields = "X-Value: [<!--# include name -->]\r\n";
    assert_eq!(b.ask("GET", "/only/app", fields).text(), "([<b>all</b>]|Hello <b>all</b>!)");
}

#[test]
fn an_application_is_asked_once_for_a_part_before_items_that_were_not_known() {
    let Two { redis: _redis, a, b } = Two::start();
    let part = "<!--# include virtual=\"/ssi/part\" -->";
    let awaited = "<!--# include virtual=\"/ssi/part\" wait=\"yes\" -->";
    let set = "<!--# include virtual=\"/ssi/part\" set=\"v\" --><!--# echo var=\"v\" -->";
    for (number, part) in [part, awaited, set].into_iter().enumerate() {
        // This machine has seen none of these. One is behind the part, one in it, and one behind
        // a condition.
        let (page, items) = (format!("/only/{number}"), ["in", "nested", "if", "behind"]);
        let [inside, nested, conditional, behind] = items.map(|name| format!("{name}-{number}"));
        let text = format!(
            "text/html\r\n{part}|<!--# include {behind} -->|\
             <!--# if expr=\"$session.name\" -->signed in<!--# else -->\
             <!--# include {conditional} --><!--# endif -->."
        );
        write(
            &a,
            &[
                (&page, &text),
                (&inside, &format!("in <!--# include {nested} -->")),
                (&nested, "nested"),
                (&conditional, "conditional"),
                (&behind, "behind"),
            ],
        );
        let runs = b.runs();
        let fields = format!("X-Value: [<!--# include {inside} -->]\r\n");
        let reply = b.ask("GET", &page, &fields);
        assert_eq!(reply.text(), "[in nested]|behind|conditional.", "{part}");
        assert_eq!(b.runs(), runs + 1, "{part}");
    }
}

#[test]
fn values_that_a_page_sets_are_those_of_its_parts_on_all_machines() {
    let Two { redis: _redis, a, b } = Two::start();
    let items = [
        (
            "/only/page",
            "text/html\r\n<!--# set var=\"x\" value=\"1\" --><!--# include head -->\
             <!--# if expr=\"$x = 2\" --><!--# include two --><!--# else --><!--# include one -->\
             <!--# endif --><!--# echo var=\"x\" -->",
        ),
        ("head", "<!--# echo var=\"x\" --><!--# set var=\"x\" value=\"2\" -->"),
        ("one", "one<!--# include end -->"),
        ("two", "two<!--# include end -->"),
        ("end", "<!--# echo var=\"x\" --><!--# set var=\"x\" value=\"3\" -->"),
    ];
    write(&a, &items);
    let alone = Machine::alone("c");
    write(&alone, &items);
    let shown = alone.get("/only/page");
    assert!(shown.starts_with("1two2"), "{shown}");
    for _ in 0..2 {
        assert_eq!(b.get("/only/page"), shown);
    }
}

#[test]
fn a_circle_of_includes_on_the_server_ends_and_is_logged() {
    let Two { redis: _redis, a, b } = Two::start();
    write(
        &a,
        &[
            ("/only/circle", "text/html\r\n<!--# include a -->end"),
            ("a", "a<!--# include b -->"),
            ("b", "b<!--# include a -->"),
        ],
    );
    let text = b.get("/only/circle");
    assert!(text.starts_with("abab") && text.ends_with("end"), "{text}");
    b.kirin.wait_for_log("includes go in a circle");
    assert_eq!(a.get("/only/circle"), text);
}
