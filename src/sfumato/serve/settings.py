"""What the office that serves tables can set."""

from dataclasses import dataclass
from pathlib import Path
from typing import Literal


@dataclass(frozen=True, kw_only=True)
class Settings:
    """Limits, and what the server says of itself."""

    state: Path = Path("serve-state")
    """Folder for what the server has to remember, such as saved queries; made when the first one comes."""
    most_cells: int = 100_000
    """A larger answer is refused."""
    most_body: int = 1_000_000
    """Bytes a request may have."""
    most_running: int = 600
    """Questions that are worked on or wait at a time; further ones are asked to come back."""
    most_of_one: int = 75
    """Questions of one address among them, whatever tokens it shows."""
    most_connections: int = 4_000
    """Connections that are open at a time; the ones that wait longest for a question make room for new ones."""
    most_unread: int = 500_000_000
    """Bytes of answers that clients have not read yet, of all together; whoever reads longest is left."""
    threads: int = 4
    """Pages that are written at a time."""
    downloads: int = 2
    """Large answers that are worked out at a time: each needs memory of its own."""
    most_waiting: int = 60
    """Pages and large answers that one client may wait for at a time; further ones are asked to come back."""
    most_lined_up: int = 300
    """Such answers that all clients together may wait for: other places are left for what is answered at once."""
    seconds: float = 30
    """How long a question may take."""
    patience: float = 10
    """Seconds that a client may take to send a question, or to read a part of the answer."""
    most_saved: int = 10_000
    """Queries that are kept; the ones used least recently make room for new ones."""
    most_saved_bytes: int = 50_000_000
    """Bytes that all of them may have."""
    cache_bytes: int = 64_000_000
    """Memory for finished answers."""
    calls: int = 1_000
    """How many calls one client may make in a window; 0 is any number. Clients are told."""
    window: int = 10
    """The length of that window in seconds."""
    proxies: tuple[str, ...] = ()
    """Addresses of proxies that are believed when they say who asks; without any, nobody is."""
    audit: Path | None = None
    """Folder for the log of who asked what; without one no log is kept."""
    addresses: Literal["short", "full", "none"] = "short"
    """How the log writes the addresses of clients: the network only, all of it, or nothing."""
    source: str = ""
    """The office that publishes, in the words that readers should quote."""
    license: str = ""
    """Under which licence, such as CC-BY-4.0."""
    agency: str = "SFUMATO"
    """The maintenance agency of SDMX."""
    url: str = ""
    """Where readers find the server, such as https://tables.example.org; links are relative when not given."""
