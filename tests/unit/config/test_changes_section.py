import pytest
from pydantic import ValidationError

from ingestd.config.changes_section import ChangesSection, OwnChangesSection
from ingestd.config.table_sections import DefaultsSection, TableSection, settings_of
from ingestd.ingest.settings.truncate_policy import TruncatePolicy


def test_nothing_said_is_the_careful_way_and_a_table_may_say_otherwise() -> None:
    defaults = settings_of(DefaultsSection())
    assert defaults.truncates == TruncatePolicy("apply", "dead-letter")
    assert defaults.keyless_table_mode == "reject"
    said = {"on-ambiguous-truncate": "fail", "keyless-table-mode": "audit"}
    own = settings_of(TableSection.model_validate(said)).over(defaults)
    assert own.truncates == TruncatePolicy("apply", "fail")
    assert own.keyless_table_mode == "audit"
    assert settings_of(TableSection()).over(own) == own


@pytest.mark.parametrize("section", [ChangesSection, OwnChangesSection])
@pytest.mark.parametrize("key", ["on-truncate", "on-ambiguous-truncate", "keyless-table-mode"])
def test_other_words_are_refused(
    section: type[ChangesSection] | type[OwnChangesSection], key: str
) -> None:
    with pytest.raises(ValidationError, match=key):
        section.model_validate({key: "maybe"})
