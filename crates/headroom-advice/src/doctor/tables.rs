//! Tables that people paste with an error: `nvidia-smi` and `torch.cuda.memory_summary()`.

use serde::Serialize;

use super::scan::{first_number, first_size};
use headroom_base::units::Bytes;

/// One card in `nvidia-smi`'s table.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct SmiCard {
    pub index: u64,
    pub used: Bytes,
    pub total: Bytes,
}

/// One process in `nvidia-smi`'s table.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct SmiProcess {
    pub card: u64,
    pub pid: u64,
    pub name: String,
    pub used: Bytes,
}

/// What `nvidia-smi` printed.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Smi {
    pub cards: Vec<SmiCard>,
    pub processes: Vec<SmiProcess>,
}

impl Smi {
    /// The table, also as nvitop draws it, or the lines of `--query-gpu=... --format=csv`; of what is repeated, as a log
    /// repeats it, the most that each card used.
    pub fn parse(text: &str) -> Option<Self> {
        let mut found = Self::default();
        let mut index = None;
        let mut columns = None;
        for line in text.lines() {
            if let Some(named) = Columns::of(line) {
                columns = Some(named);
            } else if let Some((index, used, total)) =
                columns.as_ref().and_then(|columns| columns.read(line))
            {
                found.card(index, used, total);
            }
        }
        // nvitop's lines are drawn, and its memory is in one cell with its name before it.
        let drawn = text.contains('│').then(|| text.replace('│', "|"));
        for line in drawn
            .as_deref()
            .unwrap_or(text)
            .lines()
            .map(str::trim)
            .filter(|line| line.starts_with('|'))
        {
            let cells: Vec<&str> = line.trim_matches('|').split('|').map(str::trim).collect();
            let memory = cells.iter().find_map(|cell| {
                let (used, total) = cell.split_once('/')?;
                Some((first_size(used)?, first_size(total)?))
            });
            let words: Vec<&str> = line.trim_matches('|').split_whitespace().collect();
            if let Some((used, total)) = memory
                && line.contains("iB")
            {
                let index = index.take().unwrap_or(found.cards.len() as u64);
                found.card(index, used, total);
            } else if cells.len() == 1
                && let [card, .., memory] = words[..]
                && let (Ok(card), Some(used)) = (card.parse(), first_size(memory))
                && let Some(kind) = words
                    .iter()
                    .position(|word| matches!(*word, "C" | "G" | "C+G"))
                && let Some(pid) = kind.checked_sub(1).and_then(|at| words[at].parse().ok())
            {
                let name = words[kind + 1..words.len() - 1].join(" ");
                found.process(SmiProcess {
                    card,
                    pid,
                    name,
                    used,
                });
            } else if cells.len() > 1 {
                index = words.first().and_then(|word| word.parse().ok());
            }
        }
        (!found.cards.is_empty() || !found.processes.is_empty()).then_some(found)
    }

    fn process(&mut self, process: SmiProcess) {
        /// Processes of a machine.
        const MOST: usize = 1_000;
        let same = |known: &&mut SmiProcess| (known.card, known.pid) == (process.card, process.pid);
        if let Some(known) = self.processes.iter_mut().find(same) {
            known.used = known.used.max(process.used);
        } else if self.processes.len() < MOST {
            self.processes.push(process);
        }
    }

    fn card(&mut self, index: u64, used: Bytes, total: Bytes) {
        /// Cards of a machine.
        const MOST: usize = 64;
        if let Some(known) = self.cards.iter_mut().find(|card| card.index == index) {
            known.used = known.used.max(used);
        } else if self.cards.len() < MOST {
            self.cards.push(SmiCard { index, used, total });
        }
    }
}

/// Where the columns of `nvidia-smi --query-gpu` are.
struct Columns {
    index: Option<usize>,
    used: usize,
    total: usize,
}

impl Columns {
    /// The columns that a first line names: `index, memory.used [MiB], memory.total [MiB]`.
    fn of(line: &str) -> Option<Self> {
        if !line.contains("memory.used") {
            return None;
        }
        let at = |name: &str| {
            let mut names = line.split(',').map(str::trim);
            names.position(|column| column.split(' ').next() == Some(name))
        };
        Some(Self {
            index: at("index"),
            used: at("memory.used")?,
            total: at("memory.total")?,
        })
    }

    fn read(&self, line: &str) -> Option<(u64, Bytes, Bytes)> {
        let cells: Vec<&str> = line.split(',').map(str::trim).collect();
        let size = |at: usize| {
            let cell = cells.get(at)?;
            // Without units they are MiB.
            let number = cell.strip_suffix("MiB").unwrap_or(cell).trim();
            number.parse::<u64>().ok().map(Bytes::mib)
        };
        let index = match self.index {
            Some(at) => cells.get(at)?.parse().ok()?,
            None => 0,
        };
        Some((index, size(self.used)?, size(self.total)?))
    }
}

