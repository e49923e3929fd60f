"""OpenEvolve's own steps per second; run by ``overhead.py`` with an interpreter that has it.

    python overhead_openevolve.py FOLDER LIVE ITERATIONS WORKERS CODE_BYTES

Needs nothing of Kernel-Smith. A chat endpoint on loopback answers at once, in a process of its own,
with a whole program of so many bytes; the evaluator returns a number. The database is filled with
LIVE programs before the clock starts; its population limit is its own (1,000). In OpenEvolve's
favour: no checkpoints, only warnings in the log, no cascade. ``parts`` shows its pace over the run,
since it changes: what was seen counts, too, not what lives alone. Prints one line of JSON.
"""

import asyncio
import hashlib
import http.server
import json
import multiprocessing
import os
import resource
import sys
import time
from importlib.metadata import version
from pathlib import Path

PART = 25
EVALUATOR = """
import zlib

def evaluate(path):
    with open(path) as file:
        return {"combined_score": zlib.crc32(file.read().encode()) / 2**32}
"""


def program(number: int, size: int) -> str:
    head = f"def kernel_{number}(x):\n"
    lines = [f"    x = x * {(number * 7 + i) % 97} + {i}  # step {i}\n" for i in range(size // 24)]
    return (head + "".join(lines))[: size - 14] + "\n    return x\n"


def serve(ready, size: int) -> None:
    class Answer(http.server.BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        disable_nagle_algorithm = True

        def do_POST(self) -> None:
            asked = self.rfile.read(int(self.headers["Content-Length"]))
            number = int(hashlib.sha256(asked + os.urandom(8)).hexdigest()[:8], 16)
            text = f"```python\n{program(number, size)}```"
            choice = {
                "index": 0,
                "finish_reason": "stop",
                "message": {"role": "assistant", "content": text},
            }
            usage = {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2}
            reply = {"id": "0", "object": "chat.completion", "created": 0, "model": "none"}
            body = json.dumps(reply | {"choices": [choice], "usage": usage}).encode()
            self.send_response(200)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            pass

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Answer)
    ready.send(server.server_port)
    server.serve_forever()


async def measure(folder: Path, live: int, iterations: int, workers: int, size: int) -> dict:
    from openevolve.config import Config, LLMModelConfig
    from openevolve.controller import OpenEvolve
    from openevolve.database import Program

    ours, theirs = multiprocessing.Pipe()
    endpoint = multiprocessing.Process(target=serve, args=(theirs, size), daemon=True)
    endpoint.start()
    (folder / "initial.py").write_text(program(0, size))
    (folder / "evaluator.py").write_text(EVALUATOR)
    config = Config()
    config.log_level = "WARNING"
    config.checkpoint_interval = 10**9
    config.diff_based_evolution = False
    base = f"http://127.0.0.1:{ours.recv()}/v1"
    model = LLMModelConfig(name="none", api_base=base, api_key="none", weight=1.0)
    for name in ("temperature", "top_p", "max_tokens", "timeout", "retries", "retry_delay"):
        setattr(model, name, getattr(config.llm, name))
    config.llm.api_base, config.llm.api_key = base, "none"
    config.llm.models = config.llm.evaluator_models = [model]
    config.evaluator.cascade_evaluation = False
    config.evaluator.parallel_evaluations = workers
    controller = OpenEvolve(
        str(folder / "initial.py"), str(folder / "evaluator.py"), config, output_dir=str(folder)
    )
    for number in range(1, live):
        code = program(number, size)
        score = {"combined_score": (number * 7919 % live) / live}
        controller.database.add(
            Program(id=f"p{number}", code=code, language="python", metrics=score),
            target_island=number % config.database.num_islands,
        )
    times, lives, add = [], [], controller.database.add

    def timed(*arguments, **named):
        placed = add(*arguments, **named)
        if named.get("iteration") is not None:  # a child, and no copy made by migration
            times.append(time.perf_counter())
            lives.append(len(controller.database.programs))
        return placed

    controller.database.add = timed
    await controller.run(iterations=iterations)
    endpoint.terminate()
    settled = times[len(times) // 10 :]
    parts = [
        {"live": lives[at + PART], "per_second": PART / (times[at + PART] - times[at])}
        for at in range(0, len(times) - PART, PART)
    ]
    return {
        "version": version("openevolve"),
        "python": sys.version.split()[0],
        "live": live,
        "workers": workers,
        "steps": len(times),
        "live_at_end": len(controller.database.programs),
        "parts": parts,
        "per_second": (len(settled) - 1) / (settled[-1] - settled[0]),
        "peak_kib": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss,
    }


def main() -> None:
    folder, *numbers = sys.argv[1:]
    live, iterations, workers, size = map(int, numbers)
    found = asyncio.run(measure(Path(folder), live, iterations, workers, size))
    print(json.dumps(found))
    sys.stdout.flush()
    os._exit(0)  # its pools need not wind down


if __name__ == "__main__":
    main()
