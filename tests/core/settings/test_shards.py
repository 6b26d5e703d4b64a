"""Models with a shard of their own: the rest stays where it was, the rows too, and a state knows of it."""

from __future__ import annotations

import copy
import pickle

import numpy as np
import pytest
from rocsteady.core.errors import ConfigError, OtherConfigurationError
from rocsteady.core.ids.sharding import shard_of
from rocsteady.core.join.join import LabelJoin
from rocsteady.core.join.join_settings import JoinSettings
from rocsteady.core.settings.table import Shards, TableSettings
from rocsteady.core.table.table import EvaluatorTable
from rocsteady.pipelines.cli import main

MODELS = [f"m{number}" for number in range(200)]


def test_a_model_of_its_own_leaves_and_no_other_moves():
    before, after = shard_of(MODELS, 16), shard_of(MODELS, Shards(16, own=["m7", "m3"]))
    assert after[7] == 16
    assert after[3] == 17
    others = np.delete(np.arange(200), [3, 7])
    assert np.array_equal(before[others], after[others])


@pytest.mark.parametrize("shards", [Shards(5), Shards(5, own=["a"]), Shards(1, own="abc")])
def test_it_is_a_number_that_can_be_copied_and_sent(shards):
    for copied in (pickle.loads(pickle.dumps(shards)), copy.deepcopy(shards)):
        assert copied == shards
        assert (copied.own, copied.shared, int(copied)) == (shards.own, shards.shared, int(shards))
    assert shards.own in ((), ("a",), ("abc",))
    assert len([0] * shards) == shards.shared + len(shards.own)


def test_numbers_are_equal_where_they_mean_the_same():
    assert Shards(5) == 5
    assert Shards(4, own=["a"]) != 5
    assert Shards(4, own=["a"]) != Shards(4, own=["b"])
    assert len({Shards(4, own=["a"]), Shards(4, own=["a"]), 5, Shards(5)}) == 2
    assert f"{Shards(4, own=['a'])} {Shards(5)}" == "5 5"


@pytest.mark.parametrize(("number", "own"), [(0, ()), (True, ()), ("4", ()), (4, ["a", "a"]), (4, [3])])
def test_what_cannot_be_is_refused(number, own):
    with pytest.raises(ConfigError, match=r"shards=|own="):
        Shards(number, own)


def test_a_state_is_refused_where_other_models_have_their_own():
    plain, own = TableSettings(shards=5), TableSettings(shards=Shards(4, own=["a"]))
    assert plain.fingerprint() != own.fingerprint()
    assert TableSettings.from_json(own.to_json()) == own
    assert TableSettings.from_json(plain.to_json()) == plain
    for there, here in ((plain, own), (own, plain)):
        with pytest.raises(OtherConfigurationError, match="own_shards"):
            EvaluatorTable.from_bytes(EvaluatorTable(there).to_bytes(), here)


def test_a_join_is_refused_where_other_models_have_their_own():
    plain, own = JoinSettings(10, evaluator_shards=5), JoinSettings(10, evaluator_shards=Shards(4, own=["a"]))
    for there, here in ((plain, own), (own, plain)):
        with pytest.raises(OtherConfigurationError, match="own_shards"):
            LabelJoin.from_bytes(LabelJoin(there, 0).to_bytes(), here, 0)


def test_rows_are_the_same(tmp_path):
    rng = np.random.default_rng(3)
    lines = [
        f"{rng.choice(['hot', 'hot', 'hot', 'a', 'b'])},{rng.random():.3f},{rng.integers(2)}"
        for _ in range(800)
    ]
    source = tmp_path / "s.csv"
    source.write_text("\n".join(["model,score,label", *lines]))
    outputs = []
    for more in ([], ["--own-shard", "hot", "--shards", "3"]):
        outputs.append(tmp_path / f"rows{len(outputs)}.csv")
        assert main(["evaluate", str(source), "--output", str(outputs[-1]), *more]) == 0
    assert outputs[0].read_text() == outputs[1].read_text()


def test_a_model_named_twice_is_refused_in_words(tmp_path, capsys):
    source = tmp_path / "s.csv"
    source.write_text("score,label\n.1,0\n.9,1\n")
    words = ["--own-shard", "a", "--own-shard", "a", "--output", str(tmp_path / "r.csv")]
    assert main(["evaluate", str(source), *words]) == 2
    assert "--own-shard a a: own='a': give the names of models, each once" in capsys.readouterr().err
