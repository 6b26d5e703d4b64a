"""Learners of this package as bytes: they go on as they would have, and what was stored before is read."""

from __future__ import annotations

import base64
import math
import pickle
import zlib
from typing import Any

import numpy as np
import pytest
from rocsteady.core.errors import CorruptBytesError, ForeignBytesError, InputError
from rocsteady.core.events.columns import TextColumn
from rocsteady.core.learning.aum.learner import AumLearner
from rocsteady.core.learning.polynomial.learner import PolynomialAucLearner
from rocsteady.core.prequential.instances import Instances
from rocsteady.core.prequential.named import MixedNaiveBayes
from rocsteady.core.prequential.wire import model_bytes, model_of_bytes, unpickle

Learner = AumLearner | PolynomialAucLearner

PICKLED = {
    "aum": base64.b64decode(
        "eNqtU89r1EAUTtLN7moVBHsQTxV6iCjrQYQehKz0EDC6B8GjhCQ7MbFJZpvJuLstFYtYNzA3n/4FoniwVCh43LMXEX"
        "vw4Kn/QfFc0MnspnbTqgV9hMx7835833sz81h9MatKQtj5BLskRXa733Bxgho2jawQ2UmMEmAnb9Do1th4DhfXYBU0"
        "Vu0GcRt3wawzFT1ESR/MCqvwGh0w9O2rQljdcnFIo5iIFLkHpsSqfAtTXla2YR1M2Z9mspNrCmWqleAugXug8c+UjO"
        "aInpTHGfpuYaCxt77vVQ56EatZoe2gUFQaZLnt+jReJMCmOXqI3DTAnBRT22iJorwpU1mHO6D5nJ+1kMfyTY2djWnU"
        "6TcsMROuoyRweQ3LS3DkUM8TA9FeFjQLkUu2ckw/JyQAc2Jpv5MTY0owD9ngWU7OnGLydWi1Wjd/cBE/U0rBMetP+T"
        "QXIOVB/lyZzpmxuatPghZ2eZX248HXmOIdgPcvHw3uXymgZ0sd/W4F/5JZKRL5IWUZP6YU1sC/oB1u4R8mynEmCE4W"
        "rpdmc/xZgX/tP3U+yEado/y1hDYhSLyWQStrUX5xI9zOL/IqDMTdvJ2bv15hrYuC+35KBIVzY4jtb5+/Pvn0Xu/NbB"
        "g7y1v6ymgd5pynCmh2ysXI8wI3QHEqHoqhvz2N3r36+MHQt5Z3jI2ZnjEcKSuIqSTE/EIazRNv7hK2+YhVsecRTtwY"
        "fn8w92Xz9SJ1COfnYhqnE2xGopVPVJpko1oRsuMjEvf0PyfWLLJE7QQdTm3O/wWzKjDHve+NIowidF9B1Gn8BDL6Wf"
        "w="
    ),
    "polynomial": base64.b64decode(
        "eNqVUl1IFFEU3tkf3U3BwMIgIkLClWoxEiqRZkVDaMrEV9Ph7u4dZ2p+tvkxFypbLMu6EOq1EF9C2OhFeogS+mGzIt"
        "ynIvEhkhRD8iHQB6U0Zbs7O5q75kPn4X6Xc+53z/nOOddcfe1Om2lon6oENR2CUMQXVFToCytiRFYkAYisCIEqQxWj"
        "HfXrziojeNpy9+LSKL6CvSiHDQNB1TAqlA0pHPGx5kfkDlUhiFEey6mKFDA4ziR5q0fTqafowYrKrpXWz3GbZbufDX"
        "/vKx2gXwWuP6W7B1/G0nF6Ld4xmpDK2Hfr77PNitNbxW3p/7fk/69h5DIVEwzpkTAk6pCdO4a7bt3EDdjLOBBVievq"
        "6k4liZkHY9NxgHExrk6MqGqsk2coJwRbVAgx40QeHogcKwocxLX+u/70hJxkPGFcS48dMQ3lS6CN5SDQDRVq+MysA+"
        "UKLTJpeQgzNuRiORAidHpuueErGNmLcllFDUEyHt7tvefNUkBZaLfQYaFzTSGfj+zCBkX89n/puYH5QlOLm8xeNCRZ"
        "MxeDaktVlENcikHWiAK4EzMUTwKB1M1ukOJAQIOybha3K6O0X+2b2s0XMI71VC5Wg1DOIE70e2aaFov82ZhNlCDIJD"
        "YbX2K5Q8t0rPG5r3R1kj70aZC/QE3RmUQP2wpUAchBmEGO7gflOxOUf+5NRzyZ/ECvYSbZzV6CQguvaxncoarzjTVP"
        "puOgZ3gen5umLYxnc7WLBkhNeyN3fOrhgfaBx/73bbM9x7v/4qY2GVKaWG8RG3HU9mihwF8zLv5ufjtGi649t8vu5L"
        "8uP7qyejbxLV78IBEruu/0vzhR3FvyI0mX5DEfRyYn44fFk/Pi0s/4TMV0Tc/CHF3tjl4+WJjukj210lbKbawga3qq"
        "TxpZ46LFphlP/wQZdVoEcXnE5qsVypIR8P0BZJ2Ftw=="
    ),
}
"""What `pickle` made of `taught(...)` before learners had bytes of their own, compressed."""


