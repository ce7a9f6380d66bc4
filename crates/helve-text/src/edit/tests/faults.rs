//! New texts that are refused because they are not meant to be written as they are, and similar ones that are.

use crate::edit::{Edit, EditRefusal, MatchPolicy, NewText, TextFault, TextKind, apply};

fn name(fault: &TextFault) -> &'static str {
    match fault {
        TextFault::Placeholder { .. } => "placeholder",
        TextFault::ToolCall { .. } => "call",
        TextFault::Listing { .. } => "listing",
        TextFault::Fence { .. } => "fence",
        TextFault::EscapedNewline { .. } => "escaped",
        TextFault::Entities { .. } => "entities",
        TextFault::EscapedBackquotes { .. } => "backquotes",
        TextFault::Nul { .. } => "nul",
    }
}

/// Returns the fault of a file's new content; `old` is the present content.
fn written(path: &str, old: &str, new: &str) -> Option<&'static str> {
    let fault = NewText::whole_file(old, new, TextKind::of(path)).fault();
    fault.as_ref().map(name)
}

/// Returns the fault of an edit.
fn edited(path: &str, file: &str, old: &str, new: &str) -> Option<&'static str> {
    let edit = Edit { old, new, all: false, kind: TextKind::of(path) };
    match apply(file.as_bytes(), &edit, MatchPolicy::Tolerant) {
        Ok(_) => None,
        Err(EditRefusal::Faulty(fault)) => Some(name(&fault)),
        Err(refusal) => panic!("{path}, {old:?}: {refusal:?}"),
    }
}

const CODE: &str = "fn f() {\n    a();\n    b();\n    c();\n    d();\n}\n";

/// Returns the fault of an edit that replaces three calls of [`CODE`].
fn shortened(path: &str, new: &str) -> Option<&'static str> {
    edited(path, CODE, "    a();\n    b();\n    c();\n", new)
}

#[test]
fn phrases_that_replace_code_are_placeholders() {
    for phrase in [
        "// Existing validation code here...",
        "// existing setup code here",
        "// copy existing code here",
        "// insert existing code here",
        "// paste the original implementation code here",
        "// 30 more lines",
        "// TODO: keep existing code",
        "// see original",
        "// keep existing calls",
        "// beginning of the file remains the same",
        "// (beginning of the file stays the same)",
        "// The start of the function is unchanged.",
    ] {
        let new = format!("    {phrase}\n");
        assert_eq!(shortened("a.rs", &new), Some("placeholder"), "{phrase}");
        // Nothing is lost.
        let new = format!("    {phrase}\n    a();\n    b();\n    c();\n");
        assert_eq!(shortened("a.rs", &new), None, "{phrase}");
    }
    let list = "<ul>\n  <li>a</li>\n  <li>b</li>\n</ul>\n";
    let new = "  <!-- keep existing items -->\n  <li>c</li>\n";
    assert_eq!(edited("a.html", list, "  <li>a</li>\n  <li>b</li>\n", new), Some("placeholder"));
    for (path, phrase) in [
        ("a.html", "<!-- beginning of the document unchanged -->"),
        ("Makefile", "# The beginning of the Makefile is unchanged."),
        ("a.yml", "# (beginning of the file stays the same)"),
        ("a.rs", "// beginning of the file remains the same"),
    ] {
        let (old, new) = ("one\ntwo\nthree\nfour\n", format!("{phrase}\nfour\n"));
        assert_eq!(written(path, old, &new), Some("placeholder"), "{phrase}");
        assert_eq!(written(path, "", &new), None, "{phrase}");
    }
}

