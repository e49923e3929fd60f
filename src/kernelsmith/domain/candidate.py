"""A candidate: immutable source for one backend."""

import hashlib
from dataclasses import dataclass
from typing import NewType

CandidateId = NewType("CandidateId", str)


@dataclass(frozen=True, slots=True, kw_only=True)
class Candidate:
    """What a proposer wrote. Two candidates with the same content are the same candidate."""

    backend: str
    source: str
    parent: CandidateId | None = None
    """Whom it was derived from; not part of its identity."""

    def __post_init__(self) -> None:
        if not self.source.strip():
            raise ValueError("a candidate needs source; this one is empty")

    @property
    def id(self) -> CandidateId:
        """Hash of backend and source: the same text is recognised wherever it comes from."""
        content = f"{self.backend}\0{self.source}".encode()
        return CandidateId(hashlib.sha256(content).hexdigest()[:12])