def instance(i: int) -> dict[str, Any]:
    return {"x": float(i % 5), "colour": "ab"[i % 2]}


def taught(learner: Any, count: int) -> Any:
    for i in range(count):
        learner.learn_one(instance(i), i % 3 == 0)
    return learner


def new(name: str) -> Learner:
    return AumLearner(8, 4) if name == "aum" else PolynomialAucLearner(4, step_fit="chebyshev")


def rich(i: int, rng: np.random.Generator) -> dict[str, Any]:
    """An instance with numbers that are missing, and texts that come and go."""
    made = {"x": float(rng.normal()), "y": float(rng.normal() * 1e6), "text": f"{i // 7}", "\udc80": "\n"}
    return {name: value for name, value in made.items() if rng.random() < 0.8}


@pytest.mark.parametrize("labels", [(False, True), (0, 1), ("a", "b", "c"), (1, True, 2.5)])
def test_at_every_prefix_aum_goes_on_to_the_last_bit(labels: tuple[Any, ...]) -> None:
    rng = np.random.default_rng(len(labels))
    events = [(rich(i, rng), labels[rng.integers(len(labels))]) for i in range(60)]
    kept, whole = AumLearner(12, 3, 0.5), AumLearner(12, 3, 0.5)
    for x, y in events:
        data = kept.to_bytes()
        kept = AumLearner.from_bytes(data)
        assert kept.to_bytes() == data
        assert repr(kept.predict_proba_one(x)) == repr(whole.predict_proba_one(x))
        kept.learn_one(x, y)
        whole.learn_one(x, y)


@pytest.mark.parametrize("step_fit", ["damped", "least_squares", "chebyshev"])
def test_at_every_prefix_polynomial_goes_on_to_the_last_bit(step_fit: Any) -> None:
    rng = np.random.default_rng(3)
    events = [(rich(i, rng), bool(rng.random() < 0.4)) for i in range(60)]
    settings: dict[str, Any] = {"degree": 8, "half_life": 20.0, "step_fit": step_fit, "max_features": 6}
    kept, whole = PolynomialAucLearner(**settings), PolynomialAucLearner(**settings)
    for x, y in events:
        data = kept.to_bytes()
        kept = PolynomialAucLearner.from_bytes(data)
        assert kept.to_bytes() == data
        assert kept.predict_proba_one(x) == whole.predict_proba_one(x)
        kept.learn_one(x, y)
        whole.learn_one(x, y)
    assert (kept.weights, kept.ignored) == (whole.weights, whole.ignored)
    assert kept.ignored > 0


@pytest.mark.parametrize(("name", "count"), [("aum", 14), ("polynomial", 6)])
def test_a_state_that_was_pickled_before_is_read_and_goes_on(name: str, count: int) -> None:
    made = new(name)
    found = model_of_bytes(name, made, zlib.decompress(PICKLED[name]))
    assert type(found) is type(made)
    right = taught(new(name), count)
    again = model_of_bytes(name, made, model_bytes(name, found))
    for learner in (found, again, right):
        taught(learner, 9)
    said = [learner.predict_proba_one(instance(1)) for learner in (found, again, right)]
    assert said[0] == said[1]
    assert said[0] == pytest.approx(said[2], rel=1e-9)  # another processor may add in another order


def test_a_pickle_that_names_the_modules_of_version_0_1_is_read() -> None:
    column = TextColumn.of(["a", None, "b"])
    given = Instances((("x", np.arange(3.0)),), (("c", column),), column, np.arange(3, dtype=np.uint64))
    data = pickle.dumps((given, MixedNaiveBayes(None)), 2)
    for now, before in (
        ("prequential.instances", "instances"),
        ("prequential.named", "named_learners"),
        ("events.columns", "text_columns"),
    ):
        assert f"crocsteady.core.{now}\n".encode() in data
        data = data.replace(f"crocsteady.core.{now}\n".encode(), f"crocsteady.core.{before}\n".encode())
    with pytest.raises(ModuleNotFoundError):
        pickle.loads(data)
    instances, learner = unpickle(data)
    assert (instances.records(), instances.answers()) == (given.records(), given.answers())
    assert type(learner) is MixedNaiveBayes


def test_a_state_says_what_it_is() -> None:
    aum, polynomial = (taught(new(name), 9).to_bytes() for name in PICKLED)
    with pytest.raises(ForeignBytesError, match="are not the state of an AumLearner"):
        AumLearner.from_bytes(polynomial)
    with pytest.raises(ForeignBytesError, match="are not the state of a PolynomialAucLearner"):
        PolynomialAucLearner.from_bytes(aum)
    with pytest.raises(CorruptBytesError, match="fails its checksum"):
        AumLearner.from_bytes(aum[:-1] + bytes([aum[-1] ^ 1]))


def test_a_class_that_no_state_can_keep_is_named() -> None:
    learner = AumLearner(4, 2)
    for label in (np.int64(1), math.inf):
        learner.learn_one({"x": 1.0}, label)
    with pytest.raises(InputError, match="the class inf cannot be kept in a state: give text, a number"):
        learner.to_bytes()
