//! The source files of a tool or plugin: the file itself and everything it imports, with their contents.

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::path::{Path, PathBuf};

use crate::disk;
use crate::resolve::{self, ImportFiles as _, ImportTarget};
use crate::scan;

/// Maximum number of files of one tool or plugin.
const MAX_FILES: usize = 500;
/// Maximum size of all files of one tool or plugin, in bytes.
const MAX_TOTAL: usize = 32 << 20;

/// If an installed plugin has more imports than this, or its files are larger than half of [`MAX_TOTAL`] in total, the
/// runtime loads the remaining files itself. Packages of that size are published as JavaScript, so the runtime can load
/// them.
const MAX_PACKAGE_IMPORTS: usize = 400;

/// Files that determine which packages are installed.
const PACKAGE_FILES: [&str; 6] =
    ["package.json", "package-lock.json", "bun.lock", "bun.lockb", "pnpm-lock.yaml", "yarn.lock"];

/// A tool or plugin file with all files that it imports. Loading it uses exactly these contents.
#[derive(Clone, Debug)]
pub struct ScriptSources {
    pub(crate) entry: PathBuf,
    /// Modules and data files by path.
    pub(crate) files: BTreeMap<PathBuf, Vec<u8>>,
    /// Size of all files, in bytes.
    size: usize,
    /// Files that determine how imports are resolved: package.json, lock files, tsconfig.json.
    settings: BTreeMap<PathBuf, Vec<u8>>,
    /// What each specifier of each file refers to.
    pub(crate) targets: HashMap<(PathBuf, String), ImportTarget>,
    hash: String,
}

impl ScriptSources {
    /// Reads a file and the files that it imports. Code is only scanned for imports, never run.
    pub fn read(entry: &Path) -> Result<Self, String> {
        Self::read_all(entry, &[entry.to_path_buf()])
    }

    /// Reads several files and the files that they import. `entry` is the file that errors are reported for; the hash
    /// covers it too.
    pub(crate) fn read_all(entry: &Path, files: &[PathBuf]) -> Result<Self, String> {
        let mut sources = Self {
            entry: entry.into(),
            files: BTreeMap::new(),
            size: 0,
            settings: BTreeMap::new(),
            targets: HashMap::new(),
            hash: String::new(),
        };
        let mut queue = VecDeque::from(files.to_vec());
        while let Some(path) = queue.pop_front() {
            if sources.files.contains_key(&path) {
                continue;
            }
            if sources.files.len() == MAX_FILES {
                return Err(format!("it imports more than {MAX_FILES} files"));
            }
            let bytes = disk::read(&path).map_err(|why| format!("{}: {why}", path.display()))?;
            sources.size += bytes.len();
            if sources.size > MAX_TOTAL {
                return Err(format!(
                    "the files that it imports are larger than {MAX_TOTAL} bytes in total"
                ));
            }
            if is_module(&path)
                && let Ok(text) = std::str::from_utf8(&bytes)
            {
                queue.extend(sources.add_imports(&path, text));
            }
            sources.files.insert(path, bytes);
        }
        sources.read_settings();
        sources.hash = sources.compute_hash();
        Ok(sources)
    }

    /// Resolves the imports of a file and records their targets. Returns the imported files, which have to be read too.
    fn add_imports(&mut self, path: &Path, text: &str) -> Vec<PathBuf> {
        let mut files = Vec::new();
        for specifier in scan::imported_specifiers(text) {
            let target = match resolve::resolve(&disk::Disk, path, &specifier) {
                ImportTarget::File(file) if self.is_left_to_runtime(&file) => {
                    ImportTarget::InstalledFile(file)
                }
                target => target,
            };
            if let ImportTarget::File(file) = &target {
                files.push(file.clone());
            }
            self.targets.insert((path.into(), specifier), target);
        }
        files
    }

    /// Whether a file belongs to an installed package that is too large to be bundled.
    fn is_left_to_runtime(&self, file: &Path) -> bool {
        let is_large = self.targets.len() >= MAX_PACKAGE_IMPORTS || self.size > MAX_TOTAL / 2;
        is_large && resolve::installed_package(file).is_some()
    }

    fn read_settings(&mut self) {
        let folders: std::collections::BTreeSet<&Path> =
            self.files.keys().filter_map(|file| file.parent()).collect();
        let mut settings = BTreeMap::new();
        for folder in folders {
            let package =
                folder.ancestors().find(|folder| disk::Disk.is_file(&folder.join("package.json")));
            let names =
                package.iter().flat_map(|folder| PACKAGE_FILES.map(|name| folder.join(name)));
            let tsconfig = resolve::nearest_tsconfig(&disk::Disk, folder);
            let tsconfig = tsconfig.map(|folder| folder.join(resolve::TSCONFIG));
            for path in names.chain(tsconfig) {
                if let Ok(bytes) = disk::read(&path) {
                    settings.insert(path, bytes);
                }
            }
        }
        self.settings = settings;
    }

    fn compute_hash(&self) -> String {
        let mut hasher = blake3::Hasher::new();
        let mut add = |bytes: &[u8]| {
            hasher.update(&(bytes.len() as u64).to_le_bytes());
            hasher.update(bytes);
        };
        add(self.entry.as_os_str().as_encoded_bytes());
        for (path, bytes) in self.files.iter().chain(&self.settings) {
            add(path.as_os_str().as_encoded_bytes());
            add(bytes);
        }
        let mut packages: Vec<String> = self.targets.values().filter_map(package_state).collect();
        packages.sort();
        packages.dedup();
        for package in packages {
            add(package.as_bytes());
        }
        hasher.finalize().to_hex()[..32].to_owned()
    }

    /// Hash of the paths and contents of all files, and of where imported packages are installed.
    pub fn hash(&self) -> &str {
        &self.hash
    }

    /// All files, each with a hash of its content.
    pub(crate) fn file_hashes(&self) -> impl Iterator<Item = (PathBuf, String)> + '_ {
        self.files
            .iter()
            .chain(&self.settings)
            .map(|(path, bytes)| (path.clone(), blake3::hash(bytes).to_hex()[..16].to_owned()))
    }

    /// The tool or plugin file.
    pub fn entry(&self) -> &Path {
        &self.entry
    }

    /// All files, including those that determine how imports are resolved.
    pub fn paths(&self) -> impl Iterator<Item = &Path> {
        self.files.keys().chain(self.settings.keys()).map(PathBuf::as_path)
    }
}

/// Returns the name of an imported package and where it is installed. The hash covers this text, so that installing a
/// package changes the hash.
fn package_state(target: &ImportTarget) -> Option<String> {
    match target {
        ImportTarget::Package { name, folder } => Some(format!("{name} {}", folder.display())),
        ImportTarget::MissingPackage(name) => Some(format!("{name} missing")),
        ImportTarget::File(_)
        | ImportTarget::InstalledFile(_)
        | ImportTarget::Builtin(_)
        | ImportTarget::Provided(_)
        | ImportTarget::MissingFile => None,
    }
}

/// Whether a file contains code. Other files are data.
pub(crate) fn is_module(path: &Path) -> bool {
    const EXTENSIONS: [&str; 8] = ["ts", "tsx", "mts", "cts", "js", "jsx", "mjs", "cjs"];
    path.extension().and_then(|it| it.to_str()).is_some_and(|it| EXTENSIONS.contains(&it))
}
