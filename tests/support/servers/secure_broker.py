"""A Kafka broker that also listens for clients with a password and for clients with TLS."""

from pathlib import Path

from rocsteady.runners.servers.kafka import KafkaBroker, _run
from rocsteady.runners.servers.processes import HOST, free_port

USER, PASSWORD = "rocsteady", "not a secret"
"""The only user of the listener with passwords; the same password protects the key of TLS."""

_LOGIN = "org.apache.kafka.common.security.plain.PlainLoginModule"


class SecureBroker(KafkaBroker):
    """A broker with two more listeners.

    At `sasl_address` clients need a password (SASL_PLAINTEXT, PLAIN). At `tls_address` they need TLS (SSL).
    The self-signed certificate of this listener is the file `certificate` (ssl.ca.location).
    """

    def __init__(self, folder, *, settings=None):
        super().__init__(folder, settings=settings)
        self.sasl_address = f"{HOST}:{free_port()}"
        self.tls_address = f"{HOST}:{free_port()}"
        self.certificate = self.folder / "certificate.pem"
        self._keys = self.folder / "keys.p12"
        for name in ("listeners", "advertised.listeners"):
            self._settings[name] += f",SASL_PLAINTEXT://{self.sasl_address},SSL://{self.tls_address}"
        self._settings["listener.security.protocol.map"] += ",SASL_PLAINTEXT:SASL_PLAINTEXT,SSL:SSL"
        login = f'{_LOGIN} required username="{USER}" password="{PASSWORD}" user_{USER}="{PASSWORD}";'
        self._settings |= {
            "sasl.enabled.mechanisms": "PLAIN",
            "listener.name.sasl_plaintext.plain.sasl.jaas.config": login,
            "ssl.keystore.type": "PKCS12",
            "ssl.keystore.location": str(self._keys),
            "ssl.keystore.password": PASSWORD,
        }

    def launch(self):
        self.folder.mkdir(parents=True, exist_ok=True)
        if not self.certificate.exists():
            self._make_keys()
        super().launch()

    def _make_keys(self):
        store = [
            str(Path(self._java[0]).resolve().parent / "keytool"), "-keystore", str(self._keys), "-storetype",
            "PKCS12", "-storepass", PASSWORD, "-alias", "kafka",
        ]  # fmt: skip
        names = f"-dname CN=localhost -ext san=ip:{HOST},dns:localhost"
        _run(*store, *f"-genkeypair -keyalg EC {names} -validity 3650".split())
        _run(*store, "-exportcert", "-rfc", "-file", str(self.certificate))