#[test]
fn ordinary_comments_are_no_placeholders() {
    for comment in [
        "// copy existing headers",
        "// Copy the user's code here to the clipboard",
        "// keep existing sessions",
        "// use existing config",
        "// see the original paper",
        "// 3 more retries",
        "// add the other items",
        "// start of the loop",
        "// The beginning of the line is a number.",
        "// end of the list",
        "// TODO: keep sorted",
        "// Existing users keep their code here",
    ] {
        let new = format!("    {comment}\n    all();\n");
        assert_eq!(shortened("a.rs", &new), None, "{comment}");
    }
    // One comment replaces another, so that no code is lost.
    for (old, new) in [
        ("# helpers\n", "# ... other helpers live in util.py\n"),
        ("# the rest\n", "# ... rest of the helpers\n"),
    ] {
        assert_eq!(edited("a.py", "# helpers\n# the rest\nx = 1\n", old, new), None);
    }
    let old = "# helpers\nx = 1\n";
    assert_eq!(edited("a.py", old, old, "# ... other helpers\n"), Some("placeholder"));
}

#[test]
fn an_ellipsis_is_the_body_of_a_function_in_stubs() {
    let file = |class: &str| {
        format!("class A{class}:\n    def f(self):\n        a = 1\n        return a\n\n    b = 1\n")
    };
    let (old, new) =
        ("    def f(self):\n        a = 1\n        return a\n", "    def f(self):\n        ...\n");
    let abstracted = "    @abstractmethod\n    def f(self):\n        ...\n";
    for (path, class, new, fault) in [
        ("a.pyi", "", new, None),
        ("a.py", "(Protocol)", new, None),
        ("a.py", "(abc.ABC)", new, None),
        ("a.py", "", abstracted, None),
        ("a.py", "", new, Some("placeholder")),
        ("a.py", "(Base)", new, Some("placeholder")),
        ("a.py", "(Protocol)", "    ...\n", Some("placeholder")),
    ] {
        let file = file(class);
        assert_eq!(edited(path, &file, old, new), fault, "{path} {class} {new}");
        assert_eq!(written(path, &file, &file.replace(old, new)), fault, "{path} {class} {new}");
    }
    let comment = "    def f(self):\n        # ... existing code ...\n";
    assert_eq!(edited("a.pyi", &file(""), old, comment), Some("placeholder"));
}

#[test]
fn a_file_on_one_line_with_escaped_line_breaks_is_refused() {
    let c = "#include <stdio.h>\n\nint main(void)\n{\n    printf(\"%s\\n\", \"a\");\n    return 0;\n}\n";
    let page = "# Tools\n\nA guide.\n\n- `build` compiles\n- `test` runs\n";
    let tool = "import sys\n\n\ndef main():\n    print('a')\n";
    for (path, text) in [("a.c", c), ("README.md", page), ("a.py", tool), ("notes.txt", page)] {
        let escaped = text.replace('\n', "\\n");
        assert_eq!(written(path, text, &escaped), Some("escaped"), "{path}");
        assert_eq!(written(path, text, &format!("{escaped}\n")), Some("escaped"), "{path}");
        assert_eq!(written(path, "", &escaped), Some("escaped"), "{path}");
        assert_eq!(written(path, "", escaped.trim_end_matches("\\n")), Some("escaped"), "{path}");
        // The second half is escaped.
        let middle = text.len() / 2;
        let half = text[..middle].to_owned() + &text[middle..].replace('\n', "\\n");
        assert_eq!(written(path, text, &half), Some("escaped"), "{half}");
        assert_eq!(written(path, text, &text.replace("guide", "good guide")), None, "{path}");
    }
    let joined = "1. Download.\\nfoo(bar)\\n2. Unpack it:\n";
    let old = "1. Download.\n2. Unpack it:\n";
    assert_eq!(edited("a.md", old, old, joined), Some("escaped"));
}

#[test]
fn escapes_that_are_mentioned_are_written() {
    for (path, text) in [
        ("a.md", "Write \\n for a line break and \\n\\n for a paragraph."),
        ("a.md", "Lines end with `\\n`, not with `\\r\\n`."),
        ("a.txt", "tr '\\n' ' '"),
        ("a.json", "{\"text\": \"one\\n\\ntwo\\n\", \"more\": \"a\\nb\"}"),
        ("a.js", "const a=\"x;\\n\\ny\",b='z\\n';f(a,b)"),
        ("a.sh", "printf 'a\\nb\\n\\n'"),
        ("a.tex", "\\newcommand{\\norm}[1]{\\|#1\\|} $\\nabla \\nu$ \\noindent"),
        ("a.sed", "s/\\n\\n/\\n/g;s/a\\n/b\\n/"),
    ] {
        assert_eq!(written(path, "", text), None, "{text}");
        assert_eq!(written(path, "first\nsecond\n", text), None, "{text}");
    }
}

