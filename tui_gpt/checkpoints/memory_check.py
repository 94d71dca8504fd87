"""Is there room for a model's weights? Asked before anything large is touched."""

from __future__ import annotations

from pathlib import Path

from tui_gpt.errors import NotEnoughMemory


def check_memory(name: str, needed: int) -> None:
    """Refuse what would be killed half way; where memory is not told, go on.

    Args:
        name: The model's.
        needed: Bytes.

    Raises:
        NotEnoughMemory: The weights alone need more than there is.
    """
    try:
        lines = Path("/proc/meminfo").read_text().splitlines()
        available = next(int(line.split()[1]) for line in lines if line.startswith("MemAvailable"))
    except (OSError, StopIteration, ValueError, IndexError):
        return
    if needed > available * 1024:
        raise NotEnoughMemory(name, needed, available * 1024)
