"""Snapshots of tables with order "time" as rocsteady 0.2 and before wrote them: all was held until the end.

Events of `OLD_EVENTS` over two partitions: WAITING is the state before the end of the first, ENDED behind it.
"""

from __future__ import annotations

import base64
import zlib

from streams import SECOND, Event

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
