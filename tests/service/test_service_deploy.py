"""What is under deploy/: read by the tools that are at hand, and by our own command line."""

import re
import shlex
import shutil
import subprocess
from pathlib import Path

import pytest

from kernelsmith.cli.main import parser

DEPLOY = Path(__file__).parents[2] / "deploy"


def understood(words):
    """Whether our command line takes these arguments of ``serve``."""
    args = parser().parse_args(["serve", *words])
    assert args.verb == "serve"
    return args


def test_the_unit_starts_a_server_with_tokens():
    text = (DEPLOY / "kernelsmith.service").read_text()
    words = shlex.split(re.search(r"^ExecStart=(.*)$", text, re.MULTILINE)[1])
    assert words[1] == "serve"
    args = understood(words[2:])
    assert args.token_file is not None
    assert args.host == "0.0.0.0"


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="systemd is not installed")
def test_systemd_understands_the_unit(tmp_path):
    text = (DEPLOY / "kernelsmith.service").read_text()
    unit = tmp_path / "kernelsmith.service"
    unit.write_text(text.replace("/opt/kernelsmith/bin/kernelsmith", "/bin/true"))
    done = subprocess.run(
        ["systemd-analyze", "verify", str(unit)], capture_output=True, text=True, check=False
    )
    ours = [line for line in done.stderr.splitlines() if "kernelsmith" in line]
    assert ours == []


@pytest.mark.parametrize("name", ["Containerfile.cpu", "Containerfile.gpu"])
def test_a_container_file_is_well_formed_and_starts_a_server(name):
    lines = re.sub(r"\\\n\s*", " ", (DEPLOY / name).read_text()).splitlines()
    steps = [line for line in lines if line and not line.startswith("#")]
    known = {"FROM", "RUN", "WORKDIR", "COPY", "USER", "ENV", "VOLUME", "EXPOSE", "HEALTHCHECK",
             "ENTRYPOINT", "CMD"}  # fmt: skip
    assert {step.split()[0] for step in steps} <= known
    assert steps[0].startswith("FROM ")
    assert not steps[0].endswith(":latest")
    said = {step.split()[0]: step.split(maxsplit=1)[1] for step in steps}
    words = [*eval(said["ENTRYPOINT"]), *eval(said["CMD"])]
    assert words[:2] == ["kernelsmith", "serve"]
    assert understood(words[2:]).token_file is not None
    assert said["USER"] != "root"


def test_the_manifest_is_yaml_and_its_server_starts():
    yaml = pytest.importorskip("yaml", reason="PyYAML is not installed")
    found = {
        each["kind"]: each for each in yaml.safe_load_all((DEPLOY / "kuberay.yaml").read_text())
    }
    assert set(found) == {"RayCluster", "Deployment", "PersistentVolumeClaim", "Service"}
    cluster = found["RayCluster"]
    assert cluster["apiVersion"] == "ray.io/v1"
    groups = cluster["spec"]["workerGroupSpecs"]
    assert all(g["minReplicas"] <= g["replicas"] <= g["maxReplicas"] for g in groups)
    pod = found["Deployment"]["spec"]["template"]["spec"]
    args = understood(pod["containers"][0]["args"])
    assert (args.ray, args.gpu_type, args.actors) == (
        "ray://kernelsmith-head-svc:10001",
        "H100",
        64,
    )
    claims = {v["persistentVolumeClaim"]["claimName"] for v in pod["volumes"] if "secret" not in v}
    assert claims == {found["PersistentVolumeClaim"]["metadata"]["name"]}
