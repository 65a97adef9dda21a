//! Pages for which Kirin and nginx differ on purpose.

/// Pages for which Kirin differs, the result, and the reason.
pub const OTHERWISE: &[(&str, &str, &str)] = &[
    (
        "<!--# set var=\"title\" value=\"1\" --><!--# include virtual=\"/d/outer.html\" --><!--# set var=\"title\" value=\"2\" -->",
        "([1])",
        "a part has the variables as they are where it is included",
    ),
    (
        "<!--# echo var=\"cookie_tag\" encoding=\"none\" --><!--# echo var=\"cookie_tag\" -->",
        "<b>&&lt;b&gt;&amp;",
        "an encoding is for one echo and not for all that follow",
    ),
    (
        "<!--# echo var=\"cookie_quote\" -->",
        "&#39;",
        "a value may stand in an attribute with either quote",
    ),
    ("a<!--", "a<!--", "nginx loses what could have become a directive at the end of a page"),
    (
        "<!--# config errmsg=\"\" -->a<!--# nonsense -->b",
        "ab",
        "nginx cuts the connection where it shows an empty message",
    ),
    (
        "<!--# block name=\"b\" -->no <!--# echo var=\"arg_x\" --><!--# endblock -->[<!--# include virtual=\"/d/empty.html\" stub=\"b\" -->]",
        "[no 1]",
        "nginx shows directives as text in the stub for an empty file",
    ),
    (
        "<!--# echo var=\"arg_x\" --->|",
        "[an error occurred while processing the directive]|",
        "nginx shows nothing of the rest of the page",
    ),
    (
        "<!--# if expr=\"$arg_x\" -->a<!--# if expr=\"$none\" -->b<!--# else -->c<!--# endif -->d<!--# endif -->",
        "acd",
        "conditions nest",
    ),
    (
        "a<!--# include virtual=\"/d/none.html\" -->b",
        "a[an error occurred while processing the directive]b",
        "nginx shows the error page of the part in the middle of the page",
    ),
    (
        "a<!--# echo var=\"arg_x\"",
        "a<!--# echo var=\"arg_x\"",
        "nginx shows nothing of what does not end",
    ),
    (
        "a<!--# echo var=\"arg_x -->b",
        "a[an error occurred while processing the directive]b",
        "nginx shows nothing of the rest of the page",
    ),
    (
        "<!--# -->b<!--# echo var=\"arg_x\" -->",
        "[an error occurred while processing the directive]b1",
        "nginx looks for the end behind it",
    ),
    ("<!--# echo var=arg_x -->", "1", "quotes may be left out, as recaro does in includes"),
    (
        "<!--# set var=\"a\" value=\"5$ $\" --><!--# echo var=\"a\" -->",
        "5$ $",
        "a dollar sign that starts no name is one",
    ),
    (
        "<!--# if expr=\"$arg_name = /^alice$/\" -->a<!--# endif -->",
        "a",
        "and in a regular expression it is the end",
    ),
    (
        "<!--# if expr=\"$arg_name = /^$arg_name/\" -->a<!--# endif -->",
        "[an error occurred while processing the directive]a[an error occurred while processing the directive]",
        "visitors must not write regular expressions",
    ),
    (
        "<!--# if expr=\"$arg_name = /(?=a)/\" -->a<!--# endif -->",
        "[an error occurred while processing the directive]a[an error occurred while processing the directive]",
        "regular expressions take linear time, so they do not look ahead",
    ),
    (
        "<!--# if expr=\" $arg_x = 1 \" -->a<!--# else -->b<!--# endif -->",
        "a",
        "space around an expression means nothing",
    ),
    ("<!--# echo var=\"none\" default=\"a\\\"b\" -->", "a&quot;b", "nginx shows the backslash"),
    (
        "<!--# block name=\"b\" -->no<!--# endblock --><!--# include virtual=\"/d/none.html\" stub=\"b\" set=\"a\" -->[<!--# echo var=\"a\" -->]",
        "[no]",
        "a stub can be what a variable is set to",
    ),
    (
        "<!--# if expr=\"$arg_x\" -->a<!--# else -->b<!--# else -->c<!--# endif -->",
        "a",
        "what is not carried out shows no error either",
    ),
    (
        "<!--# block name=\"b\" --><!--# if expr=\"$arg_x\" -->a<!--# else -->b<!--# endif --><!--# endblock -->[<!--# include virtual=\"/d/none.html\" stub=\"b\" -->]",
        "[a]",
        "a stub is part of its page; for nginx it is part of what could not be had",
    ),
    (
        "<!--# block name=\"b\" --><!--# set var=\"v\" value=\"in\" --><!--# echo var=\"v\" --><!--# endblock -->[<!--# include virtual=\"/d/none.html\" stub=\"b\" -->]<!--# echo var=\"v\" -->",
        "[in]in",
        "and what it sets stays set",
    ),
    (
        "<!--# block name=\"b\" --><!--# config errmsg=\"E\" --><!--# nonsense --><!--# endblock -->[<!--# include virtual=\"/d/none.html\" stub=\"b\" -->]<!--# nonsense -->",
        "[E]E",
        "and it can be wrong as a page can",
    ),
    (
        "<!--# if expr=\"$arg_x\" -->a<!--# if expr=\"$arg_x\" -->b<!--# endif -->c<!--# endif -->d",
        "abcd",
        "conditions nest",
    ),
    (
        "<!--# if expr=\"$none\" -->a<!--# if expr=\"$arg_x\" -->b<!--# endif -->c<!--# endif -->d",
        "d",
        "conditions nest",
    ),
    (
        "<!--# if expr=\"$none\" -->a<!--# if expr=\"$arg_x\" -->b<!--# else -->e<!--# endif -->c<!--# else -->f<!--# endif -->d",
        "fd",
        "conditions nest",
    ),
    (
        "<!--# if expr=\"$arg_x\" -->a<!--# else -->b<!--# elif expr=\"$arg_x\" -->c<!--# endif -->d",
        "ad",
        "what is not carried out shows no error either",
    ),
    (
        "<!--# if expr=\"$arg_name = /alice/ \" -->a<!--# else -->b<!--# endif -->",
        "a",
        "space around an expression means nothing",
    ),
    (
        "<!--# if expr=\"$arg_name = /(a)/\" --><!--# if expr=\"$1 = a\" -->y<!--# endif --><!--# endif -->",
        "y",
        "conditions nest",
    ),
    (
        "<!--# set var=\"a\" value=\"$\" -->[<!--# echo var=\"a\" -->]",
        "[$]",
        "a dollar sign that starts no name is one",
    ),
    (
        "<!--# set var=\"a\" value=\"${arg_x\" -->[<!--# echo var=\"a\" -->]",
        "[${arg_x]",
        "a dollar sign that starts no name is one",
    ),
    (
        "<!--# set var=\"a\" value=\"${}\" -->[<!--# echo var=\"a\" -->]",
        "[${}]",
        "a dollar sign that starts no name is one",
    ),
    (
        "<!--# set var=\"a\" value=\"$session.name\" -->[<!--# echo var=\"a\" -->]",
        "[]",
        "the dot is part of the names of a session",
    ),
    (
        "<!--# set var=\"\" value=\"x\" -->[<!--# echo var=\"\" -->]",
        "[an error occurred while processing the directive][(none)]",
        "a variable has a name",
    ),
    (
        "<!--# set var=\"a-b\" value=\"x\" -->[<!--# echo var=\"a-b\" -->][<!--# set var=\"c\" value=\"${a-b}\" --><!--# echo var=\"c\" -->]",
        "[x][x]",
        "names in braces may have a hyphen, as those of cookies do",
    ),
    (
        "<!--# include virtual=\"\" -->|<!--# include file=\"\" -->",
        "[an error occurred while processing the directive]|[an error occurred while processing the directive]",
        "nginx asks for the directory of the page, and shows its error page",
    ),
    (
        "<!--# include virtual=\"/d/../d/text.html\" -->|",
        "text|",
        "dot segments that the author has written are resolved",
    ),
    (
        "<!--# include virtual=\"../d/text.html\" -->|",
        "text|",
        "dot segments that the author has written are resolved",
    ),
    (
        "<!--# include virtual=\"/d/text.html#frag\" -->|",
        "[an error occurred while processing the directive]|",
        "nginx shows the error page of the part in the middle of the page",
    ),
    (
        "<!--# include virtual=\" /d/text.html\" -->|",
        "[an error occurred while processing the directive]|",
        "nginx shows the error page of the part in the middle of the page",
    ),
    (
        "<!--# include virtual=\"?name=x\" -->|",
        "[an error occurred while processing the directive]|",
        "nginx shows the error page of the part in the middle of the page",
    ),
    (
        "<!--# include file=\"/d/text.html\" -->|",
        "[an error occurred while processing the directive]|",
        "a file is beside the page or below, as with Apache",
    ),
    (
        "<!--# include virtual=\"/d/text.html\" wait=yes -->|",
        "text|",
        "quotes may be left out, as recaro does in includes",
    ),
    (
        "<!--# include virtual=\"/up/text.html\" set=\"\" -->|",
        "[an error occurred while processing the directive]|",
        "a variable has a name",
    ),
    (
        "<!--# config timefmt=\"\" -->[<!--# echo var=\"date_gmt\" -->]",
        "[]",
        "an empty format gives an empty date",
    ),
    (
        "<!--# echo var=\"arg_x\" -- >|",
        "<!--# echo var=\"arg_x\" -- >|",
        "nginx shows nothing of what does not end",
    ),
    (
        "<!--# echo var=\"arg_x\" - ->|",
        "<!--# echo var=\"arg_x\" - ->|",
        "nginx shows nothing of what does not end",
    ),
    ("a<!--#", "a<!--#", "nginx shows nothing of what does not end"),
    ("a<!--# echo", "a<!--# echo", "nginx shows nothing of what does not end"),
    (
        "a<!--# echo var=\"arg_x\" --",
        "a<!--# echo var=\"arg_x\" --",
        "nginx shows nothing of what does not end",
    ),
    ("a<", "a<", "nginx loses what could have become a directive at the end of a page"),
    ("a<!", "a<!", "nginx loses what could have become a directive at the end of a page"),
    ("a<!-", "a<!-", "nginx loses what could have become a directive at the end of a page"),
    (
        "<!--# echo var=\"nginx_version\" default=\"v\" -->|<!--# echo var=\"server_name\" -->|",
        "v|test|",
        "of nginx's variables there are those of docs/ssi.md",
    ),
    (
        "<!--# echo var=\"document_root\" default=\"n\" -->|",
        "n|",
        "of nginx's variables there are those of docs/ssi.md",
    ),
    (
        "<!--# include virtual=\"/d/part.html?name=$cookie_tag\" -->|",
        "(%3Cb%3E%26)|",
        "what a visitor has sent is one value of a query and one segment of a path",
    ),
];
