//! A run as one command: it writes the files into a folder of their own and starts them.

use super::{File, Target, shell};

/// Text for a shell, which needs nothing but the program itself.
pub fn command(target: &Target, files: &[File]) -> String {
    let folder = shell::quote(&format!("headroom-{}", target.id));
    // In a shell of its own, which a failure ends without ending the person's.
    let mut text = format!("(\nset -e\nmkdir -p {folder}\ncd {folder}\n");
    for file in files {
        text.push_str(&shell::here(file.name, &file.contents));
    }
    if let Some(script) = files.iter().rfind(|file| file.executable) {
        text.push_str(&format!("bash {}\n", shell::quote(script.name)));
    }
    text.push_str(")\n");
    text
}

#[cfg(all(test, feature = "cli"))]
mod tests {
    use super::super::all;
    use super::*;
    use headroom_core::estimate::Estimate;
    use headroom_scenario::presets;

    /// A shell writes each file as it is, and then starts one.
    #[test]
    fn the_command_writes_every_file_and_starts_the_script() {
        let folder = std::env::temp_dir().join(format!("headroom-command-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let scenario = presets::find("llama-8b-lora-24gb").unwrap().scenario();
        let mut written = 0;
        for (target, files) in all(&scenario, &Estimate::default()) {
            let Ok(files) = files else { continue };
            let command = command(target, &files);
            let started = command.lines().rev().nth(1).unwrap();
            assert_eq!(started, "bash launch.sh", "{}", target.id);
            let without_start = command.replace("bash launch.sh\n)", ")");
            let mut shell = std::process::Command::new("bash");
            let done = shell.arg("-c").arg(&without_start).current_dir(&folder);
            assert!(done.status().unwrap().success(), "{}", target.id);
            for file in files {
                let place = folder
                    .join(format!("headroom-{}", target.id))
                    .join(file.name);
                assert_eq!(std::fs::read_to_string(place).unwrap(), file.contents);
                written += 1;
            }
        }
        assert!(written > 10, "{written}");
        std::fs::remove_dir_all(&folder).unwrap();
    }
}
