from ingestd.daemon.samples import Sample, Samples, by_step


def sample(at: float, lag: int | None = None, batch: float | None = None) -> Sample:
    return Sample(at, 10.0, 100, lag, None, batch)


def test_a_day_is_kept_and_no_peak_of_it_is_lost() -> None:
    samples = Samples()
    for n in range(2 * 8640):
        samples.add(sample(n * 10.0, 9999 if n == 12_000 else 1, 2.0))
    kept = samples.all()
    assert len(kept) == 360 + 23 * 60
    assert [one.at for one in kept] == sorted(one.at for one in kept)
    assert kept[-1].at - kept[0].at >= 86_000
    assert max(one.lag or 0 for one in kept) == 9999
    assert {round(one.rate or 0, 6) for one in kept} == {10.0}


def test_a_step_has_the_sums_and_the_largest_known_values() -> None:
    steps = by_step([sample(0), sample(30, 7, 1.5), sample(50, 3), sample(60)], 60)
    assert steps == [Sample(50, 30.0, 300, 7, None, 1.5), sample(60)]


def test_the_future_of_a_wrong_clock_is_not_restored() -> None:
    samples = Samples()
    samples.restore([sample(10), sample(5000)], 100)
    assert samples.all() == [sample(10)]
    assert Sample(0, 0.0, 5, None, None, None).rate is None
