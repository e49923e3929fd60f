"""Requests made up from our own OpenAPI description, right and wrong ones: none breaks anything."""

import subprocess
import sys
from pathlib import Path

import pytest
from service_parts import TOKEN, a_body, a_request, served

pytest.importorskip(
    "schemathesis", reason="schemathesis is not installed: pip install schemathesis"
)
CHECKS = (
    "not_a_server_error,status_code_conformance,content_type_conformance,"
    "response_schema_conformance,negative_data_rejection"
)


@pytest.mark.slow
def test_whatever_is_sent_the_answer_is_as_described_and_the_service_goes_on(tmp_path):
    with served(tmp_path, "--rate", "100000", tokens=f"ann:{TOKEN}\n") as server:
        done = subprocess.run(
            [
                str(Path(sys.executable).with_name("schemathesis")), "run",
                f"{server.url}/openapi.json", "--header", f"Authorization: Bearer {TOKEN}",
                "--checks", CHECKS, "--max-examples", "20", "--no-color",
                "--request-timeout", "70",
            ],
            capture_output=True, text=True, check=False, cwd=tmp_path,
        )  # fmt: skip
        assert done.returncode == 0, done.stdout[-6000:]
        with server.client(TOKEN) as client:
            after = client.post("/v1/requests?wait=60", json=a_body(a_request("y + x # after")))
        assert after.json()["requests"][0]["evaluation"]["verdict"] == "passed"
