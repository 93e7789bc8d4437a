"""Headroom probe: one JSON line a step about GPU memory, all sizes in bytes. It needs torch and nothing else.

    from headroom_probe import Probe
    probe = Probe("headroom-probe.jsonl")
    for batch in loader:
        with probe.step(size=batch["input_ids"].numel()):
            loss = model(**batch).loss
            probe.phase("backward")
            loss.backward()
            probe.phase("optimizer")
            optimizer.step()
            optimizer.zero_grad()

`size` is whatever makes your batches differ: tokens, peaks, edges, pixels. Evaluation steps: probe.step(evaluating=True).
An out-of-memory error is written down at the moment it happens, before Python drops anything.
Paste the file into Headroom, or run: headroom doctor headroom-probe.jsonl
"""

import gc
import json
import os
import time
from contextlib import contextmanager

import torch

__all__ = ["Probe"]


class Probe:
    """Writes to `path`, one file a rank; `tensors_every` is how often the largest tensors are listed (0: never)."""

    def __init__(self, path="headroom-probe.jsonl", device=None, tensors_every=100):
        self.device = torch.cuda.current_device() if device is None else torch.device(device).index or 0
        rank = os.environ.get("RANK")
        self.path = path if rank in (None, "0") else f"{path}.rank{rank}"
        self.tensors_every = tensors_every
        self.count = 0
        self.now = None
        free, total = torch.cuda.mem_get_info(self.device)
        with open(self.path, "w", encoding="utf-8") as file:
            file.write("")
        torch.cuda.reset_peak_memory_stats(self.device)
        self._write(
            {
                "headroom_probe": 1,
                "step": -1,
                "torch": torch.__version__,
                "gpu": torch.cuda.get_device_name(self.device),
                "alloc_conf": os.environ.get("PYTORCH_CUDA_ALLOC_CONF", os.environ.get("PYTORCH_ALLOC_CONF", "")),
                "outside": total - free - torch.cuda.memory_reserved(self.device),
                **self._counters(),
            }
        )
        attach = getattr(torch._C, "_cuda_attach_out_of_memory_observer", None)
        if attach is not None:
            attach(self._out_of_memory)

    @contextmanager
    def step(self, size=None, evaluating=False):
        """Everything inside is one step."""
        torch.cuda.reset_peak_memory_stats(self.device)
        before = torch.cuda.memory_allocated(self.device)
        first = "eval" if evaluating else "forward"
        self.now = {"size": size, "first": first, "phase": first, "peaks": {}, "peak_reserved": 0}
        start = time.perf_counter()
        failed = True
        try:
            yield self
            failed = False
        finally:
            self._close_phase()
            now, self.now = self.now, None
            if not failed:
                record = {
                    "step": self.count,
                    "size": now["size"],
                    "phase": now["first"],
                    **self._counters(),
                    "peak_allocated": max(now["peaks"].values()),
                    "peak_reserved": now["peak_reserved"],
                    "phase_peaks": now["peaks"],
                    "growth": torch.cuda.memory_allocated(self.device) - before,
                    "seconds": round(time.perf_counter() - start, 4),
                }
                if self.tensors_every and (self.count < 3 or self.count % self.tensors_every == 0):
                    record["largest"] = self._largest()
                self._write(record)
            if not evaluating:
                self.count += 1

    def phase(self, name):
        """The part of the step that begins here: "backward", "optimizer", or a name of your own."""
        if self.now is not None:
            self._close_phase()
            self.now["phase"] = name

    def _close_phase(self):
        peaks, phase = self.now["peaks"], self.now["phase"]
        peaks[phase] = max(peaks.get(phase, 0), torch.cuda.max_memory_allocated(self.device))
        self.now["peak_reserved"] = max(self.now["peak_reserved"], torch.cuda.max_memory_reserved(self.device))
        torch.cuda.reset_peak_memory_stats(self.device)

    def _counters(self):
        free, total = torch.cuda.mem_get_info(self.device)
        stats = torch.cuda.memory_stats(self.device)
        return {
            "peak_allocated": torch.cuda.max_memory_allocated(self.device),
            "allocated": torch.cuda.memory_allocated(self.device),
            "reserved": torch.cuda.memory_reserved(self.device),
            "inactive_split": stats.get("inactive_split_bytes.all.current", 0),
            "retries": stats.get("num_alloc_retries", 0),
            "free": free,
            "total": total,
        }

    def _out_of_memory(self, device, requested, _total, free):
        if device != self.device:
            return
        record = {"step": self.count, "oom": True, **self._counters(), "requested": requested, "free": free}
        if self.now is not None:
            record.update(size=self.now["size"], phase=self.now["phase"])
            if self.now["first"] == "eval":
                record["phase"] = "eval"
        record["largest"] = self._largest()
        self._write(record)

    def _largest(self, count=8):
        seen = {}
        for it in gc.get_objects():
            try:
                if isinstance(it, torch.Tensor) and it.is_cuda and it.device.index == self.device:
                    storage = it.untyped_storage()
                    seen[storage.data_ptr()] = (storage.nbytes(), list(it.shape), str(it.dtype))
            except Exception:  # Objects that only look like tensors may refuse any question.
                continue
        largest = sorted(seen.values(), key=lambda it: it[0], reverse=True)[:count]
        return [{"bytes": size, "shape": shape, "dtype": dtype} for size, shape, dtype in largest]

    def _write(self, record):
        with open(self.path, "a", encoding="utf-8") as file:
            file.write(json.dumps(record) + "\n")
