//! The parameters of `initialize`, the first request to a server.

use std::path::Path;

use serde_json::{Value, json};

use helve_text::file_uri;

/// Returns the parameters of `initialize`.
pub(super) fn initialize(root: &Path, initialization: Value) -> Value {
    let uri = file_uri::from_path(root);
    let name = root.file_name().unwrap_or_default().to_string_lossy();
    let link = json!({"linkSupport": true});
    let action_kinds = ["", "quickfix", "refactor", "source", "source.organizeImports"];
    json!({
        "processId": null,
        "clientInfo": {"name": "helve", "version": env!("CARGO_PKG_VERSION")},
        "rootPath": root.to_string_lossy(),
        "rootUri": uri,
        "workspaceFolders": [{"uri": uri, "name": name}],
        "initializationOptions": initialization,
        "capabilities": {
            "general": {"positionEncodings": ["utf-8", "utf-16", "utf-32"]},
            "window": {"workDoneProgress": true},
            "experimental": {"serverStatusNotification": true},
            "workspace": {
                "configuration": true,
                "workspaceFolders": true,
                "didChangeConfiguration": {"dynamicRegistration": false},
                "diagnostics": {"refreshSupport": true},
                "symbol": {},
                "workspaceEdit": {
                    "documentChanges": true,
                    "resourceOperations": ["create", "rename", "delete"],
                    "failureHandling": "transactional",
                },
            },
            "textDocument": {
                "synchronization": {"didSave": true},
                "publishDiagnostics": {"versionSupport": true},
                "diagnostic": {"dynamicRegistration": true, "relatedDocumentSupport": false},
                "definition": link,
                "implementation": link,
                "references": {},
                "hover": {"contentFormat": ["markdown", "plaintext"]},
                "documentSymbol": {"hierarchicalDocumentSymbolSupport": true},
                "callHierarchy": {},
                "rename": {"prepareSupport": true},
                "formatting": {},
                "codeAction": {
                    "codeActionLiteralSupport": {"codeActionKind": {"valueSet": action_kinds}},
                    "resolveSupport": {"properties": ["edit"]},
                    "dataSupport": true,
                },
            },
        },
    })
}
