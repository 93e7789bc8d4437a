//! The numbers in an out-of-memory error, in the wordings of PyTorch 0.4 to 2.15, on CUDA and HIP.

use serde::Serialize;

use super::scan::{first_number, size_after, size_before};
use super::vocabulary::Found;
use headroom_base::units::Bytes;

/// The numbers of one error; those not in its text are absent.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Failure {
    pub source: Source,
    pub device: Option<u64>,
    pub tried: Option<Bytes>,
    pub total: Option<Bytes>,
    pub free: Option<Bytes>,
    pub allocated: Option<Bytes>,
    /// Reserved by PyTorch but unallocated.
    pub unallocated: Option<Bytes>,
    /// All of this process, the CUDA context included.
    pub in_use: Option<Bytes>,
    /// The limit of `set_per_process_memory_fraction`.
    pub allowed: Option<Bytes>,
    /// The part of reserved memory in the private pools of CUDA graphs.
    pub private_pools: Option<Bytes>,
    /// Other processes that the text names, and the memory that they use.
    pub processes: Vec<(u64, Bytes)>,
    /// Whether the text says that expandable segments are on.
    pub expandable: bool,
}

/// Who ran out of memory.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Source {
    /// PyTorch's caching allocator, with its numbers.
    #[default]
    Allocator,
    /// `backend:cudaMallocAsync`.
    AsyncAllocator,
    /// The driver or a library, outside the allocator and without numbers.
    Driver,
    /// The allocator of Apple's Metal Performance Shaders.
    Mps,
    /// A text that says no more than that memory ran out.
    Bare,
    /// The host's memory, not the GPU's.
    Host,
}

impl Failure {
    /// The last error in the text: logs repeat errors, and the last rank or retry has the latest numbers.
    pub fn parse(text: &str) -> Option<Self> {
        let text = &unwrapped(text);
        by_allocator(text)
            .or_else(|| by_async_allocator(text))
            .or_else(|| by_mps(text))
            .or_else(|| without_numbers(text))
    }

    /// Memory reserved by PyTorch.
    pub fn reserved(&self) -> Option<Bytes> {
        Some(self.allocated? + self.unallocated?)
    }

    /// The most that the allocator could have reserved at that moment.
    pub fn usable(&self) -> Option<Bytes> {
        let room = self.reserved()? + self.free?;
        Some(self.allowed.map_or(room, |allowed| allowed.min(room)))
    }
}

/// The text on one line: terminals, log prefixes and quoted strings break it, numbers and words included.
fn unwrapped(text: &str) -> String {
    let text = text.replace("\\\n", "");
    let mut line = String::with_capacity(text.len());
    for word in text.split_whitespace() {
        let point = word.strip_prefix('.').is_some_and(starts_with_digit);
        let goes_on = point && line.ends_with(|last: char| last.is_ascii_digit());
        if !line.is_empty() && !goes_on {
            line.push(' ');
        }
        line.push_str(word);
    }
    line
}

fn starts_with_digit(text: &str) -> bool {
    text.starts_with(|first: char| first.is_ascii_digit())
}

const START: &str = "out of memory. Tried to allocate ";

fn by_allocator(text: &str) -> Option<Failure> {
    let (_, rest) = text.rsplit_once(START)?;
    // Another error's numbers are not this one's.
    let rest = rest.split("out of memory").next().unwrap_or(rest);
    let mut failure = Failure {
        tried: super::scan::first_size(rest),
        allowed: size_before(rest, " allowed"),
        private_pools: size_before(rest, " allocated in private pools"),
        expandable: rest.contains("expandable_segments is enabled"),
        ..Failure::default()
    };
    if rest.contains("total capacity;") {
        // Until 2.0: "(GPU 0; 11.17 GiB total capacity; 10.67 GiB already allocated; 2.81 MiB free; ...)".
        failure.device = rest
            .split_once("GPU ")
            .and_then(|parts| first_number(parts.1));
        failure.total = size_before(rest, " total capacity");
        failure.allocated = size_before(rest, " already allocated");
        failure.free = size_before(rest, " free");
        // Until 1.3 "cached" was what is not handed out; since 1.4 "reserved in total" is all that is held.
        failure.unallocated = size_before(rest, " reserved in total by PyTorch")
            .and_then(|held| Some(held - failure.allocated?))
            .or_else(|| size_before(rest, " cached"));
    } else {
        // Since 2.1; its first release wrote "capacty".
        failure.device = rest
            .split_once("GPU ")
            .and_then(|parts| first_number(parts.1));
        failure.total = size_after(rest, "total capacity of ")
            .or_else(|| size_after(rest, "total capacty of "));
        failure.free = size_before(rest, " is free");
        failure.allocated = size_before(rest, " is allocated by PyTorch");
        failure.unallocated = size_before(rest, " is reserved by PyTorch but unallocated");
        failure.in_use = size_after(rest, "this process has ");
        failure.processes = processes(rest);
    }
    failure.own_process();
    Some(failure)
}

