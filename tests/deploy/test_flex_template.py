"""The Flex Template: what a form shows is what the parser takes, and the launcher's call describes a job."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rocsteady.core.errors import ConfigError
from rocsteady.core.settings.windows import parse_every, parse_window
from rocsteady.pipelines.cli import parse

from tests.support.servers.google_cloud import IMAGE

ENTRY = Path(__file__).parents[2] / "examples" / "deploy" / "flex_template.py"
entry = SimpleNamespace(__name__="flex_template", __file__=str(ENTRY))
exec(compile(ENTRY.read_text("utf-8"), ENTRY, "exec"), entry.__dict__)
TEMPLATE = entry.template(IMAGE)
PARAMETERS = {parameter["name"]: parameter for parameter in TEMPLATE["metadata"]["parameters"]}

GIVEN = {
    "source": "gs://bucket/day-*.csv;gs://bucket/more/*.parquet",
    "output": "gs://bucket/rows/",
    "score": "p;q",
    "label": "y",
    "time": "sent",
    "window": "last:7d",
    "every": "1h",
    "slice": "country;country,device",
    "alert": "auc_high < 0.8 for 3 rows;kappa_m < 0 for 2h",
    "alerts": "gs://bucket/alerts/",
    "time_unit": "ms",
    "probabilities": "true",
    "csv_safe": "false",
    "dead_letters": "",
}


def flags_of(values):
    return [f"--{name}={value}" for name, value in values.items()]


def parsed(values):
    """Return what the parser of `rocsteady` makes of parameters, and Beam's options."""
    _, options, rest = parse(entry.command_of(flags_of(values)))
    return options, rest


def test_every_option_of_evaluate_is_a_parameter_or_is_known_to_have_no_place_there():
    options, _ = parsed({"source": "gs://b/x.csv"})
    names = {entry.RENAMED.get(name, name) for name in vars(options)} - {"command"}
    assert names == (PARAMETERS.keys() | entry.NOT_THERE) - {entry.IMAGE}
    assert PARAMETERS.keys().isdisjoint(entry.NOT_THERE)


def test_parameters_reach_the_option_of_their_name():
    options, rest = parsed({**GIVEN, "sdk_container_image": IMAGE, "num_workers": "3"})
    assert options.sources == GIVEN["source"].split(";")
    assert (options.output, options.label, options.time, options.window) == (
        "gs://bucket/rows/", "y", "sent", "last:7d",
    )  # fmt: skip
    assert options.score == ["p", "q"]
    assert options.slice == ["country", "country,device"]
    assert options.alert == ["auc_high < 0.8 for 3 rows", "kappa_m < 0 for 2h"]
    assert (options.probabilities, options.csv_safe, options.dead_letters) == (True, False, None)
    assert {f"--sdk_container_image={IMAGE}", "--num_workers=3"} <= {*rest}


def test_the_labels_that_dataflow_gives_a_job_are_no_files_of_labels():
    values = {"source": "gs://b/p.csv", "label_source": "gs://b/l.csv", "labels": '{"team": "a"}'}
    options, rest = parsed(values)
    assert options.labels == ["gs://b/l.csv"]
    assert '--job_labels={"team": "a"}' in rest


@pytest.mark.parametrize("name", sorted(PARAMETERS))
def test_a_default_of_a_form_is_the_default_of_the_command(name):
    parameter = PARAMETERS[name]
    if "defaultValue" not in parameter or name == entry.IMAGE:
        return
    without, _ = parsed({"source": "gs://b/x.csv"})
    with_it, _ = parsed({"source": "gs://b/x.csv", name: parameter["defaultValue"]})
    assert vars(with_it) == vars(without)
    for regex in parameter.get("regexes", []):
        assert re.match(regex, parameter["defaultValue"])


def test_choices_of_a_form_are_those_that_the_parser_takes():
    choices = {name: one["enumOptions"] for name, one in PARAMETERS.items() if "enumOptions" in one}
    assert {"time_unit", "second_label", "parts"} <= choices.keys()
    for name, found in choices.items():
        assert found
        for choice in found:
            parsed({"source": "gs://b/x.csv", name: choice["value"]})
        with pytest.raises(ConfigError, match="no-such-choice"):
            parsed({"source": "gs://b/x.csv", name: "no-such-choice"})


def takes(name, value):
    return all(re.match(regex, value) for regex in PARAMETERS[name]["regexes"])


@given(
    kind=st.sampled_from(["last", "fading", "adaptive", "all"]),
    rest=st.one_of(
        st.integers(-3, 10**7).map(str),
        st.floats(0, 1).map(str),
        st.from_regex(r"\A[0-9]{1,4}[smhd]\Z"),
        st.sampled_from(["", "0.002:error", "0.01:brier", ":placement", "1.5h", "7 d"]),
    ),
)
def test_a_form_takes_every_window_and_interval_that_the_parser_takes(kind, rest):
    for name, text, parse_it in (("window", f"{kind}:{rest}", parse_window), ("window", kind, parse_window),
                                 ("every", rest, parse_every)):  # fmt: skip
        try:
            parse_it(text)
        except ConfigError:
            continue
        assert takes(name, text), text


