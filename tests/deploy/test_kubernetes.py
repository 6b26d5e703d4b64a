"""The manifests for Kubernetes, against the schemas of Kubernetes and of Flink's operator."""

from __future__ import annotations

import re
import shutil
import subprocess
import zipfile

import pytest
import rocsteady as rs
import yaml
from rocsteady.pipelines.cli import parse
from rocsteady.runners.presets import choose_runner
from rocsteady.runners.servers.packages import FLINK_MINOR

from tests.support import ROOT
from tests.support.requirements import deploy, lacking

TEXT = (ROOT / "examples" / "deploy" / "kubernetes.yaml").read_text("utf-8")
OBJECTS = list(yaml.safe_load_all(TEXT))
OPERATOR = "org.apache.flink:flink-kubernetes-operator-api:1.10.0"
CUSTOM_RESOURCE = "META-INF/fabric8/flinkdeployments.flink.apache.org-v1.yml"
KUBERNETES = ("1.29", "1.33")


def the(kind, name="rocsteady"):
    (found,) = [each for each in OBJECTS if (each["kind"], each["metadata"]["name"]) == (kind, name)]
    return found


CLUSTER = the("FlinkDeployment")["spec"]
TASK_MANAGER = CLUSTER["taskManager"]
(WORKERS,) = TASK_MANAGER["podTemplate"]["spec"]["initContainers"]
POD = the("Job", "rocsteady-evaluate")["spec"]["template"]["spec"]
(JOB_SERVER,), (EVALUATE,) = POD["initContainers"], POD["containers"]
_, OPTIONS, BEAM = parse(EVALUATE["command"][1:])
BEAM = dict(flag.removeprefix("--").split("=", 1) for flag in BEAM)


def strict(schema):
    """Return a schema that also refuses unknown fields: a cluster would drop them silently."""
    if isinstance(schema, list):
        return [strict(each) for each in schema]
    if not isinstance(schema, dict):
        return schema
    made = {name: strict(value) for name, value in schema.items()}
    if isinstance(schema.get("properties"), dict) and schema.get("type") == "object":
        made.setdefault("additionalProperties", False)
    if schema.get("x-kubernetes-int-or-string"):
        made.pop("type", None)
    return made


@pytest.fixture(scope="module")
def schema(tmp_path_factory):
    """The schema of a FlinkDeployment, from the operator's own jar."""
    deploy("kubernetes_validate")
    import jsonschema

    if shutil.which("mvn") is None:
        lacking("install Maven, which fetches the schema", required_by="ROCSTEADY_REQUIRE_DEPLOY")
    folder = tmp_path_factory.mktemp("operator")
    copy = ["mvn", "-B", "-q", "dependency:copy", f"-Dartifact={OPERATOR}", f"-DoutputDirectory={folder}"]
    done = subprocess.run(copy, capture_output=True, text=True, check=False, cwd=folder, timeout=300)
    if done.returncode:
        lacking(f"no {OPERATOR} by Maven: {done.stdout[-500:]}", required_by="ROCSTEADY_REQUIRE_DEPLOY")
    with zipfile.ZipFile(next(folder.glob("*.jar"))) as jar:
        found = yaml.load(jar.read(CUSTOM_RESOURCE), getattr(yaml, "CSafeLoader", yaml.SafeLoader))
    (version,) = [each for each in found["spec"]["versions"] if each["name"] == "v1beta1"]
    whole = strict(version["schema"]["openAPIV3Schema"])
    text = {"type": "string"}
    whole["properties"] |= {"apiVersion": text, "kind": text, "metadata": {"type": "object"}}
    return jsonschema.Draft7Validator(whole)


def test_the_cluster_is_what_the_operator_takes(schema):
    assert [error.message for error in schema.iter_errors(the("FlinkDeployment"))] == []


@pytest.mark.parametrize(
    ("field", "value"),
    [("replica", 2), ("replicas", "two"), ("podTemplate", {"spec": {"initContainer": []}})],
)
def test_a_field_that_the_operator_does_not_take_is_seen(schema, field, value):
    changed = yaml.safe_load(TEXT.split("---\n")[1])
    changed["spec"]["taskManager"][field] = value
    assert [*schema.iter_errors(changed)]


@pytest.mark.parametrize("version", KUBERNETES)
def test_the_other_objects_are_what_kubernetes_takes(version):
    deploy("kubernetes_validate")
    import kubernetes_validate

    others = [each for each in OBJECTS if each["kind"] != "FlinkDeployment"]
    assert len(others) == 5
    for each in others:
        kubernetes_validate.validate(each, version, strict=True)
        wrong = {**each, "spec": {**each["spec"], "no such": 1}}
        with pytest.raises(kubernetes_validate.ValidationError):
            kubernetes_validate.validate(wrong, version, strict=True)


