"""Snapshots as rocsteady wrote them before.

Tables with order "time" when all was held until the end: events of `OLD_EVENTS` over two partitions, WAITING
is the state before the end of the first, ENDED behind it. And a table with a clock and all that is kept
beside evaluators (version 3), and a join of labels (version 1), as code before exports of state wrote them.
And alerts as code before scopes and caps of rules wrote them: `some_state` of tests/core/alerts.
"""

from __future__ import annotations

import base64
import zlib

from tests.support.streams.partitions import SECOND, Event

OLD_EVENTS = [Event(SECOND * (7 * i % 12), f"{i}", "aü"[i % 2], i % 5 / 4, i * i % 3 % 2) for i in range(8)]


def _bytes(text: str) -> bytes:
    return zlib.decompress(base64.b64decode(text))


WAITING = {
    1: _bytes(
        "eNp1UTGLFDEUTnY5OEVQFMRGOVIfx8x6Fi7IHQfaWbh72izLkJ3J7ERzkyHJ7CrHgqCNhXC/wEr/g8UVwmJjo9jaqJ"
        "VY2QqivpfJyCoYyLy8773vex9vBsPhPiWEPPsQHe3eeH9q8Ca+eP7T6xfdLvHn6M6tnzeh4ZCJGVc1d9qw/sYh4y7J"
        "K3xGW1G8ucFSXeYyE2UqPHb1isesg4xNhOP93maPASZmwjxA0Gc5V1YklbbSyZlIAiHa6mFNySqReTIRSs+TgqscSp"
        "4ARW0ygdOZkwcClSojtbGIzGWZ6XmD6QmfSAXiwq6QXWGELbTK/Cx0GjjAVty6/rZnB1eAlrVSgBwIbmvjpUaM1yl2"
        "QUhUMw6fhZwWbLyAzCqZNq1jzApuMhukFrcJLtTVpkQHuJX7lUidyEJaceNgti6RgbsQpSePRrBq3PaUjVE1VTq9B3"
        "gcR/4sOs1PIzTE53AHw+t7lKwR/KHLrz8+t7Vf4YT0YcvLKblA/j3vdpr4cafjhQil3b/aXr2928g8vuTjGjkH347v"
        "DA++PIYB6+R0GNTeKO7RFaWnK56R9v3l/BH5j+dWYkrJmT8CX4LXb+DVLwSsYnV3/0lTOHEtWDzbWuwEneUxJ3SdnF"
        "xxd3kbe38DmCy12Q=="
    ),
    2: _bytes(
        "eNp1UcFqFEEQrZkYiLkoevEkoT0IIYTZTQRdkIji1UA2ubgsQ+9Mz05rZ3ro7tlVwkLAXHIQ/Ij8guBhD8J+gO7dQ+"
        "JF8eRVELSrp0dWwYae6npV79WjZq/b3Q8B4O7u9OnBm7e31m/vHs/nXy4uLYE7j9bnn54EAEeEjaioqJGKdNaOCDVx"
        "VuIz2oxaG2skkUXGU1YkzGH37jhMG5uRATO0095oE4uxEVMvEdzSmGZUaBaXUnPDRyz2jGizjTXBy5hn8YAJOY5zKj"
        "JbcgRblCplOJ4YfshQqVRcKo3ImBepHNeYHNABF1ac6QWyyRXTuRSpm4VWPceyBdWms+3Y3pVFi0oIixwyqivlpHqE"
        "Vgl22RCLehw+cz7MSX9iMy14Urf2McupSrWXmhwAbtRUqkAHuJYXJUsMS31aUmXsbFkgA3fBCkfu9eyucd1D0kfVRM"
        "jkucVbrcidSVj/NQh8PLN3r/v4YQDLgH909u3n56b2yx+fHje8LIAb8O/5uFPH853QCUEQLP3V9v7Ds1rm5KaLy3Dd"
        "fkPX6R90NrUDVuCKH9TcqNUOFpReL3hG2o9341fwH8+NxDCAq38Evnqv361XtxBrFasP9k/rwuX73uK1xmLodWZTCs"
        "EKrC6429rG3t8fNLax"
    ),
}
"""By version."""