/// What `torch.cuda.memory_summary()` printed: current and peak.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Summary {
    pub allocated: Option<(Bytes, Bytes)>,
    pub reserved: Option<(Bytes, Bytes)>,
    /// Free pieces of segments in use.
    pub non_releasable: Option<(Bytes, Bytes)>,
    pub ooms: Option<u64>,
    pub retries: Option<u64>,
}

impl Summary {
    pub fn parse(text: &str) -> Option<Self> {
        let mut found = Self::default();
        for line in text
            .lines()
            .map(str::trim)
            .filter(|line| line.starts_with('|'))
        {
            let cells: Vec<&str> = line.trim_matches('|').split('|').map(str::trim).collect();
            for cell in &cells {
                if let Some((_, number)) = cell.split_once("OOMs:") {
                    found.ooms = first_number(number);
                }
                if let Some((_, number)) = cell.split_once("retries:") {
                    found.retries = first_number(number);
                }
            }
            let [what, current, peak, ..] = cells[..] else {
                continue;
            };
            let Some(pair) = first_size_pair(current, peak) else {
                continue;
            };
            match what {
                "Allocated memory" => found.allocated = Some(pair),
                "GPU reserved memory" => found.reserved = Some(pair),
                "Non-releasable memory" => found.non_releasable = Some(pair),
                _ => {}
            }
        }
        (found.allocated.is_some() || found.reserved.is_some()).then_some(found)
    }
}

/// A summary separates number and unit by one space: "1062 MB".
fn first_size_pair(current: &str, peak: &str) -> Option<(Bytes, Bytes)> {
    let joined = |cell: &str| first_size(&cell.replace(' ', ""));
    Some((joined(current)?, joined(peak)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nvidia_smi_is_read() {
        let text = "\
| NVIDIA-SMI 550.54.15   Driver Version: 550.54.15   CUDA Version: 12.4 |
| GPU  Name                 Persistence-M | Bus-Id          Disp.A | Volatile Uncorr. ECC |
|   0  NVIDIA A100-SXM4-40GB          On  |   00000000:07:00.0 Off |                    0 |
| N/A   31C    P0              56W / 400W |  39500MiB / 40960MiB   |      0%      Default |
|   3  NVIDIA A100-SXM4-40GB          On  |   00000000:0F:00.0 Off |                    0 |
| N/A   30C    P0              52W / 400W |      4MiB / 40960MiB   |      0%      Default |
| Processes:                                                                              |
|  GPU   GI   CI        PID   Type   Process name                            GPU Memory   |
|    0   N/A  N/A      1234      C   /opt/conda/bin/python train.py            39400MiB   |";
        let smi = Smi::parse(text).unwrap();
        let card = |index, used| SmiCard {
            index,
            used: Bytes::mib(used),
            total: Bytes::mib(40960),
        };
        assert_eq!(smi.cards, [card(0, 39500), card(3, 4)]);
        let process = &smi.processes[0];
        assert_eq!((process.card, process.pid), (0, 1234));
        assert_eq!(process.name, "/opt/conda/bin/python train.py");
        assert_eq!(process.used, Bytes::mib(39400));
        assert_eq!(Smi::parse("| a | b |"), None);
        let log = "timestamp, index, memory.used [MiB], memory.total [MiB]\n2026/01/01 10:00:00.1, 0, 100 MiB, 40960 MiB\n\
                   2026/01/01 10:00:00.2, 3, 4 MiB, 40960 MiB\n2026/01/01 10:00:01.1, 0, 39500 MiB, 40960 MiB\n\
                   2026/01/01 10:00:02.1, 0, 900 MiB, 40960 MiB\n";
        assert_eq!(Smi::parse(log).unwrap().cards, [card(0, 39500), card(3, 4)]);
        let drawn = text.replace('|', "│");
        assert_eq!(Smi::parse(&drawn).unwrap().cards, smi.cards);
    }

    #[test]
    fn a_memory_summary_is_read() {
        let text = "\
|            CUDA OOMs: 1            |        cudaMalloc retries: 2         |
|        Metric         | Cur Usage  | Peak Usage | Tot Alloc  | Tot Freed  |
| Allocated memory      |    1062 MB |    4877 MB |   89299 MB |   88237 MB |
|       from large pool |    1048 MB |    4865 MB |   89263 MB |   88215 MB |
| GPU reserved memory   |  12420 MiB |  12420 MiB |   16924 MB |    4504 MB |";
        let summary = Summary::parse(text).unwrap();
        assert_eq!(
            summary.allocated,
            Some((Bytes::mib(1062), Bytes::mib(4877)))
        );
        assert_eq!(
            summary.reserved,
            Some((Bytes::mib(12420), Bytes::mib(12420)))
        );
        assert_eq!((summary.ooms, summary.retries), (Some(1), Some(2)));
    }
}
