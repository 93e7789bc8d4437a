//! `mason.py … --num_nodes 4 --gpus 8 -- COMMAND && COMMAND`: a job on AI2's cluster.

use headroom_scripts::shell::{self, Command, Count, Launch, Script, Word};

use crate::fact::Fact;
use crate::facts::Facts;
use crate::flags;
use crate::program::Source;

/// The first of its commands that trains, on the GPUs that the job has.
pub fn read(launch: &Launch, source: &Source) -> Option<Facts> {
    let at = launch.arguments.iter().position(|word| word.text == "--")?;
    let (own, inner) = launch.arguments.split_at(at);
    let mut job = launch.clone();
    job.arguments = own.to_vec();
    let options = flags::keys(&job);
    let nodes = options
        .whole("num_nodes")
        .or_default(1, "mason.py's num_nodes");
    let each = options.whole("gpus").or_default(0, "mason.py's gpus");
    // Words may hold several commands, where a whole command line is one word.
    let words: Vec<Word> = inner.iter().skip(1).flat_map(divided).collect();
    words
        .split(|word| matches!(word.text.trim_matches('\\'), "&&" | ";"))
        .find_map(|words| {
            let command = Command {
                words: words.to_vec(),
                ..Command::default()
            };
            let mut started = shell::launch(&command, &Script::default(), source.beside)?;
            if let (Some(nodes), Some(each)) = (nodes.value(), each.value()) {
                started.nodes = Some(*nodes);
                started.gpus = Count::Known(nodes.saturating_mul(*each));
            }
            let keys = flags::keys(&started);
            let mut facts = super::of_command(&started, &keys, source)?;
            if let (Some(nodes_), Some(each)) =
                (nodes.value(), each.value().filter(|each| **each > 0))
            {
                facts.gpus = Fact::read(
                    nodes_.saturating_mul(*each),
                    "mason.py's num_nodes and gpus",
                );
                facts.nodes = nodes.clone();
            }
            Some(facts)
        })
}

fn divided(word: &Word) -> Vec<Word> {
    if !word.text.contains(' ') || !word.text.contains("--") {
        return vec![word.clone()];
    }
    let part = |text: &str| Word {
        text: text.into(),
        unknown: word.unknown.clone().filter(|_| text.contains('$')),
    };
    word.text.split_whitespace().map(part).collect()
}
