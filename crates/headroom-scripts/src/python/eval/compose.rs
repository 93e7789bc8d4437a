//! Configurations that are put together from several files: Hydra's defaults list, mmengine's `_base_`.

use super::Machine;
use super::config::DEEPEST;
use super::text::joined;
use super::value::{Args, V};

impl Machine<'_> {
    /// The configuration that `@hydra.main(config_path, config_name)` gives its function.
    pub(super) fn hydra(&mut self, args: &Args) -> V {
        let mut folder = args
            .text(0, "config_path")
            .map_or("", |path| path)
            .to_string();
        let mut name = args
            .text(1, "config_name")
            .map_or("config", |name| name)
            .to_string();
        let mut words = Vec::new();
        let mut given = self.arguments.iter();
        while let Some(word) = given.next() {
            match word
                .split_once('=')
                .map_or((word.as_str(), None), |(key, value)| (key, Some(value)))
            {
                ("--config-path" | "-cp", value) => {
                    folder = value
                        .or(given.next().map(String::as_str))
                        .unwrap_or("")
                        .to_string();
                }
                ("--config-name" | "-cn", value) => {
                    name = value
                        .or(given.next().map(String::as_str))
                        .unwrap_or("")
                        .to_string();
                }
                _ => words.push(word.clone()),
            }
        }
        let name = name.trim_end_matches(".yaml").to_string();
        let config = self.composed(&folder, &name, &words, 8);
        if let V::Dict(_) = config {
            self.overrides(&config, &words);
        }
        self.set_root(&config);
        config
    }

    /// A file with those of its defaults list; its own values are over them unless `_self_` says otherwise.
    pub(super) fn composed(
        &mut self,
        folder: &str,
        name: &str,
        words: &[String],
        depth: usize,
    ) -> V {
        let path = joined(folder, &format!("{name}.yaml"));
        let own = self.config_of(&path);
        let V::Dict(id) = own else { return own };
        let Some(V::List(defaults)) = self.entry(id, "defaults") else {
            return own;
        };
        if depth == 0 {
            return own;
        }
        let entries = self.entries(id).to_vec();
        let without: Vec<(V, V)> = entries
            .into_iter()
            .filter(|(key, _)| !matches!(key, V::Text(key) if &**key == "defaults"))
            .collect();
        let own = self.dict(without);
        let mut config = self.dict(Vec::new());
        let mut self_seen = false;
        for item in self.items(defaults).to_vec().into_iter().take(50) {
            match item {
                V::Text(name) if &*name == "_self_" => {
                    self_seen = true;
                    config = self.merged(&config, &own, DEEPEST);
                }
                V::Text(name) => {
                    let inner = self.composed(folder, &name, words, depth - 1);
                    config = self.merged_known(config, inner);
                }
                V::Dict(choice) => {
                    let entry = self.entries(choice).first().cloned();
                    let Some((V::Text(group), chosen)) = entry else {
                        continue;
                    };
                    if group.contains("hydra/") {
                        continue;
                    }
                    let group = group
                        .trim_start_matches("optional ")
                        .trim_start_matches("override ");
                    let given = words.iter().rev().find_map(|word| {
                        let (key, value) = word.split_once('=')?;
                        (key.trim_start_matches('+') == group).then(|| value.to_string())
                    });
                    let chosen = match (given, chosen) {
                        (Some(given), _) => given,
                        (None, V::Text(chosen)) => chosen.to_string(),
                        _ => continue,
                    };
                    let (group, package) = group.split_once('@').unwrap_or((group, group));
                    let inner_folder = joined(folder, group);
                    let mut inner = self.composed(&inner_folder, &chosen, words, depth - 1);
                    if package != "_global_" {
                        let holder = self.dict(Vec::new());
                        self.set_path(&holder, &package.replace('/', "."), inner);
                        inner = holder;
                    }
                    config = self.merged_known(config, inner);
                }
                _ => {}
            }
        }
        if self_seen {
            config
        } else {
            self.merged(&config, &own, DEEPEST)
        }
    }

    pub(super) fn merged_known(&mut self, config: V, inner: V) -> V {
        match inner {
            V::Dict(_) => self.merged(&config, &inner, DEEPEST),
            _ => config,
        }
    }

    /// mmengine's `_base_`: names of the base files under the module's own.
    pub(super) fn merge_bases(&mut self) {
        let scope = self.global_scope();
        let named = self
            .scopes
            .get(scope)
            .and_then(|scope| scope.names.get("_base_"))
            .cloned();
        let Some(named) = named else { return };
        let bases = match named {
            V::Text(_) => vec![named],
            V::List(id) => self.items(id).to_vec(),
            _ => return,
        };
        let folder = self
            .modules
            .get(self.module)
            .and_then(|module| module.path.rsplit_once('/'))
            .map_or(String::new(), |(folder, _)| folder.to_string());
        for base in bases.into_iter().take(20) {
            let V::Text(path) = base else { continue };
            let path = joined(&folder, &path).to_string();
            let Some(at) = self.module_file(&path) else {
                continue;
            };
            for (name, value) in self.public_names(at) {
                let own = self
                    .scopes
                    .get(scope)
                    .and_then(|scope| scope.names.get(&name))
                    .cloned();
                let value = match own {
                    Some(own) => self.merged(&value, &own, DEEPEST),
                    None => value,
                };
                if &*name != "_base_" {
                    self.bind_in(scope, &name, value);
                }
            }
        }
    }
}
