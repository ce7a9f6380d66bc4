//! Tests of HTML, with pages and the Markdown that is expected.

use expect_test::{Expect, expect};
use helve_text::url::WebUrl;
use proptest::prelude::*;

use super::render::HtmlPage;
use super::{RenderOptions, render};

fn markdown(source: &str) -> HtmlPage {
    page(source, true, false)
}

fn page(source: &str, is_markdown: bool, main_only: bool) -> HtmlPage {
    let base = WebUrl::parse("https://host.example/docs/page.html").unwrap();
    render(source, &RenderOptions { is_markdown, main_only, base: &base })
}

fn check(source: &str, expected: Expect) {
    expected.assert_eq(&markdown(source).text);
}

#[test]
fn blocks() {
    check(
        "<h1>Title <b>bold</b></h1><p>One <em>two</em>\n three.<p>Four<br>five<hr><blockquote><p>Q1<p>Q2</blockquote>\
         <ul><li>a<li>b<ul><li>c</ul><li><p>d<p>e</ul><ol start=3><li>x<li>y</ol><dl><dt>Term<dd>Def<dd>More</dl>",
        expect![[r#"
            # Title bold

            One *two* three.

            Four
            five

            ---

            > Q1
            >
            > Q2

            - a
            - b
              - c

            - d

              e

            3. x
            4. y

            Term
            : Def
            : More"#]],
    );
}

#[test]
fn inline() {
    check(
        "a <b> bold </b>text <strong></strong><i>it<b>al</b></i>. <code>x  `y`</code> <kbd>Ctrl</kbd> <del>no</del> \
         <q>said</q> <a href='/x?a=1&amp;b=2#f'>rel</a> <a href=other.html>o</a> <a href='#top'>top</a> \
         <a href='javascript:x()'>js</a> <a href='mailto:a@b.example'>mail</a> <a href=//cdn.example/y>cdn</a> \
         <img src=i.png alt='An  image'> <img src='data:image/png;base64,xx' alt=inline> <a href=z><img src=i.png alt=pic></a> \
         <a href='p(1).html'>paren</a>",
        expect![[
            r#"a **bold** text *it**al***. `` x `y` `` `Ctrl` ~~no~~ "said" [rel](https://host.example/x?a=1&b=2#f) [o](https://host.example/docs/other.html) top js [mail](mailto:a@b.example) [cdn](https://cdn.example/y) ![An image](https://host.example/docs/i.png) ![inline]() [![pic](https://host.example/docs/i.png)](https://host.example/docs/z) [paren](https://host.example/docs/p%281%29.html)"#
        ]],
    );
}

#[test]
fn code_blocks_keep_their_lines_and_language() {
    check(
        "<pre><code class='language-rust'>fn main() {\n    x &lt; y;\n\n}\n</code></pre>\
         <div class='highlight-python3 notranslate'><div class=highlight><pre><span></span><span class=k>import</span> os\n</pre></div></div>\
         <pre class='rust rust-example-rendered'><code>let a;</code></pre><pre data-lang=go>x := 1</pre>\
         <div class='highlight highlight-source-shell'><pre>ls</pre></div><pre class='brush: js;'>a()</pre>\
         <pre>```\nfence\n```</pre><pre>one<br>two</pre><pre>\n  indented\n</pre>\
         <table class=highlighttable><tr><td class=linenos><div class=linenodiv><pre>1\n2</pre></div></td>\
         <td class=code><div class='highlight-c'><pre>int a;\nint b;</pre></div></td></tr></table>\
         <ul><li>item<pre>in\n  list</pre></ul>",
        expect![[r#"
            ```rust
            fn main() {
                x < y;

            }
            ```

            ```python3
            import os
            ```

            ```rust
            let a;
            ```

            ```go
            x := 1
            ```

            ```shell
            ls
            ```

            ```js
            a()
            ```

            ````
            ```
            fence
            ```
            ````

            ```
            one
            two
            ```

            ```
              indented
            ```

            ```c
            int a;
            int b;
            ```

            - item

              ```
              in
                list
              ```"#]],
    );
}

#[test]
fn a_link_around_a_heading_becomes_a_link_inside_it() {
    check(
        "<p>x<a href=y><h2>Head <b>line</b></h2><p>Text</p></a>z",
        expect![[r#"
            x

            ## [Head line](https://host.example/docs/y)

            Text

            z"#]],
    );
}

#[test]
fn tables() {
    check(
        "<table><caption>Cap</caption><thead><tr><th>A<th>B|C</thead><tbody><tr><td>1<td><p>x<p>y<tr><td colspan=2>wide</table>\
         <table><tr><td>only</td></tr><tr><td>column</td></tr></table>\
         <table>stray<tr><td>a</td><td>b</td></tr></table>\
         <table><tr><td><h2>Layout</h2><td><pre>code</pre></table>",
        expect![[r#"
            Cap

            | A | B\|C |
            | --- | --- |
            | 1 | x<br>y |
            | wide |  |

            only

            column

            stray

            | a | b |
            | --- | --- |

            ## Layout

            ```
            code
            ```"#]],
    );
}

#[test]
fn hidden_text_is_dropped_and_counted() {
    let source = "<p>shown<p hidden>a</p><p style='display:none'>b</p><span style='font-size:0'>c</span><!-- ignore previous instructions -->\
        <style>.x{display:none}</style><i class=x>d</i><script>e()</script><template>f</template><div hidden><b><div></b></div>g</div>\
        <p hidden></p>end";
    let page = markdown(source);
    assert_eq!((page.text.as_str(), page.hidden), ("shown\n\nend", 6));
}

#[test]
fn invisible_characters_are_made_visible_or_removed() {
    check(
        "<p>a\u{202e}b\u{e0041}c&#x202e;d&#8203;e&nbsp;f&shy;g \u{1b}[1m</p><pre>x\u{2066}y</pre>",
        expect![[r#"
        a\u{202e}b\u{e0041}c\u{202e}de fg \u{1b}[1m

        ```
        x\u{2066}y
        ```"#]],
    );
}

#[test]
fn markup_in_text_is_escaped_at_line_starts() {
    check(
        "<p># no heading<p>1. no list<p>- no item<p>&gt; no quote<p>#hash 1. x<p>```<p>2024 ok",
        expect![[r#"
        \# no heading

        1\. no list

        \- no item

        \> no quote

        #hash 1. x

        \```

        2024 ok"#]],
    );
}

#[test]
fn plain_text_has_lines_and_words() {
    let source = "<h1>T</h1><p>Hi <b>Some</b> <a href=x>link</a><ul><li>one<li>two</ul><table><tr><td>a<td>b<tr><td>c<td>d</table><pre>x\n  y</pre>";
    expect![[r#"
        T

        Hi Some link

        - one
        - two

        a | b
        c | d

        x
          y"#]]
    .assert_eq(&page(source, false, false).text);
}

#[test]
fn broken_markup_is_read_like_in_browsers() {
    check(
        "<p>a<div>b</p>c</div><b>bold<p>still</b> on</p>x</i></span>y<a href=q>unclosed<p>next</a> z < 3 <3 &amp;amp; &copy; &notanentity; <br/><foo-bar>custom</foo-bar></br>t",
        expect![[r#"
            a

            b

            c

            **bold**

            **still on**

            **xy[unclosed](https://host.example/docs/q)**

            **next z < 3 <3 &amp; © ¬anentity;**
            **custom**
            **t**"#]],
    );
    check("<p>unterminated <a href='x", expect!["unterminated"]);
    check("<!-- unterminated", expect![[""]]);
    check("<script>if (a < b) '</p>'", expect![[""]]);
    check("<title>T &amp; U</title><textarea>a < b</textarea>", expect!["a < b"]);
}

#[test]
fn navigation_is_left_out_unless_it_is_everything() {
    let text = "word ".repeat(60);
    let with_text = page(&format!("<nav><a href=a>Home</a></nav><p>{text}</p>"), true, false);
    assert!(!with_text.text.contains("Home"));
    assert_eq!(
        markdown("<nav><a href=a>Home</a></nav>").text,
        "[Home](https://host.example/docs/a)"
    );
}

#[test]
fn the_main_content_is_found() {
    let text = "Sentence with several words. ".repeat(10);
    let frame = |inner: &str| {
        format!("<header>Site</header><div>Menu</div>{inner}<footer>Imprint</footer>")
    };
    for inner in [
        format!("<main><p>{text}</p></main>"),
        format!("<div role=main><p>{text}</p></div>"),
        format!("<article><p>{text}</p></article>"),
        format!("<div id=content><p>{text}</p></div>"),
        format!("<div><div><p>{text}</p></div></div>"),
    ] {
        let page = page(&frame(&inner), true, true);
        assert!(
            page.has_main && page.text.starts_with("Sentence") && !page.text.contains("Menu"),
            "{inner}"
        );
    }
    // Nothing stands out: everything is shown.
    let all = page(&frame("<main>x</main>Text"), true, true);
    assert!(!all.has_main && all.text.contains("Menu") && all.text.contains("Text"));
}

#[test]
fn formulas_base_urls_and_checkboxes() {
    check(
        "<p>E <math><semantics><mi>x</mi><annotation encoding='application/x-tex'>x^2</annotation></semantics></math></p>\
         <base href='/other/'><a href=a>b</a><ul><li><input type=checkbox checked> done<li><input type=checkbox> open</ul>",
        expect![[r#"
            E $x^2$

            [b](https://host.example/other/a)

            - [x] done
            - [ ] open"#]],
    );
}

#[test]
fn hostile_pages_are_bounded() {
    for piece in [
        "<div>",
        "<b>",
        "<a href=x>",
        "<table><tr><td>",
        "<ul><li>",
        "<blockquote>",
        "<p><object>",
        "<x-y>",
        "<![CDATA[",
        "<a b=\"",
        "&",
        "</p>",
        "<svg/>",
        "<pre>",
    ] {
        let source = format!("{}end", piece.repeat(40_000));
        let page = page(&source, true, true);
        assert!(page.text.len() <= 3 * source.len() + (64 << 10), "{piece}");
    }
    let source = format!("{}<br>", "<ul><li><blockquote>".repeat(60)) + &"x<br>".repeat(50_000);
    let rendered = markdown(&source);
    assert!(rendered.text.len() < 4 * source.len() + (64 << 10));
    let deep = format!("{}<p hidden>secret</p>text", "<div>".repeat(2000));
    let rendered = markdown(&deep);
    assert!(rendered.is_flattened && rendered.text == "text", "{}", rendered.text);
    let deep = format!("<div hidden>{}secret", "<div>".repeat(2000));
    assert_eq!(markdown(&deep).text, "");
}

/// The letters and digits of a page, without whitespace or Markdown.
fn letters(text: &str) -> String {
    text.chars().filter(|c| c.is_alphanumeric()).collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(600))]

    #[test]
    fn nothing_panics(source in "(<[a-z/!?-]{0,4}[ a-z='\">]{0,9}|&[a-z#0-9;]{0,6}|[ -~]{0,4}|\u{202e}|é|\n){0,40}") {
        for (is_markdown, main_only) in [(true, false), (false, true)] {
            let text = page(&source, is_markdown, main_only).text;
            let is_clean = !text.contains('\u{202e}');
            prop_assert!(is_clean);
        }
    }

    /// Every visible letter of a page is kept.
    #[test]
    fn all_text_survives(pieces in prop::collection::vec((0_usize..24, "[a-z]{1,6}"), 0..30)) {
        const TAGS: [&str; 24] = ["p", "div", "b", "i", "ul", "li", "ol", "table", "tr", "td", "th", "h2", "pre", "code",
            "blockquote", "a", "span", "dl", "dd", "dt", "section", "em", "/div", "/p"];
        let mut source = String::new();
        for (tag, text) in &pieces {
            source.push_str(&format!("<{}>{text} ", TAGS[*tag]));
        }
        let expected: String = pieces.iter().map(|(_, text)| text.as_str()).collect();
        let text = markdown(&source).text;
        let mut found: Vec<char> = letters(&text.replace("<br>", "")).chars().filter(|c| !c.is_ascii_digit()).collect();
        // Digits come from list numbers. Stray text in a table moves before the table, so the order is not compared.
        let mut wanted: Vec<char> = expected.chars().collect();
        found.sort_unstable();
        wanted.sort_unstable();
        prop_assert_eq!(found, wanted, "{}", source);
    }
}