@pytest.mark.parametrize(
    "name",
    [
        "source", "label_source", "output", "dead_letters", "curves", "alerts", "control", "export_state",
        "import_state",
    ],
)  # fmt: skip
def test_a_form_takes_urls_and_no_path_of_the_launcher(name):
    for url in ("gs://bucket/day-*.csv", "kafka://broker:9092/topic", "s3://b/rows/", "gs://b/a b.parquet"):
        assert takes(name, url)
    for path in ("rows.csv", "/rows/", "-", "", "://", "gs://"):
        assert not takes(name, path)
    assert takes(name, "gs://b/1.csv;gs://b/2.csv") == name.endswith("source")


@pytest.mark.parametrize("value", ["0", "1", "64", "1073741824"])
def test_whole_numbers_are_taken_and_nothing_else(value):
    assert takes("shards", value)
    assert takes("cache_bytes", value)
    assert not takes("shards", value + "x")


@pytest.mark.parametrize("name", sorted(PARAMETERS))
def test_a_parameter_has_all_that_a_form_needs(name):
    parameter = PARAMETERS[name]
    assert re.fullmatch("[a-z][a-z_]*", name)
    assert parameter["label"]
    assert parameter["helpText"]
    assert "%(" not in parameter["helpText"]
    assert "%%" not in parameter["helpText"]
    assert parameter["isOptional"] == (name not in ("source", "output", entry.IMAGE))
    for regex in parameter.get("regexes", []):
        re.compile(regex)


def test_the_template_is_a_container_spec_of_the_service(cloud):
    from google.cloud import dataflow_v1beta3 as service

    spec = service.ContainerSpec.from_json(json.dumps(TEMPLATE), ignore_unknown_fields=False)
    assert spec.image == IMAGE
    assert spec.sdk_info.language == service.SDKInfo.Language.PYTHON
    assert spec.metadata.streaming
    assert [one.name for one in spec.metadata.parameters] == [*PARAMETERS]
    kinds = {one.name: one.param_type.name for one in spec.metadata.parameters}
    assert (kinds["source"], kinds["time_unit"], kinds["csv_safe"]) == ("TEXT", "ENUM", "BOOLEAN")


def launched(*arguments, **variables):
    """Run the entry as the launcher does, a process of its own."""
    command = [sys.executable, str(ENTRY), *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=False, timeout=600)


def test_a_launch_describes_the_job_where_the_service_looks_for_it(cloud):
    place = f"{cloud.folder}/staging/template_launches/1/job_object"
    source = cloud.write("launch.csv", "model,time,score,label\nm,1,0.5,1\nm,2,0.1,0\n")
    values = {
        "source": source, "output": f"{cloud.folder}/launched/", "time": "time", "window": "last:100",
        "alert": "auc < 0.8", "alerts": f"{cloud.folder}/alerts/", "deduplicate": "", "csv_safe": "false",
        "runner": "DataflowRunner", "job_name": "launched", "template_location": place,
        "labels": '{"goog-dataflow-provided-template-type": "flex"}',
    }  # fmt: skip
    done = launched(*flags_of(values), *cloud.flags)
    assert done.returncode == 0, done.stderr
    assert done.stderr == f"rocsteady: the job is described in {place}, and Dataflow starts it\n"
    assert cloud.requests == []
    job = json.loads(cloud.read(place))
    assert job["name"] == "launched"
    assert job["type"] == "JOB_TYPE_BATCH"
    assert job["labels"] == {"goog-dataflow-provided-template-type": "flex"}
    options = job["environment"]["sdkPipelineOptions"]["options"]
    assert options["sdk_container_image"] == IMAGE
    assert cloud.read(options["pipelineUrl"])


@pytest.mark.parametrize(
    ("values", "said"),
    [
        ({"output": "gs://b/rows/"}, "parameter source '': give URLs"),
        ({"source": ";", "output": "gs://b/rows/"}, "parameter source ';': give URLs"),
        (
            {"source": "gs://b/x.csv", "probabilities": "no"},
            "parameter probabilities 'no': give true or false",
        ),
        ({"source": "gs://b/x.csv", "windw": "all"}, "option --windw is neither rocsteady's nor Beam's"),
        ({"source": "gs://b/x.csv", "window": "last:many"}, "--window last:many"),
        ({"source": "--follow", "output": "gs://b/rows/"}, "parameter source '--follow': give URLs"),
        ({"source": "gs://b/x.csv", "output": "gs://b/rows/", "second_label": "none"}, "second-label"),
    ],
)
def test_a_wrong_parameter_is_named_in_a_sentence(values, said, capsys):
    assert entry.main(flags_of(values)) == 2
    message = capsys.readouterr().err
    assert said in message
    assert "Traceback" not in message


def test_the_file_writes_the_template_for_an_image(capsys):
    assert entry.main(["spec", IMAGE]) == 0
    assert json.loads(capsys.readouterr().out) == TEMPLATE
    assert entry.main(["spec"]) == 2
    assert "give the name of the image" in capsys.readouterr().err
