"""Where the economy of a reproduction is: kept in a folder, or made for this once."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

from sfumato.economy.files import RELEASE


@contextmanager
def economy_folder(data: Path | None, make: Callable[[Path], object], *, release: str = RELEASE) -> Iterator[Path]:
    """The folder `data` if it holds an economy, which is made there otherwise; a temporary one where none is named.

    `release` is the file by which a folder is known to be whole: it is written last.
    """
    if data is not None and (data / release).exists():
        yield data
        return
    with TemporaryDirectory() as temporary:
        folder = data or Path(temporary)
        make(folder)
        yield folder
