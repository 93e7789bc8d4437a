//! Commands about the command line: `help`, `completions`, `man`.

use super::answer::{Answer, Refusal};
use super::args::Args;
use super::drawing::Drawing;
use super::parser::{Settings, find, program, unknown_command};
use clap_complete::Shell;
use headroom_base::document::Document;
use headroom_scenario::Problem;

/// The help of the program, or of a command.
pub(super) fn help(args: &Args) -> Result<Answer, Refusal> {
    let mut shown = described(args.positional(0))?;
    let styled = shown.render_help();
    let text = styled.to_string();
    let document = Document::new().with("help", text.as_str());
    let mut answer = Answer::new(text, &document);
    answer.drawing = Some(Drawing::Whole(styled));
    Ok(answer)
}

/// A script that completes commands and options in a shell.
pub(super) fn completions(args: &Args) -> Result<Answer, Refusal> {
    let name = args.positional(0);
    let shell = match name {
        "bash" => Shell::Bash,
        "zsh" => Shell::Zsh,
        "fish" => Shell::Fish,
        "powershell" => Shell::PowerShell,
        _ => {
            let all = ["bash", "zsh", "fish", "powershell"];
            return Err(Problem::unknown_choice("SHELL", name, &all).into());
        }
    };
    let mut script = Vec::new();
    clap_complete::generate(
        shell,
        &mut program(&Settings::Common),
        "headroom",
        &mut script,
    );
    Ok(file(name, &script))
}

/// The manual page of the program, or of a command.
pub(super) fn man(args: &Args) -> Result<Answer, Refusal> {
    let name = args.positional(0);
    let mut page = Vec::new();
    clap_mangen::Man::new(described(name)?)
        .render(&mut page)
        .map_err(|error| Refusal(vec![format!("the page cannot be written: {error}")]))?;
    let title = if name.is_empty() {
        "headroom.1".into()
    } else {
        format!("headroom-{name}.1")
    };
    Ok(file(&title, &page))
}

/// The grammar of the program, or of a command.
fn described(name: &str) -> Result<clap::Command, Refusal> {
    if name.is_empty() {
        let mut all = program(&Settings::Common);
        all.build();
        return Ok(all);
    }
    let command = find(name).ok_or_else(|| unknown_command(name))?;
    let mut all = program(&Settings::Of(command));
    all.build();
    let found = all.find_subcommand(name).cloned();
    Ok(found.ok_or_else(|| unknown_command(name))?)
}

fn file(name: &str, contents: &[u8]) -> Answer {
    let text = String::from_utf8_lossy(contents).into_owned();
    let document = Document::new().with(name, text.as_str());
    Answer::new(text, &document)
}
