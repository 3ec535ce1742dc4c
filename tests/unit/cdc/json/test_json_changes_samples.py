"""Every collected message becomes what is written down for it."""

import pytest

from tests.support import cdc_samples
from tests.support.cdc_samples import Sample

EXPECTED = cdc_samples.expected()


@pytest.mark.parametrize("sample", cdc_samples.samples(), ids=lambda sample: sample.name)
def test_sample_becomes_what_is_written_down(sample: Sample) -> None:
    assert cdc_samples.in_words(cdc_samples.decoded(sample)) == EXPECTED[sample.name]
