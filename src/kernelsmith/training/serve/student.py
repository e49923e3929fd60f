"""A model in a folder as a run's proposer: served on loopback, adapted where that was asked for."""

from collections.abc import Mapping
from contextlib import nullcontext
from pathlib import Path

from kernelsmith.domain.trajectory import Brief, Proposal
from kernelsmith.errors import UsageError
from kernelsmith.evaluate.backend import load_backend
from kernelsmith.propose.models import ModelConfig
from kernelsmith.run.config import RunConfig
from kernelsmith.training.adapt import AdaptConfig, Adapting
from kernelsmith.training.adapters import Adapters
from kernelsmith.training.forms.form import form_named
from kernelsmith.training.recipes.model import load
from kernelsmith.training.serve.folder import hash_of
from kernelsmith.training.serve.proposer import StudentProposer
from kernelsmith.training.serve.server import ModelServer

_TYPED_TOKENS = 64
"""An edit is a few words; what goes on is no edit."""


class Student(StudentProposer):
    """Opens the model that a run's config names, and closes it with the run.

    Args:
        config: Its proposer is a ``student``.
        folder: Of the run; adapters are kept in it.
        known: What the run's journal says of adapters: hashes by step.

    Raises:
        UsageError: The model cannot be loaded, or is not the one that the run began with.
    """

    def __init__(
        self, config: RunConfig, folder: Path, *, known: Mapping[int, str] | None = None
    ) -> None:
        spec = config.proposer
        assert spec.kind == "student"
        assert spec.path is not None
        form = form_named(spec.form or "typed", config.backend)
        if spec.weights is not None and hash_of(Path(spec.path)) != spec.weights:
            raise UsageError(f"the model in {spec.path!r} is not the one that the run began with")
        model, tokens = load(spec.path)
        self._adapting: Adapting | None = None
        if spec.adapt is not None:
            changed = AdaptConfig(every=spec.adapt, seed=config.seed)
            kept = Adapters(folder, dict(known or {}))
            self._adapting = Adapting(model, tokens, form, changed, kept)
            model = self._adapting.model
        self._backend = load_backend(config.backend) if _shares_device(config) else None
        # Generation shares a GPU with building and checking, and waits while it is timed.
        turn = self._backend.shared if self._backend is not None else nullcontext
        self._server = ModelServer(model, tokens, name=Path(spec.path).name, turn=turn)
        if self._adapting is not None:
            self._adapting.lock = self._server.lock
        self._server.__enter__()
        said = spec.models[0] if spec.models else ModelConfig(name="student")
        asked = ModelConfig(
            name=self._server.name, base_url=self._server.url, temperature=said.temperature,
            top_p=said.top_p,
            max_tokens=min(said.max_tokens, _TYPED_TOKENS) if form.name == "typed"
            else said.max_tokens,
        )  # fmt: skip
        noted = self._adapting.noted if self._adapting is not None else None
        super().__init__(asked, form, noted=noted)

    @property
    def losses(self) -> tuple[float, ...]:
        """Of each pass of each update in this session."""
        return tuple(self._adapting.losses) if self._adapting is not None else ()

    async def propose(self, brief: Brief) -> Proposal:
        """Ask it, with the weights that the run has come to."""
        if self._adapting is not None:
            self._adapting.catch_up()
        return await super().propose(brief)

    async def close(self) -> None:
        """Close the connection, then the server."""
        await super().close()
        self._server.__exit__(None, None, None)
        if self._backend is not None:
            self._backend.close()


def _shares_device(config: RunConfig) -> bool:
    return config.evaluator == "local" and config.backend not in ("null", "cpu")
