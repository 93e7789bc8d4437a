//! Where a system's code comes from, for machines that start with nothing.

use super::super::{Target, shell};

/// A system's repository and what its program imports.
struct Checkout {
    target: &'static str,
    repository: &'static str,
    /// The guide's, for which `wiring.diff` is written.
    commit: &'static str,
    /// What pip installs, in the folder of the code.
    install: &'static [&'static str],
}

const ALL: &[Checkout] = &[
    Checkout {
        target: "dreams",
        repository: "https://github.com/maxvdboom/DreaMS",
        commit: "757a414db1b8430e3ebed6665aa1f9d1b19eb376",
        install: &["--editable", "."],
    },
    Checkout {
        target: "gsa",
        repository: "https://github.com/alfredcs/Gated-Sparse-Attention",
        commit: "b23ccad5031724946caf8c49f6a79f9bf4617bf0",
        // requirements.txt has more, flash-attn among it, which the trainer does not import.
        install: &[
            "torch>=2.2",
            "triton>=2.3",
            "omegaconf>=2.3",
            "numpy",
            "tqdm",
            "wandb",
        ],
    },
    Checkout {
        target: "rna-3e-ffi",
        repository: "https://github.com/SleepingLei/RNA-3E-FFI",
        commit: "6ccd5a7f17c3f08a46d2320655f3f1388fd6b795",
        // torch_geometric and pandas are imported and not listed there.
        install: &[
            "--requirement",
            "requirements.txt",
            "torch_geometric",
            "pandas",
            "tqdm",
        ],
    },
    Checkout {
        target: "prs-med",
        repository: "https://github.com/seanhuvaya/prs_med_mmrs",
        commit: "a75d09ab88bae8d6bb5dbded5b10bd1614645686",
        // Those of pyproject.toml that training imports, and what four bits take.
        install: &[
            "torch>=2.9",
            "torchvision>=0.24",
            "transformers>=4.57.1,<5",
            "peft>=0.17.1",
            "timm>=1.0.22",
            "accelerate",
            "bitsandbytes",
            "pandas",
            "pillow",
            "scipy",
            "sentencepiece",
            "tqdm",
        ],
    },
    Checkout {
        target: "peptrm",
        repository: "https://github.com/jasegehring/pepTRM",
        commit: "143716f51da2bbfbc326e0a386880ab29b4920ab",
        // ms2pip predicts the spectra that it trains on.
        install: &["--requirement", "requirements.txt", "ms2pip"],
    },
];

/// Commands that leave a system's code, with the patch that lies in this folder, in `$code`; nothing for other programs.
pub(in super::super) fn checkout(target: &Target) -> Option<String> {
    let found = ALL.iter().find(|known| known.target == target.id)?;
    let mut install = vec!["python", "-m", "pip", "install", "--quiet"];
    install.extend(found.install);
    Some(format!(
        "patch=$PWD/wiring.diff\n\
         test -d \"$code\" || git clone --quiet {repository} \"$code\"\n\
         git config --global --add safe.directory \"$code\"\n\
         git -C \"$code\" checkout --quiet {commit}\n\
         git -C \"$code\" apply --reverse --check \"$patch\" 2>/dev/null || git -C \"$code\" apply \"$patch\"\n\
         (cd -- \"$code\" && {install})\n",
        repository = found.repository,
        commit = found.commit,
        install = shell::command(&install)
    ))
}
