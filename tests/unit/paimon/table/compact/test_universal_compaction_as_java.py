"""The planner against what Java's own strategies picked of thousands of buckets."""

from tests.support.pick_cases import COUNT, SEED, cases, digest, golden_picks, own_pick


def test_the_planner_picks_what_java_picked() -> None:
    given = list(cases(SEED, COUNT))
    kept, picks = golden_picks()
    # Otherwise the picks are of other cases: `python -m tests.support.pick_cases` asks again.
    assert kept == digest(given)
    assert len(picks) == COUNT
    wrong = [
        (case, own, java)
        for case, java in zip(given, picks, strict=True)
        if (own := own_pick(case)) != java
    ]
    assert wrong == []


def test_the_kept_picks_are_of_every_kind() -> None:
    _, picks = golden_picks()
    grown = [pick for pick in picks if "=" in pick]
    once = [pick for pick in picks if "=" not in pick]
    assert len(grown) > COUNT // 50
    assert COUNT // 20 < once.count("-") < COUNT // 2
    assert len(set(once)) > 50