/// "Process 24817 has 2.93 GiB memory in use."
fn processes(text: &str) -> Vec<(u64, Bytes)> {
    text.match_indices("Process ")
        .filter_map(|(at, _)| {
            // No sentence is longer.
            let mut end = (at + 80).min(text.len());
            while !text.is_char_boundary(end) {
                end -= 1;
            }
            let (sentence, _) = text[at..end].split_once(" memory in use")?;
            Some((first_number(sentence)?, size_after(sentence, " has ")?))
        })
        .collect()
}

impl Failure {
    /// In a container the process cannot find itself among those listed: it is the one that uses what PyTorch has reserved and no
    /// more than a CUDA context beyond it.
    fn own_process(&mut self) {
        if self.in_use.is_some() {
            return;
        }
        let Some(reserved) = self.reserved() else {
            return;
        };
        let context = Bytes::gib(1.5);
        let own = self
            .processes
            .iter()
            .position(|gpu| gpu.1 >= reserved && gpu.1 <= reserved + context);
        if let Some(own) = own {
            self.in_use = Some(self.processes.remove(own).1);
        }
    }
}

/// "Allocation on device 0 would exceed allowed memory. (out of memory) Currently allocated : 3.72 GiB Requested : ..."
fn by_async_allocator(text: &str) -> Option<Failure> {
    let (_, rest) = text.rsplit_once("would exceed allowed memory")?;
    let limit = size_after(rest, "memory fraction)");
    let total = size_after(rest, "Device limit");
    Some(Failure {
        source: Source::AsyncAllocator,
        device: text
            .rsplit_once("Allocation on device ")
            .and_then(|parts| first_number(parts.1)),
        tried: size_after(rest, "Requested"),
        total,
        free: size_after(rest, "Free (according to CUDA)"),
        allocated: size_after(rest, "Currently allocated"),
        unallocated: Some(Bytes::ZERO),
        // Without a fraction the text shows a limit beyond any device.
        allowed: limit.filter(|limit| total.is_some_and(|total| *limit < total)),
        ..Failure::default()
    })
}

/// "MPS backend out of memory (MPS allocated: 15.72 GiB, other allocations: 2.41 MiB, max allowed: 18.13 GiB). Tried to ..."
fn by_mps(text: &str) -> Option<Failure> {
    let (_, rest) = text.rsplit_once("MPS backend out of memory")?;
    let total = size_after(rest, "max allowed");
    let allocated = size_after(rest, "MPS allocated");
    let other = size_after(rest, "other allocations");
    Some(Failure {
        source: Source::Mps,
        tried: size_after(rest, "Tried to allocate"),
        total,
        allocated,
        unallocated: Some(Bytes::ZERO),
        free: total
            .zip(allocated)
            .map(|(total, allocated)| total - allocated - other.unwrap_or_default()),
        in_use: allocated,
        ..Failure::default()
    })
}

