//! Imports: the program's own files are evaluated, other modules are names.

use super::packages::is_known_package;
use super::value::{Name, V};
use super::{LocalModule, Machine};
use crate::python::syntax;

/// Files that one program may import.
const MOST_MODULES: usize = 40;

/// Imports inside imports.
const DEEPEST_IMPORTS: usize = 8;

impl Machine<'_> {
    fn imported(&mut self, module: &str) {
        if self.out.imports.len() < 1_000 && !self.out.imports.iter().any(|own| own == module) {
            self.out.imports.push(module.to_string());
        }
    }

    /// `import a.b as c`.
    pub(super) fn import(&mut self, module: &Name, alias: Option<&Name>) {
        self.imported(module);
        let top: Name = module.split('.').next().unwrap_or("").into();
        let own = self.local(0, module);
        if own.is_none() {
            self.not_found(0, module);
        }
        match (alias, own) {
            (Some(alias), Some(at)) => self.bind_import(alias, V::Module(at)),
            (Some(alias), None) => self.bind_import(alias, V::Name(module.clone())),
            (None, Some(at)) if top == *module => self.bind_import(&top, V::Module(at)),
            (None, Some(at)) => self.bind_package(&top, module, at),
            (None, None) => self.bind_import(&top.clone(), V::Name(top)),
        }
    }

    /// `import a.b` of the program's own file: `a` is a namespace with `b`.
    fn bind_package(&mut self, top: &Name, module: &str, at: usize) {
        let mut value = V::Module(at);
        for part in module
            .split('.')
            .skip(1)
            .collect::<Vec<_>>()
            .into_iter()
            .rev()
        {
            value = self.new_instance(None, vec![(part.into(), value)]);
        }
        self.bind_import(top, value);
    }

    fn bind_import(&mut self, name: &Name, value: V) {
        if self.module == 0 {
            self.bound_by_import.insert(name.clone());
        }
        self.bind(name, value);
    }

    /// `from module import names`.
    pub(super) fn import_from(
        &mut self,
        level: usize,
        module: &Name,
        names: &[(Name, Option<Name>)],
    ) {
        if level == 0 {
            self.imported(module);
        }
        let at = if module.is_empty() {
            None
        } else {
            self.local(level, module)
        };
        for (name, alias) in names {
            let bound = alias.as_ref().unwrap_or(name);
            if &**name == "*" {
                self.import_all(at, module);
                continue;
            }
            let value = match at {
                Some(at) => {
                    let value = self.attribute(&V::Module(at), name, &|| name.to_string());
                    match value {
                        // A module of a package, such as `from utils import prompter`.
                        V::Name(_) => match self.local(level, &format!("{module}.{name}")) {
                            Some(inner) => V::Module(inner),
                            None => value,
                        },
                        value => value,
                    }
                }
                None => match self.submodule(level, module, name) {
                    Some(inner) => V::Module(inner),
                    None => {
                        self.not_found(level, if module.is_empty() { name } else { module });
                        if module.is_empty() {
                            V::Name(name.clone())
                        } else {
                            V::text_name(module, name)
                        }
                    }
                },
            };
            self.bind_import(bound, value);
        }
    }

    /// Notes a module that is neither installed, as far as is known, nor beside.
    fn not_found(&mut self, level: usize, module: &str) {
        if level > 0 || !is_known_package(module) {
            self.absent(&format!("{}.py", module.replace('.', "/")));
        }
    }

    fn submodule(&mut self, level: usize, module: &str, name: &str) -> Option<usize> {
        if module.is_empty() {
            return match level {
                0 => None,
                _ => self.local(level, name),
            };
        }
        if is_known_package(module) && level == 0 {
            return None;
        }
        self.local(level, &format!("{module}.{name}"))
    }

    fn import_all(&mut self, at: Option<usize>, module: &str) {
        let Some(at) = at else {
            self.not_found(0, module);
            return;
        };
        let names = self.public_names(at);
        self.spend(names.len());
        for (name, value) in names {
            self.bind(&name, value);
        }
    }

    /// One of the program's own modules, evaluated.
    fn local(&mut self, level: usize, module: &str) -> Option<usize> {
        if level == 0 && is_known_package(module) {
            return None;
        }
        if self.modules.len() >= MOST_MODULES || !self.spend(10) {
            return None;
        }
        let folder = self.folder(level);
        let path = module.replace('.', "/");
        let base = if folder.is_empty() {
            path
        } else {
            format!("{folder}/{path}")
        };
        for file in [format!("{base}.py"), format!("{base}/__init__.py")] {
            if let Some(at) = self.modules.iter().position(|own| own.path == file) {
                return Some(at);
            }
            if let Some(text) = self.beside.text(&file) {
                return self.evaluate_file(file, &text);
            }
        }
        None
    }

    /// The folder that a relative import starts from.
    fn folder(&self, level: usize) -> String {
        let path = self
            .modules
            .get(self.module)
            .map_or("", |module| &module.path);
        if level == 0 {
            return String::new();
        }
        let mut parts: Vec<&str> = path.split('/').collect();
        for _ in 0..level {
            parts.pop();
        }
        parts.join("/")
    }

    /// The program's own file at a path.
    pub(super) fn module_file(&mut self, path: &str) -> Option<usize> {
        if let Some(at) = self.modules.iter().position(|own| own.path == path) {
            return Some(at);
        }
        if self.modules.len() >= MOST_MODULES {
            return None;
        }
        match self.beside.text(path) {
            Some(text) => self.evaluate_file(path.to_string(), &text),
            None => {
                self.absent(path);
                None
            }
        }
    }

    fn evaluate_file(&mut self, path: String, text: &str) -> Option<usize> {
        self.text = self.text.saturating_add(text.len());
        let nested = self
            .frames
            .iter()
            .filter(|frame| frame.function.is_none())
            .count();
        if self.text > 2 * super::MOST_TEXT || nested > DEEPEST_IMPORTS {
            return None;
        }
        let parsed = syntax::parse(super::truncated(text, super::MOST_CODE / 2));
        self.spend(parsed.size / 4);
        self.scopes.push(super::Scope::default());
        let scope = self.scopes.len() - 1;
        let name: Name = path.trim_end_matches(".py").replace('/', ".").into();
        if let Some(scope) = self.scopes.get_mut(scope) {
            scope.names.insert("__name__".into(), V::Text(name));
            scope
                .names
                .insert("__file__".into(), V::text(path.as_str()));
        }
        self.modules.push(LocalModule { path, scope });
        let at = self.modules.len() - 1;
        let module = std::mem::replace(&mut self.module, at);
        let before = std::mem::replace(&mut self.scope, scope);
        let local = std::mem::replace(&mut self.local_scope, scope);
        // An import is not conditional for what the file defines.
        self.frames.push(super::Frame::default());
        self.block(&parsed.body);
        self.merge_bases();
        self.frames.pop();
        self.scope = before;
        self.local_scope = local;
        self.module = module;
        Some(at)
    }

    /// `exec(open(path).read())`: the file's statements run here.
    pub(super) fn execute(&mut self, what: &Name) -> V {
        if what.ends_with("configurator.py") {
            self.configurator();
            return V::None;
        }
        let text = if what.ends_with(".py") && !what.contains('\n') {
            self.file(what)
        } else {
            Some(what.to_string())
        };
        if let Some(text) = text {
            let parsed = syntax::parse(super::truncated(&text, super::MOST_TEXT / 4));
            self.spend(2 * parsed.size);
            self.block(&parsed.body);
        }
        V::None
    }

    /// nanoGPT's way: a file of assignments, then `--key=value` for names that exist.
    fn configurator(&mut self) {
        for argument in self.arguments {
            match argument.split_once('=') {
                None if !argument.starts_with("--") => {
                    self.execute(&argument.as_str().into());
                }
                Some((key, value)) => {
                    let key: Name = key.trim_start_matches('-').into();
                    if self.lookup(&key).is_some() {
                        let value = self.literal(value);
                        self.bind(&key, value);
                    }
                }
                None => {}
            }
        }
    }
}
