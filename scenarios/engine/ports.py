"""A port for each receiver of a scenario, kept for it even while the receiver is down.

A receiver that is stopped must be refused, and started again it must be found at the same address; meanwhile no other process
may get its port. The harness therefore holds a socket that is bound to the port and never listens: connecting is refused, the
kernel gives the port to nobody who asks for a free one, and a receiver that asks for it by number may have it (both sides set
SO_REUSEADDR, which Linux allows as long as only one listens).
"""

import socket

from scenarios.errors import HarnessBug

# The usual ephemeral ports of Linux begin at 32768.
SMALLEST_PORT = 10_000


class Ports:
    """The ports of one scenario by process name. Close it when the scenario ends."""

    def __init__(self) -> None:
        self._held: dict[str, socket.socket] = {}

    def of(self, process: str) -> int:
        """The port of `process`, reserved at the first call."""
        holder = self._held.get(process)
        if holder is None:
            holder = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
            holder.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            holder.bind(("127.0.0.1", 0))
            self._held[process] = holder
            if holder.getsockname()[1] < SMALLEST_PORT:
                holder.close()
                raise HarnessBug(
                    f"the kernel gave a port below {SMALLEST_PORT}, and evidence counts bytes of messages that hold it: "
                    "set net.ipv4.ip_local_port_range to five digits"
                )
        port: int = holder.getsockname()[1]
        return port

    def close(self) -> None:
        """Give all of them back."""
        for holder in self._held.values():
            holder.close()
        self._held.clear()
