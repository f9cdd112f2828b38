"""Check the commands and the KubeRay manifest of docs/how-to/cluster.md by running or validating them."""

from __future__ import annotations

import os
import re
import shlex
import socket
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml

from beaufort.evaluation import RayOptions, parse_engine
from beaufort.testing._contracts import example_image
from tests.test_docs import ROOT, parse

PAGE = (ROOT / "docs" / "how-to" / "cluster.md").read_text(encoding="utf-8")


def block(language: str) -> str:
    (found,) = re.findall(rf"^```{language}\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)
    return str(found)


SRUN = """#!/bin/bash
# Starts the command on this machine, once for each task.
tasks=1
while [[ $1 == --* ]]; do
    [[ $1 == --ntasks=* ]] && tasks=${1#--ntasks=}
    shift
done
for ((task = 1; task < tasks; task++)); do "$@" & done
exec "$@"
"""
SCONTROL = """#!/bin/bash
[[ "$1 $2" == "show hostnames" ]] || exit 1
for name in ${3//,/ }; do echo "$name"; done
"""
MODEL = """
import numpy as np
from beaufort.models import as_model

def toy():
    return as_model(
        lambda images: images.reshape(len(images), -1)[:, :5].astype(np.float32),
        name="toy", classes=5, version="1",
    )
"""


@pytest.mark.nightly
@pytest.mark.slow
@pytest.mark.xdist_group("ray")  # as the other tests that start a cluster
def test_the_slurm_script_runs(tmp_path: Path) -> None:
    """Two nodes on one machine; `srun` and `scontrol` are replaced, all other commands are real."""
    ray: Any = pytest.importorskip("ray", reason="Ray is not installed; the extra dev has it")
    for name, text in (("srun", SRUN), ("scontrol", SCONTROL), ("cluster.sh", block("bash"))):
        (tmp_path / name).write_text(text)
        (tmp_path / name).chmod(0o755)
    (tmp_path / "toymodule.py").write_text(MODEL)
    (tmp_path / "toys").mkdir()
    np.save(tmp_path / "toys" / "images.npy", np.stack([example_image(32, 32, variant=i) for i in range(20)]))
    np.save(tmp_path / "toys" / "labels.npy", np.arange(20) % 5)
    here = ray.util.get_node_ip_address()
    place = socket.socket()  # kept until the cluster has ended: nobody else is given its port meanwhile
    place.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    place.bind(("", 0))
    port = place.getsockname()[1]
    environment = {
        **os.environ,
        "PATH": os.pathsep.join([str(tmp_path), str(Path(sys.executable).parent), os.environ["PATH"]]),
        "PYTHONPATH": str(ROOT / "src"),
        "RAY_PORT": str(port),
        "RAY_USAGE_STATS_ENABLED": "0",
        "RAY_AUTH_MODE": "disabled",  # whatever tokens this machine has
        "SLURM_JOB_NODELIST": f"{here},{here}",
        "SLURM_JOB_NUM_NODES": "2",
        "SLURM_CPUS_PER_TASK": "1",
    }
    given = "--model python:toymodule:toy --corruption fog,contrast --severity 1-2 --data toys --store kept"
    with place, (tmp_path / "told").open("w+") as result:  # not a pipe: daemons would keep it open
        command = ["./cluster.sh", *shlex.split(given)]
        ended = subprocess.run(
            command, cwd=tmp_path, env=environment, stdout=result, stderr=result, check=False
        )
        result.seek(0)
        text = result.read()
    assert ended.returncode == 0, text
    assert "20 images, 5 conditions" in text
    assert len(list((tmp_path / "kept").rglob("*.parquet"))) == 5


def test_a_handful_of_machines_is_started_as_by_slurm() -> None:
    """The documents whose commands are run above."""
    script = block("bash").replace("\\\n", " ")
    for line in re.findall(r"^\$ (ray start .*)$", PAGE, re.MULTILINE):
        options = [word.partition("=")[0] for word in line.split()[2:]]
        assert any(
            all(option in started for option in options) for started in re.findall(r"ray start .*", script)
        )


QUANTITY = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([KMGTPE]i|[numkMGTPE]|[eE][+-]?(\d+\.?\d*|\.\d+))?")
"""Of a resource: a number, or a text with a suffix, as 8Gi."""
POD = {
    "metadata": dict,
    "spec!": {
        "containers!": [
            {
                "name!": str,
                "image": str,
                "imagePullPolicy": str,
                "command": [str],
                "args": [str],
                "resources": {"requests": {str: QUANTITY}, "limits": {str: QUANTITY}, "claims": list},
                "volumeMounts": [
                    {
                        "name!": str,
                        "mountPath!": str,
                        "readOnly": bool,
                        "subPath": str,
                        "mountPropagation": str,
                    }
                ],
                "env": [{"name!": str, "value": str, "valueFrom": dict}],
                "envFrom": list,
                "ports": list,
                "securityContext": dict,
            }
        ],
        "volumes": [{"name!": str, "persistentVolumeClaim": {"claimName!": str, "readOnly": bool}}],
        "imagePullSecrets": [{"name": str}],
        "nodeSelector": {str: str},
        "serviceAccountName": str,
        "tolerations": list,
    },
}
GROUP = {"rayStartParams!": {str: str}, "template!": POD}
RAY_CLUSTER = {
    "rayVersion": str,
    "suspend": bool,
    "managedBy": ("ray.io/kuberay-operator", "kueue.x-k8s.io/multikueue"),
    "enableInTreeAutoscaling": bool,
    "autoscalerOptions": dict,
    "gcsFaultToleranceOptions": dict,
    "headServiceAnnotations": {str: str},
    "headGroupSpec!": {**GROUP, "serviceType": str, "headService": dict, "enableIngress": bool},
    "workerGroupSpecs": [
        {
            **GROUP,
            "groupName!": str,
            "replicas": int,
            "minReplicas!": int,
            "maxReplicas!": int,
            "numOfHosts": int,
            "idleTimeoutSeconds": int,
            "suspend": bool,
            "scaleStrategy": {"workersToDelete": [str]},
        }
    ],
}
RAY_JOB = {
    "apiVersion!": "ray.io/v1",
    "kind!": "RayJob",
    "metadata!": {"name!": str, "labels": {str: str}, "annotations": {str: str}, "namespace": str},
    "spec!": {
        "entrypoint": str,
        "entrypointNumCpus": float,
        "entrypointNumGpus": float,
        "entrypointResources": str,
        "submissionMode": ("K8sJobMode", "HTTPMode", "InteractiveMode"),
        "submitterPodTemplate": POD,
        "submitterConfig": {"backoffLimit": int},
        "backoffLimit": int,
        "activeDeadlineSeconds": int,
        "shutdownAfterJobFinishes": bool,
        "ttlSecondsAfterFinished": int,
        "deletionPolicy": ("DeleteCluster", "DeleteWorkers", "DeleteSelf", "DeleteNone"),
        "managedBy": ("ray.io/kuberay-operator", "kueue.x-k8s.io/multikueue"),
        "clusterSelector": {str: str},
        "metadata": {str: str},
        "runtimeEnvYAML": str,
        "jobId": str,
        "suspend": bool,
        "rayClusterSpec": RAY_CLUSTER,
    },
}
"""KubeRay's schema of `ray.io/v1`: the fields of RayJob, RayCluster and their groups, as the types in
`ray-operator/apis/ray/v1` of its repository have them, at the commits f6ef3f7 (jobs) and 3275ee0 (clusters);
its CustomResourceDefinition is made from them. Of pods, what a job of ours may want. ! means required."""


def mistakes(found: Any, wanted: Any, place: str = "") -> list[str]:
    """Return the violations by their path."""
    match wanted:
        case re.Pattern():
            fits = type(found) in (int, str) and wanted.fullmatch(str(found))
            return [] if fits else [f"{place} is no quantity"]
        case type():
            return [] if type(found) is wanted else [f"{place} is not of the type {wanted.__name__}"]
        case str():
            return [] if found == wanted else [f"{place} is not {wanted}"]
        case tuple():
            return [] if found in wanted else [f"{place} is none of {wanted}"]
        case [one]:
            if not isinstance(found, list):
                return [f"{place} is no list"]
            return [text for i, each in enumerate(found) for text in mistakes(each, one, f"{place}[{i}]")]
    if not isinstance(found, dict):
        return [f"{place} has no fields"]
    if str in wanted:
        return [
            text for key, value in found.items() for text in mistakes(value, wanted[str], f"{place}.{key}")
        ]
    fields = {name.rstrip("!"): kind for name, kind in wanted.items()}
    lacking = [
        f"{place}.{name[:-1]} is not there" for name in wanted if name[-1] == "!" and name[:-1] not in found
    ]
    unknown = [f"{place}.{name} is no field" for name in found if name not in fields]
    below = [
        text
        for name, value in found.items()
        if name in fields
        for text in mistakes(value, fields[name], f"{place}.{name}")
    ]
    return [*lacking, *unknown, *below]


def test_the_manifest_fits_the_schema_of_kuberay() -> None:
    manifest = yaml.safe_load(block("yaml"))
    assert mistakes(manifest, RAY_JOB) == []
    words = shlex.split(manifest["spec"]["entrypoint"])
    assert words[0] == "beaufort"
    parse(words[1:])
    groups = manifest["spec"]["rayClusterSpec"]["workerGroupSpecs"]
    engine = parse_engine(words[words.index("--engine") + 1])
    assert isinstance(engine, RayOptions)
    assert engine.workers == sum(group["maxReplicas"] for group in groups)


def test_a_wrong_manifest_is_found() -> None:
    manifest = yaml.safe_load(block("yaml"))
    cluster = manifest["spec"]["rayClusterSpec"]
    cluster["workerGroupSpecs"][0]["replicas"] = "8"
    cluster["headGroupSpec"]["rayStartParams"]["num-cpus"] = 1
    limits = cluster["headGroupSpec"]["template"]["spec"]["containers"][0]["resources"]["limits"]
    limits["memory"] = "8 GB"
    del cluster["workerGroupSpecs"][0]["template"]
    manifest["spec"]["entryPoint"] = ""
    found = [text.replace(".spec.rayClusterSpec", "", 1) for text in mistakes(manifest, RAY_JOB)]
    assert found == [
        ".spec.entryPoint is no field",
        ".headGroupSpec.rayStartParams.num-cpus is not of the type str",
        ".headGroupSpec.template.spec.containers[0].resources.limits.memory is no quantity",
        ".workerGroupSpecs[0].template is not there",
        ".workerGroupSpecs[0].replicas is not of the type int",
    ]