#[test]
fn commands_of_tex_are_not_escapes() {
    let page = "\\documentclass{article}\n\\newcommand{\\norm}[1]{\\|#1\\|}\n\\newcommand{\\nn}{n}\\noindent\n$a, \\nabla b$\n";
    assert_eq!(written("a.tex", "", page), None);
    assert_eq!(written("b.tex", "", "a\n\\newcommand{\\nn}{n}\\noindent\n"), None);
    assert_eq!(written("a.tex", "\\documentclass{article}\n", page), None);
    for line in [
        "\\newcommand{\\norm}[1]{\\|#1\\|}",
        "\\newcommand{\\nn}{n}\\noindent",
        "(\\nabla f);\\nabla g",
    ] {
        let new = format!("T = r\"\"\"\n{line}\n\"\"\"\n");
        assert_eq!(edited("a.py", "x = 1\ny = 2\n", "x = 1\n", &new), None, "{line}");
    }
    let new = "x = f(1)\\nz = f(2)\n";
    assert_eq!(edited("a.py", "x = 1\ny = 2\n", "x = 1\n", new), Some("escaped"));
}

#[test]
fn a_fence_around_an_unchanged_file_is_refused() {
    for (path, language) in [("a.rs", "rust"), ("a.py", "python"), ("Makefile", "")] {
        let fenced = format!("```{language}\n{CODE}```\n");
        assert_eq!(written(path, CODE, &fenced), Some("fence"), "{path}");
        assert_eq!(edited(path, CODE, CODE, &fenced), Some("fence"), "{path}");
        let line = format!("```{language}\n    b(); \n```\n");
        assert_eq!(edited(path, CODE, "    b();\n", &line), Some("fence"), "{path}");
    }
    let file = "SRC := $(wildcard src/*.c)\nall: tool\n";
    assert_eq!(edited("Makefile", file, "all: tool\n", "```\nall: tool\n```\n"), Some("fence"));
    // An example in a comment gets a fence.
    let file = "def f():\n    \"\"\"Example:\n\n    f(1)\n    \"\"\"\n";
    assert_eq!(edited("a.py", file, "    f(1)\n", "    ```\n    f(1)\n    ```\n"), None);
    let file = "/**\nf(1);\n*/\nf(2);\n";
    assert_eq!(edited("a.js", file, "f(1);\n", "```js\nf(1);\n```\n"), None);
    assert_eq!(edited("a.js", file, "f(2);\n", "```js\nf(2);\n```\n"), Some("fence"));
    let file = "description: |\n  run a\n";
    assert_eq!(edited("a.yml", file, "  run a\n", "  ```\n  run a\n  ```\n"), None);
}

#[test]
fn a_fence_around_a_document_is_refused() {
    let page = "# Tools\n\nText.\n\n```sh\nrun\n```\n\nEnd.\n";
    for (open, close) in [
        ("```markdown\n", "```"),
        ("````md\n", "````"),
        ("```\n", "```"),
        ("Here is the updated README:\n\n```markdown\n", "```\n"),
    ] {
        let new = format!("{open}{}{close}", page.replace("Text", "More text"));
        assert_eq!(written("README.md", page, &new), Some("fence"), "{open}");
        // The file was so before.
        assert_eq!(written("README.md", &format!("{open}{page}{close}"), &new), None, "{open}");
        assert_eq!(written("docs/new.md", "", &new), None, "{open}");
    }
    // The first fence ends before the text does.
    for new in ["```md\n# Example\n```\n\nText.\n\n```sh\nrun\n```\n", "```sh\nrun\n```\n"] {
        assert_eq!(written("README.md", page, new), None, "{new}");
    }
}

