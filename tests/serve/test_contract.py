"""The OpenAPI document and the server agree, whatever is thrown at it."""

import subprocess
import sys
from pathlib import Path

import pytest

from tests.serve.live_serving import live_serving, of_businesses
from tests.serve.running import Server

CHECKED = (
    "not_a_server_error,status_code_conformance,content_type_conformance,response_schema_conformance,"
    "response_headers_conformance,negative_data_rejection,unsupported_method"
)
"""Not whether every request that fits the document is accepted: which codes a table has is no part of it."""

PATIENT = ("--request-timeout", "60")
QUICK = ("--max-examples", "3", "--phases", "coverage,fuzzing")


def faults(server: Server, folder: Path, *options: str, checks: str = CHECKED) -> str:
    """What schemathesis has to say, if anything."""
    command = Path(sys.executable).with_name("schemathesis")
    done = subprocess.run(
        [command, "run", f"{server.url}/openapi.json", "--checks", checks, "--seed", "1", *PATIENT, *options],
        capture_output=True,
        text=True,
        check=False,
        cwd=folder,
        timeout=1_800,
    )
    return "" if done.returncode == 0 else done.stdout[-5_000:] + done.stderr


@pytest.mark.slow
def test_schemathesis_finds_no_fault(server: Server, tmp_path: Path) -> None:
    assert faults(server, tmp_path, "--max-examples", "10") == ""


@pytest.mark.slow  # minutes of random questions to live data
def test_schemathesis_finds_no_fault_in_live_tables_nor_a_way_around_the_token(
    tmp_path_factory: pytest.TempPathFactory, tmp_path: Path
) -> None:
    with live_serving(of_businesses(tmp_path_factory.mktemp("contract") / "business")) as asked:
        token = f"Authorization: Bearer {asked.steward}"
        options = ("--include-path-regex", "^/(live|steward)", "--header", token, *QUICK)
        assert faults(asked.server, tmp_path, *options, checks=f"{CHECKED},ignored_auth") == ""
