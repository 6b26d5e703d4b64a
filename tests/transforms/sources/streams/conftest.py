"""What holds for all tests of readers."""

from rocsteady.transforms.sources.streams import cursor


def pytest_runtest_setup() -> None:
    """Let readers forget what messages of other tests held: it decides how many messages a step takes."""
    cursor._records_in_message.clear()
