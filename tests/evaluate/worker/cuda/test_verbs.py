"""What the judge asks of the trusted process on a device is what that process answers."""

import re
from pathlib import Path

import kernelsmith.evaluate

FOLDER = Path(kernelsmith.evaluate.__file__).parent
ASKED = re.compile(r'"do": "(\w+)"')
ANSWERED = re.compile(r'^ {12}"(\w+)": (?:self\.)?\w+,$', re.MULTILINE)


def found(pattern: re.Pattern[str], *names: str) -> set[str]:
    return {each for name in names for each in pattern.findall((FOLDER / name).read_text())}


def test_every_question_of_the_judge_has_an_answer():
    asked = found(ASKED, "oracle.py", "cuda/oracle.py")
    answered = found(ANSWERED, "worker/reference.py", "worker/cuda/reference.py")
    assert {"limit", "predict", "answers", "arrange"} <= asked
    assert asked - answered == set()
