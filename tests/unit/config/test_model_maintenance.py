import pytest
from pydantic import ValidationError

from ingestd.config.model import CompactionSection, ExpirySection


@pytest.mark.parametrize("text", ["off", "false", "False"])
def test_off_is_understood_in_whatever_way_yaml_puts_it(text: str) -> None:
    assert CompactionSection.model_validate({"mode": text}).mode == "off"


@pytest.mark.parametrize("section", [{"mode": "true"}, {"mode": "on"}, {"processes": 0}])
def test_what_makes_no_sense_is_refused(section: dict[str, object]) -> None:
    with pytest.raises(ValidationError):
        CompactionSection.model_validate(section)


def test_an_interval_of_nothing_is_refused() -> None:
    with pytest.raises(ValidationError):
        ExpirySection.model_validate({"interval": "0s"})