ENDED = {
    1: _bytes(
        "eNqNUTFLHEEUHu9iIRjs0ikytcjecSk8EA8DdjZqtxzL7O5bd8y4s8zM3kXkwCJNCsFfYCf5CylSBEIaG0OqQJrYWe"
        "YHpMh7s3uSOyTkwfLmfd/73vd25uDw8GiBMXb9I7ga7H1bPrjtrL64/3Lzu8V8rL7qfdjHhnMOI6Eq4bTh/fVzLlyU"
        "lXQMNoPOxjpPdJHJFIoEPLb10mPWYcVjcKLf3ehyxGAE5oxAX2VCWYhKbaWTI4gaQbDZJU7JMpJZFIPS4ygXKkPKC5"
        "DUJgVy506eAk0qjdTGEjKWRarHNaZjEUuFw8H+JXa5AZtrlXov2rTRoFoJ6/o9r262QrSolELkFIStjB8VclEl1IUp"
        "UrUdHXN5nPPhBCurZFK3DqnKhUltM2oSM7pQV5kCEfpXeFNC4sAvRNbCOPTWhZ3yhReHIbL+bjgODfHe6eqP+ZAsEq"
        "WT19jU6QU+JvR8reb7/NFXz+pHZdPcmqs/fX/PnoqFuf72DPtzp85fm/ywM2Xaz1uLg92Vevbdic+Do3czXjRb/Nd2"
        "F5ch+1e053TsyS1/PW673F55ZC/ertWHpe0Zrz/IBKPW"
    ),
    2: _bytes(
        "eNqNUcFKHEEQbXcMElH8gBCR9iAEkXWjkCyIkg+IoMZDhmXomalxOmmnh+6eXYMs7CGXHAT/wi8QLx6EfED0lqOezD"
        "GfYFfPrLjDIhYMr+tVv3pVPTu7u3sNQsiH7cuvX07PF98tbQ9ubu7vNjziYv/t1PrnCUKOKXSZKJiRirYXjikzQZLj"
        "sbnSXF1eoJHMEh5DFoHjPq47Thub0RAMa7eWW9Ry0AX1A8n3GtOECQ1BLjU3vAtBpWiutLAmeB7wJAhByF6QMpHYkh"
        "PYolQxoD01/BCwU664VBqZHs9i2Ss5GbKQC9sc9BOxSRXoVIrYeeGolcaqBdOmvebU1VSWzQohLHMITBfKtfIpKyK8"
        "ZSEQpR0eU36Q0k7fZlrwqLzawSxlKtZVq35I8EVNoTLL4K5wlENkwA2E1kwZ6y0zPaxnTuz7turehtqmvn14fPsD2k"
        "GLSMjou720utZ00cf/16i+35eYTU+Wf5UM0avlV3/PyLiYqLBR05Vxu1nidYX/NocVb7bxauvTXNn7zzeHW3u/Rr3e"
        "XIziGG/2oukHJz55LrzaFmTsFv8ft5nx5h6rg5/z5eH1xohXHevxABvAp/M="
    ),
}
"""By version."""

