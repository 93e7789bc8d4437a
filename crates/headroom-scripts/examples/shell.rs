//! Prints what shell scripts launch: `cargo run -p headroom-scripts --example shell -- FILE…`.
#![allow(clippy::print_stdout, reason = "that is what it is for")]

use headroom_scripts::File;
use headroom_scripts::shell::{evaluate, launches};
use std::time::Instant;
use std::{env, fs};

fn main() {
    let files: Vec<File> = env::args()
        .skip(1)
        .filter_map(|name| {
            let text = String::from_utf8_lossy(&fs::read(&name).ok()?).into_owned();
            Some(File { name, text })
        })
        .collect();
    for file in &files {
        let start = Instant::now();
        let script = evaluate(&file.text, &files);
        let launches = launches(&script, &files);
        println!("== {} ({:?})", file.name, start.elapsed());
        for (name, text) in &script.files {
            println!("   file {name}: {} bytes", text.len());
        }
        for launch in launches {
            println!(
                "   {:?} gpus {:?} nodes {:?} program {:?} config {:?}",
                launch.launcher,
                launch.gpus,
                launch.nodes,
                launch.program.text,
                launch.config.as_ref().map(|word| &word.text)
            );
            println!(
                "     options {:?}",
                launch
                    .options
                    .iter()
                    .map(|(name, word)| format!("{name}={}", word.text))
                    .collect::<Vec<_>>()
            );
            for flag in launch.flags() {
                let values: Vec<String> = flag
                    .values
                    .iter()
                    .map(|word| match &word.unknown {
                        Some(why) => format!("{:?} <{why}>", word.text),
                        None => word.text.clone(),
                    })
                    .collect();
                println!("     {:?} {} = {}", flag.form, flag.key, values.join(" | "));
            }
        }
    }
}
