//! The cache folder: generated modules, the modules that Helve provides, and the listings of tools and plugins.

use std::io;
use std::path::{Path, PathBuf};

use helve_text::file_uri;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::bundle::{self, Bundle, ScriptError};
use crate::disk;
use crate::sources::ScriptSources;

/// The JavaScript files of Helve itself: those of the helper process, and the modules that tools may import.
const PROVIDED: [(&str, &str); 12] = [
    ("host.mjs", include_str!("js/host.mjs")),
    ("schema.mjs", include_str!("js/schema.mjs")),
    ("shim.mjs", include_str!("js/shim.mjs")),
    ("plugin.mjs", include_str!("js/plugin.mjs")),
    ("hash.mjs", include_str!("js/hash.mjs")),
    ("sockets.mjs", include_str!("js/sockets.mjs")),
    ("bun.mjs", include_str!("js/bun.mjs")),
    ("sqlite.mjs", include_str!("js/sqlite.mjs")),
    ("ffi.mjs", include_str!("js/ffi.mjs")),
    ("fs_promises.mjs", include_str!("js/fs_promises.mjs")),
    ("tool.mjs", include_str!("../../../vendor/opencode-plugin/tool.mjs")),
    ("zod.mjs", include_str!("../../../vendor/zod/zod.mjs")),
];

/// Maximum size of a stored listing in bytes.
const MAX_LISTING: usize = 4 << 20;

/// The tools and hooks that a file declared when it was loaded.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct ScriptListing {
    pub(crate) tools: Vec<ListedTool>,
    /// Names of the hooks of a plugin.
    #[serde(default)]
    pub(crate) hooks: Vec<String>,
    /// Names of members that a plugin provides and Helve does not use, such as `auth`.
    #[serde(default)]
    pub(crate) unused: Vec<String>,
    /// Why the file, or a part of it, cannot be used.
    #[serde(default)]
    pub(crate) problems: Vec<ScriptError>,
}

impl ScriptListing {
    /// Whether the file declares nothing.
    pub(crate) fn is_empty(&self) -> bool {
        self.tools.is_empty() && self.hooks.is_empty() && self.unused.is_empty()
    }
}

/// A tool as its file declares it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct ListedTool {
    /// Name of the export, or the id of a plugin's tool.
    pub(crate) export: String,
    pub(crate) description: String,
    #[serde(default)]
    pub(crate) schema: Value,
    /// Why the tool cannot be used.
    #[serde(default)]
    pub(crate) problem: Option<String>,
}

/// The cache folder.
#[derive(Clone, Debug)]
pub(crate) struct ScriptCache {
    folder: PathBuf,
    /// Hash of the provided modules.
    version: String,
}

impl ScriptCache {
    /// Uses this cache folder. Writes nothing.
    pub(crate) fn at(folder: PathBuf) -> Self {
        let mut hasher = blake3::Hasher::new();
        for (name, text) in PROVIDED {
            hasher.update(name.as_bytes());
            hasher.update(text.as_bytes());
        }
        let version = hasher.finalize().to_hex()[..16].to_owned();
        Self { folder, version }
    }

    /// The folder of the modules that Helve provides.
    pub(crate) fn provided(&self) -> PathBuf {
        self.folder.join("provided").join(&self.version)
    }

    /// The folder in which node caches compiled modules.
    pub(crate) fn compiled(&self) -> PathBuf {
        self.folder.join("compiled")
    }

    /// Writes the modules that Helve provides, unless they exist with the same content. Returns the path of `host.mjs`,
    /// which the helper process runs.
    pub(crate) fn unpack(&self) -> io::Result<PathBuf> {
        let folder = self.provided();
        for (name, text) in PROVIDED {
            let path = folder.join(name);
            if disk::read(&path).ok().as_deref() != Some(text.as_bytes()) {
                disk::write(&path, text.as_bytes())?;
            }
        }
        Ok(folder.join("host.mjs"))
    }

    /// Generates the modules of a script and writes them, unless they exist.
    pub(crate) fn store(&self, sources: &ScriptSources) -> Result<StoredBundle, ScriptError> {
        let bundle = bundle::bundle(sources, &self.provided())?;
        let folder = self.folder.join("modules").join(&bundle.hash);
        // Written last. If it exists, the bundle is complete.
        let marker = folder.join("complete");
        if !disk::exists(&marker) {
            let written = write_bundle(&folder, &bundle)
                .and_then(|()| disk::write(&marker, bundle.hash.as_bytes()));
            written.map_err(|error| {
                let message =
                    format!("the cache in {} cannot be written: {error}", folder.display());
                ScriptError::of_file(sources.entry(), message)
            })?;
        }
        let url = file_uri::from_path(&folder.join(&bundle.entry));
        Ok(StoredBundle { url, folder, bundle })
    }

    /// Reads the stored listing of a script. `kind` and `hash` identify its sources.
    pub(crate) fn listing(&self, kind: &str, hash: &str) -> Option<ScriptListing> {
        let bytes = disk::read(&self.listing_path(kind, hash)).ok()?;
        (bytes.len() <= MAX_LISTING).then(|| serde_json::from_slice(&bytes).ok())?
    }

    /// Stores the listing of a script. Errors are ignored, because the script can be loaded again.
    pub(crate) fn store_listing(&self, kind: &str, hash: &str, listing: &ScriptListing) {
        if let Ok(bytes) = serde_json::to_vec(listing) {
            disk::write(&self.listing_path(kind, hash), &bytes).ok();
        }
    }

    fn listing_path(&self, kind: &str, hash: &str) -> PathBuf {
        let name = format!("{kind}-{hash}-{}.json", self.version);
        self.folder.join("listings").join(name)
    }
}

fn write_bundle(folder: &Path, bundle: &Bundle) -> io::Result<()> {
    for module in &bundle.modules {
        disk::write(&folder.join(&module.name), module.code.as_bytes())?;
    }
    for (name, target) in &bundle.links {
        disk::link(target, &folder.join(name))?;
    }
    Ok(())
}

/// A bundle in the cache.
#[derive(Clone, Debug)]
pub(crate) struct StoredBundle {
    /// URL of the module to load.
    pub(crate) url: String,
    folder: PathBuf,
    bundle: Bundle,
}

impl StoredBundle {
    /// Finds the source file and line of the first frame of a stack trace that is in this bundle.
    pub(crate) fn source_location(&self, stack: &str) -> Option<(PathBuf, usize)> {
        let folder = self.folder.to_str()?;
        for line in stack.lines() {
            let Some(at) = line.find(folder) else { continue };
            let rest = &line[at + folder.len() + 1..];
            let Some((name, rest)) = rest.split_once(".mjs:") else { continue };
            let name = format!("{name}.mjs");
            let digits = rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(rest.len());
            let Ok(line) = rest[..digits].parse::<usize>() else { continue };
            let module = self.bundle.modules.iter().find(|module| module.name == name)?;
            let line = *module.lines.get(line.checked_sub(1)?)?;
            if line > 0 {
                return Some((module.source.clone(), line as usize));
            }
        }
        None
    }
}