/// Texts that only say where the error came from.
const SOURCES: &[(&str, Source)] = &[
    ("DefaultCPUAllocator: can't allocate memory", Source::Host),
    ("DefaultCPUAllocator: not enough memory", Source::Host),
    ("Torch: not enough memory", Source::Host),
    ("is killed by signal: Killed", Source::Host),
    ("Cannot allocate memory", Source::Host),
    ("out-of-memory: Killed process", Source::Host),
    ("oom-kill", Source::Host),
    ("CUDA error: out of memory", Source::Driver),
    ("CUDA driver error: out of memory", Source::Driver),
    ("HIP error: out of memory", Source::Driver),
    ("hipErrorOutOfMemory", Source::Driver),
    ("cudaErrorMemoryAllocation", Source::Driver),
    ("CUDA_ERROR_OUT_OF_MEMORY", Source::Driver),
    ("cuda runtime error (2) : out of memory", Source::Driver),
    ("CUBLAS_STATUS_ALLOC_FAILED", Source::Driver),
    ("CUDNN_STATUS_ALLOC_FAILED", Source::Driver),
    ("Cuda failure 2 'out of memory'", Source::Driver),
    ("Cuda failure 'out of memory'", Source::Driver),
    ("error=2 : out of memory", Source::Driver),
    ("NCCL error", Source::Driver),
    ("out of memory", Source::Bare),
    ("OutOfMemoryError", Source::Bare),
];

