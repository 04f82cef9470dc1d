"""The devices that a training is estimated for: those of this machine, or named ones that are not there.

In: `--on`, such as `8xh100`. Out: how many, their memory and matrix rate. Trade-off: named ones come from a table of
data sheets (`spt.train.flops`), all of one kind.
"""

import os
import re
from dataclasses import dataclass

import torch

from spt.errors import ConfigError
from spt.train.flops import CHIPS, find_chip, peak_flops


@dataclass(frozen=True)
class Machine:
    """Equal devices: how many, torch's word for them, their name, bytes of memory and FLOP/s (None: unknown)."""

    devices: int
    kind: str
    name: str
    memory: float | None
    peak: float | None


def find_machine(on: str | None, dtype: str) -> Machine:
    """Return the machine that `--on` names (`8xh100`, `h100`, or `8` of what is here); without it, the one at hand.

    Raises ConfigError for a name that is not in the table.
    """
    count, name = _parse(on)
    if name is None:
        return _here(count, dtype)
    chip = find_chip(name)
    if chip is None:
        known = ", ".join(sorted(chip.name for chip in CHIPS))
        raise ConfigError(
            f"--on {on}: {name!r} is not in the table of accelerators; give N, or NxNAME with one of {known}"
        )
    return Machine(count, "cuda", name, chip.memory * 1e9, peak_flops(name, dtype))


def _parse(on: str | None) -> tuple[int, str | None]:
    if on is None:
        return int(os.environ.get("WORLD_SIZE", "1")), None
    text = on.lower().strip()
    if re.fullmatch(r"[1-9]\d*", text) and find_chip(text) is None:  # 4090 is a name
        return int(text), None
    found = re.fullmatch(r"(?:(?P<count>[1-9]\d*)x)?(?P<name>.+)", text)
    if found is None:
        raise ConfigError(f"--on {on!r}: give N, NAME or NxNAME, such as 8xh100")
    return int(found["count"] or 1), found["name"]


def _here(devices: int, dtype: str) -> Machine:
    if not torch.accelerator.is_available():
        memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / devices
        return Machine(devices, "cpu", "this machine's CPU", memory, None)
    device = torch.accelerator.current_accelerator()
    assert device is not None
    if device.type != "cuda":
        return Machine(devices, device.type, f"this machine's {device.type}", None, None)
    memory = torch.cuda.get_device_properties(device).total_memory
    return Machine(devices, device.type, torch.cuda.get_device_name(device), float(memory), peak_flops(device, dtype))