def test_the_command_is_one_that_rocsteady_takes():
    assert EVALUATE["command"][0] == "rocsteady"
    assert OPTIONS.runner == "flink"
    runner = choose_runner("FlinkRunner", [f"--{name}={value}" for name, value in BEAM.items()])
    assert runner.kind == "flink"
    assert not any("LOOPBACK" in flag for flag in runner.added)


def test_the_job_fills_the_slots_of_the_cluster():
    slots = int(CLUSTER["flinkConfiguration"]["taskmanager.numberOfTaskSlots"])
    assert int(BEAM["parallelism"]) == TASK_MANAGER["replicas"] * slots


def test_each_address_is_that_of_the_container_which_listens_there():
    assert BEAM["environment_config"] == f"localhost:{WORKERS['command'][2]}"
    assert WORKERS["command"][:2] == ["rocsteady-worker", "--pool"]
    assert WORKERS["command"][2] in WORKERS["startupProbe"]["exec"]["command"][2]
    flags = dict(flag.removeprefix("--").split("=") for flag in JOB_SERVER["args"])
    assert BEAM["job_endpoint"] == f"{flags['job-host']}:{flags['job-port']}"
    assert JOB_SERVER["startupProbe"]["tcpSocket"]["port"] == int(flags["job-port"])
    service = f"{the('FlinkDeployment')['metadata']['name']}-rest"
    assert BEAM["flink_master"] == flags["flink-master"] == f"{service}:8081"


def test_versions_are_those_that_rocsteady_runs_with():
    beam = re.search(r"^apache-beam==(.+)$", (ROOT / "constraints.txt").read_text("utf-8"), re.MULTILINE)
    assert {WORKERS["image"], EVALUATE["image"]} == {f"REGISTRY/rocsteady:{rs.__version__}"}
    assert CLUSTER["image"].startswith(f"flink:{FLINK_MINOR}-")
    assert CLUSTER["flinkVersion"] == f"v{FLINK_MINOR.replace('.', '_')}"
    assert JOB_SERVER["image"] == f"apache/beam_flink{FLINK_MINOR}_job_server:{beam[1]}"


def test_all_that_must_outlive_a_pod_is_on_the_volume():
    (container,) = CLUSTER["podTemplate"]["spec"]["containers"]
    (mount,) = container["volumeMounts"]
    (volume,) = CLUSTER["podTemplate"]["spec"]["volumes"]
    assert the("PersistentVolumeClaim", volume["persistentVolumeClaim"]["claimName"])
    assert mount["name"] == volume["name"]
    places = {name: value for name, value in CLUSTER["flinkConfiguration"].items() if "file:" in str(value)}
    assert places.keys() == {"state.checkpoints.dir", "state.savepoints.dir", "high-availability.storageDir"}
    for place in places.values():
        assert place.startswith(f"file://{mount['mountPath']}/")


def test_the_command_and_the_workers_see_the_state():
    volumes = {volume["name"]: volume["persistentVolumeClaim"]["claimName"] for volume in POD["volumes"]}
    assert volumes == {"state": "rocsteady-state"}
    (by_the_command,), (by_a_worker,) = EVALUATE["volumeMounts"], WORKERS["volumeMounts"]
    assert by_the_command == {"name": "state", "mountPath": "/state", "readOnly": True}
    assert by_a_worker == {"name": "state", "mountPath": "/state"}, "a worker writes exports"
    assert OPTIONS.control.startswith("/state/")
    assert "# - --savepoint_path=file:///state/" in TEXT


def test_the_cluster_can_be_applied_without_the_job():
    assert the("Job", "rocsteady-evaluate")["metadata"]["labels"] == {"app": "rocsteady-evaluate"}
    assert [each for each in OBJECTS if "labels" in each["metadata"]] == [the("Job", "rocsteady-evaluate")]


def test_settings_that_belong_to_a_job_are_not_in_the_cluster():
    assert not [name for name in CLUSTER["flinkConfiguration"] if name.startswith("execution.")]
    assert int(BEAM["checkpoint_timeout_millis"]) > 0


def test_a_job_that_may_run_is_never_started_a_second_time():
    job = the("Job", "rocsteady-evaluate")["spec"]
    by_condition, by_status = job["podFailurePolicy"]["rules"]
    assert (by_condition["action"], by_status["action"]) == ("FailJob", "FailJob")
    assert by_status["onExitCodes"] == {"containerName": EVALUATE["name"], "operator": "NotIn", "values": [2]}
    assert POD["restartPolicy"] == "Never"
