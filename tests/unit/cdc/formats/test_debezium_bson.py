"""All spellings of MongoDB's Extended JSON become plain texts."""

import pytest

from ingestd.cdc.formats.debezium_bson import document_texts


@pytest.mark.parametrize(
    ("value", "wanted"),
    [
        ('{"$oid":"596e"}', "596e"),
        ('{"$numberLong":"12"}', "12"),
        ('{"$numberInt":"-3"}', "-3"),
        ('{"$numberDouble":"NaN"}', "NaN"),
        ('{"$numberDecimal":"3.10"}', "3.10"),
        ('{"$date":1735934393769}', "1735934393769"),
        ('{"$date":{"$numberLong":"-5"}}', "-5"),
        ('{"$date":"2025-01-03T19:59:53.769Z"}', "1735934393769"),
        ('{"$timestamp":{"t":17,"i":2}}', "17"),
        ('{"$binary":{"base64":"AQI=","subType":"00"}}', "AQI="),
        ('{"$binary":"AQI=","$type":"00"}', "AQI="),
        (
            '{"$binary":{"base64":"b5YZ/4uG0BG0LQDPT8lk/w==","subType":"04"}}',
            "6f9619ff-8b86-d011-b42d-00cf4fc964ff",
        ),
        (
            '{"$uuid":"6f9619ff-8b86-d011-b42d-00cf4fc964ff"}',
            "6f9619ff-8b86-d011-b42d-00cf4fc964ff",
        ),
        ('{"$regularExpression":{"pattern":"a.b","options":"i"}}', "/a.b/i"),
        ('{"$regex":"a.b","$options":"i"}', "/a.b/i"),
        ('{"$minKey":1}', "MinKey"),
        ('{"$code":"f()"}', "f()"),
        ('{"$undefined":true}', None),
        ("null", None),
        ("1.50", "1.50"),
        ("15e-1", "15e-1"),
        ("-0", "-0"),
        ("0", "0"),
        ("-0.0", "-0.0"),
        ("1" * 5000, "1" * 5000),
        ('{"$oid":1e5}', "1E+5"),
        ('[15e-1, "15e-1", -0]', '[1.5,"15e-1",0]'),
        ("true", "true"),
        ('"text"', "text"),
        ('{"a": {"$numberLong": "5"}, "b": [1.50, null]}', '{"a":5,"b":[1.50,null]}'),
        ('[{"$oid":"59"}]', '["59"]'),
        ('{"$numberDouble":"1.0E10"}', "1.0E10"),
        ('{"a":{"$numberDouble":"1.50"},"b":[{"$numberDouble":"-Infinity"}]}',
         '{"a":1.50,"b":["-Infinity"]}'),
    ],
)  # fmt: skip
def test_value_as_text(value: str, wanted: str | None) -> None:
    assert document_texts(f'{{"f":{value}}}') == {"f": wanted}


@pytest.mark.parametrize(
    "value", ['{"$numberLong":"x"}', '{"$date":"soon"}', '{"$binary":5}', '[{"$numberDouble":"x"}]']
)
def test_special_object_that_is_none_is_refused(value: str) -> None:
    with pytest.raises(ValueError, match=r"Extended JSON|ISO"):
        document_texts(f'{{"f":{value}}}')
