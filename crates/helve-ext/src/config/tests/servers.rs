//! MCP servers.

use expect_test::expect;

use super::{check, check_trusted};

#[test]
fn local_and_remote_servers_are_read() {
    check(
        r#"
$TOKEN=secret
-- user/helve.json
{
  "mcp": {
    "files": {"type": "local", "command": ["npx", "-y", "files"], "environment": {"A": "plain", "B": "{env:TOKEN}"}, "cwd": "sub", "timeout": 5000},
    "web": {"type": "remote", "url": "https://example.com/mcp", "headers": {"Authorization": "Bearer {env:TOKEN}"}, "oauth": false, "enabled": false}
  }
}
"#,
        expect![[r#"
            user/helve.json:3:44 mcp.files.command = npx -y files
            user/helve.json:3:88 mcp.files.environment.A = (not shown)
            user/helve.json:3:102 mcp.files.environment.B = {env:TOKEN}
            user/helve.json:3:125 mcp.files.cwd = sub
            user/helve.json:3:143 mcp.files.timeout = 5000
            user/helve.json:4:38 mcp.web.url = https://example.com/mcp
            user/helve.json:4:94 mcp.web.headers.Authorization = Bearer {env:TOKEN}
            user/helve.json:4:144 mcp.web.enabled = false
        "#]],
    );
}

#[test]
fn disabled_servers_cause_no_problems() {
    check(
        r#"
-- user/helve.json
{"mcp": {
  "a": {"type": "remote", "url": "{env:NOT_SET}", "enabled": false},
  "b": {"type": "local", "command": ["x", "{env:NOT_SET}"], "enabled": false},
  "c": {"type": "locale", "enabled": false},
  "d": {"type": "remote", "url": "{env:NOT_SET}", "enabled": true}
}}
"#,
        expect![[r#"
            user/helve.json:3:38 mcp.b.command = x {env:NOT_SET}
            user/helve.json:3:72 mcp.b.enabled = false
            ! user/helve.json:5:34: warning: the variable NOT_SET is not set; an empty string is used instead
              "d": {"type": "remote", "url": "{env:NOT_SET}", "enabled": true}
                                             ^
            ! user/helve.json:5:34: error: "{env:NOT_SET}" does not begin with https:// or http://
              "d": {"type": "remote", "url": "{env:NOT_SET}", "enabled": true}
                                             ^
        "#]],
    );
}

#[test]
fn incomplete_servers_are_dropped() {
    check(
        r#"
-- user/helve.json
{
  "mcp": {
    "a": {"command": ["x"]},
    "b": {"type": "remote"},
    "c": {"type": "local", "command": "npx -y files"},
    "d": {"type": "local", "command": []},
    "e": {"type": "remote", "url": "file:///etc/passwd"},
    "f": {"type": "stdio", "command": ["x"]},
    "g": {"type": "local", "command": ["x", 1]},
    "h": {"type": "local", "command": ["x"], "timeout": -1},
    "i": {"enabled": true},
    "j": {"type": "local", "command": ["x"], "env": {"A": "b"}}
  }
}
"#,
        expect![[r#"
            user/helve.json:12:40 mcp.j.command = x
            ! user/helve.json:3:5: error: the server "a" has no type
              "a": {"command": ["x"]},
              ^
              add "type": "local"
            ! user/helve.json:4:5: error: the server "b" has no url
              "b": {"type": "remote"},
              ^
            ! user/helve.json:5:39: error: a command must be a list of the program and its arguments
              "c": {"type": "local", "command": "npx -y files"},
                                                ^
              write ["npx", "-y", "files"]
            ! user/helve.json:6:39: error: the command of the server "d" is empty
              "d": {"type": "local", "command": []},
                                                ^
            ! user/helve.json:7:36: error: "file:///etc/passwd" does not begin with https:// or http://
              "e": {"type": "remote", "url": "file:///etc/passwd"},
                                             ^
            ! user/helve.json:8:19: error: a server's type must be "local" or "remote", not "stdio"
              "f": {"type": "stdio", "command": ["x"]},
                            ^
            ! user/helve.json:9:45: error: mcp.g.command[1] must be a string, not 1
              "g": {"type": "local", "command": ["x", 1]},
                                                      ^
            ! user/helve.json:10:57: error: mcp.h.timeout must be a whole number from 1 to 86400000, not -1
              "h": {"type": "local", "command": ["x"], "timeout": -1},
                                                                  ^
            ! user/helve.json:11:5: warning: no server "i" is configured, so "enabled" has no effect
              "i": {"enabled": true},
              ^
            ! user/helve.json:12:46: warning: unknown key "env"; it has no effect
              "j": {"type": "local", "command": ["x"], "env": {"A": "b"}}
                                                       ^
              did you mean "environment"?
        "#]],
    );
}

#[test]
fn a_later_server_replaces_an_earlier_one_entirely() {
    const FIXTURE: &str = r#"
$TOKEN=secret
-- user/helve.json
{"mcp": {"a": {"type": "remote", "url": "https://good.example", "headers": {"X": "{env:TOKEN}"}}, "b": {"type": "local", "command": ["b"]}}}
-- project/opencode.json
{"mcp": {"a": {"type": "remote", "url": "https://other.example"}, "b": {"enabled": false}, "c": {"type": "local", "command": ["sh", "-c", "{env:TOKEN}"]}}}
"#;
    check(
        FIXTURE,
        expect![[r#"
            user/helve.json:1:41 mcp.a.url = https://good.example
            user/helve.json:1:82 mcp.a.headers.X = {env:TOKEN}
            user/helve.json:1:134 mcp.b.command = b
            project/opencode.json:1:127 mcp.c.command = sh -c {env:TOKEN} (needs trust)
            project/opencode.json:1:10 mcp.a = {…} (needs trust)
            project/opencode.json:1:67 mcp.b = {…} (needs trust)
        "#]],
    );
    check_trusted(
        FIXTURE,
        expect![[r#"
            project/opencode.json:1:41 mcp.a.url = https://other.example
            user/helve.json:1:134 mcp.b.command = b
            project/opencode.json:1:84 mcp.b.enabled = false
            project/opencode.json:1:127 mcp.c.command = sh -c {env:TOKEN}
        "#]],
    );
}

#[test]
fn a_server_restated_with_the_same_url_keeps_its_headers_and_timeout() {
    check_trusted(
        r#"
$TOKEN=secret
-- user/helve.json
{"mcp": {
  "a": {"type": "remote", "url": "https://a.example", "headers": {"X": "{env:TOKEN}"}, "timeout": 700},
  "b": {"type": "remote", "url": "https://b.example", "headers": {"X": "{env:TOKEN}"}, "timeout": 700},
  "c": {"type": "local", "command": ["c"], "environment": {"X": "{env:TOKEN}"}}
}}
-- project/opencode.json
{"mcp": {
  "a": {"type": "remote", "url": "https://a.example"},
  "b": {"type": "remote", "url": "https://b.example", "headers": {}, "timeout": 800},
  "c": {"type": "local", "command": ["c"], "cwd": "sub"}
}}
"#,
        expect![[r#"
            project/opencode.json:2:34 mcp.a.url = https://a.example
            user/helve.json:2:72 mcp.a.headers.X = {env:TOKEN}
            user/helve.json:2:99 mcp.a.timeout = 700
            project/opencode.json:3:34 mcp.b.url = https://b.example
            project/opencode.json:3:81 mcp.b.timeout = 800
            project/opencode.json:4:38 mcp.c.command = c
            project/opencode.json:4:51 mcp.c.cwd = sub
        "#]],
    );
}

#[test]
fn servers_are_read_from_mcp_json() {
    const FIXTURE: &str = r#"
$TOKEN=secret
-- project/.mcp.json
{"mcpServers": {
  "files": {"command": "npx", "args": ["-y", "files", "${ROOM:-here}"], "env": {"KEY": "${TOKEN}"}, "autoApprove": ["all"]},
  "web": {"type": "http", "url": "https://example.com/mcp", "headers": {"Authorization": "Bearer ${TOKEN}"}},
  "old": {"type": "sse", "url": "https://example.com/sse"},
  "odd": {"command": "x", "args": "-y"},
  "not": 7
}, "other": 1}
-- project/helve.json
{"mcp": {"web": {"enabled": false}}}
"#;
    check(
        FIXTURE,
        expect![[r#"
            project/.mcp.json:2:24 mcp.files.command = npx -y files here (needs trust)
            project/.mcp.json:2:88 mcp.files.environment.KEY = (not shown) (needs trust)
            project/.mcp.json:3:34 mcp.web.url = https://example.com/mcp (needs trust)
            project/.mcp.json:3:90 mcp.web.headers.Authorization = (not shown) (needs trust)
            project/helve.json:1:29 mcp.web.enabled = false (needs trust)
            ! project/.mcp.json:4:3: error: a server's type must be "stdio" or "http", not "sse"
              "old": {"type": "sse", "url": "https://example.com/sse"},
              ^
              try "http": the older SSE transport is not supported
            ! project/.mcp.json:5:3: error: the server "odd" has no command
              "odd": {"command": "x", "args": "-y"},
              ^
            ! project/.mcp.json:5:35: error: args must be a list of strings, not "-y"
              "odd": {"command": "x", "args": "-y"},
                                              ^
            ! project/.mcp.json:6:10: error: mcpServers.not must be an object, not 7
              "not": 7
                     ^
        "#]],
    );
    check_trusted(
        FIXTURE,
        expect![[r#"
            project/.mcp.json:2:24 mcp.files.command = npx -y files here
            project/.mcp.json:2:88 mcp.files.environment.KEY = {env:TOKEN}
            project/.mcp.json:3:34 mcp.web.url = https://example.com/mcp
            project/.mcp.json:3:90 mcp.web.headers.Authorization = Bearer {env:TOKEN}
            project/helve.json:1:29 mcp.web.enabled = false
            ! project/.mcp.json:4:3: error: a server's type must be "stdio" or "http", not "sse"
              "old": {"type": "sse", "url": "https://example.com/sse"},
              ^
              try "http": the older SSE transport is not supported
            ! project/.mcp.json:5:3: error: the server "odd" has no command
              "odd": {"command": "x", "args": "-y"},
              ^
            ! project/.mcp.json:5:35: error: args must be a list of strings, not "-y"
              "odd": {"command": "x", "args": "-y"},
                                              ^
            ! project/.mcp.json:6:10: error: mcpServers.not must be an object, not 7
              "not": 7
                     ^
        "#]],
    );
}
