"""Which licence a file is under: its own header, else its package's word, else its licence file."""

import re

UNKNOWN = "unknown"
PERMISSIVE = (
    "Apache-2.0", "MIT", "BSD-3-Clause", "BSD-2-Clause", "ISC", "Zlib", "Unlicense", "CC0-1.0",
    "PSF-2.0", "BSL-1.0", "MIT-0", "0BSD",
)  # fmt: skip
_RULES: tuple[tuple[str, str], ...] = (
    ("AGPL-3.0", r"affero|agpl"),
    ("LGPL-3.0", r"lesser general public|lgpl"),
    ("GPL-3.0", r"gnu general public license.{0,40}v(ersion)? ?3|gpl-?v?3|\bgplv3\b"),
    ("GPL-2.0", r"gnu general public license|\bgpl\b|gpl-?v?2"),
    ("CC-BY-NC-4.0", r"non-?commercial|cc[- ]by[- ]nc"),
    ("Apache-2.0", r"apache"),
    ("MPL-2.0", r"mozilla public|mpl-?2"),
    ("BSD-3-Clause", r"bsd[- ]3|3-clause|neither the name of|new bsd|modified bsd"),
    ("BSD-2-Clause", r"bsd[- ]2|2-clause"),
    ("MIT", r"\bmit\b|permission is hereby granted, free of charge"),
    ("BSD-3-Clause", r"\bbsd\b"),
    ("ISC", r"\bisc\b"),
    ("Unlicense", r"unlicense|public domain"),
    ("CC0-1.0", r"cc0"),
    ("PSF-2.0", r"python software foundation"),
)


def named(text: str) -> str:
    """The licence that a text names or is; ``unknown`` where it names none we know."""
    words = re.sub(r"\s+", " ", text).lower()
    for name, pattern in _RULES:
        if re.search(pattern, words):
            return name
    return UNKNOWN


def of_file(head: str) -> str:
    """What a source file's first lines say for the file itself; empty where they do not."""
    match = re.search(r"SPDX-License-Identifier:\s*([\w.\-+ ]+)", head)
    if match:
        return named(match[1]) if named(match[1]) != UNKNOWN else match[1].strip()
    if re.search(r"licen[sc]ed? under|under the terms|permission is hereby", head, re.IGNORECASE):
        found = named("\n".join(line for line in head.splitlines() if line.startswith("#"))[:4000])
        return "" if found == UNKNOWN else found
    return ""


def of_metadata(text: str) -> str:
    """What a package's metadata (PKG-INFO, METADATA) say."""
    head = text.partition("\n\n")[0]
    for field in ("License-Expression", "Classifier: License ::", "License"):
        lines = re.findall(rf"^{re.escape(field)}:?\s*(.+)$", head, re.MULTILINE)
        for line in lines:
            found = named(line)
            if found != UNKNOWN:
                return found
    return UNKNOWN


def allowed(licence: str, wanted: tuple[str, ...]) -> bool:
    """Whether a licence is among those asked for: names, ``permissive`` or ``any``."""
    return (
        "any" in wanted or licence in wanted or ("permissive" in wanted and licence in PERMISSIVE)
    )