fn without_numbers(text: &str) -> Option<Failure> {
    let found = Found::in_text(text, SOURCES.iter().map(|(words, _)| *words));
    let (_, source) = SOURCES.iter().find(|(words, _)| found.has(words))?;
    Some(Failure {
        source: *source,
        ..Failure::default()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn gib(gib: f64) -> Bytes {
        Bytes::gib(gib)
    }
    fn mib(mib: u64) -> Bytes {
        Bytes::mib(mib)
    }

    /// Every wording of the same numbers says the same.
    #[test]
    fn all_wordings_are_read() {
        let expected = Failure {
            device: Some(1),
            tried: Some(mib(512)),
            total: Some(gib(11.0)),
            free: Some(mib(256)),
            allocated: Some(gib(8.5)),
            unallocated: Some(gib(1.5)),
            ..Failure::default()
        };
        let limited = Failure {
            allowed: Some(gib(10.25)),
            ..expected.clone()
        };
        let new = Failure {
            in_use: Some(gib(10.5)),
            ..expected.clone()
        };
        let crowded = Failure {
            processes: vec![(24817, Bytes::mib(256)), (77, Bytes::gib(2.0))],
            ..new.clone()
        };
        for (text, expected) in [
            // 1.0 to 1.3
            (
                "RuntimeError: CUDA out of memory. Tried to allocate 512.00 MiB (GPU 1; 11.00 GiB total capacity; \
                 8.50 GiB already allocated; 256.00 MiB free; 1.50 GiB cached)",
                &expected,
            ),
            // 1.4 to 1.9
            (
                "RuntimeError: CUDA out of memory. Tried to allocate 512.00 MiB (GPU 1; 11.00 GiB total capacity; \
                 8.50 GiB already allocated; 256.00 MiB free; 10.00 GiB reserved in total by PyTorch)",
                &expected,
            ),
            // 1.10 to 2.0, with a fraction
            (
                "torch.cuda.OutOfMemoryError: CUDA out of memory. Tried to allocate 512.00 MiB (GPU 1; 11.00 GiB total \
                 capacity; 8.50 GiB already allocated; 256.00 MiB free; 10.25 GiB allowed; 10.00 GiB reserved in total \
                 by PyTorch) If reserved memory is >> allocated memory try setting max_split_size_mb to avoid \
                 fragmentation.  See documentation for Memory Management and PYTORCH_CUDA_ALLOC_CONF",
                &limited,
            ),
            // 2.1, whose capacity lacks a letter; the process does not know itself in a container
            (
                "CUDA out of memory. Tried to allocate 512.00 MiB. GPU 1 has a total capacty of 11.00 GiB of which \
                 256.00 MiB is free. Process 20398 has 10.50 GiB memory in use. Of the allocated memory 8.50 GiB is \
                 allocated by PyTorch, and 1.50 GiB is reserved by PyTorch but unallocated.",
                &new,
            ),
            // 2.2 to 2.15
            (
                "[rank1]: torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 512.00 MiB. GPU 1 has a total \
                 capacity of 11.00 GiB of which 256.00 MiB is free. Process 24817 has 256.00 MiB memory in use. \
                 Process 77 has 2.00 GiB memory in use. Including non-PyTorch memory, this process has 10.50 GiB memory \
                 in use. Of the allocated memory 8.50 GiB is allocated by PyTorch, and 1.50 GiB is reserved by PyTorch \
                 but unallocated. If reserved but unallocated memory is large try setting \
                 PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True to avoid fragmentation.",
                &crowded,
            ),
            // HIP, broken over lines
            (
                "torch.OutOfMemoryError: HIP out of memory. Tried to allocate 512.00\n   MiB. GPU 1 has a total capacity of\n \
                 11.00 GiB of which 256.00 MiB is free. 10.25 GiB allowed; Of the allocated memory 8.50 GiB is allocated \
                 by PyTorch, and 1.50 GiB is reserved by PyTorch but unallocated. If reserved but unallocated memory is \
                 large try setting PYTORCH_HIP_ALLOC_CONF=expandable_segments:True to avoid fragmentation.",
                &limited,
            ),
        ] {
            assert_eq!(Failure::parse(text).as_ref(), Some(expected), "{text}");
        }
    }

    #[test]
    fn graphs_and_expandable_segments_are_noticed() {
        let text = "CUDA out of memory. Tried to allocate 2.00 MiB. GPU 0 has a total capacity of 24.00 GiB of which 0 \
                    bytes is free. Of the allocated memory 20.00 GiB is allocated by PyTorch, with 17.00 MiB allocated in \
                    private pools (e.g., CUDA Graphs), and 54.00 MiB is reserved by PyTorch but unallocated. \
                    expandable_segments is enabled. If instead the process";
        let failure = Failure::parse(text).unwrap();
        assert_eq!(failure.private_pools, Some(mib(17)));
        assert_eq!(failure.free, Some(Bytes::ZERO));
        assert_eq!(failure.unallocated, Some(mib(54)));
        assert!(failure.expandable);
    }

    #[test]
    fn the_last_of_several_errors_counts() {
        let error =
            |mib: u64| format!("CUDA out of memory. Tried to allocate {mib}.00 MiB. GPU 0 has");
        let text = format!("{} ... {} a total capacity of 1.00 GiB", error(1), error(2));
        assert_eq!(Failure::parse(&text).unwrap().tried, Some(mib(2)));
    }

    #[test]
    fn texts_without_numbers_say_where_the_error_came_from() {
        for (text, source) in [
            (
                "RuntimeError: CUDA error: out of memory\nCUDA kernel errors might be",
                Source::Driver,
            ),
            (
                "cuda runtime error (2) : out of memory at /pytorch/aten/src/THC/generic/THCStorage.cu:58",
                Source::Driver,
            ),
            (
                "CUBLAS_STATUS_ALLOC_FAILED when calling `cublasCreate(handle)`",
                Source::Driver,
            ),
            (
                "[enforce fail at alloc_cpu.cpp:75] err == 0. DefaultCPUAllocator: can't allocate memory: you tried",
                Source::Host,
            ),
            (
                "DataLoader worker (pid 9) is killed by signal: Killed.",
                Source::Host,
            ),
        ] {
            assert_eq!(
                Failure::parse(text).map(|failure| failure.source),
                Some(source),
                "{text}"
            );
        }
        for text in [
            "",
            "loss 0.3",
            "Tried to allocate",
            "GPU 0; total capacity;",
        ] {
            assert_eq!(Failure::parse(text), None, "{text}");
        }
    }

    #[test]
    fn the_asynchronous_allocator_is_read() {
        let text = "torch.cuda.OutOfMemoryError: Allocation on device 0 would exceed allowed memory. (out of memory)\n\
                    Currently allocated     : 8.50 GiB\nRequested               : 512.00 MiB\n\
                    Device limit            : 11.00 GiB\nFree (according to CUDA): 256.00 MiB\n\
                    PyTorch limit (set by user-supplied memory fraction)\n                        : 17179869184.00 GiB";
        let failure = Failure::parse(text).unwrap();
        assert_eq!(failure.source, Source::AsyncAllocator);
        assert_eq!(
            (failure.tried, failure.total),
            (Some(mib(512)), Some(gib(11.0)))
        );
        assert_eq!(
            (failure.free, failure.allocated),
            (Some(mib(256)), Some(gib(8.5)))
        );
        assert_eq!(failure.allowed, None);
    }
}
