//! Prints what a Python file does: `cargo run -p headroom-scripts --example python FILE [ARGUMENTS]`.

#![allow(clippy::print_stdout, reason = "it is there to print")]

use std::path::{Path, PathBuf};
use std::{env, fs};

use headroom_scripts::{Beside, python};

struct Folder(PathBuf);

impl Beside for Folder {
    fn text(&self, path: &str) -> Option<String> {
        fs::read_to_string(self.0.join(path)).ok()
    }
}

fn main() {
    let words: Vec<String> = env::args().skip(1).collect();
    let Some((file, arguments)) = words.split_first() else {
        println!("expected a file");
        return;
    };
    let folder = Folder(Path::new(file).parent().unwrap_or(Path::new("")).into());
    let Ok(text) = fs::read_to_string(file) else {
        println!("{file} cannot be read");
        return;
    };
    let module = python::evaluate(&text, arguments, &folder);
    for (at, call) in module.calls.iter().enumerate() {
        let condition = if call.conditional {
            " (conditional)"
        } else {
            ""
        };
        let class = call
            .class
            .as_ref()
            .map_or(String::new(), |class| format!(" as {class}"));
        println!("{at}: {}{class}{condition}", call.path);
        if let Some(on) = &call.on {
            println!("    on {on:?}");
        }
        for value in &call.args {
            println!("    {value:?}");
        }
        for (name, value) in &call.kwargs {
            println!("    {name} = {value:?}");
        }
    }
    println!("names:");
    for (name, value) in &module.names {
        println!("    {name} = {value:?}");
    }
    println!("assigned: {:?}", module.assigned);
    println!("missing: {:?}\nabsent: {:?}", module.missing, module.absent);
    println!("assumed: {:?}\npins: {:?}", module.assumed, module.pins);
    println!("commands: {:?}", module.commands);
    println!("files: {:?}", module.files);
    println!("imports: {:?}", module.imports);
}