ALERTS_VERSION_1 = _bytes(
    "eNoLCnb0YWRgYOhkYgCDhO/hYSAmJxAnliYr2CgY6JlJQDkpRfkFxQqJ6YmZecUlCkYKRfnlxSDFIANyGRCgAUazQhmMUBPxqW"
    "HBKv/AfsFMEFhpz8jAjN0EDHFGJA4jI6m6QOJMONwK03P2DAi8gbsNhx0NqH5C+IWFQFhg+h27eiYc7gGZc3jP2wVgBYm26NrQ"
    "jMMRQAx4gpV0XYy49cDVoHsDADiaULU="
)
TIMED_VERSION_3 = _bytes(
    "eNp1VGtIFFEUvrPbpmwmPaggI23oQaC2u2Kk/dhNsCKiSK0Q2Ya7O3fdwevONDO7FstaUhHZgyT/1Y8eBLHRkx6IBEoQikFlUJkF"
    "9jT8Ef4Qoqzs3jszptN2YPac853znXPuvYetqq6ucQIAOlu39Z2/tDK/9rS8WXntH/vhAkxeXuzALRwASR4lII5DXVb58oIkD3Uh"
    "olDTU+zxFhbwYTkWkUQUCyOGlZUyTNOJx4eQDst9hT6eYCiB1P0ULNWoG4FYQ4Iia5IuJZBgMjzFPhrDkiJIESGEsNwkRCGOkBAj"
    "kKCsioi253WpEdFKiirJqkaRJikmyk0GJodgSMKkONKmkPWoirSojEXWi45qcggbQ00v93nYdNZcBI/FMSZII4JaXGXF6ngYD9Ms"
    "ogRsNKRmVKqPUrsBKgoUGvlgijgalsIGK0i9KFRF6tFjikiMKyQMddqHLzFaSyJGgq5jCnnJXaWOAPoIYSyHGyhxnYcJLSbHVaM2"
    "CcvxGL1A9iL/ptariHRhV1xSMokqUNXZaHXUi5DuhE7nNM5MLatGMJhKkWUAE0SAKSfIV1VdWcEBF3AQezywMd+KTZgSaP3GWRg1"
    "IhyYA+zy1O9gBQBwsujBh72MZJFdYC75pRkcZ9aBIQ5kA7fp0c/jdVgxynGbawyyTG35M03d9fMsBzII9598Q7747aNPx0f9TsA5"
    "nIGaY0aTdx+ZPnhlnlF3bYyb2tzSgX3sdgGXYZgQO47DRJz/0QE5kPE4ljgyoqPm2EP+3FyQd39aJWsmS2eqmEO+v2ssq21m5ngb"
    "98Z6Rc46pNskZmcYi7NpO+60+TNseS5bfKbNz7L5NQvHDif6Hzwvev942d4tDRdu+ofcWuJKX3BF4dJb13cMvxhRR67e+70p+Knv"
    "zofkmi59+dpXzp7bq3qWbB6Ea/qfbH+ppiuan23wr+vuHRi83z+/TBMrdzbsvnw3eqasSh/Oakm3dJ9SEiiv+dq5zkPf22f/Wrwt"
    "ee6AMEtbVLppaGtHSvK+xZ3t6fXpgdrK3SWrvxa07dl1vOfojeEFze2fc6z76XpUZCzQyTrjcczFsh7LvmCTa2BbNHpf9J+lwLb9"
    "Dptv8f8AU1lNcw=="
)
JOIN_VERSION_1 = _bytes(
    "eNoLCvbyY2RgYHjAwgAGP6LXSJcA6WqlkpIcJSsFJSODYiUdBaWcxKTUnPic1MQUJMHi1OT8vJR4sBxIOCexuAQknpKaUlqQk5mc"
    "WJIKEraEKM5ILEopBvKNgJzUssSc0sSS/KJ4hHDtSaC90YbmBmCgo2BkCmYY6ijoWhoZGRubGxkYm1mYmpibm1oYWOgoRAPVGMTq"
    "KFQrJeeX5pVATU7OyU/OBrIR5iilF6UCXVIMVmEKFy1ILCoB2RsdDeYBnQi0KRpoXl5pTg6EBTMDyIw2BAUCXkWxtSBlQDcYmxvG"
    "xmoyQgKUQdeQEZl2SGMG0yCCFYhZoDQrAxrgtIXQQlUQWno7hFb5gqIMZg0TlGaG0ixoapigcixIehy9fcB047QZYPrgwydEmY1u"
    "JinuZsSCDQyNjE1aoPqDgl2dGIHGggIk5JuJO8zc/1AAD1Co5gJGBg10NzAcsIfQF6D0DSj9wJ4JEdKsDCJQTzDCXJKYBKQYGfzg"
    "bvEBuoUJHGgnbCK8/qMBqLIGBnhAgYMdaBw3Ax/MgyAiByQ8E6qqVLna3CGkE+oDaLgwI4UxO1r4c6Hx+dD4114VvVq97Z977NPT"
    "Wx5X6x9IjqqPdjn5f8Mqm8/bbD3OFYX9vazieMTvdfGvVXy39Zp24YubApRoYAWLNbl27yEiGjjgwf8EGMyMEN9wIKV9VmCwIAVK"
    "ElCSFSpgCiLiUYKdGRw1V20rmdHtdqioZUROSzlMkFgEahEA0VDrHKHKOMABCFNsYgoAT2fMmA=="
)