#[test]
fn ends_of_calls_are_recognized_in_markup_and_not_in_examples() {
    let page = "<html>\n  <title>A</title>\n</html>\n";
    for end in ["</diff>\n</apply_diff>", "</write>", "</apply_diff>"] {
        let new = format!("  <title>B</title>\n{end}\n");
        assert_eq!(edited("a.html", page, "  <title>A</title>\n", &new), Some("call"), "{end}");
        assert_eq!(written("a.md", "", &format!("# A\n{end}\n")), Some("call"), "{end}");
    }
    let file = "<jobs>\n  <write>\n    a\n</jobs>\n";
    assert_eq!(edited("a.xml", file, "    a\n", "    a\n  </write>\n"), None);
    assert_eq!(written("a.md", "", "Ends with\n\n    </parameter>\n    </invoke>\n"), None);
    assert_eq!(written("a.md", "", "Ends with\n\n</parameter>\n</invoke>\n"), Some("call"));
    let template = "{% for m in messages %}<|im_start|>{{ m.role }}\n{{ m.content }}\n{% endfor %}";
    assert_eq!(
        edited("a.jinja", template, "{{ m.content }}\n", "{{ m.content }}<|im_end|>\n"),
        None
    );
    assert_eq!(written("a.jinja", "", "{{ messages }}<|im_end|>\n"), None);
    assert_eq!(written("a.py", "", "T = '<|im_start|>'\nE = '''\n<|im_end|>"), None);
    assert_eq!(written("a.py", "", "x = 1\n<|im_end|>\n"), Some("call"));
}

#[test]
fn characters_encoded_as_entities_are_refused() {
    for (path, line, new) in [
        ("a.c", "n->name = 1;", "n-&gt;other = 1;"),
        ("a.rs", "m: Map<String, u8>,", "m: Map&lt;String, u16&gt;,"),
        ("a.go", "\t\"sync\"", "\t&quot;sync&quot; // x"),
        ("a.sh", "echo \"usage\" >&2", "echo &quot;usage: a&quot; &gt;&amp;2"),
        ("a.yml", "- \"80:80\"", "- &quot;80:80&quot; "),
        ("Makefile", "\tcc -o $@ $<", "\tcc -O2 -o $@ $&lt;"),
    ] {
        let file = format!("first\n{line}\nlast\n");
        assert_eq!(edited(path, &file, line, new), Some("entities"), "{new}");
    }
    for (path, line, new) in [
        ("a.html", "a > b", "a &gt; b"),
        ("a.md", "a > b", "a &gt; b"),
        ("a.js", "s = 'a < b';", "s = 'a &lt; b';"),
        ("a.js", "s.replace('<', x);", "s.replace('<', '&lt;');"),
        ("a.js", "h = \"<b>\" + s + \"</b>\";", "h = \"&lt;b&gt;\" + s;"),
        ("A.java", " * List<T>", " * List&lt;T&gt;"),
        ("a.cs", "/// a < b", "/// a &lt; b"),
        ("a.yml", "title: a < b", "title: a &lt; b"),
        ("a.c", "x = a & lt;", "x = a &lt;"),
    ] {
        let file = format!("first\n{line}\nlast\n");
        assert_eq!(edited(path, &file, line, new), None, "{new}");
    }
}

#[test]
fn escaped_backquotes_are_refused() {
    let file = "const c = `p ${q}`;\nconst d = 1;\n";
    let old = "const c = `p ${q}`;\n";
    let new = "const c = \\`p \\${q} r\\`;\n";
    assert_eq!(edited("a.ts", file, old, new), Some("backquotes"));
    for (path, new) in
        [("a.ts", "const c = `p \\`${q}\\``;\n"), ("a.md", new), ("a.ts", "const c = `\\${q}`;\n")]
    {
        assert_eq!(edited(path, file, old, new), None, "{new}");
    }
    let script = "#!/bin/sh\necho `date`\n";
    assert_eq!(edited("a.sh", script, "echo `date`\n", "echo \\`date\\`\n"), None);
}
