"""``kernelsmith serve``: this machine's devices, or a cluster's, as a service for others."""

import argparse
import logging
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from kernelsmith.cli.command import Command
from kernelsmith.errors import UsageError

if TYPE_CHECKING:
    from kernelsmith.service.process import Post, Worker
    from kernelsmith.service.server import ServerConfig


def _arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--host", default="127.0.0.1", help="(127.0.0.1: this machine only)")
    parser.add_argument("--port", type=int, default=8471, metavar="N", help="(8471; 0: any)")
    parser.add_argument(
        "--backend", action="append", default=[], metavar="NAME",
        help="repeatable (triton with a GPU, else cpu)",
    )  # fmt: skip
    parser.add_argument(
        "--judges", type=int, default=1, metavar="N",
        help="evaluations at a time per device; timing owns it whatever this says (1)",
    )  # fmt: skip
    parser.add_argument(
        "--store", type=Path, default=Path("service"), metavar="FOLDER",
        help="where the queue is kept (service)",
    )  # fmt: skip
    parser.add_argument(
        "--token-file", type=Path, metavar="FILE",
        help="lines of name:token; needed to serve other machines",
    )  # fmt: skip
    parser.add_argument(
        "--ray", nargs="?", const="auto", metavar="ADDRESS",
        help="judge on a Ray cluster: the one at hand, or ADDRESS",
    )  # fmt: skip
    parser.add_argument(
        "--actors", type=int, metavar="N",
        help="with --ray: evaluators to ask for (as many as fit the cluster now)",
    )  # fmt: skip
    parser.add_argument("--gpu-type", metavar="NAME", help="with --ray: such as H100")
    bounds = parser.add_argument_group("bounds")
    bounds.add_argument("--max-body-mb", type=float, default=8.0, metavar="X", help="(8)")
    bounds.add_argument(
        "--rate", type=float, default=200.0, metavar="X", help="requests a second per client (200)"
    )
    bounds.add_argument(
        "--max-queued", type=int, default=200_000, metavar="N", help="requests waiting (200000)"
    )
    bounds.add_argument(
        "--attempts", type=int, default=5, metavar="N",
        help="workers that a candidate may bring down before it is quarantined (5)",
    )  # fmt: skip
    bounds.add_argument(
        "--keep-hours", type=float, default=24.0, metavar="X", help="how long answers last (24)"
    )
    bounds.add_argument(
        "--max-store-mb", type=float, metavar="X", help="the queue on disk (no limit)"
    )


def _run(args: argparse.Namespace) -> int:
    import asyncio

    try:
        from kernelsmith.service.server import serve
    except ImportError as error:
        raise UsageError(
            f"serving needs the module {error.name!r}; try: pip install 'kernelsmith[service]'"
        ) from error
    logging.basicConfig(level=logging.WARNING, format="%(asctime)s %(levelname)s %(message)s")
    hire, posts = _placed(args)
    config = _config(args, posts)
    what = ", ".join(sorted({post.backend for post in config.posts}))

    def ready(url: str) -> None:
        print(f"serving {what} ({len(config.posts)} at a time) on {url}", flush=True)

    asyncio.run(serve(config, ready=ready, hire=hire))
    return 0


def _placed(
    args: argparse.Namespace,
) -> "tuple[Callable[[Post], Worker] | None, Sequence[Post]]":
    """Where workers stand, and who brings them there if it is not this machine."""
    from kernelsmith.service.posts import chosen_backends, posts_for

    if args.judges < 1 or args.attempts < 1 or not 0 <= args.port < 65536:
        raise UsageError("--judges and --attempts are at least 1, --port lies in 0 to 65535")
    if args.ray is None:
        if args.actors is not None or args.gpu_type is not None:
            raise UsageError("--actors and --gpu-type go with --ray")
        return None, posts_for(chosen_backends(args.backend), args.judges)
    from kernelsmith.cli.elsewhere import cluster

    if len(args.backend) > 1:
        raise UsageError("with --ray a server judges for one backend; start one for each")
    joined = cluster(args.ray)
    (backend,) = chosen_backends(args.backend or [joined.backend()])
    return joined.worker, joined.posts(backend, count=args.actors, gpu_type=args.gpu_type)


def _config(args: argparse.Namespace, posts: "Sequence[Post]") -> "ServerConfig":
    from kernelsmith.service.limits import Limits
    from kernelsmith.service.queue import Rules
    from kernelsmith.service.server import ServerConfig

    if min(args.rate, args.max_body_mb, args.max_queued, args.keep_hours) <= 0:
        raise UsageError("bounds are above 0")
    return ServerConfig(
        folder=args.store,
        posts=posts,
        host=args.host,
        port=args.port,
        token_file=args.token_file,
        limits=Limits(
            body_bytes=int(args.max_body_mb * (1 << 20)), rate=args.rate, queued=args.max_queued
        ),
        rules=Rules(faults=args.attempts, keep_s=args.keep_hours * 3600),
        most_bytes=None if args.max_store_mb is None else int(args.max_store_mb * (1 << 20)),
    )


COMMAND = Command("serve", "Judge for others, over HTTP.", _arguments, _run)
